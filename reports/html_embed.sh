#!/bin/sh
# html_embed.sh - turn the viewer's sources into a C header at build time.
#
#   html_embed.sh OUTPUT.h viewer.html viewer.css loader.js FILE.js...
#
# The header has two arrays: the page before its data and the page after it. Comments and indentation are left out. The
# loader stands in the page as it is, the other scripts become one that is deflated, in base64, with the style as its
# text STYLE. The page's policy names the SHA-256 of both scripts and of the one style, so that a browser runs nothing else.
set -eu
LC_ALL=C
export LC_ALL

if [ $# -lt 5 ]; then
	echo "usage: html_embed.sh OUTPUT.h viewer.html viewer.css loader.js FILE.js..." >&2
	exit 2
fi
output=$1 html=$2 css=$3 loader=$4
shift 4
here=$(dirname "$0")
work=$(mktemp -d "${TMPDIR:-/tmp}/mew-embed.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Base64 of the SHA-256, as a policy wants it.
digest() {
	if command -v sha256sum >/dev/null 2>&1; then hex=$(sha256sum <"$1"); else hex=$(shasum -a 256 <"$1"); fi
	printf '%s\n' "${hex%% *}" | awk '{
		digits = "0123456789abcdef"
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		hex = $1 "00"
		for (i = 1; i < length(hex); i += 3) {
			v = 0
			for (k = 0; k < 3; k++) v = v * 16 + index(digits, substr(hex, i + k, 1)) - 1
			out = out substr(letters, int(v / 64) + 1, 1) substr(letters, v % 64 + 1, 1)
		}
		print substr(out, 1, 43) "="
	}'
}

# A file as a C array without an ending NUL.
array() {
	printf 'static const unsigned char %s[] = {\n' "$1"
	od -An -v -tu1 "$2" | sed -e 's/^ *//' -e 's/  */,/g' -e 's/$/,/'
	printf '};\n'
}

sed -e 's/^[[:space:]]*//' -e '/^\/\*.*\*\/$/d' "$css" | tr -d '\n' |
	sed -e 's/ *\([{};,>]\) */\1/g' -e 's/\([a-z-]\): /\1:/g' -e 's/;}/}/g' >"$work/css"
if grep -q '[`$\\]' "$work/css"; then
	echo "html_embed.sh: $css holds a backtick, dollar or backslash, which JavaScript would read; take it away" >&2
	exit 1
fi
{
	printf '(function(){"use strict";\nconst STYLE=`'
	cat "$work/css"
	printf '`;\n'
	cat "$@" | awk -f "$here/html_lean.awk"
	printf '})();\n//# sourceURL=mew-viewer.js\n'
} >"$work/js"
awk -f "$here/html_lean.awk" "$loader" >"$work/loader"
gzip -9 -n <"$work/js" | base64 | tr -d '\n' >"$work/code"
js_hash=$(digest "$work/js")
loader_hash=$(digest "$work/loader")
css_hash=$(digest "$work/css")

# The page's template in four pieces: up to the data, up to the script, up to the loader, the rest.
sed -e "s|@JS_HASH@|$js_hash|" -e "s|@LOADER_HASH@|$loader_hash|" -e "s|@CSS_HASH@|$css_hash|" "$html" | awk -v to="$work/piece" '
{
	while (match($0, /@(DATA|JS|LOADER)@/)) {
		printf "%s", substr($0, 1, RSTART - 1) >(to n + 0)
		$0 = substr($0, RSTART + RLENGTH)
		n++
	}
	print >(to n + 0)
}'
if [ ! -e "$work/piece3" ] || [ -e "$work/piece4" ]; then
	echo "html_embed.sh: $html must have @DATA@, @JS@ and @LOADER@ once each, in this order" >&2
	exit 1
fi
mv "$work/piece0" "$work/before"
cat "$work/piece1" "$work/code" "$work/piece2" "$work/loader" "$work/piece3" >"$work/after"

if grep -q '</script' "$work/loader"; then
	echo "html_embed.sh: the loader holds the text </script" >&2
	exit 1
fi
{
	echo '/* Made by html_embed.sh from the files under reports/html/; do not edit. */'
	array mew_html_before "$work/before"
	array mew_html_after "$work/after"
} >"$output.tmp"
mv "$output.tmp" "$output"
