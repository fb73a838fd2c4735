#!/bin/sh
# record.sh - `mew record` on real programs: their output and exit code are those of a run without mew, and whatever
# ends a program leaves a report. Prints TAP.
set -u
# shellcheck disable=SC2154 # make sets them
case $srcdir in /*) top=$srcdir ;; *) top=$(pwd)/$srcdir ;; esac
case $builddir in /*) ;; *) builddir=$(pwd)/$builddir ;; esac
mew=$builddir/mew
. "$top/tests/tap.sh"

needs_hooks "mew record" "libmew_record is not built with a sanitizer"

cat >ends.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int status = 0;

	for (int i = 0; i < 100; i++) {
		void *volatile block = malloc(1000);
		if (i % 2)
			free(block);
	}
	if (strcmp(how, "crash") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "_exit") == 0)
		_exit(7);
	if (strcmp(how, "exec") == 0)
		execl("/bin/echo", "echo", "became echo", (char *)0);
	if (strcmp(how, "memory") == 0) { /* become a copy of this program that lies in no file system */
		char *again[] = { "copy", "return", 0 };
		int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("copy", 0);

		while (sendfile(to, from, 0, 1 << 20) > 0)
			;
		fexecve(to, again, environ);
		return 1;
	}
	if (strcmp(how, "close") == 0)
		for (int i = 3; i < 1024; i++)
			close(i);
	if (strcmp(how, "root") == 0 && chdir("/") != 0)
		return 1;
	if (strcmp(how, "early") == 0) {
		if (fork() == 0)
			_exit(3);
		sleep(1);
		return wait(&status) < 0;
	}
	if (strcmp(how, "fork") == 0) {
		if (fork() == 0) {
			for (int i = 0; i < 50; i++) {
				void *volatile block = malloc(77);
				(void)block;
			}
			_exit(3);
		}
		wait(&status);
		return WEXITSTATUS(status);
	}
	return 0;
}
C
${CC:-gcc} -O0 -o ends ends.c 2>/dev/null || gcc -O0 -o ends ends.c || exit 99

# --- every end: exactly 100 allocations, 50 of which are freed -------------------------------------------------------
exactly() { # NAME KEY ALLOCATIONS FREES
	tr -d '\n ' <r.json >flat
	grep -q "\"$2\".*\"total_allocations\":$3,.*\"frees\":$4," flat
	result "$1" $? "wanted $3 allocations and $4 frees of $2"
}
ends() { # HOW CODE
	rm -f r.json
	run "$mew" record --memory --cpu --json r.json -- ./ends "$1"
	check "its exit code is passed through: $1" "$2"
	exactly "its report has all until then: $1" ends 100 50
}
ends return 0
ends crash 134
ends kill 137
ends _exit 7
ends exec 0
grep -qx 'became echo' out
result "what it became by exec still writes its output" $?
ends close 0
ends root 0
ends fork 3
run "$mew" record --follow --memory --json r.json -- ./ends fork
check "children are followed" 3
exactly "a forked child has its own figures" ends/2 50 0

run env MEW_UNWINDER=fp "$mew" record --memory --cpu --json r.json -- ./ends return
[ "$(grep -c 'stacks by frame pointers (MEW_UNWINDER=fp)' r.json)" = 2 ]
result "the rows say that their stacks are not from the table" $?

run "$mew" record --follow --cpu --json r.json -- ./ends early
tr -d '\n ' <r.json | grep -o '"wall_time":[0-9.e-]*' | tr : ' ' | awk '{ t[NR] = $2 } END { exit !(NR == 4 && t[3] < t[1] / 2) }'
result "a forked child that ends early has a window of its own length" $? "$(tr -d '\n ' <r.json | grep -o '"wall_time":[0-9.e-]*' | tr '\n' ' ')"

cat >pools.c <<'C'
#include <sys/wait.h>
#include <unistd.h>
#include "mew/pool.h"
static struct mew_pool first = MEW_POOL("first"), second = MEW_POOL("second");
static char blocks[3000];
int main(void)
{
	mew_pool_alloc(&first, blocks, 10);
	mew_pool_alloc(&second, blocks, 20);
	if (fork() == 0) {
		mew_pool_alloc(&second, blocks + 1000, 300);
		mew_pool_alloc(&first, blocks + 2000, 40);
		mew_pool_free(&second, blocks + 1000);
		_exit(0);
	}
	return wait(0) < 0;
}
C
${CC:-gcc} -fPIE -pie -I"$top/include" -o pools pools.c || exit 99
run "$mew" record --follow --memory --json r.json -- ./pools
tr -d '\n ' <r.json >flat
grep -q '"pools/2".*"by_pool":\[{"name":"first","peak_bytes":40,.*"name":"second","peak_bytes":300,' flat
result "a forked child has its own pools" $?

run "$mew" record --follow --memory --cpu --json r.json --folded stacks -- ./ends memory
check "a program that lies in memory alone is recorded" 0
exactly "... with its own figures" 'memfd:copy' 100 50
grep -q '"/memfd:copy was a file in memory (memfd) and went with its process"' r.json
result "... and the reason why its functions have no names" $?
rm -rf stacks

# --- a program that waits for signals: what it waits for is not a tick ------------------------------------------------------
cat >waits.c <<'C'
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t rang;
static void ring(int signal) { rang += signal == SIGALRM; }
static void in_a_while(void)
{
	const struct itimerval soon = { { 0, 0 }, { 0, 100000 } };

	for (clock_t end = clock() + CLOCKS_PER_SEC / 50; clock() < end;)
		; /* a tick comes to wait */
	setitimer(ITIMER_REAL, &soon, NULL);
}
static void print_rang(void) { printf("%d\n", (int)rang); }
int bsd_sigpause(int mask) __asm__("sigpause"); /* the name without a header's help */
int main(int argc, char **argv)
{
	const struct timespec limit = { 0, 50000000 };
	sigset_t all, none, alarm;
	struct pollfd list[4];
	int results[4] = { 0 };

	signal(SIGALRM, ring);
	in_a_while();
	pause();
	print_rang();
	sigfillset(&all);
	sigemptyset(&none);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	(void)argv;
	sigprocmask(SIG_SETMASK, &all, NULL);
	in_a_while();
	sigsuspend(&none);
	print_rang();
	results[0] = ppoll(list, argc - 1, &limit, &none);
	results[1] = pselect(0, NULL, NULL, NULL, &limit, &none);
	results[2] = epoll_pwait(epoll_create1(0), &(struct epoll_event){ 0 }, 1, 50, &none);
#if __GLIBC_PREREQ(2, 35)
	results[3] = epoll_pwait2(epoll_create1(0), &(struct epoll_event){ 0 }, 1, &limit, &none);
#endif
	printf("%d %d %d %d\n", results[0], results[1], results[2], results[3]);
	sigprocmask(SIG_SETMASK, &alarm, NULL);
	in_a_while();
	sigpause(SIGALRM);
	print_rang();
	in_a_while();
	bsd_sigpause(0);
	print_rang();
	return 0;
}
C
${CC:-gcc} -w -o waits waits.c || exit 99
${CC:-gcc} -w -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -o waits_checked waits.c || exit 99
for waits in waits waits_checked; do
	./$waits >alone
	for clock in wall cpu; do
		run "$mew" record --cpu --clock $clock -- ./$waits
		[ $code = 0 ] && cmp -s alone out && [ "$(sed -n 2p out)" = 2 ]
		result "waits for a signal end with it, and not with a tick: $waits, --clock $clock" $?
	done
done
run ./waits_checked 1 2 3 4 5
alone=$code
if [ $code = 0 ]; then
	skip "a list that is shorter than its number still ends the program" "the C library does not check it"
else
	run "$mew" record --cpu --clock wall -- ./waits_checked 1 2 3 4 5
	[ $code = "$alone" ]
	result "a list that is shorter than its number still ends the program" $? "wanted code $alone"
fi

# --- a program that writes over what is recorded of it -----------------------------------------------------------------------
cat >scribbles.c <<'C'
#include "config.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "record.h"
int main(void)
{
	struct mew_record_root *root = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	unsigned long lo;

	while (root == NULL && fgets(line, sizeof line, maps) != NULL)
		if (strstr(line, "mew-record") != NULL && sscanf(line, "%lx", &lo) == 1)
			root = (struct mew_record_root *)lo;
	for (int i = 0; root != NULL && i < MEW_RECORD_STATICS; i++)
		root->statics[i].at ^= 0x5555555555550;
	usleep(800000); /* the command opens the window meanwhile */
	return root == NULL;
}
C
${CC:-gcc} -I"$builddir" -I"$top/src" -I"$top/include" -o scribbles scribbles.c || exit 99
run "$mew" record --memory --start-after 0.3 -- ./scribbles
complains "a program that writes over it harms itself alone" 2 'another build'

# --- what cannot be recorded --------------------------------------------------------------------------------------------
if gcc -static -o still ends.c 2>/dev/null; then
	run "$mew" record -- ./still
	complains "a static program is refused" 2 'linked statically'
else
	skip "a static program is refused" "no static libc here"
fi
cp ends owned && chmod u+s owned && if [ "$(id -u)" = 0 ] && chown 1 owned && chmod u+s owned; then
	run "$mew" record -- ./owned
	complains "a set-user-id program is refused" 2 'setuid'
else
	skip "a set-user-id program is refused" "only root can make one of another user"
fi
run "$mew" record -- ./absent
complains "a command that is not there" 127 'cannot be run'
run "$mew" record
complains "no command" 2 'name a command'
mkdir games && cp ends games/2048
for flag in --memory --cpu; do
	PATH=$PWD/games:$PATH run "$mew" record $flag 2048 crash
	check "a command whose name is a number, behind $flag" 134 '' '2048'
done
run "$mew" record --cpu 0.001 -- ./ends
complains "an interval without its =" 2 "follows a '=': --cpu=0.001"
run "$mew" record --memory 100 -- ./ends
complains "a number that nothing asks for is taken for a command" 127 '^mew: record: 100'

# --- real programs: the same output as without mew ------------------------------------------------------------------------
same() { # NAME COMMAND...: what it prints is what it prints alone
	name=$1
	shift
	if ! command -v "$1" >/dev/null 2>&1; then
		skip "$name" "$1 is not installed"
		return
	fi
	"$@" >alone 2>/dev/null </dev/null
	alone=$?
	run "$mew" record --follow -q --folded stacks -- "$@"
	[ $code = $alone ] && cmp -s alone out
	result "$name: the same output and code" $?
	[ -n "$(find stacks -name '*.memory.folded' -size +0 2>/dev/null)" ]
	result "$name: its stacks are there" $?
	rm -rf stacks
}
same "gcc" gcc -O1 -S -o - ends.c
cat >load.sql <<'SQL'
create table t(a, b);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 20000) insert into t select x, x * 2 from n;
select count(*), sum(b) from t;
SQL
same "sqlite3" sqlite3 -init load.sql :memory: .quit
same "python3" python3 -c 'print(sum(len(str(i)) for i in range(50000)))'
head -c 2000000 /dev/zero >data && cat "$builddir/.libs"/libmew.so.0.* >>data
same "xz with threads" xz -T2 --block-size=500000 -1 -k -c data
finish
