# sizes -- files of at most 600 lines, functions of at most 60 (and their
# nesting at most 3 deep), parameters at most 6 (7 with an err at the end).
#
# Tables, between "clang-format off" and "on", are not counted.
# Reads the tree's own format: a function's brace stands in column 1. A table
# at file scope also ends with a brace in column 1, but begins with none.

function refuse(line, what)
{
	printf "%s:%d: %s\n", FILENAME, line, what
	failed = 1
}

function check_parameters(head,    list, count, allowed)
{
	list = head
	sub(/^[^(]*\(/, "", list)
	gsub(/\([^()]*\)/, "", list)
	# A statement's values come from a macro, as one list.
	sub(/, *(\t| )*const struct val \*vals, size_t count/, "", list)
	count = gsub(/,/, ",", list) + 1
	allowed = list ~ /err \*err\)?$/ ? 7 : 6
	if (count > allowed)
		refuse(start, count " parameters")
}

FNR == 1 {
	head = ""
	inside = 0
}

FNR == 601 { refuse(FNR, "the file is longer than 600 lines") }

!inside && /^\{/ {
	inside = 1
	start = FNR
	table = 0
	check_parameters(head)
}

!inside { head = /^$|^}|;$/ ? "" : head $0 }

inside && /^\t+(if|for|while|do|switch)[ (].*[^;]$/ {
	match($0, /^\t+/)
	if (RLENGTH > 4)
		refuse(FNR, "nested deeper than three")
}

inside && /clang-format off/ { table_start = FNR }
inside && /clang-format on/ { table += FNR - table_start + 1 }

inside && /^}/ {
	inside = 0
	head = ""
	if (FNR - start - 1 - table > 60)
		refuse(start, "a function of " (FNR - start - 1) " lines")
}

END { exit failed }
