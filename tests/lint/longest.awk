# longest -- the longest function and the longest file, as figures.
#
# Reads the tree's own format, as sizes.awk does; all lines count.

FNR == 1 {
	start = 0
}
/^{/ {
	start = FNR
}
/^}/ {
	if (start && FNR - start + 1 > function_lines) {
		function_lines = FNR - start + 1
		function_at = FILENAME ":" start
	}
	start = 0
}
FNR > file_lines {
	file_lines = FNR
	file_at = FILENAME
}
END {
	printf "figure=longest_function value=%d unit=lines limit=60 at=%s\n",
	    function_lines, function_at
	printf "figure=longest_file value=%d unit=lines limit=600 at=%s\n",
	    file_lines, file_at
}
