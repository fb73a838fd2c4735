# tap.sh - what the scripts of tests share: results as TAP, a command's output kept. Read by `.`; builddir comes from make.
#
# A script that reads it ends with `finish`.
# shellcheck shell=sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset NO_COLOR FORCE_COLOR COLUMNS
TERM=dumb LC_ALL=C.UTF-8
export TERM LC_ALL
number=0
failed=0
code=0

result() { # NAME STATUS [WHY]: what the last command said (out, err, log) goes with a failure
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
		return
	fi
	echo "not ok $number - $1"
	[ -z "${3-}" ] || echo "# $3"
	for stream in out err log; do
		[ ! -f $stream ] || sed "s/^/# $stream: /" $stream | cut -c1-300 | head -n 25
	done
	echo "# code $code"
	failed=1
}

skip() { # NAME REASON
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

needs() { # COMMAND NAME: without it there is one test, which says so
	command -v "$1" >/dev/null 2>&1 && return
	skip "$2" "$1 is not installed"
	finish
}

# Ends the script where a sanitizer has the program's malloc and signals for itself.
needs_hooks() { # NAME REASON
	grep -q '^MEW_SANITIZE = -f' "${builddir:?}/Makefile" || return 0
	skip "$1" "$2"
	finish
}

run() { # COMMAND...: output in out and err, exit code in $code
	"$@" >out 2>err </dev/null
	code=$?
}

# check NAME CODE [PATTERN-IN-OUT [PATTERN-IN-ERR]]
check() {
	status=0
	[ "$code" = "$2" ] || status=1
	[ -z "${3-}" ] || grep -q -- "$3" out || status=1
	[ -z "${4-}" ] || grep -q -- "$4" err || status=1
	result "$1" $status "wanted code $2, out '${3-}', err '${4-}'"
}

complains() { # NAME CODE PATTERN: one line on standard error, and the exit code
	status=0
	[ "$code" = "$2" ] || status=1
	grep -q -- "$3" err || status=1
	[ "$(wc -l <err)" = 1 ] || status=1
	result "$1" $status "wanted code $2 and one line with '$3'"
}

ended() { # NAME VARIABLE=VALUE: that what was started with it is gone, in five seconds; a name would find other tests' too
	left=1
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		left=$(grep -lsz "^$2\$" /proc/[0-9]*/environ | wc -l)
		[ "$left" = 0 ] && break
		sleep 0.5
	done
	result "$1" "$left" "$left processes are left"
}

finish() {
	echo "1..$number"
	exit $failed
}
