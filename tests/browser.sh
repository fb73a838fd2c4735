#!/bin/sh
# browser.sh - try the HTML report in a browser; prints TAP. Skips, with the reason, where something is missing.
#
#   builddir         where fx_html_page is (tests/ or the directory itself); default "."
#   CHROMIUM         the browser; default: chromium, chromium-browser or google-chrome of the path
#   PLAYWRIGHT_DIR   where node_modules/playwright-core is; default: tests/browser (npm ci --prefix tests/browser)
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
builddir=${builddir:-.}

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

command -v node >/dev/null 2>&1 || skip "node is not installed"
if [ -z "${CHROMIUM:-}" ]; then
	for name in chromium chromium-browser google-chrome; do
		if CHROMIUM=$(command -v "$name"); then break; fi
	done
fi
[ -n "${CHROMIUM:-}" ] || skip "chromium is not installed"
for dir in "${PLAYWRIGHT_DIR:-}" "$here/browser" "$builddir/tests/browser"; do
	if [ -n "$dir" ] && [ -d "$dir/node_modules/playwright-core" ]; then break; fi
	dir=
done
[ -n "$dir" ] || skip "playwright-core is not installed: npm ci --prefix tests/browser"
for fixture in "$builddir/fx_html_page" "$builddir/tests/fx_html_page"; do
	if [ -x "$fixture" ]; then break; fi
	fixture=
done
[ -n "$fixture" ] || skip "fx_html_page is not built"

PAGES=$(mktemp -d "${TMPDIR:-/tmp}/mew-pages.XXXXXX") || exit 99
trap 'rm -rf "$PAGES"' EXIT
trap 'exit 1' HUP INT TERM
for shape in codec hostile empty; do
	"$fixture" "$shape" "$PAGES/$shape.html" || { echo "Bail out! no page of $shape"; exit 1; }
done
"$fixture" large "$PAGES/large.html" 100000 || { echo "Bail out! no large page"; exit 1; }
"$fixture" codec "$PAGES/compared.html" 1 before || { echo "Bail out! no page of two results"; exit 1; }
# Source files are looked for by the names that the fixture gives them, from where it runs.
mkdir -p "$PAGES/src/codec" || exit 99
awk 'BEGIN { for (i = 1; i < 1000; i++) printf "\ttext %d; </script><b>&amp;\n", i }' >"$PAGES/src/codec/inflate.c"
fixture=$(cd "$(dirname "$fixture")" && pwd)/${fixture##*/}
(cd "$PAGES" && "$fixture" codec source.html) || { echo "Bail out! no page with source"; exit 1; }
PLAYWRIGHT_DIR=$(cd "$dir" && pwd)
export PAGES CHROMIUM PLAYWRIGHT_DIR
node "$here/browser/report.mjs"
