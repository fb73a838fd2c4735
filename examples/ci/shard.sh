#!/bin/sh
# shard.sh - one gate on several machines: `measure N BASE HEAD` on each of them, `join` where their folders meet.
#
# Extra flags of `mew gate` come from MEW_GATE_FLAGS, the command from MEW. A machine decides nothing: whatever its
# own verdict is, it succeeds once it has valid samples.
set -u
mew=${MEW-mew}
# shellcheck disable=SC2086 # MEW_GATE_FLAGS are words
case ${1-} in
measure)
	"$mew" gate --base "$3" --head "$4" --output "gate-$2" -q ${MEW_GATE_FLAGS---samples 40}
	code=$?
	[ $code = 2 ] || [ $code = 4 ] || code=0
	exit $code
	;;
join)
	exec "$mew" gate --merge gate-*/ --output verdict ${MEW_JOIN_FLAGS-}
	;;
*)
	echo "usage: shard.sh measure N BASE HEAD, or shard.sh join" >&2
	exit 2
	;;
esac
