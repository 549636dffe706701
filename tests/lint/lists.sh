#!/bin/sh
# lists -- every source of the tree is a line of Makefile.am, and the settings
# of the daemons are the list that the others skip by, no more and no less.
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
for key in $(sed -n 's/^	"\([a-z_]*\)",$/\1/p' common/base/conf_keys.c); do
	grep -q "KEY([A-Z]*, $key," */main.c common/base/conf_keys.c || {
		echo "$key is in conf_all_names, but no daemon has it"
		failed=1
	}
done
exit $failed
