#!/bin/sh
# turn.sh - run a test when its turn has come, for make -j: beside others, or alone when it compares times.
#
#   turn.sh COMMAND... TEST
#
#   builddir         where the lock is; without it, or without flock, the test just runs
#   MEW_ALONE        the tests that run alone
#   MEW_TEST_QUICK   times are not compared then, so that all tests run beside each other
for test in "$@"; do :; done
if [ -z "${builddir-}" ] || ! command -v flock >/dev/null 2>&1; then
	exec "$@"
fi
how=--shared
case " ${MEW_ALONE-} " in
*" tests/${test##*/} "*) [ -n "${MEW_TEST_QUICK-}" ] || how=--exclusive ;;
esac
# what a test leaves running by mistake must not keep the lock
exec flock $how --close "$builddir/tests/turn.lock" "$@"
