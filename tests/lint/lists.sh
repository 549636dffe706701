#!/bin/sh
# lists -- every source of the tree is a line of Makefile.am, and every
# setting of a daemon is in the list that the others skip by.
set -eu
failed=0
for file in $(find common frontd janitord outboxd schema tests ! -path 'tests/lint/*' \
	\( -name '*.[ch]' -o -name '*.sql' -o -name README.md \) | sort); do
	grep -q "$file" Makefile.am || {
		echo "$file is in no list of Makefile.am"
		failed=1
	}
done
for key in $(sed -n 's/^.*[^#a-z]KEY([A-Z]*, \([a-z_]*\),.*/\1/p' \
	*/main.c common/base/conf_keys.c); do
	grep -q "^	\"$key\"," common/base/conf_keys.c || {
		echo "setting $key is not in conf_all_names"
		failed=1
	}
done
exit $failed
