#!/bin/sh
# lists -- every source of the tree is a line of Makefile.am.
set -eu
failed=0
for file in $(find common frontd outboxd schema tests -name '*.[ch]' -o \
	-name '*.sql' -o -name README.md -path '*/README.md' | sort); do
	grep -q "$file" Makefile.am || {
		echo "$file is in no list of Makefile.am"
		failed=1
	}
done
exit $failed
