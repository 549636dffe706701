# text -- words that mean unfinished or private work, and loose ends.

function refuse(what)
{
	printf "%s:%d: %s\n", FILENAME, FNR, what
	failed = 1
}

/(^|[^A-Za-z])(TODO|FIXME|XXX|HACK)([^A-Za-z]|$)/ { refuse("unfinished") }
/^[ \t]*#[ \t]*if 0/ { refuse("code that is switched off") }
/^[ \t]*goto / { refuse("goto") }
/[ \t]$/ { refuse("space at the end of the line") }
/^[ \t]*#[ \t]*if(n?def)?[ (]/ && FILENAME !~ /^common\/base\// && \
    FILENAME !~ /\.h$/ { refuse("a conditional outside common/base") }

END { exit failed }
