/*
 * interpose.cc - libmew_gbench: functions of the shared Google Benchmark, in front of it. Linked before it, or
 * preloaded. Layer L6. Compiled against the release that is installed, and refuses another one.
 */
#include "config.h"

#define MEW_GBENCH_INTERPOSES
#include "mew/gbench.hpp"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

template <class F> F next(const char *symbol)
{
	void *address = dlsym(RTLD_NEXT, symbol);
	F function;

	static_assert(sizeof address == sizeof function, "code and data addresses have one size");
	if (address == nullptr) {
		(void)fprintf(stderr, "mew: libmew_gbench is in this program, and Google Benchmark (libbenchmark) has "
				      "no %s\n", symbol);
		abort();
	}
	memcpy(&function, &address, sizeof function);
	return function;
}

/* The "1.7" of a file libbenchmark.so.1.7.1, else what is not known fits. */
bool fits(const char *path)
{
	char resolved[4096], ours[32], theirs[32];
	int major, minor;
	const char *suffix;

	if (realpath(path, resolved) == nullptr)
		return true;
	suffix = strstr(resolved, ".so.");
	if (suffix == nullptr || sscanf(suffix, ".so.%d.%d", &major, &minor) != 2)
		return true;
	(void)snprintf(theirs, sizeof theirs, "%d.%d", major, minor);
	if (sscanf(MEW_GBENCH_VERSION, "%d.%d", &major, &minor) != 2)
		return true;
	(void)snprintf(ours, sizeof ours, "%d.%d", major, minor);
	return strcmp(ours, theirs) == 0;
}

bool check()
{
	Dl_info info;
	char text[240];

	if (dladdr(dlsym(RTLD_NEXT, "_ZN9benchmark22RunSpecifiedBenchmarksEv"), &info) == 0 || fits(info.dli_fname))
		return true;
	(void)snprintf(text, sizeof text,
		       "libmew_gbench was built for Google Benchmark %s, the program has %.80s: build mew with that "
		       "one, or include <mew/gbench.hpp> in the program", MEW_GBENCH_VERSION, info.dli_fname);
	mew_guest_refuse(text);
	return false;
}

bool is_ours()
{
	static const bool answer = check();

	return answer;
}

/* Google Benchmark's own. All are found at the first start: the others are called while its clock runs. */
struct Edges {
	const mew_gbench::Edge start = next<mew_gbench::Edge>("_ZN9benchmark5State16StartKeepRunningEv");
	const mew_gbench::Edge finish = next<mew_gbench::Edge>("_ZN9benchmark5State17FinishKeepRunningEv");
	const mew_gbench::Edge pause = next<mew_gbench::Edge>("_ZN9benchmark5State11PauseTimingEv");
	const mew_gbench::Edge resume = next<mew_gbench::Edge>("_ZN9benchmark5State12ResumeTimingEv");
};

const Edges &edges()
{
	static const Edges the_one;

	return the_one;
}

} /* namespace */

#define MEW_EDGE(name, what)                                     \
	void benchmark::State::name()                            \
	{                                                        \
		if (is_ours())                                   \
			mew_gbench::what(this, edges().what);    \
		else                                             \
			edges().what(this);                      \
	}
MEW_EDGE(StartKeepRunning, start)
MEW_EDGE(FinishKeepRunning, finish)
MEW_EDGE(PauseTiming, pause)
MEW_EDGE(ResumeTiming, resume)

/* The other forms call this one. */
size_t benchmark::RunSpecifiedBenchmarks(BenchmarkReporter *display, BenchmarkReporter *file, std::string spec)
{
	static const mew_gbench::RunAll real =
		next<mew_gbench::RunAll>("_ZN9benchmark22RunSpecifiedBenchmarksEPNS_17BenchmarkReporterES1_"
					 "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");

	return is_ours() ? mew_gbench::run(display, file, spec, real) : real(display, file, spec);
}
