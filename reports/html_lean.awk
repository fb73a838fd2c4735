# html_lean.awk - JavaScript without comments, indentation and needless blanks, and with short names.
#
# Rules of the sources that make this safe: every statement ends in a semicolon, none is empty, comments stand on lines
# of their own, no string goes over a line's end, no name begins with '$', no declared name is that of a global which is
# used elsewhere, no object has methods in shorthand and no pattern in braces has defaults. Strings and regular
# expressions pass as they are. A declared name (also of a parameter) becomes $a, $b, ... wherever it stands, unless some
# use of it may be a property's name: before a colon, or between braces and commas, where it could be shorthand.
# Constants become variables, which is shorter and lets declarations that follow each other be one.

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
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789"
	return (number < 64 ? "$" : "$" substr(letters, int(number / 64), 1)) substr(letters, number % 64 + 1, 1)
}

# The shortest names go to those that are used most; of equal ones, to the one that comes first.
function name_all(    given, i, best) {
	for (given = 0; given < kinds; given++) {
		best = ""
		for (i = 1; i <= kinds; i++)
			if (!(kind[i] in short) && (best == "" || uses[kind[i]] > uses[best])) best = kind[i]
		short[best] = brief(given)
	}
}

function declares(i) { return token[i] ~ /^(let|const)$/ && !property(i) }

# Names behind a word that declares them, and parameters: between brackets behind "function" or before "=>".
function find_declared(    i, k) {
	for (i = 1; i <= n; i++) {
		if (declares(i) || (token[i] == "function" && name[i + 1])) {
			if (name[i + 1]) declared[token[i + 1]] = 1
			if (token[i] == "function") parameters(i + 2)
		} else if (token[i] == ")" && token[i + 1] token[i + 2] == "=>") {
			for (k = i - 1; k > 0 && (name[k] || token[k] == ","); k--);
			if (token[k] == "(") parameters(k)
		}
	}
}

# Plain parameters from an open bracket on.
function parameters(i) {
	for (i++; name[i] || token[i] == ","; i++)
		if (name[i]) declared[token[i]] = 1
}

function shorten(    i, depth, open) {
	depth = 0
	find_declared()
	for (i = 1; i <= n; i++) {
		if (token[i] ~ /^[({[]$/) open[++depth] = token[i]
		if (token[i] ~ /^[]})]$/) depth--
		if (!name[i] || property(i)) continue
		if (token[i + 1] == ":" ||
		    (open[depth] == "{" && token[i - 1] ~ /^[{,]$/ && token[i + 1] ~ /^[,}]$/)) unsafe[token[i]] = 1
	}
	for (i = 1; i <= n; i++) {
		if (!name[i] || !(token[i] in declared) || token[i] in unsafe || property(i)) continue
		if (uses[token[i]]++ == 0) kind[++kinds] = token[i]
		shortened[i] = 1
	}
	name_all()
	for (i in shortened) token[i] = short[token[i]]
}

# Declarations that follow each other become one: the second word is a comma. Their kind is the same in the end.
function join_declarations(    i, depth, open) {
	depth = 0
	for (i = 1; i <= n; i++) {
		if (token[i] ~ /^[({[]$/) open[++depth] = 0
		else if (token[i] ~ /^[]})]$/) depth--
		else if (declares(i)) open[depth] = 1
		else if (token[i] == ";" && open[depth] && declares(i + 1)) {
			token[i] = ","
			token[i + 1] = ""
		} else if (token[i] == ";") open[depth] = 0
	}
}

/^[ \t]*\/\*/ { inside = 1 }
inside { if ($0 ~ /\*\//) inside = 0; next }
/^[ \t]*\/\// || /^[ \t]*$/ { next }
{
	sub(/^[ \t]+/, "")
	blank = 1
	scan($0)
}
END {
	shorten()
	join_declarations()
	brief_of["true"] = "!0"
	brief_of["false"] = "!1"
	brief_of["undefined"] = "void 0"
	brief_of["const"] = "let" # the checks of the sources are behind us
	for (i = 1; i <= n; i++) {
		if (token[i] == ";" && token[i + 1] == "}") continue
		if (token[i] == "," && token[i + 1] ~ /^[]})]$/) continue
		if (token[i] == "(" && name[i + 1] && token[i + 2] token[i + 3] token[i + 4] == ")=>") lone = i + 2
		if (i == lone - 2 || i == lone) continue # one parameter needs no brackets
		if (token[i] in brief_of && !property(i)) token[i] = brief_of[token[i]]
		if (token[i] == "0" && token[i + 1] == "." && token[i + 2] ~ /^[0-9]/) token[i] = ""
		first = token[i] == "" ? "." : substr(token[i], 1, 1)
		if ((word(last) && word(first)) || (apart[i] && first ~ /[-+]/ && first == last)) printf " "
		printf "%s", token[i]
		if (token[i] != "") last = substr(token[i], length(token[i]), 1)
	}
}
