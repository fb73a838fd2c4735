#!/bin/sh
# trace.sh - does a trace change what is measured: the same timing run with and without `--trace`, in turn. The ratio of the
# medians is to be read beside the width of their intervals, which is a row of its own.
#
#   trace.sh ROUNDS SRCDIR PROGRAM...
set -eu
rounds=$1
source=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/one" <<'END'
"$@" -q --max-time 0.3 --json "$0.json" >/dev/null
awk -F': ' '{ sub(/,$/, "", $2) }
	$1 ~ /"key"$/ { gsub(/"/, "", $2); key = $2 }
	$1 ~ /"median_ns"$/ { print key "_median_ns", $2; median = $2 }
	$1 ~ /"median_low_ns"$/ { low = $2 }
	$1 ~ /"median_high_ns"$/ { printf "%s_interval_%% %.3f\n", key, ($2 - low) / median * 100 }' "$0.json"
END
sh "$source/bench/compare.sh" "$rounds" "untraced=sh '$work/one' ./mew run $*" "traced=sh '$work/one' ./mew run --trace='$work/t.json' $*"
