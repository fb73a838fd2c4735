#!/bin/sh
# viewer.sh - the HTML report beside d3-flame-graph with the same tree of 100,000 frames: file, open, zoom, reset, search.
#
#   viewer.sh ROUNDS SRCDIR     run in the build directory
#
#   CHROMIUM         the browser; default: chromium of the path
#   PLAYWRIGHT_DIR   where node_modules/playwright-core is; default: SRCDIR/tests/browser
#   D3_DIR           where node_modules/d3-flame-graph is; default: SRCDIR/bench/viewer
#   LIMIT            seconds for one action, 240 by default: what takes longer counts as this long and is marked ">"
set -eu
rounds=$1 srcdir=$2
CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
PLAYWRIGHT_DIR=$(cd "${PLAYWRIGHT_DIR:-$srcdir/tests/browser}" && pwd)
D3_DIR=$(cd "${D3_DIR:-$srcdir/bench/viewer}" && pwd)

missing() {
	echo "the HTML report is not measured: $1"
	exit 0
}

command -v node >/dev/null || missing "node is not installed"
[ -n "$CHROMIUM" ] || missing "chromium is not installed"
[ -d "$PLAYWRIGHT_DIR/node_modules/playwright-core" ] || missing "npm ci --prefix $srcdir/tests/browser"
[ -d "$D3_DIR/node_modules/d3-flame-graph" ] || missing "npm ci --ignore-scripts --prefix $srcdir/bench/viewer"

PAGES=$(mktemp -d)
trap 'rm -rf "$PAGES"' EXIT
tests/fx_html_page large "$PAGES/mew.html" 100000
tests/fx_html_page large "$PAGES/million.html" 1000000
export PAGES CHROMIUM PLAYWRIGHT_DIR D3_DIR
node "$srcdir/bench/viewer/viewer.mjs" "$rounds"
