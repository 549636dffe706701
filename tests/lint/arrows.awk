# arrows -- includes point down, and each library has one door.
#
# daemon > federation, fediverse > chat, store > queue > pg, net, crypto > base

BEGIN {
	level["common/base"] = 0
	level["common/pg"] = level["common/net"] = level["common/crypto"] = 1
	level["common/queue"] = 2
	level["common/chat"] = level["common/store"] = 3
	level["common/federation"] = level["common/fediverse"] = 4
	level["frontd"] = level["outboxd"] = level["filed"] = 5
	level["janitord"] = level["schema"] = 5
	level["tests"] = 6

	door["libpq-fe.h"] = "^common/pg/"
	door["curl/curl.h"] = "^common/net/(client|url)"
	door["json-c/"] = "^common/base/json_tree.c$"
	door["event2/"] = "^common/(base/loop.c|net/|pg/listen)"
	door["pthread.h"] = "^common/(base/(work|loop)|pg/notify)"
}

function part(path)
{
	if (path ~ /^common\//) {
		match(path, /^common\/[a-z]+/)
		return substr(path, 1, RLENGTH)
	}
	sub(/\/.*/, "", path)
	return path
}

function refuse(what)
{
	printf "%s:%d: %s\n", FILENAME, FNR, what
	failed = 1
}

/^#include "/ {
	split($0, quoted, "\"")
	from = part(FILENAME)
	to = part(quoted[2])
	if (!(to in level))
		refuse("an include is a path from the top: " quoted[2])
	else if (level[to] > level[from])
		refuse(from " must not know " to)
	else if (level[to] == level[from] && to != from && from !~ /^tests/)
		refuse(from " and " to " stand side by side")
}

/^#include </ && FILENAME !~ /^tests\// {
	split($0, angled, /[<>]/)
	for (library in door)
		if (index(angled[2], library) == 1 && FILENAME !~ door[library])
			refuse(angled[2] " has another door")
}

END { exit failed }
