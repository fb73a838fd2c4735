# html_lean.awk - JavaScript without comments, indentation and empty lines. Names and line ends stay, so that a browser's
# tools show what is in the sources. Comments stand on lines of their own, and no text goes over a line's end.

/^[ \t]*\/\*/ { inside = 1 }
inside { if ($0 ~ /\*\//) inside = 0; next }
/^[ \t]*\/\// || /^[ \t]*$/ { next }
{
	sub(/^[ \t]+/, "")
	print
}
