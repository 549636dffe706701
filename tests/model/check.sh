#!/bin/sh
# Checks the model: it must hold, its end must be reachable, and each switch
# that breaks the protocol must be found.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "model: skipped, spin is not installed"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run NAME WANT [-DSWITCH]: WANT is the number of errors (0 or 1).
run() {
	name=$1 want=$2
	shift 2
	spin "$@" -a "$here/delivery.pml"
	gcc -O2 -DSAFETY -DCOLLAPSE -w -o pan pan.c
	./pan -E -m1000000 -w24 >out 2>&1 || true
	grep -q 'max search depth too small\|out of memory' out && { cat out; exit 1; }
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	states=$(sed -n 's/ *\([0-9e.+]*\) states, stored.*/\1/p' out)
	echo "model: $name: $states states, $errors errors (want $want)"
	[ "$errors" = "$want" ] || { cat out; exit 1; }
}

run holds 0
run 'can end' 1 -DREACH
for switch in NO_MARK STALE_MARK NO_TOMB SEND_LAST SEND_EARLY; do
	run "$switch breaks it" 1 "-D$switch"
done
