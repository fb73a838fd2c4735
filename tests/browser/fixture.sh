# fixture.sh - read by browser.sh and firefox.sh: the pages that they open, in the folder PAGES, and the folder
# SCREENSHOTS for what they photograph.
# shellcheck shell=sh
builddir=${builddir:-.}

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

command -v node >/dev/null 2>&1 || skip "node is not installed"
for fixture in "$builddir/fx_html_page" "$builddir/tests/fx_html_page"; do
	if [ -x "$fixture" ]; then break; fi
	fixture=
done
[ -n "$fixture" ] || skip "fx_html_page is not built"
SCREENSHOTS=${SCREENSHOTS-$builddir/screenshots}

make_pages() {
	PAGES=$(mktemp -d "${TMPDIR:-/tmp}/mew-pages.XXXXXX") || exit 99
	trap 'rm -rf "$PAGES"' EXIT
	trap 'exit 1' HUP INT TERM
	for shape in codec recorded twins hostile empty; do
		"$fixture" "$shape" "$PAGES/$shape.html" || { echo "Bail out! no page of $shape"; exit 1; }
	done
	"$fixture" large "$PAGES/large.html" 100000 || { echo "Bail out! no large page"; exit 1; }
	"$fixture" many "$PAGES/many.html" 5000 || { echo "Bail out! no page of many cases"; exit 1; }
	"$fixture" codec "$PAGES/compared.html" 1 before || { echo "Bail out! no page of two results"; exit 1; }
	"$fixture" twins "$PAGES/paired.html" 1 older_twins || { echo "Bail out! no page of two programs"; exit 1; }
	# Source files are looked for by the names that the fixture gives them, from where it runs.
	mkdir -p "$PAGES/src/codec" || exit 99
	awk 'BEGIN { for (i = 1; i < 1000; i++) printf "\ttext %d; </script><b>&amp;\n", i }' >"$PAGES/src/codec/inflate.c"
	fixture=$(cd "$(dirname "$fixture")" && pwd)/${fixture##*/}
	(cd "$PAGES" && "$fixture" codec source.html) || { echo "Bail out! no page with source"; exit 1; }
	export PAGES SCREENSHOTS
}
