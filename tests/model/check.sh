#!/bin/sh
# Checks the models: each must hold, its end must be reachable, and each switch
# that breaks the protocol must be found.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "model: skipped, spin is not installed"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run MODEL NAME WANT [-DSWITCH]: WANT is the number of errors (0 or 1).
run() {
	model=$1 name=$2 want=$3
	shift 3
	spin "$@" -a "$here/$model.pml"
	gcc -O2 -DSAFETY -DCOLLAPSE -w -o pan pan.c
	./pan -E -m1000000 -w24 >out 2>&1 || true
	grep -q 'max search depth too small\|out of memory' out && { cat out; exit 1; }
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	states=$(sed -n 's/ *\([0-9e.+]*\) states, stored.*/\1/p' out)
	echo "model: $model: $name: $states states, $errors errors (want $want)"
	[ "$errors" = "$want" ] || { cat out; exit 1; }
}

# check MODEL SWITCH...
check() {
	checked=$1
	shift
	run "$checked" holds 0
	run "$checked" 'can end' 1 -DREACH
	for switch in "$@"; do
		run "$checked" "$switch breaks it" 1 "-D$switch"
	done
}

check delivery NO_MARK STALE_MARK NO_TOMB SEND_LAST SEND_EARLY
check outbox NO_LATE ID_FIRST FLOOR_AT_ONCE LOW_PAST PUT_BACK_LOST
