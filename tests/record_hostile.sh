#!/bin/sh
# record_hostile.sh - `mew record` on programs that do what breaks preloaded tools: their output and exit code are those of
# a run without mew, and there is a report of what was seen. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
case $builddir in /*) ;; *) builddir=$(pwd)/$builddir ;; esac
mew=$builddir/mew
. "$top/tests/tap.sh"

needs_hooks "mew record on hostile programs" "libmew_record is not built with a sanitizer"

needs jq "mew record on hostile programs"
cp "$top/tests/fx_hostile.c" .
if ! ${CC:-gcc} -O1 -g -fno-builtin -o hostile fx_hostile.c -lpthread >log 2>&1; then
	result "the program is built" 1
	finish
fi

# same NAME [FLAGS] -- COMMAND...: standard output, standard error's absence of surprises and the code are those without mew
same() {
	name=$1 flags=
	shift
	while [ "$1" != -- ]; do flags="$flags $1"; shift; done
	shift
	[ -f in ] || : >in
	timeout 60 "$@" >alone 2>alone.err <in
	alone=$?
	# timeout itself is not recorded, and says 124 when mew does not end
	rm -f r.json
	# shellcheck disable=SC2086 # words
	timeout 60 "$mew" record --json r.json $flags -- "$@" >out 2>err <in
	code=$?
	cmp -s alone out && [ $code = $alone ]
	result "$name: the same output and code" $? "wanted code $alone and $(wc -c <alone) bytes"
}
reports() { # NAME KEY ALLOCATIONS: r.json has a row with exactly so many
	tr -d '\n ' <r.json >flat 2>/dev/null
	grep -q "\"$2\".*\"total_allocations\":$3," flat
	result "$1" $? "wanted $3 allocations of $2"
}
cases() { # the keys of r.json
	jq -r '.cases[].key' r.json
}

# --- ends ------------------------------------------------------------------------------------------------------------
# each makes exactly 100 allocations of 10 bytes first
for how in thread_exit main_gone overflow abort sigkill alternate; do
	same "$how" --memory -- ./hostile $how
	case $how in thread_exit) wanted=101 ;; *) wanted=100 ;; esac # with the thread's
	[ $how = main_gone ] || reports "$how: its report" hostile $wanted # what ends the main thread allocates too
	same "$how, with samples" --cpu=0.0005 -- ./hostile $how
	tr -s ' \n' '  ' <err >log
	case $how in
	main_gone) [ -s err ] && ! grep -q 'until then' log ;; # exit(), by a thread
	*) grep -q 'until then' log ;;
	esac
	result "$how: what the report says of its end" $?
done
same "an exec" --memory -- ./hostile exec /bin/echo became
tr -s ' \n' '  ' <err | grep -q 'it became /bin/echo (exec).*--follow records what'
result "an exec: the report says what it became, and how to see that" $?
same "an exec that fails" --memory -- ./hostile exec /nowhere/echo
! grep -q 'it became' err
result "an exec that fails is none" $?
same "a program that becomes a sleep" --follow --cpu --clock wall -- sh -c 'exec sleep 1'
jq -e '[.cases[].cpu.wall_time] | length == 2 and .[0] < .[1] / 2' r.json >/dev/null
result "... the first one's window ends where it becomes that" $? "$(jq -c '[.cases[].cpu.wall_time]' r.json)"
jq -e '.cases[0].cpu.cpu_time < 0.5 and (.cases[0].cpu.notes | tostring | contains("must not block") | not)' r.json >/dev/null
result "... with its CPU time, and nothing is said of signals" $? "$(jq -c '.cases[0].cpu.notes' r.json)"
echo ': nothing' >words
chmod +x words
same "a script without a first line" --follow --memory -- env ./words
[ "$(cases | wc -l)" = 2 ] && ! grep -q 'left out' err
result "... is the shell's" $?
same "a chain of programs" --follow --memory -- sh -c 'exec nice sh -c "exec ./hostile return"'
reports "the last of the chain" hostile 100
same "an exec, followed" --follow --memory -- ./hostile exec /bin/echo
jq -e '(.cases[0].memory.mapped_peak_bytes // 0) == 0' r.json >/dev/null
result "... what mew maps to look at the program is not the caller's" $? "$(jq -c '.cases[0].memory' r.json)"
same "many words to a variadic exec on a small stack" --memory -- ./hostile words
same "... followed" --follow --memory -- ./hostile words
same "posix_spawn() from a small stack, followed" --follow --memory -- ./hostile spawn_small ./hostile
reports "... with the report of what it starts" hostile/2 100
same "an exec by a crash handler on a small stack of its own, followed" --follow --memory -- ./hostile crash_exec /bin/echo

# --- descriptors, signals, limits --------------------------------------------------------------------------------------
for how in descriptors waits_all signalfd preload_again limited; do
	same "$how" -- ./hostile $how
done
for how in preload_again limited; do
	same "$how, followed" --follow -- ./hostile $how
done
same "a limit that a followed program inherits" --follow -- sh -c 'ulimit -v 2000000; exec ./hostile limited'
same "a child that nobody waits for" --follow --memory -- ./hostile zombie
[ "$(cases | sort | tr '\n' ' ')" = 'hostile hostile/2 ' ] && ! grep -q 'still runs' err
result "a child that nobody waits for has its report" $? "$(cases)"
timeout 60 env --ignore-signal=CHLD "$mew" record --memory --json r.json -- ./hostile return >out 2>err </dev/null
code=$?
[ $code = 0 ] && [ -s r.json ]
result "under a parent that ignores the ends of children" $?
timeout 60 env --ignore-signal=CHLD "$mew" record -q -- grep SigIgn /proc/self/status >out 2>err </dev/null
timeout 60 env --ignore-signal=CHLD grep SigIgn /proc/self/status >alone
cmp -s alone out
result "... the program ignores them too" $?
# shellcheck disable=SC3045 # every shell of Linux has it
(ulimit -n 64 && timeout 60 "$mew" record -q -- sh -c 'ulimit -Sn' >out 2>err)
[ "$(cat out)" = 64 ]
result "the limits are those of a run without mew" $?
run "$mew" record -q -- cat /proc/self/smaps
awk '/^[0-9a-f]+-[0-9a-f]+ / { ours = /memfd:mew-record/ } ours && /^Size:/ { size = $2 }
	ours && /^VmFlags:/ { n++; if (size > 65536 && !/ dd/) bad = 1 } END { exit n == 0 || bad }' out
result "its memory is in no core file" $?

# --- many processes -----------------------------------------------------------------------------------------------------
same "vfork and exec of 300 programs" --memory -- ./hostile spawn 300
[ "$(cases | wc -l)" = 1 ]
result "... not followed" $?
same "vfork and exec of 300 programs, followed" --follow --memory -- ./hostile spawn 300
[ "$(cases | wc -l)" = 301 ]
result "... each has its report" $? "$(cases | wc -l) of 301"
same "forks without exec" --follow --memory -- ./hostile forks 20
[ "$(cases | wc -l)" = 21 ]
result "... each has its report" $? "$(cases | wc -l) of 21"
same "a fork with all descriptors in use" --follow --memory -- ./hostile fork_full
reports "... the child has its report" hostile/2 1
same "forks whose parent maps memory at once" --follow --memory -- ./hostile fork_maps
# shellcheck disable=SC3045
(ulimit -n 40 && timeout 60 "$mew" record --follow --memory --json r.json -- ./hostile spawn 100 >out 2>err </dev/null
	echo $? >code)
code=$(cat code)
./hostile spawn 100 >alone
[ "$code" = 2 ] && cmp -s alone out && grep -q 'no descriptor was left' err && [ "$(cases | wc -l)" -gt 10 ]
result "more processes than descriptors: those that were seen, and a line" $?

# --- pipes, wrappers, much output ---------------------------------------------------------------------------------------
seq 100000 >in
same "standard input and much output" -- sort -rn
same "a pipeline" --follow -- sh -c 'sort -n | sed s/1/2/ | tail -n 3'
cases | grep -q '^sed$'
result "a pipeline: each part has its report" $?
rm -f in
for wrapper in "timeout 30" "nice" "setsid --wait" "env A=1"; do
	command -v "${wrapper%% *}" >/dev/null 2>&1 || { skip "under ${wrapper%% *}" "it is not installed"; continue; }
	# shellcheck disable=SC2086 # words
	same "under ${wrapper%% *}" --follow --memory -- $wrapper ./hostile return
	reports "under ${wrapper%% *}: the program itself" hostile 100
done
printf '#!%s %s\n' "$work/hostile" return >script
chmod +x script
same "a script" --memory -- ./script
reports "a script's interpreter" hostile 100

same "one that leaves a process behind" --follow --memory -- sh -c 'setsid sleep 20 >/dev/null 2>&1 & sleep 0.3; ./hostile return'
[ "$(grep -c 'still runs' err)" = 1 ] && cases | grep -q '^setsid$'
result "what it became is left out alone" $?
reports "... and the last one has its report" hostile 100
# named ROUNDS PATTERN COMMAND: what is there when the command ends is in r.json as `e`, or said to run on, and no sandbox is guessed
named() {
	missing=0
	for _ in $1; do
		rm -f r.json
		timeout 60 "$mew" record --follow --memory --json r.json -- sh -c "$3" >out 2>err </dev/null
		{ grep -q 'still run' err || cases 2>/dev/null | grep -q "$2"; } && ! grep -q 'could not answer' err || missing=$((missing + 1))
	done
	result "with or without a report, none is lost that begins when the command ends: $3" $missing "$missing of $1"
}
cp hostile e
named '1 2 3 4 5 6 7 8 9 10' '^no report$' 'sleep 5 >/dev/null 2>&1 &'
named '1 2 3 4 5 6 7 8 9 10' '^e$' './e return >/dev/null &'
named '1 2 3 4 5 6' '^e$' '(sleep 0.06; exec ./e return) >/dev/null & sleep 0.03'

# it asks for sanitizers weakly, and must map what its program left at the same address
same "mew record itself" --follow --memory -- "$mew" record --memory --json inner.json -- ./hostile return
jq -e '.cases[0].memory.total_allocations == 100' inner.json >/dev/null
result "... what it reports is the same too" $?
cases | grep -q '^mew$'
result "... with a report of it" $?

# --- privileges ------------------------------------------------------------------------------------------------------------
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$work"
	same "one that drops privileges" -- ./hostile drop
	same "one that drops privileges, then forks, followed" --follow -- ./hostile drop_fork
	grep -q '^mew: record: 1 programs run by another user' err || cases | grep -q hostile/2
	result "... its child is there or is said to be left out" $?
else
	skip "one that drops privileges" "only root has some"
fi

# --- what is refused -------------------------------------------------------------------------------------------------------
refused() { # NAME PATTERN PROGRAM
	run "$mew" record -- "$3"
	complains "$1" 2 "$2"
}
patched() { # COPY OFFSET OCTAL: one byte of the program's header is another
	cp hostile "$1" && printf "\\$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
if [ "$(uname -m)" = x86_64 ]; then
	patched arm 18 267
	refused "a program for aarch64" 'arm is a program for another machine' ./arm
	patched narrow 4 001
	refused "one of 32 bits" 'narrow is a program for another machine' ./narrow
	for flags in "" --gbench-program; do
		# shellcheck disable=SC2086
		run "$mew" run $flags ./arm
		complains "mew run $flags: a program for another machine" 2 'arm cannot be run: Exec format error'
	done
else
	skip "a program for another machine" "the test makes one from x86-64"
fi
if gcc -static-pie -o pie fx_hostile.c -lpthread >/dev/null 2>&1; then
	refused "a static one that can be moved" 'linked statically' ./pie
else
	skip "a static one that can be moved" "there is no static libc"
fi
if command -v musl-gcc >/dev/null 2>&1 && musl-gcc -o musl fx_hostile.c >/dev/null 2>&1; then
	refused "one for musl" 'built for the C library musl' ./musl
else
	skip "one for musl" "musl-gcc is missing"
fi
echo 'package main
func main() { println("static") }' >static.go
if command -v go >/dev/null 2>&1 && env CGO_ENABLED=0 GOFLAGS='' GO111MODULE=off HOME="$work" timeout 120 go build -o static_go static.go >/dev/null 2>&1; then
	refused "a program of Go" 'linked statically' ./static_go
else
	skip "a program of Go" "go is missing or cannot build here"
fi
# left_out NAME PROGRAM REASON: a child that cannot be recorded runs as without mew, and the report says so
left_out() {
	printf 'all:\n\t@%s return\n\t@%s return\n' "$2" "$2" >makefile
	same "$1, as a child" --follow --memory -- sh -c "$2 return && $2 return"
	grep -q "left out 2 times: $2 is $3" err && ! cases | grep -q "^${2#./}"
	result "$1, as a child: left out with a line" $?
	command -v make >/dev/null 2>&1 || return
	same "$1, started by posix_spawn()" --follow --memory -- make -s -f makefile
	grep -q "left out 2 times: $2 is $3" err && cases | grep -q make
	result "$1, started by posix_spawn(): left out with a line" $?
}
[ ! -x musl ] || left_out "a program for musl" ./musl 'built for the C library musl'
[ ! -x static_go ] || left_out "a static program" ./static_go 'linked statically'
if ${CC:-gcc} -fsanitize=address -o sanitized fx_hostile.c -lpthread >log 2>&1; then
	refused "a program built with AddressSanitizer" 'built with AddressSanitizer' ./sanitized
	left_out "a program built with AddressSanitizer" ./sanitized 'built with AddressSanitizer'
else
	skip "a program built with AddressSanitizer" "${CC:-gcc} cannot link it here"
fi
if [ -x sanitized ]; then
	same "vfork and exec of programs that are left out" --follow --memory -- ./hostile leaves ./sanitized
	result "... leave nothing in their parent" "$(grep -q steady out; echo $?)"
fi
# elsewhere NAME REASON COMMAND...: what runs where mew cannot be reached is the same without it, and is named
elsewhere() {
	name=$1 reason=$2
	shift 2
	if ! "$@" >log 2>&1; then
		skip "$name" "$1 does not work here"
		return
	fi
	rm -f log
	same "$name" --follow --memory -- "$@"
	grep -q "left out: .*$reason" err && ! grep -q 'ERROR: ld.so' err
	result "$name: left out with a line" $?
}
# without NAME VARIABLE COMMAND...: what took our variables away is said, and no other reason is guessed
without() {
	name=$1 what=$2
	shift 2
	same "$name" --follow --memory -- "$@"
	grep -q "left out: .*hostile is started without $what, which its caller took away" err && ! grep -q 'sandbox' err
	result "$name: left out with the reason" $? "$(cat err)"
}
without "env -i" LD_PRELOAD env -i ./hostile return
without "exec without LD_PRELOAD" LD_PRELOAD sh -c 'unset LD_PRELOAD; exec ./hostile return'
without "a child without LD_PRELOAD" LD_PRELOAD sh -c 'unset LD_PRELOAD; ./hostile return; exit 3'
without "a child with an empty LD_PRELOAD" LD_PRELOAD sh -c 'LD_PRELOAD= ./hostile return; exit 3'
without "without MEW_RECORD" MEW_RECORD env -u MEW_RECORD ./hostile return
for file in pie static_go; do
	[ -x $file ] || continue
	mkdir bin1 bin2
	cp $file bin1/tried && chmod 644 bin1/tried && cp hostile bin2/tried
	same "a program that is tried in two folders" --follow --memory -- ./hostile first bin1/tried:bin2/tried
	! grep -q 'left out' err
	result "... one that cannot run is none that is left out" $? "$(cat err)"
	reports "... and the other is recorded" tried 100
	same "a static program by its descriptor" --follow --memory -- ./hostile fexecve $file
	grep -q "left out: $work/$file is linked statically" err
	result "... is said by its name" $? "$(cat err)"
	break
done
if [ -x sanitized ]; then
	far=$(printf '%0180d' 0)/$(printf '%0180d' 0)
	mkdir -p "$far" && cp sanitized "$far/"
	same "a long path" --follow --memory -- sh -c "$far/sanitized return; exit 3"
	grep -q "left out: $far/sanitized is.* -fsanitize\$" err
	result "... does not cost the remedy" $? "$(cat err)"
	refused "... nor does it without --follow" '0/sanitized is.* -fsanitize' "./$far/sanitized"
fi
mkdir root
for file in $(ldd hostile | grep -o '/[^ ]*') "$work/hostile"; do
	mkdir -p "root/$(dirname "$file")" && cp "$file" "root/$file"
done
elsewhere "a program in another root" 'libraries of mew are not' chroot root "$work/hostile" return
elsewhere "a program with another network" 'could not answer' unshare -n ./hostile return
echo nonsense >text
chmod +x text
refused "what is no program" 'neither a program' ./text

# --- allocators linked in, and interpreters with threads -----------------------------------------------------------------
for file in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	if ${CC:-gcc} -O1 -fno-builtin -o with fx_hostile.c -lpthread -Wl,--no-as-needed "-l:$file" >/dev/null 2>&1; then
		same "$file linked" -- ./with return
		reports "$file linked: exact" with 100
	else
		skip "$file linked" "it is not installed"
	fi
done
works() { # NAME COMMAND...
	name=$1
	shift
	if ! command -v "$1" >/dev/null 2>&1; then
		skip "$name" "$1 is not installed"
		return
	fi
	same "$name" --follow -- "$@"
	grep -q '"status": *"MEW_OK"' r.json
	result "$name: its report" $?
}
works "python3 with threads" /usr/bin/python3 -c 'import threading
r = []
t = [threading.Thread(target=lambda i=i: r.append(sum(len(str(k)) for k in range(20000 * i)))) for i in range(6)]
[x.start() for x in t]; [x.join() for x in t]; print(sorted(r))'
works "a process pool of python3" /usr/bin/python3 -c 'import multiprocessing, os
def f(i): return i * i
if __name__ == "__main__":
    with multiprocessing.Pool(3) as p: print(p.map(f, range(50)))'
works "perl with a pipe" perl -e 'open my $f, "-|", "seq 1000" or die; my $s = 0; $s += $_ while <$f>; print "$s\n"'
finish
