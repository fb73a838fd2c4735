/*
 * mew/gbench.hpp - mew's figures for programs on Google Benchmark, compiled against the Google Benchmark they use.
 *
 * Include it in one file of a program whose Google Benchmark is an archive, and link with the flags that
 * `pkg-config --variable=wrap mew-gbench` prints. A program on the shared library needs no include: link it with
 * `pkg-config --libs mew-gbench`, or start it with `mew run --gbench-program`. Needs Google Benchmark 1.6.2 or newer.
 */
#ifndef MEW_GBENCH_HPP
#define MEW_GBENCH_HPP

#include <benchmark/benchmark.h>
#include <mew/guest.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mew_gbench {

typedef benchmark::BenchmarkReporter::Run Run;
typedef benchmark::MemoryManager::Result Memory;

/* --- the memory pass of Google Benchmark: its console and JSON ---------------------------------------------------- */

class Manager : public benchmark::MemoryManager {
public:
	struct Kept { /* a pass */
		const Memory *where; /* the framework wanted its figures */
		mew_guest_memory figures;
	};
	bool runs = false;
	uint64_t planned = 0;      /* iterations of the running pass */
	std::vector<Kept> results; /* of all passes, in their order */

	void Start()
	{
		runs = true;
		planned = 0;
		mew_guest_memory_start();
	}
	void Stop(Result *result)
	{
		mew_guest_memory m;

		mew_guest_memory_stop(&m);
		if (planned > 0 && m.iterations > planned) { /* a batch went beyond them; what follows divides by the plan */
			m.allocations = per(m.allocations, m.iterations);
			m.bytes = per(m.bytes, m.iterations);
			m.iterations = planned;
		}
		results.push_back(Kept{ result, m });
		fill(*result, m);
		runs = false;
	}
	void Stop(Result &result)
	{
		Stop(&result);
	}
	static void fill(Result &result, const mew_guest_memory &m)
	{
		result.num_allocs = static_cast<int64_t>(m.allocations);
		result.max_bytes_used = static_cast<int64_t>(m.peak_bytes);
		result.total_allocated_bytes = static_cast<int64_t>(m.bytes);
		result.net_heap_growth = m.net_bytes;
	}

private:
	uint64_t per(uint64_t value, uint64_t iterations) const
	{
		return static_cast<uint64_t>(static_cast<double>(value) * static_cast<double>(planned) / static_cast<double>(iterations) + 0.5);
	}
};

inline Manager &manager()
{
	static Manager *const the_one = new Manager; /* the framework may use it until the end of the process */
	return *the_one;
}

/* What run() found out; edges ask for it. */
struct Process {
	int pass = MEW_GUEST_ALONE;
	bool counts = false; /* the manager may be registered */
};

inline Process &process()
{
	static Process the_one;
	return the_one;
}

/*
 * Google Benchmark's pass calls a body on one thread while it says that there are more, and bodies that wait for each
 * other would wait for ever: there, without the command, are no figures for them. With the command the measured run is
 * counted, and the pass is needed only where no loop can be seen.
 */
inline void choose_manager(int threads)
{
	const Process &p = process();

	if (p.counts && !manager().runs)
		benchmark::RegisterMemoryManager(p.pass == MEW_GUEST_ALONE && threads == 1 ? &manager() : nullptr);
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

typedef void (*Edge)(benchmark::State *);

inline void start(benchmark::State *state, Edge real)
{
	if (state->thread_index() == 0)
		choose_manager(state->threads());
	if (manager().runs)
		manager().planned = static_cast<uint64_t>(state->max_iterations);
	mew_guest_enter(static_cast<unsigned>(state->threads()), static_cast<unsigned>(state->thread_index()));
	real(state);
	mew_guest_start();
}

inline void finish(benchmark::State *state, Edge real)
{
	mew_guest_finish();
	real(state);
	mew_guest_leave(static_cast<uint64_t>(state->iterations())); /* known only now */
}

inline void pause(benchmark::State *state, Edge real)
{
	mew_guest_pause();
	real(state);
}

inline void resume(benchmark::State *state, Edge real)
{
	real(state);
	mew_guest_resume();
}

/* --- what differs between releases of Google Benchmark ------------------------------------------------------------ */

template <class R> auto outcome(const R &run, int) -> decltype(run.error_occurred, mew_guest_outcome())
{
	return run.error_occurred ? MEW_GUEST_FAILED : MEW_GUEST_RAN;
}
template <class R> auto outcome(const R &run, long) -> decltype(run.skipped, mew_guest_outcome())
{
	const int how = static_cast<int>(run.skipped); /* not, with a message, with an error */

	return how == 0 ? MEW_GUEST_RAN : how == 1 ? MEW_GUEST_SKIPPED : MEW_GUEST_FAILED;
}

template <class R> auto why(const R &run, int) -> decltype(run.error_message.c_str())
{
	return run.error_message.c_str();
}
template <class R> auto why(const R &run, long) -> decltype(run.skip_message.c_str())
{
	return run.skip_message.c_str();
}

template <class R>
auto memory_of(const R &run, int) -> decltype(*run.memory_result, static_cast<const Memory *>(nullptr))
{
	return run.memory_result;
}
template <class R>
auto memory_of(const R &run, long)
	-> decltype(run.memory_result.memory_iterations, static_cast<const Memory *>(nullptr))
{
	return run.memory_result.memory_iterations > 0 ? &run.memory_result : nullptr;
}

/* Room for one: its constructor needs a constant that shared builds of some releases do not export. */
struct Room {
	alignas(Memory) unsigned char bytes[sizeof(Memory)];
};

template <class R> auto set_memory(R &run, Room &room, const mew_guest_memory &m,
				   int) -> decltype(*run.memory_result, void())
{
	Memory *memory = reinterpret_cast<Memory *>(room.bytes);

	Manager::fill(*memory, m);
	run.memory_result = memory;
}
template <class R> auto set_memory(R &run, Room &, const mew_guest_memory &m,
				   long) -> decltype(run.memory_result.memory_iterations, void())
{
	Manager::fill(run.memory_result, m);
	run.memory_result.memory_iterations = run.iterations;
}

/*
 * Those with a pointer keep the results of a case's repetitions in an array that grows, and point into where it was.
 * That place was the case's until its next repetition began, so of all passes with a result there, also those of other
 * cases between (random interleaving), the last one before that repetition is meant. One that failed does not say where
 * its was.
 */
template <class R> auto renew(std::vector<R> &runs, std::vector<Room> &rooms,
			      int) -> decltype(*runs[0].memory_result, void())
{
	const std::vector<Manager::Kept> &results = manager().results;
	size_t at = results.size();

	for (size_t i = runs.size(); i-- > 0;) {
		if (outcome(runs[i], 0) != MEW_GUEST_RAN)
			at = 0;
		if (runs[i].memory_result == nullptr || results.empty())
			continue;
		while (at > 0 && results[at - 1].where != runs[i].memory_result)
			at--;
		if (at > 0)
			set_memory(runs[i], rooms[i], results[--at].figures, 0);
		else
			runs[i].memory_result = nullptr;
	}
}
template <class R> auto renew(std::vector<R> &runs, std::vector<Room> &,
			      long) -> decltype(runs[0].memory_result.memory_iterations, void())
{
}

template <class R>
auto forward_config(R &inner, double min_time, bool fixed, benchmark::IterationCount iterations, int)
	-> decltype(inner.ReportRunsConfig(min_time, fixed, iterations), void())
{
	inner.ReportRunsConfig(min_time, fixed, iterations);
}
template <class R> void forward_config(R &, double, bool, benchmark::IterationCount, long)
{
}

/* The State has had a name as long as --benchmark_min_time has taken "100x". */
template <class S> auto takes_counts(int) -> decltype(std::declval<const S &>().name(), bool())
{
	return true;
}
template <class S> bool takes_counts(long)
{
	return false;
}

/* --- the reporter that stands before the program's ---------------------------------------------------------------- */

class Reporter : public benchmark::BenchmarkReporter {
public:
	Reporter(benchmark::BenchmarkReporter &inner, int pass, bool is_file)
		: inner_(inner), pass_(pass), is_file_(is_file),
		console_(dynamic_cast<benchmark::ConsoleReporter *>(&inner) != nullptr)
	{
		SetOutputStream(&inner.GetOutputStream());
		SetErrorStream(&inner.GetErrorStream());
	}
	bool ReportContext(const Context &context)
	{
		if (is_file_)
			inner_.SetOutputStream(&GetOutputStream()); /* given after the construction */
		return pass_ != MEW_GUEST_LIST && inner_.ReportContext(context); /* false: nothing runs */
	}
	void ReportRunsConfig(double min_time, bool fixed, benchmark::IterationCount iterations)
	{
		forward_config(inner_, min_time, fixed, iterations, 0);
	}
	void ReportRuns(const std::vector<Run> &runs)
	{
		std::vector<Run> copy(runs);
		std::vector<Room> rooms(runs.size() + 1);

		if (pass_ == MEW_GUEST_ALONE)
			renew(copy, rooms, 0);
		else if (!is_file_)
			tell(copy, rooms[0]);
		for (size_t i = 0; console_ && i < copy.size(); i++)
			show_memory(copy[i]);
		inner_.ReportRuns(copy);
	}
	void Finalize()
	{
		inner_.Finalize();
	}

private:
	benchmark::BenchmarkReporter &inner_;
	const int pass_;
	const bool is_file_, console_;
	std::string told_; /* the case that was the last */

	/* Timing: each run is a sample. The other passes: the run that was the last, whose block is there. */
	void tell(std::vector<Run> &runs, Room &room)
	{
		Run *last = nullptr, *median = nullptr;

		for (size_t i = 0; i < runs.size(); i++) {
			if (runs[i].report_big_o || runs[i].report_rms)
				continue;
			if (runs[i].run_type == Run::RT_Iteration) {
				last = &runs[i];
				if (pass_ == MEW_GUEST_TIME)
					tell_run(*last, room);
			} else if (runs[i].aggregate_name == "median") {
				median = &runs[i];
			}
		}
		if (last == nullptr && median != nullptr && median->run_name.str() != told_) /* its runs were not reported */
			tell_run(*median, room);
		else if (last != nullptr && pass_ != MEW_GUEST_TIME)
			tell_run(*last, room);
		if (last != nullptr)
			told_ = last->run_name.str();
	}
	static double nanoseconds(benchmark::TimeUnit unit)
	{
		return unit == benchmark::kSecond ? 1e9 : unit == benchmark::kMillisecond ? 1e6 :
		       unit == benchmark::kMicrosecond ? 1e3 : 1;
	}
	static void tell_run(Run &run, Room &room)
	{
		const std::string key = run.run_name.str();
		const bool aggregate = run.run_type != Run::RT_Iteration;
		std::vector<mew_guest_counter> counters;
		mew_guest_run r = mew_guest_run();
		mew_guest_memory m;

		for (const auto &c : run.counters)
			counters.push_back(mew_guest_counter{ c.first.c_str(), c.second.value });
		r.size = sizeof r;
		r.key = key.c_str();
		r.label = run.report_label.empty() ? nullptr : run.report_label.c_str();
		r.outcome = outcome(run, 0);
		r.why = why(run, 0);
		r.threads = run.threads > 0 ? static_cast<unsigned>(run.threads) : 1;
		r.iterations = aggregate ? 0 : static_cast<uint64_t>(run.iterations);
		r.is_aggregate = aggregate;
		r.repetition = run.repetition_index > 0 ? static_cast<unsigned>(run.repetition_index) : 0;
		r.real_ns = aggregate ? run.GetAdjustedRealTime() * nanoseconds(run.time_unit) * r.threads :
					run.real_accumulated_time * 1e9;
		r.cpu_ns = aggregate ? run.GetAdjustedCPUTime() * nanoseconds(run.time_unit) * r.threads :
			   run.cpu_accumulated_time * 1e9;
		r.counters = counters.data();
		r.ncounters = counters.size();
		if (mew_guest_report(&r, &m) == 0)
			return;
		set_memory(run, room, m, 0);
		run.allocs_per_iter = m.iterations > 0 ?
				      static_cast<double>(m.allocations) / static_cast<double>(m.iterations) : 0;
	}
	/* The console's reporter knows nothing of memory: there it is counters. */
	static void show_memory(Run &run)
	{
		const Memory *m = memory_of(run, 0);

		if (m == nullptr)
			return;
		run.counters["allocs/iter"] = benchmark::Counter(run.allocs_per_iter);
		if (m->num_allocs > 0)
			run.counters["bytes/iter"] =
				benchmark::Counter(static_cast<double>(m->total_allocated_bytes) * run.allocs_per_iter /
									static_cast<double>(m->num_allocs));
		else
			run.counters["bytes/iter"] = benchmark::Counter(0);
		run.counters["peak_bytes"] = benchmark::Counter(static_cast<double>(m->max_bytes_used));
		run.counters["net_bytes"] = benchmark::Counter(static_cast<double>(m->net_heap_growth));
	}
};

} /* namespace mew_gbench */

namespace benchmark {
extern std::string FLAGS_benchmark_out __attribute__((weak));
extern std::string FLAGS_benchmark_out_format __attribute__((weak));
} /* namespace benchmark */

namespace mew_gbench {

/* Does the framework make a reporter for a JSON file? One that is given while it writes no file makes it end. */
inline bool writes_json()
{
	return &benchmark::FLAGS_benchmark_out != nullptr && &benchmark::FLAGS_benchmark_out_format != nullptr &&
	       !benchmark::FLAGS_benchmark_out.empty() && benchmark::FLAGS_benchmark_out_format == "json";
}

typedef size_t (*RunAll)(benchmark::BenchmarkReporter *, benchmark::BenchmarkReporter *, std::string);

inline void prepare()
{
	const char *why = nullptr;
	Process &p = process();

	if (takes_counts<benchmark::State>(0))
		mew_guest_takes_counts();
	p.pass = mew_guest_begin();
	if (p.pass != MEW_GUEST_ALONE && p.pass != MEW_GUEST_MEMORY)
		return;
	p.counts = mew_guest_can_count(&why) == 0;
	if (p.counts)
		benchmark::RegisterMemoryManager(&manager());
	else if (p.pass == MEW_GUEST_ALONE)
		benchmark::AddCustomContext("mew", std::string("no memory figures: ") + why);
}

/* Whose the usual reporter is differs between releases; it is kept until the process ends. */
inline benchmark::BenchmarkReporter *keep(benchmark::BenchmarkReporter *reporter)
{
	return reporter;
}
inline benchmark::BenchmarkReporter *keep(std::unique_ptr<benchmark::BenchmarkReporter> reporter)
{
	return reporter.release();
}

/* RunSpecifiedBenchmarks(), with mew's reporter before the one that shows the results. */
inline size_t run(benchmark::BenchmarkReporter *display, benchmark::BenchmarkReporter *file, const std::string &spec,
		  RunAll real)
{
	static benchmark::BenchmarkReporter *usual;
	benchmark::JSONReporter json;
	std::ostringstream names;
	size_t n;

	prepare();
	if (display == nullptr)
		display = usual = usual != nullptr ? usual : keep(benchmark::CreateDefaultDisplayReporter());
	Reporter reporter(*display, process().pass, false), copy(file != nullptr ? *file : json, process().pass, true);
	if (process().pass == MEW_GUEST_LIST)
		reporter.SetOutputStream(&names); /* what the program prints itself is no name */
	n = real(&reporter, file != nullptr || writes_json() ? &copy : nullptr, spec);
	if (process().counts)
		benchmark::RegisterMemoryManager(nullptr);
	if (process().pass == MEW_GUEST_LIST)
		mew_guest_names(names.str().c_str());
	return n;
}

} /* namespace mew_gbench */

/* --- link-time wrapping: the linker sends the program's calls to __wrap_X, and __real_X is Google Benchmark's ----- */

#ifndef MEW_GBENCH_INTERPOSES

#define MEW_GBENCH_EDGE_(symbol, what)                                            \
	extern "C" void __real_##symbol(benchmark::State *) __attribute__((weak));  \
	extern "C" __attribute__((weak)) void __wrap_##symbol(benchmark::State *s) \
	{                                                                          \
		mew_gbench::what(s, __real_##symbol);                              \
	}
MEW_GBENCH_EDGE_(_ZN9benchmark5State16StartKeepRunningEv, start)
MEW_GBENCH_EDGE_(_ZN9benchmark5State17FinishKeepRunningEv, finish)
MEW_GBENCH_EDGE_(_ZN9benchmark5State11PauseTimingEv, pause)
MEW_GBENCH_EDGE_(_ZN9benchmark5State12ResumeTimingEv, resume)
#undef MEW_GBENCH_EDGE_

#define MEW_GBENCH_STRING_ "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

namespace mew_gbench {

size_t real_run(benchmark::BenchmarkReporter *, benchmark::BenchmarkReporter *, std::string)
	__asm__("__real__ZN9benchmark22RunSpecifiedBenchmarksEPNS_17BenchmarkReporterES1_" MEW_GBENCH_STRING_) __attribute__((weak));

#define MEW_GBENCH_RUN_(name, parameters, symbol, display, file, spec)                                                     \
	size_t name parameters __asm__("__wrap__ZN9benchmark22RunSpecifiedBenchmarksE" symbol) __attribute__((weak, used)); \
	__attribute__((weak)) size_t name parameters                                                                       \
	{                                                                                                                  \
		return run(display, file, spec, real_run);                                                                 \
	}
MEW_GBENCH_RUN_(run_0, (), "v", nullptr, nullptr, benchmark::GetBenchmarkFilter())
MEW_GBENCH_RUN_(run_s, (std::string s), MEW_GBENCH_STRING_, nullptr, nullptr, s)
MEW_GBENCH_RUN_(run_d, (benchmark::BenchmarkReporter * d), "PNS_17BenchmarkReporterE", d, nullptr,
		benchmark::GetBenchmarkFilter())
MEW_GBENCH_RUN_(run_ds, (benchmark::BenchmarkReporter * d, std::string s),
		"PNS_17BenchmarkReporterE" MEW_GBENCH_STRING_, d, nullptr, s)
MEW_GBENCH_RUN_(run_df, (benchmark::BenchmarkReporter * d, benchmark::BenchmarkReporter *f),
		"PNS_17BenchmarkReporterES1_", d, f,
		benchmark::GetBenchmarkFilter())
MEW_GBENCH_RUN_(run_dfs, (benchmark::BenchmarkReporter * d, benchmark::BenchmarkReporter *f, std::string s),
		"PNS_17BenchmarkReporterES1_" MEW_GBENCH_STRING_, d, f, s)
#undef MEW_GBENCH_RUN_

/* Without the wrapping flags Google Benchmark's own memory pass is what there is. */
struct Unwrapped {
	Unwrapped()
	{
		if (real_run == nullptr && mew_guest_can_count(nullptr) == 0)
			benchmark::RegisterMemoryManager(&manager());
	}
};
static const Unwrapped unwrapped;

} /* namespace mew_gbench */

#endif
#endif
