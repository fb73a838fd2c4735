#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# dhat.sh - the memory figures of loops equal what valgrind's DHAT, an independent judge, reports of them. Prints TAP.
#
# DHAT knows no loop: it adds up the blocks of each call stack over the whole process. So the benchmark's worker runs
# under it in the timing pass, where mew's hooks are not armed, with an exact number of iterations and neither
# calibration nor warm-up: one call of the body. The blocks whose stack stands at a line of the body's loop, and not of
# a pause in it, are the marked region; set-up, release and mew itself have other lines. They are compared with the
# memory pass of the same number of iterations: all blocks and bytes, and with them the figures per iteration, are equal
# to the last byte.
#
# Peak: DHAT tells which blocks were alive when the whole process had its most bytes. That moment is the loop's peak
# where the loop needs more than set-up and release, and all else holds still while it runs; elsewhere the loop's blocks
# of that moment are too few, and the case fails. So -p stands where the loop dominates. It does not where set-up needs
# more (compress2 before inflate, the schema before sqlite's scan) or a pause does (the DELETE after sqlite's insert).
#
# Where DHAT means something else: malloc(0) is a byte there; and a block that is resized stays with the stack that made
# it first, so that one of set-up which the loop resizes (mew's `adopted`) is not the loop's. No case here has either.
#
# By hand: builddir=BUILD srcdir=. sh tests/dhat.sh
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

skip_all() { # REASON
	echo "1..0 # SKIP $1"
	exit 0
}

[ -z "${MEW_TEST_QUICK-}" ] || skip_all "the reference build is compared"

# The lines of a body's loop that are not in a pause. The loop's own line, where mew is called, is not among them.
loop_lines() { # ID SOURCE
	awk -v id="$1" '
		{ match($0, /^\t*/); depth = RLENGTH }
		$0 ~ "^MEW_BENCHMARK[A-Z_]*\\(" id "[,)]" { inside = 1 }
		/^}/ { inside = 0 }
		!inside { next }
		paused && /^\t*}/ && depth == paused_at { paused = 0; next }
		loop && !paused && /^\t*}/ && depth == loop_at { loop = 0; next }
		/MEW_LOOP/ { loop = 1; loop_at = depth; next }
		loop && /MEW_PAUSED/ { paused = 1; paused_at = depth; next }
		loop && !paused { printf "%d ", NR }' "$2"
}

# Makes $work/program, which runs a program under DHAT. mew kills the process group of a worker that takes more than two
# seconds to end, too few to write the profile on a busy machine: valgrind has a group of its own, and is waited for.
wrap() { # PROGRAM
	real=$(dirname "$1")/.libs/$(basename "$1") # the program itself where libtool put a script before it
	[ -x "$real" ] || real=$1
	{
		echo '#!/bin/sh'
		echo "LD_LIBRARY_PATH='$builddir/.libs'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} \\"
		echo "	setsid valgrind -q --tool=dhat --num-callers=200 --dhat-out-file='$work/dhat.%p' \\"
		echo "	'$real' \"\$@\""
	} >"$work/program"
	chmod +x "$work/program"
}

# One run under DHAT, whose profile goes to $work/profile.
profile() { # PROGRAM KEY BODY ITERATIONS
	wrap "$1"
	rm -f "$work"/dhat.*
	"$builddir/mew" run -q -F "$2" --min-time "$4x" --min-warmup-time 0 --json "$work/time.json" "$work/program" \
		>"$work/log" 2>&1 || return 1
	waited=0
	while [ $waited -lt 60 ]; do
		found=$(grep -l ": $3 (" "$work"/dhat.* 2>/dev/null)
		if [ -n "$found" ] && [ "$(tail -n 1 "$found")" = "}" ]; then
			mv "$found" "$work/profile"
			return 0
		fi
		sleep 1
		waited=$((waited + 1))
	done
	echo "DHAT wrote no whole profile with $3 in it" >>"$work/log"
	return 1
}

judge() { # PROGRAM SOURCE KEY ID ITERATIONS OPTION...: one line of TAP
	program=$builddir/$1 source=$srcdir/$2 key=$3 id=$4 iterations=$5
	shift 5
	number=$((number + 1))
	rm -f "$work"/*.json
	if [ ! -x "$program" ]; then
		echo "ok $number - $key # SKIP its program was not built: a library is missing"
		return
	fi
	"$builddir/mew" run -q -F "$key" --memory="$iterations" --min-time 1x --min-warmup-time 0 \
		--json "$work/memory.json" "$program" >"$work/log" 2>&1
	why=$(sed -n 's/.*"reason": "skipped: \([^"]*\)".*/\1/p' "$work/memory.json" 2>/dev/null | head -n 1)
	if [ -n "$why" ]; then # a file that the case works on is not installed
		echo "ok $number - $key # SKIP $why"
		return
	fi
	profile "$program" "$key" "mew_body_$id" "$iterations" &&
		"$builddir/tests/fx_dhat" "$@" "$key" "mew_body_$id" "$(loop_lines "$id" "$source")" \
			"$work/time.json" "$work/memory.json" "$work/profile" >"$work/log" 2>&1
	case $? in
	0) echo "ok $number - $key: $(paste -s -d ';' "$work/log" | sed 's/;/; /g')" ;;
	77) echo "ok $number - $key # SKIP $(tail -n 1 "$work/log")" ;;
	*)
		sed 's/^/# /' "$work/log" | tail -n 20
		echo "not ok $number - $key"
		failed=1
		;;
	esac
}

if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	skip_all "the malloc hooks are not in a sanitized build, and valgrind cannot run one"
fi
[ -e "$builddir/.libs/libmew_hooks.so.0" ] || skip_all "the hooks are not in this build"
command -v valgrind >/dev/null 2>&1 || skip_all "valgrind is not installed"
# valgrind may lack what it needs of the C library, and 3.19 cannot read the DWARF 5 that clang 14 writes
wrap "$builddir/examples/hello"
"$work/program" --version >"$work/log" 2>&1 ||
	skip_all "valgrind cannot run the examples as they were built: $(head -n 1 "$work/log" | tr -d '#')"

judge examples/hello examples/hello.c squares squares 20 -p
judge examples/zlib examples/zlib.c zlib/deflate/case:2 deflate 6 -p
judge examples/zlib examples/zlib.c zlib/inflate/case:2 inflate 10
judge examples/sqlite examples/sqlite.c sqlite/insert/case:1 insert 3
judge examples/sqlite examples/sqlite.c sqlite/scan/case:0 scan 10
judge examples/sqlite examples/sqlite.c sqlite/lookup/case:0 lookup 10
judge examples/jansson examples/jansson.c jansson/parse-only/case:0 parse_only 3 -p
# json_dumps notes each container it is in by its address as text, which is some digits shorter under valgrind: the
# same blocks, and so many bytes fewer for each container of the table
containers=$(tr -cd '[{' 2>/dev/null </usr/share/iso-codes/json/iso_4217.json | wc -c)
judge examples/jansson examples/jansson.c jansson/dump/case:0 dump 5 -p -u "$containers"
# what no example does: the whole family, blocks that are resized, blocks from and for a pause
judge tests/fx_family tests/fx_family.c family family 10 -p
judge tests/fx_family tests/fx_family.c resized resized 10 -p
judge tests/fx_family tests/fx_family.c shared shared 10 -p
echo "1..$number"
exit $failed
