#!/bin/sh
# readmes -- every folder has a README, which names every file of the folder
# (`outbox` or `outbox.[ch]` names outbox.c, outbox.h and outbox.sql).
set -eu
failed=0
for file in $(find common/* filed frontd janitord outboxd packaging schema tests \
	-type f ! -name '*.sql.h' ! -path 'tests/fuzz/corpus/*' |
	grep -E '\.([ch]|sql|sh|awk|mjs|pml|txt)$' | sort); do
	folder=${file%/*}
	name=${file##*/}
	stem=${name%%.*}
	if [ ! -f "$folder/README.md" ]; then
		echo "$folder has no README"
		failed=1
	elif ! grep -qE "(^|[^A-Za-z0-9_])$stem([^A-Za-z0-9_]|$)" "$folder/README.md"; then
		echo "$folder/README.md does not name $name"
		failed=1
	fi
done
exit $failed
