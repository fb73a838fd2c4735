#!/bin/sh
# threads.sh - threads that a case makes itself, as `mew run --cpu` shows them: with the wrapper that it preloads, and
# without one. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
mew=$builddir/mew
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0
sanitized=no
grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile" && sanitized=yes

result() { # NAME STATUS
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$work/out" "$work/err" | grep -vE '^# +once' | head -n 60
		failed=1
	fi
}

# how many rows of by_thread have this name
rows() {
	grep -cE "^ +$1 +[0-9]" "$work/out"
}

run() { # PROGRAM CASE ITERATIONS
	"$mew" run --cpu --inner-iterations "$3" -v -F "$2" "$builddir/tests/$1" >"$work/out" 2>"$work/err" </dev/null
}

says_scan() {
	tr -s ' \n' ' ' <"$work/out" | grep -q 'found only by looking'
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

echo "1..$number"
exit $failed
