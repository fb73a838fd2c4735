#!/bin/sh
# firefox.sh - try the HTML report in Firefox; prints TAP. Needs no package of npm. Skips, with the reason, where
# Firefox or node is missing.
#
#   builddir      where fx_html_page is (tests/ or the directory itself); default "."
#   FIREFOX       the browser; default: firefox-esr or firefox of the path
#   SCREENSHOTS   the folder for pictures of the views, none if empty; default: screenshots of the build directory
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
# shellcheck source=tests/browser/fixture.sh
. "$here/browser/fixture.sh"

if [ -z "${FIREFOX:-}" ]; then
	for name in firefox-esr firefox; do
		if FIREFOX=$(command -v "$name"); then break; fi
	done
fi
[ -n "${FIREFOX:-}" ] || skip "firefox-esr is not installed"
export FIREFOX
make_pages
node "$here/browser/firefox.mjs"
