# html_lean.awk - JavaScript without comments, indentation and needless blanks, and with short names at its top level.
#
# Rules of the sources that make this safe: every statement ends in a semicolon, none is empty, comments stand on lines
# of their own, no string goes over a line's end, no name begins with '$'. Strings and regular expressions pass as they
# are. A name declared in the first column is shortened to $a, $b, ... unless some use of it may be a property's name:
# before a colon, or between braces and commas, where it could be shorthand.

function word(c) { return c ~ /[A-Za-z0-9_$]/ }

function add(text, is_name) {
	token[++n] = text
	name[n] = is_name
	apart[n] = blank
	blank = 0
}

# Does a slash begin a regular expression here?
function opens(    last) {
	last = substr(token[n], length(token[n]), 1)
	return n == 0 || token[n] == "return" || index("(,=:[!&|?{};>", last)
}

# Take a string or an expression whole; returns the index of its last character.
function literal(line, at, mark,    from, c, class) {
	from = at
	for (at++; at <= length(line); at++) {
		c = substr(line, at, 1)
		if (c == "\\") at++
		else if (mark == "/" && c == "[") class = 1
		else if (mark == "/" && c == "]") class = 0
		else if (c == mark && !class) break
	}
	add(substr(line, from, at - from + 1), 0)
	return at
}

function scan(line,    at, c, from) {
	for (at = 1; at <= length(line); at++) {
		c = substr(line, at, 1)
		if (c == "'" || c == "\"" || (c == "/" && opens())) {
			at = literal(line, at, c)
		} else if (word(c)) {
			from = at
			while (word(substr(line, at + 1, 1))) at++
			add(substr(line, from, at - from + 1), c ~ /[A-Za-z_]/)
		} else if (c == " ") {
			blank = 1
		} else {
			add(c, 0)
		}
	}
}

# Behind a full stop stands a property; behind three, a name.
function property(i) { return token[i - 1] == "." && token[i - 2] != "." }

function brief(number,    letters) {
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return (number < 52 ? "$" : "$" int(number / 52)) substr(letters, number % 52 + 1, 1)
}

function shorten(    i, count) {
	for (i = 1; i <= n; i++) {
		if (!name[i] || property(i)) continue
		if (token[i + 1] == ":" || (token[i - 1] ~ /^[{,]$/ && token[i + 1] ~ /^[,}]$/)) unsafe[token[i]] = 1
	}
	for (i = 1; i <= n; i++) {
		if (!name[i] || !(token[i] in top) || token[i] in unsafe || property(i)) continue
		if (!(token[i] in short)) short[token[i]] = brief(count++)
		token[i] = short[token[i]]
	}
}

/^[ \t]*\/\*/ { inside = 1 }
inside { if ($0 ~ /\*\//) inside = 0; next }
/^[ \t]*\/\// || /^[ \t]*$/ { next }
/^(async )?function / || /^(const|let) / {
	declared = $0
	sub(/^(async )?function |^(const|let) /, "", declared)
	sub(/[^A-Za-z0-9_].*/, "", declared)
	top[declared] = 1
}
{
	sub(/^[ \t]+/, "")
	blank = 1
	scan($0)
}
END {
	shorten()
	brief_of["true"] = "!0"
	brief_of["false"] = "!1"
	brief_of["undefined"] = "void 0"
	for (i = 1; i <= n; i++) {
		if (token[i] == ";" && token[i + 1] == "}") continue
		if (token[i] == "," && token[i + 1] ~ /^[]})]$/) continue
		if (token[i] in brief_of && !property(i)) token[i] = brief_of[token[i]]
		if (token[i] == "0" && token[i + 1] == "." && token[i + 2] ~ /^[0-9]/) token[i] = ""
		first = token[i] == "" ? "." : substr(token[i], 1, 1)
		if ((word(last) && word(first)) || (apart[i] && first ~ /[-+]/ && first == last)) printf " "
		printf "%s", token[i]
		if (token[i] != "") last = substr(token[i], length(token[i]), 1)
	}
}
