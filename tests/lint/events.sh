#!/bin/sh
# events -- README.md's table of events is the dispatch table of relay.c: the
# same types, taken where it says, sent where it says, and named by the tests
# that it names.
set -eu
table=common/federation/relay.c
failed=0
fault() {
	echo "README.md, events: $*"
	failed=1
}
names() { tr ',' '\n' | sed -n 's/.*`\([^`]*\)`.*/\1/p'; }

types=$(sed -n '/^static const struct event_type event_types/,/^};/s/^	{ "\([a-z_]*\)".*/\1/p' $table)
told=$(sed -n 's/^| `\([a-z_]*\)` | .* | `event_[a-z_]*` | .*/\1/p' README.md)
[ -n "$types" ] || fault "no types found in $table"
for type in $types; do
	echo "$told" | grep -qx "$type" || fault "$type is taken but not in the table"
done
for type in $told; do
	echo "$types" | grep -qx "$type" || {
		fault "$type is in the table but not taken"
		continue
	}
	row=$(grep "^| \`$type\` | " README.md)
	sender=$(echo "$row" | cut -d'|' -f3 | sed -n 's/^ `\([a-z_]*\)` $/\1/p')
	taker=$(echo "$row" | cut -d'|' -f4 | names)
	apply=$(sed -n "s/^	{ \"$type\",.*[ ,]\([a-z_]*_apply\) },\$/\1/p" $table)
	if [ -n "$sender" ]; then
		grep -qw "$type" "common/federation/$sender.c" "common/federation/$sender.h" ||
			fault "$sender does not send $type"
	elif grep -rqw "\"$type\"" common/federation/outbox_*.c; then
		fault "$type is sent, the table says it is not"
	fi
	grep -q "^bool $apply(" "common/federation/$taker.c" ||
		fault "$taker does not take $type"
	[ "$(echo "$row" | cut -d'|' -f5 | names | wc -l)" -ge 2 ] ||
		fault "$type wants a wire test and one of its own"
	for test in $(echo "$row" | cut -d'|' -f5 | names); do
		grep -qw "$type" "tests/$test" || fault "tests/$test does not name $type"
	done
done
exit $failed
