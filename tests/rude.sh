#!/bin/sh
# rude.sh - `mew run` with bodies that close descriptors, print, go elsewhere, drop privileges: each has its figures or a
# sentence, and nobody else's are lost. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
case $builddir in /*) ;; *) builddir=$(pwd)/$builddir ;; esac
mew=$builddir/mew
. "$top/tests/tap.sh"
needs_hooks "rude bodies" "the malloc hooks are not in a sanitized build"
needs jq "rude bodies"
program=$builddir/tests/fx_rude
short="--max-time 0.02 --min-warmup-time 0 --memory=10"

# shellcheck disable=SC2086 # words
run "$mew" run $short --timeout 60 --cpu --inner-iterations 1000 --csv r.csv --json r.json "$program"
check "bodies that cannot report fail alone" 1
for key in prints moves preloads drops after; do
	row=$(jq -r --arg k "$key" '.cases[] | select(.key == $k) |
		"\(.time.status) \(.memory.status) \(.memory.allocations_per_iteration) \(.cpu.status)"' r.json)
	[ "$row" = "MEW_OK MEW_OK 1 MEW_OK" ]
	result "$key: time, memory and CPU" $? "$row"
done
for pass in time memory cpu; do
	reason=$(jq -r --arg p $pass '.cases[] | select(.key == "closes") | .[$p].reason' r.json)
	case $reason in *"closed the descriptor"*) true ;; *) false ;; esac
	result "closes, $pass: the reason" $? "$reason"
	for key in scribbles scribbles_text; do
		reason=$(jq -r --arg k $key --arg p $pass '.cases[] | select(.key == $k) | .[$p].reason' r.json)
		case $reason in *"signal 9"*) false ;; *"its answer could not be read"*) true ;; *) false ;; esac
		result "$key, $pass: the reason" $? "$reason"
	done
done
! grep -q 'no result\|behind' out
result "what a body prints is in no table" $?
[ "$(head -n 1 r.csv | cut -d, -f1)" = key ] && [ "$(grep -c 'no result' r.csv)" = 0 ]
result "... and in no file" $?
# shellcheck disable=SC2086
run "$mew" run $short --json - "$program"
jq -e '.cases | length == 8' out >/dev/null
result "... also where a report goes to standard output" $?
# shellcheck disable=SC2086
run "$mew" run --max-time 0.01 --min-warmup-time 0 --capture no --json - -k 'prints|after' "$program"
jq -e '.cases | length == 2' out >/dev/null && grep -q 'no result' err
result "... and not kept apart" $?
RUDE_LASTS=1 run "$mew" run --max-time 0.02 --min-warmup-time 0 -k closes --json r.json "$program"
reason=$(jq -r '.cases[0].time.reason' r.json)
case $reason in *"closed the descriptor"*) [ $code = 1 ] ;; *) false ;; esac
result "closes, and goes on for longer than mew waits: the reason" $? "$reason"
finish
