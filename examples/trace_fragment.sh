#!/bin/sh
# trace_fragment.sh - a script that shows on the timeline of a traced run: copy the function. Times are microseconds.
now_us() { echo "$(($(date +%s%N) / 1000))"; }
show() { # NAME START END
	[ -z "${MEW_TRACE_DIR-}" ] || printf '[{"ph":"X","pid":%d,"tid":1,"name":"%s","ts":%d,"dur":%d}]' $$ "$1" "$2" "$(($3 - $2))" \
		>"$MEW_TRACE_DIR/$$-$2.json"
}

start=$(now_us)
sleep 0.01
show "from a shell script" "$start" "$(now_us)"
