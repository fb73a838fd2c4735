#!/bin/sh
# browser.sh - try the HTML report in Chromium; prints TAP. Skips, with the reason, where something is missing.
#
#   builddir         where fx_html_page is (tests/ or the directory itself); default "."
#   CHROMIUM         the browser; default: chromium, chromium-browser or google-chrome of the path
#   PLAYWRIGHT_DIR   where node_modules/playwright-core is; default: tests/browser (npm ci --prefix tests/browser)
#   SCREENSHOTS      the folder for pictures of the views, none if empty; default: screenshots of the build directory
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
# shellcheck source=tests/browser/fixture.sh
. "$here/browser/fixture.sh"

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
PLAYWRIGHT_DIR=$(cd "$dir" && pwd)
export CHROMIUM PLAYWRIGHT_DIR
make_pages
node "$here/browser/report.mjs"
