#!/bin/sh
# threads.sh - threads that a case makes itself, as `mew run --cpu` shows them: with the wrapper that it preloads, and
# without one. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
# shellcheck source=tests/tap.sh disable=SC2154 # make sets srcdir
. "$srcdir/tests/tap.sh"
sanitized=no
grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile" && sanitized=yes

# how many rows of by_thread have this name
rows() {
	grep -cE "^ +$1 +[0-9]" out
}

run() { # PROGRAM CASE ITERATIONS
	"$mew" run --cpu --inner-iterations "$3" -v -F "$2" "$builddir/tests/$1" >out 2>err </dev/null
}

says_scan() {
	tr -s ' \n' ' ' <out | grep -q 'found only by looking'
}

case $sanitized in
no)
	for program in fx_threads fx_threads_bare; do
		run $program threads/each 300
		status=0
		[ "$(rows once)" = 300 ] || status=1
		[ "$(rows 'benchmark thread 0')" = 1 ] || status=1
		says_scan && status=1
		result "$program: each of 300 short threads has its row" $status
		run $program threads/pool 100
		status=0
		[ "$(rows pool)" = 2 ] || status=1
		says_scan && status=1
		result "$program: the pool of the set-up" $status
	done
	;;
*)
	run fx_threads_bare threads/pool 300
	status=0
	[ "$(rows pool)" = 2 ] || status=1
	says_scan || status=1
	result "without a wrapper the pool is found, and the row says how" $status
	;;
esac

finish
