#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# docs.sh - the code in README.md and the manual pages compiles without a warning, and what is a whole program there runs.
# Prints TAP. A block that this script does not know fails it: say here what stands around it.
#
# builddir, srcdir, CC and CXX come from make; run by hand: builddir=BUILD srcdir=. CC=gcc CXX=g++ sh tests/docs.sh
set -u
docs=$(cd "$srcdir" && pwd) || exit 99
# shellcheck source=tests/tap.sh
. "$docs/tests/tap.sh"
strict="-Wall -Wextra -Wpedantic -Werror -Wno-unused-function -Wno-unused-variable -I$docs/include"

# Each literal block of a manual page, or each block of C of a Markdown file, becomes PREFIX-N.
manual_blocks() { # FILE PREFIX
	awk -v prefix="$2" '
		/^\.Bd -literal/ { n++; inside = 1; next }
		/^\.Ed/ { inside = 0 }
		inside { gsub(/\\e/, "\\"); gsub(/\\-/, "-"); sub(/^\\&/, ""); print >(prefix "-" n) }' "$1"
}
markdown_blocks() {
	awk -v prefix="$2" '
		/^```/ { if (inside) inside = 0; else { kind = substr($0, 4); inside = 1; n += kind == "c" }; next }
		inside && kind == "c" { print >(prefix "-" n) }' "$1"
}

# What a block stands in, by words of its own: the whole file goes to block.c or block.cc.
in_body() { # BLOCK: statements of a body with `st`
	echo '#include <mew.h>'
	echo '#include <mew/pool.h>'
	echo '#include <mew/trace.h>'
	echo 'struct input { int n; };'
	echo 'void parse(struct input *in);'
	echo 'struct queue;'
	echo 'void queue_push(struct queue *q, const char *text);'
	echo 'static void body(struct mew_state *st, struct input in, struct queue *q)'
	echo '{'
	echo '	(void)st, (void)in, (void)q;'
	cat "$1"
	echo '}'
}
in_function() { # BLOCK: statements of a program's own
	echo '#include <mew.h>'
	echo 'static void use(const struct mew_entry *entries)'
	echo '{'
	echo '	struct mew_results *r = NULL;'
	echo '	struct mew_memory_profiles *m = NULL;'
	echo '	struct mew_cpu_profiles *c = NULL;'
	echo '	const struct mew_memory_case *row = NULL;'
	cat "$1"
	echo '	(void)entries, (void)r, (void)m, (void)c, (void)row;'
	echo '}'
}
in_file() { # BLOCK: definitions; `...` is a body's loop
	echo '#include <mew.h>'
	echo '#include <stdlib.h>'
	echo '#include <unistd.h>'
	echo 'static const char *const sizes[] = { "1k", NULL };'
	sed 's/^        \.\.\.$/        MEW_LOOP(st) { mew_clobber(); }/' "$1"
}
cxx_in_file() { # BLOCK: a definition, then statements
	in_file "$1" | sed '/^r = /,$d'
	sed -n '/^r = /,$p' "$1" >statements
	in_function statements | sed 1d
}
pool() { # BLOCK
	sed -n '/^#include/p; /^static/p' "$1"
	echo '#include <stddef.h>'
	echo 'void *take(size_t size); void give_back(void *p); void forget_all(void);'
	echo 'static void use(size_t size)'
	echo '{'
	echo '	void *p;'
	sed '/^#include/d; /^static/d' "$1"
	echo '}'
}
queue_header() {
	echo 'struct queue *queue_new(int n);'
	echo 'void queue_push(struct queue *q, const char *text);'
	echo 'void queue_pop(struct queue *q);'
	echo 'void queue_free(struct queue *q);'
}

compile() { # NAME COMPILER FLAGS... FILE
	name=$1
	shift
	# shellcheck disable=SC2086 # flags are words
	run "$@" $strict -fsyntax-only
	check "$name" 0
}
block() { # FILE
	name="$1: $(sed -n '/[a-z]/{p;q;}' "$1" | tr -d '#')"
	rm -f block.c block.cc
	case $(cat "$1") in
	*'<cmocka.h>'*)
		queue_header >queue.h
		if ! echo '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>' | $CC -x c - -fsyntax-only >/dev/null 2>&1; then
			skip "$name" "cmocka is not installed"
			return
		fi
		cp "$1" block.c ;;
	*'allocation where none'*) return ;; # what a failure prints
	*MEW_MAIN*) cp "$1" block.c ;;
	*mew::options*) cxx_in_file "$1" >block.cc ;;
	*'mew/pool.h'*) pool "$1" >block.c ;;
	*'MEW_BENCHMARK('* | *MEW_TRACE_DIR*) in_file "$1" >block.c ;;
	*mew_run* | *mew_memory_find*) in_function "$1" >block.c ;;
	*mew_section* | *mew_assert*) in_body "$1" >block.c ;;
	*)
		run false
		result "$name" 1 "no rule for this block in tests/docs.sh"
		return ;;
	esac
	# shellcheck disable=SC2086 # words
	if [ -e block.c ]; then
		compile "$name" $CC -std=c11 -D_GNU_SOURCE block.c -I.
	else
		compile "$name" ${CXX-c++} -std=c++11 block.cc
	fi
}

markdown_blocks "$docs/README.md" README
manual_blocks "$docs/man/mew.1" mew.1
manual_blocks "$docs/man/mew.3" mew.3
for file in README-* mew.1-* mew.3-*; do
	block "$file"
done
sed 1d "$docs/examples/hello.c" >hello.c
run cmp README-1 hello.c
check "README's benchmark is examples/hello.c" 0

program=$(grep -l 'zeroed, .cases' mew.3-*)
if grep -q '^MEW_SANITIZE = -f' "$builddir/Makefile"; then
	skip "the manual's program runs" "the hooks are not in a sanitized build"
else
	cp "$program" zeroed.c
	run sh -c "$CC -O2 zeroed.c -o zeroed -I'$docs/include' -L'$builddir/.libs' -Wl,-rpath,'$builddir/.libs' \
		-Wl,--no-as-needed -lmew_hooks -lmew"
	check "the manual's program links" 0
	run ./zeroed --max-time 0.02 --memory=10 --csv -
	status=0
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ print $column["key"], $column["memory_allocations_per_iteration"], $column["memory_peak_bytes"] }' out >figures
	printf 'zeroed/case:0 1 1024\nzeroed/case:1 1 65536\n' | cmp -s - figures || status=1
	result "... and counts what its text says" $status "$(cat figures)"
fi
finish
