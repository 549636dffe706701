#!/bin/sh
# lint -- what can be checked without running the code.
#
# From the top of the tree: sh tests/lint/lint.sh. A tool that is missing is
# named and skipped. BUILD_DIR is a configured build directory, whose
# generated headers are read; CPPFLAGS are its preprocessor flags.
set -u
: "${BUILD_DIR:=build/devel}"
: "${CPPFLAGS:=-D_GNU_SOURCE}"
: "${CC:=cc}"
jobs=$(getconf _NPROCESSORS_ONLN)
failed=0

begin() { printf '== %s\n' "$*"; }
fail() { printf 'lint: %s\n' "$*"; failed=1; }
have() { command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; return 1; }; }

folders="common frontd janitord outboxd schema tests"
sources=$(find $folders -name '*.c' | sort)
headers=$(find $folders -name '*.h' | sort)
product=$(find common frontd janitord outboxd schema -name '*.c' | sort)

begin "include arrows, doors, sizes, plain text"
awk -f tests/lint/arrows.awk $sources $headers || fail "includes"
awk -f tests/lint/sizes.awk $sources $headers || fail "sizes"
awk -f tests/lint/text.awk $sources $headers || fail "text"
sh tests/lint/lists.sh || fail "lists of Makefile.am"
sh tests/lint/readmes.sh || fail "what READMEs name"
sh tests/lint/events.sh || fail "the table of events"

begin "every header compiles alone"
printf '%s\n' $headers | grep -v '^tests/' | xargs -n 8 -P "$jobs" sh -c '
	for header; do
		printf "#include \"%s\"\n" "$header" |
			'"$CC"' -std=gnu11 '"$CPPFLAGS"' -I. -I"'"$BUILD_DIR"'" \
			-Wall -Wextra -Werror -fsyntax-only -x c - || exit 1
	done' sh || fail "a header needs another"

begin "format"
if have clang-format; then
	printf '%s\n' $sources $headers | xargs -n 40 -P "$jobs" \
		clang-format --dry-run -Werror || fail "format"
fi

begin "cppcheck"
if have cppcheck; then
	cppcheck -q -j "$jobs" --std=c11 --language=c \
		--enable=warning,portability --inline-suppr \
		--suppressions-list=tests/lint/cppcheck.txt \
		--error-exitcode=1 -D_GNU_SOURCE '-D__attribute__(x)=' \
		--include=tests/lint/cppcheck.h -I . -I "$BUILD_DIR" \
		$product || fail "cppcheck"
fi

# What a function leaves in its outputs when it fails is never read, but the
# analyzers do not know that err_set returns false: NULL checks are off.
begin "gcc -fanalyzer"
if have gcc; then
	printf '%s\n' $product | xargs -n 4 -P "$jobs" sh -c '
		for file; do
			gcc -std=gnu11 '"$CPPFLAGS"' -I. -I"'"$BUILD_DIR"'" -O1 \
				-fanalyzer -Wno-analyzer-malloc-leak \
				-Wno-analyzer-null-argument \
				-Wno-analyzer-null-dereference \
				-Wno-analyzer-use-of-uninitialized-value \
				-Werror -c "$file" \
				-o /dev/null || exit 1
		done' sh || fail "gcc -fanalyzer"
fi

begin "clang-tidy"
if have clang-tidy; then
	printf '%s\n' $product | xargs -n 4 -P "$jobs" sh -c '
		clang-tidy --quiet "$@" -- -std=gnu11 '"$CPPFLAGS"' -I. \
			-I"'"$BUILD_DIR"'" 2>&1 |
			grep -v "warnings\? generated\|Suppressed\|Use -header-filter" |
			grep . && exit 1
		exit 0' sh || fail "clang-tidy"
fi

[ $failed = 0 ] && echo "lint: fine"
exit $failed
