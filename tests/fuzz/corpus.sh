#!/bin/sh
# Every harness over its corpus: what was found once stays found.
set -eu
: "${top_srcdir:=.}"
failed=0
for harness in http json sig; do
	program=tests/fuzz/${harness}_fuzz
	corpus=$top_srcdir/tests/fuzz/corpus/$harness
	[ -d "$corpus" ] || { echo "corpus: no folder $corpus"; failed=1; continue; }
	echo "corpus: $harness"
	# libFuzzer and our driver both take a folder; neither may write to it.
	"$program" "$corpus"/* || failed=1
done
exit $failed
