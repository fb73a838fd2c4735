/*
 * fx_invalid.c - a benchmark program whose entries are not valid: nothing of it may run.
 */
#include <mew.h>

MEW_BENCHMARK_NAMED(one, "same")
{
	MEW_LOOP(st)
		mew_clobber();
}

MEW_BENCHMARK_NAMED(two, "same")
{
	MEW_LOOP(st)
		mew_clobber();
}

MEW_MAIN();
