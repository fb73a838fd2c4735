#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir, builddir, CC and CXX
#
# allocators.sh - the memory pass under each allocator, and the reason where there is nothing to measure. Prints TAP.
#
# By hand: builddir=BUILD srcdir=. CC=gcc CXX=g++ sh tests/allocators.sh
set -u
source=$(cd "$srcdir" && pwd)
mew=$builddir/mew
libs=$builddir/.libs
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
unset LD_PRELOAD

if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	echo "1..0 # SKIP the malloc hooks are not in a sanitized build"
	exit 0
fi

link="-Wl,--no-as-needed -L$libs -Wl,-rpath,$libs"

# one that cannot be built is not there, and fails what is tested with it
c() { # PROGRAM ARGUMENT...: fx_heap.c
	program=$1
	rm -f "$program"
	shift
	# shellcheck disable=SC2086 # flags are words
	$CC -O1 -g -fno-builtin "-I$source/include" "$source/tests/fx_heap.c" -o "$program" $link "$@" >log 2>&1
}

cxx() { # PROGRAM ARGUMENT...: fx_cxx_alloc.cc
	program=$1
	rm -f "$program"
	shift
	# shellcheck disable=SC2086
	$CXX -std=c++17 -O1 -g -fno-builtin "-I$source/include" "$source/tests/fx_cxx_alloc.cc" -o "$program" $link "$@" >log 2>&1
}

measure() { # PRELOAD PROGRAM ARGUMENT...: figures into r.json; a case may fail in the timing pass
	preload=$1
	shift
	rm -f r.json
	LD_PRELOAD=$preload "$mew" run --max-time 0.001 --memory=10 --json r.json "$@" >out 2>err </dev/null
}

# a line per case of r.json: its key, the memory row's status, then the figures that are named
rows() { # FIGURE...
	tr -d '\t\n' <r.json | sed 's/"key": *"/\n&/g' | awk -v names="$*" '
		function value(text, name) {
			if (!match(text, "\"" name "\": *(\"[^\"]*\"|[^,}]*)"))
				return "?"
			text = substr(text, RSTART, RLENGTH)
			sub(/^"[^"]*": */, "", text)
			gsub(/"/, "", text)
			return text
		}
		/^"key"/ && (at = index($0, "\"memory\":")) {
			line = value($0, "key")
			memory = substr($0, at)
			n = split("status " names, name, " ")
			for (i = 1; i <= n; i++)
				line = line " " value(memory, name[i])
			print line
		}'
}

# --- each form of allocation is counted once, with the bytes that its name says ---------------------------------------

everything_counted() { # NAME PRELOAD PROGRAM
	if ! measure "$2" -k '^(c|cxx)/' "$3" && [ ! -f r.json ]; then
		result "$1" 1
		return
	fi
	rows total_allocations cumulative_bytes frees foreign_frees net_blocks failed reason >counted
	awk '{ n = split($1, part, "/"); calls = 10 * part[n - 1]; bytes = 10 * part[n] }
		$0 != $1 " MEW_OK " calls " " bytes " " calls " 0 0 0 null" { print "not exact: " $0; bad = 1 }
		END { if (NR != 16) { print NR " cases, not 16"; bad = 1 }; exit bad }' counted >log
	result "$1" $?
}

refusals_counted() { # NAME PRELOAD PROGRAM: what is thrown is caught, and what fails counts as failed
	measure "$2" -k '^refused/' "$3"
	rows failed reason >log
	[ "$(cat log)" = "refused/new MEW_OK 30 null" ]
	result "$1" $?
}

cxx plain -lmew && cxx hooked -lmew_hooks -lmew
result "the C++ program is built" $?
everything_counted "the C library" "" ./plain
everything_counted "the C library, hooks linked" "" ./hooked
refusals_counted "the C library, an operator new that throws" "" ./plain
if cxx static_cxx -lmew_hooks_cxx -lmew_hooks -lmew -static-libstdc++; then
	everything_counted "libstdc++ in the program, and operator new over the hooks" "" ./static_cxx
else
	skip "libstdc++ in the program, and operator new over the hooks" "it cannot be linked statically here"
fi

for file in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	if ! c probe "-l:$file" -lmew; then
		skip "$file" "it is not installed"
		continue
	fi
	everything_counted "$file preloaded" $file ./plain
	everything_counted "$file preloaded, hooks linked" $file ./hooked
	cxx linked -lmew "-l:$file"
	everything_counted "$file linked" "" ./linked
	cxx linked -lmew_hooks -lmew "-l:$file"
	everything_counted "$file linked behind the hooks" "" ./linked
	cxx linked -lmew_hooks_cxx -lmew_hooks -lmew "-l:$file"
	everything_counted "$file linked behind both libraries of hooks" "" ./linked
	if [ $file = libmimalloc.so.2 ]; then
		skip "$file, an operator new that throws" "that of mimalloc ends the process, with or without hooks"
	else
		refusals_counted "$file, an operator new that throws" $file ./plain
	fi
done

stack_of_new() { # PRELOAD FILE
	rm -rf folded
	LD_PRELOAD=$1 MEW_SYMBOLS=$libs/libmew_symbols.so "$mew" run --max-time 0.001 --memory=10 -k '^cxx/new/' --folded folded \
		./plain >out 2>err </dev/null && cat folded/*memory* >"$2"
}
name="stacks end in operator new, whoever provides it"
if ! c probe -l:libjemalloc.so.2 -lmew || [ ! -e "$libs/libmew_symbols.so" ]; then
	skip "$name" "it takes libjemalloc.so.2, and names, which need libdw"
else
	stack_of_new "" libc.folded && stack_of_new libjemalloc.so.2 jemalloc.folded &&
		grep -q 'operator new(unsigned [a-z]*) ' libc.folded && diff libc.folded jemalloc.folded >log
	result "$name" $?
fi

# --- measured from inside ---------------------------------------------------------------------------------------------

inside() { # NAME PATTERN PROGRAM
	"$3" --inside >out 2>err </dev/null
	grep -q -- "$2" out
	result "$1" $?
}

c heap_cxx -lmew_hooks -lmew -lstdc++
inside "libstdc++'s operator new needs no remark" '^status 0, 10 allocations, reason: none$' ./heap_cxx
have_jemalloc=no
if c probe -l:libjemalloc.so.2 -lmew; then
	have_jemalloc=yes
	c heap_je -lmew_hooks -lmew -l:libjemalloc.so.2 -lstdc++
	inside "C++ that is not counted is said on the row, which stays" \
		'^status 0, 10 alloc.*operator new is that of libjemalloc.so.2 and is not counted' ./heap_je
	c heap_je_both -lmew_hooks_cxx -lmew_hooks -lmew -l:libjemalloc.so.2 -lstdc++
	inside "... and not where -lmew_hooks_cxx is linked too" '^status 0, 10 alloc.*: none$' ./heap_je_both
	c heap_je_c -lmew_hooks -lmew -l:libjemalloc.so.2
	inside "... or where jemalloc alone needs libstdc++" '^status 0, 10 alloc.*: none$' ./heap_je_c
	c behind -l:libjemalloc.so.2 -lmew_hooks -lmew
	inside "hooks behind another allocator" '^status -3, .*not first, malloc is that of .*jemalloc' ./behind
else
	skip "C++ that is not counted is said on the row" "libjemalloc.so.2 is not installed"
fi

# --- what jemalloc itself says ----------------------------------------------------------------------------------------

edges="jemalloc_allocated_open jemalloc_allocated_close jemalloc_active_open jemalloc_active_close
	jemalloc_resident_open jemalloc_resident_close jemalloc_retained_open jemalloc_retained_close
	jemalloc_fragmentation_open jemalloc_fragmentation_close"

c heap -lmew
measure "" -k '^heap$' ./heap
# shellcheck disable=SC2086 # names
rows $edges | tee log | grep -q 'the allocator is libc.so.6: run on jemalloc to see its own figures'
result "jemalloc's figures are absent under another allocator" $?

# the loop leaves 10 blocks of a mebibyte behind
plausible() {
	# shellcheck disable=SC2086
	rows $edges >log
	awk 'function bad(why) { print why; failed = 1 }
		function near(a, b) { return a - b < 1e-9 && b - a < 1e-9 }
		{
			if ($4 - $3 < 10 * 1048576 || $4 - $3 > 12 * 1048576) bad("allocated")
			if ($5 < $3 || $6 < $4) bad("active below allocated")
			if ($7 < $5 || $8 < $6) bad("resident below active")
			if ($9 !~ /^[0-9]+$/ || $10 !~ /^[0-9]+$/) bad("retained")
			if (!near($11, 1 - $3 / $5) || !near($12, 1 - $4 / $6)) bad("fragmentation")
		}
		END { exit failed || NR != 1 }' log >>log.why
}

# Debian's archive with the names of a build --with-jemalloc-prefix=je_
prefixed() {
	archive=$(ls /usr/lib/*/libjemalloc_pic.a 2>/dev/null | head -n 1)
	[ -n "$archive" ] || return 1
	renames=
	for name in aligned_alloc calloc free mallctl mallctlbymib mallctlnametomib malloc malloc_stats_print malloc_usable_size \
		memalign posix_memalign realloc valloc; do
		renames="$renames --redefine-sym $name=je_$name"
	done
	# shellcheck disable=SC2086 # words
	objcopy $renames "$archive" libje.a >log 2>&1 && c heap_static -Wl,--whole-archive ./libje.a -Wl,--no-whole-archive \
		-lmew_hooks -lmew -lstdc++ -lpthread -ldl -lm
}

if [ $have_jemalloc = yes ]; then
	measure libjemalloc.so.2 -k '^grow$' ./heap
	plausible
	result "jemalloc's figures, preloaded" $?
	c heap_linked -lmew -l:libjemalloc.so.2
	measure "" -k '^grow$' ./heap_linked
	plausible
	result "jemalloc's figures, linked" $?
else
	skip "jemalloc's figures" "libjemalloc.so.2 is not installed"
fi
if prefixed; then
	measure "" -k '^heap$' ./heap_static
	rows jemalloc_active_close reason total_allocations >log
	grep -q '^heap MEW_OK [1-9][0-9]* null 10$' log
	result "jemalloc's figures, linked in statically with a prefix" $?
else
	skip "jemalloc's figures, linked in statically with a prefix" "libjemalloc_pic.a of libjemalloc-dev is not installed"
fi

# --- reasons instead of numbers ---------------------------------------------------------------------------------------

reason() { # NAME PATTERN PROGRAM: the memory row says so; the other passes are not harmed
	measure "" -k '^heap$' "$3"
	rows reason >log
	grep -q "^heap MEW_E_UNSUPPORTED .*$2" log && grep -q '"median_ns": *[0-9]' r.json
	result "$1" $?
}

if c frozen -static "$libs/libmew_core.a" -lpthread -ldl -lm; then
	reason "a static program" 'linked statically' ./frozen
	inside "... measured from inside" '^status -3, .*linked statically' ./frozen
else
	skip "a static program" "there is no static C library"
fi

archive=$(ls /usr/lib/*/libjemalloc.a 2>/dev/null | head -n 1)
if [ -n "$archive" ]; then
	c own "$archive" -lmew -lstdc++ -lpthread -ldl -lm
	reason "a program with an allocator inside" 'defines malloc itself' ./own
	c own "$archive" -lmew_hooks -lmew -lstdc++ -lpthread -ldl -lm
	reason "... that links the hooks too" 'defines malloc itself' ./own
	c own "$archive" -Wl,--exclude-libs,ALL -lmew_hooks -lmew -lstdc++ -lpthread -ldl -lm
	reason "... and hides it from the loader" 'defines malloc itself' ./own
else
	skip "a program with an allocator inside" "libjemalloc.a of libjemalloc-dev is not installed"
fi

sanitizer() { # FLAG NAME COMPILER
	if ! command -v "${3%% *}" >/dev/null 2>&1 || ! CC=$3 c sanitized "-fsanitize=$1" -lmew; then
		skip "a program built with $2" "$3 cannot link it here"
	elif [ "$1" = memory ] && ! "$mew" list ./sanitized >out 2>err; then
		skip "a program built with $2" "it works only when libmew is built with it too"
	else
		reason "a program built with $2" "$2" ./sanitized
	fi
}
sanitizer address AddressSanitizer "$CC"
sanitizer thread ThreadSanitizer "$CC"
sanitizer memory MemorySanitizer clang
c sanitized -DFAKE_MSAN -lmew
reason "MemorySanitizer is known by its symbol" MemorySanitizer ./sanitized

cat >other.c <<'END'
const void *mew_hooks_api(unsigned version);
const void *mew_hooks_api(unsigned version)
{
	(void)version; /* speaks none */
	return 0;
}
END
$CC -shared -fPIC other.c -o libother.so >log 2>&1 && c versions "$work/libother.so" -lmew
inside "hooks of another version" '^status -3, .*another version' ./versions

# owned by nobody and with the set-user-id bit, so that the loader ignores what is preloaded
privileged() {
	if [ "$(id -u)" != 0 ]; then
		echo "only root can give a program to another user"
		return 1
	fi
	chmod 755 "$work" && cp heap raised && chown nobody raised && chmod 4755 raised || return 1
	case $(./raised --privileged 2>&1) in
	privileged) return 0 ;;
	ordinary) echo "$work is on a file system without set-user-id" ;;
	*) echo "nobody may not read $builddir" ;;
	esac
	return 1
}
if why=$(privileged); then
	reason "a program with the privileges of its file" 'privileges of its file' ./raised
else
	skip "a program with the privileges of its file" "$why"
fi

finish
