/*
 * trace_fragment.c - a program that knows nothing of mew and shows on the timeline of a traced run.
 *
 * Copy the function; no library is needed. One call shows one slice; times are microseconds since 1970.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void show(const char *name, long long start_us, long long end_us)
{
	const char *dir = getenv("MEW_TRACE_DIR");
	char path[4096];
	FILE *f;

	if (dir == NULL || snprintf(path, sizeof path, "%s/%d-%lld.json", dir, (int)getpid(), start_us) >= (int)sizeof path ||
	    (f = fopen(path, "wx")) == NULL)
		return;
	(void)fprintf(f, "[{\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"name\":\"%s\",\"ts\":%lld,\"dur\":%lld}]", (int)getpid(), name, start_us,
		      end_us - start_us);
	(void)fclose(f);
}

static long long now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int main(void)
{
	long long start = now_us();

	(void)usleep(2000);
	show("from a C program", start, now_us());
	return 0;
}
