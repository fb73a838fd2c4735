/*
 * cxx_header.cc - mew/cxx.hpp as a C++ user meets it: registration, options, exceptions, pauses, kept values, runs,
 * budgets.
 * Test program in C++11; prints TAP and returns 1 when a check failed.
 */
#include <mew.h>

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/* --- checks ----------------------------------------------------------------------------------------------------- */

static unsigned checks, failures;

static void check(bool holds, const char *what)
{
	checks++;
	if (!holds)
		failures++;
	std::printf("%s %u - %s\n", holds ? "ok" : "not ok", checks, what);
	std::fflush(stdout);
}

static void skip(const char *what, const char *why)
{
	checks++;
	std::printf("ok %u - %s # SKIP %s\n", checks, what, why != nullptr ? why : "no reason given");
}

static bool same(const char *a, const char *b)
{
	return a != nullptr && b != nullptr && std::strcmp(a, b) == 0;
}

/* --- benchmarks that register themselves ------------------------------------------------------------------------ */

static const char *const labels[] = { "small", "large", nullptr };
static unsigned long turns, destroyed;

struct counted {
	~counted() { destroyed++; }
};

MEW_BENCHMARK(plain)
{
	MEW_LOOP(st) {
		turns++;
		mew_clobber();
	}
}

MEW_BENCHMARK(family, mew::options().cases(labels).tags("io fast").threads(2).min_time(0.001))
{
	MEW_LOOP_BATCH(st, 4)
		mew_keep(mew_case_index(st));
}

MEW_BENCHMARK_NAMED(throws_standard, "cxx/throws", mew::options().tags("bad"))
{
	counted local;

	MEW_LOOP(st) {
		MEW_PAUSED(st) {
			throw std::runtime_error("the disk is full");
		}
	}
}

MEW_BENCHMARK_NAMED(throws_other, "cxx/throws-int", mew::options().tags("bad"))
{
	throw 42;
}

MEW_BENCHMARK_NAMED(after_throw, "cxx/after")
{
	MEW_LOOP(st) {
		std::unique_ptr<char[]> block(new char[100]);

		mew_keep(block.get());
	}
}

static void built_by_hand(mew_state *st, void *arg)
{
	MEW_LOOP(st)
		mew_keep(*static_cast<int *>(arg));
}

static int seven = 7;
static const mew_entry hand_entry = mew::options().name("cxx/hand").run(mew::body<built_by_hand>).arg(&seven);
MEW_BENCHMARK_ENTRY(hand, hand_entry)

/* --- values that mew_keep takes --------------------------------------------------------------------------------- */

struct large {
	char bytes[200];
};

static void keep_everything(mew_state *st, void *)
{
	enum class colour { red } shade = colour::red;
	const std::vector<int> numbers(3, 1);
	volatile int changing = 1;
	large many = large();
	int array[5] = {};
	const int constant = 2;
	int scalar = 1;

	MEW_LOOP(st) {
		mew_keep(scalar);
		mew_keep(scalar + 1);
		mew_keep(constant);
		mew_keep(changing);
		mew_keep(&scalar);
		mew_keep(array);
		mew_keep(many);
		mew_keep(numbers);
		mew_keep(shade);
		mew_keep(1.5);
		mew_keep(nullptr);
		mew_keep("text");
		mew_keep(std::string("a text too long to be held without a block"));
		mew_keep(std::unique_ptr<int>(new int(3)));
		mew_keep(keep_everything);
	}
}

static void pause_in_steps(mew_state *st, void *)
{
	MEW_LOOP(st) {
		MEW_PAUSED(st) {
			MEW_PAUSED(st)
				mew_clobber();
			std::unique_ptr<char[]> outside(new char[50]);

			mew_keep(outside.get());
			if (seven == 7)
				continue; /* leaves the pause, not the loop */
			mew_fail(st, "continue did not leave the pause");
		}
		std::unique_ptr<char[]> inside(new char[7]);

		mew_keep(inside.get());
	}
}

static void throw_once(mew_state *st, void *)
{
	(void)st;
	throw std::logic_error("not today");
}

static const mew_entry own_entries[] = {
	mew::options().name("own/keep").run(mew::body<keep_everything>),
	mew::options().name("own/throws").run(mew::body<throw_once>),
	mew::options().name("own/pause").run(mew::body<pause_in_steps>).iterations(20),
	mew_entry()
};

/* --- the checks -------------------------------------------------------------------------------------------------- */

static const mew_entry *find_entry(const char *name)
{
	for (const mew_entry *e = mew_entries(); e != nullptr && e->name != nullptr; e++)
		if (same(e->name, name))
			return e;
	return nullptr;
}

static void check_registration()
{
	static const char *const order[] = {
		"plain", "family", "cxx/throws", "cxx/throws-int", "cxx/after", "cxx/hand"
	};
	const mew_entry *e = mew_entries();
	bool in_order = e != nullptr;

	for (size_t i = 0; in_order && i < sizeof order / sizeof order[0]; i++)
		in_order = same(e[i].name, order[i]);
	check(in_order && e[6].name == nullptr, "entries are listed in source order and ended by an empty one");
	e = find_entry("family");
	check(e != nullptr && e->cases == labels && same(e->tags, "io fast") && e->threads == 2 && e->min_time == 0.001,
	      "options arrive in the entry");
	e = find_entry("cxx/hand");
	check(e != nullptr && e->arg == &seven && e->run == hand_entry.run, "an entry built by hand is registered");
}

static void check_timing()
{
	const mew_run_options wanted = mew::run_options().repetitions(3).latency().filter("x").precision(0.1);
	mew_results *r = mew_run(mew_entries(), mew::run_options().iterations(40).repetitions(2).max_time(0.05));
	const mew_result *row;

	check(wanted.size == sizeof wanted && wanted.repetitions == 3 && wanted.latency == 1 &&
		      same(wanted.filter, "x"),
	      "run options arrive with their size");
	check(r != nullptr && mew_results_count(r) == 7, "every case has a row, failed ones included");
	row = mew_results_find(r, "plain");
	check(row != nullptr && row->status == MEW_OK && row->iterations == 80 && turns >= 80,
	      "a plain case is measured");
	row = mew_results_find(r, "family/case:1");
	check(row != nullptr && row->status == MEW_OK && same(row->label, "large"),
	      "a family on two threads is measured");
	row = mew_results_find(r, "cxx/throws");
	check(row != nullptr && row->status == MEW_E_BODY && std::strstr(row->reason, "the disk is full") != nullptr,
	      "an exception fails its row with what() as the reason");
	check(destroyed > 0, "the objects of a body that throws are destroyed");
	row = mew_results_find(r, "cxx/throws-int");
	check(row != nullptr && row->status == MEW_E_BODY && std::strstr(row->reason, "unknown exception") != nullptr,
	      "an exception of any other type fails its row too");
	row = mew_results_find(r, "cxx/after");
	check(row != nullptr && row->status == MEW_OK && row->median_ns > 0,
	      "the case after the exceptions is unharmed");
	row = mew_results_find(r, "cxx/hand");
	check(row != nullptr && row->status == MEW_OK, "a registered entry is measured");
	mew_results_free(r);
}

static void check_own_entries()
{
	mew_results *r = mew_run(own_entries, mew::run_options().iterations(10));
	const mew_result *row = mew_results_find(r, "own/keep");

	check(row != nullptr && row->status == MEW_OK, "every kind of value can be kept");
	row = mew_results_find(r, "own/throws");
	check(row != nullptr && row->status == MEW_E_BODY && std::strstr(row->reason, "not today") != nullptr,
	      "mew::body catches for entries of one's own");
	row = mew_results_find(r, "own/pause");
	check(row != nullptr && row->status == MEW_OK && row->iterations == 20,
	      "continue in a pause resumes and goes on");
	mew_results_free(r);
	check(mew_run(nullptr) == nullptr && mew_last_error()->status == MEW_E_INVALID, "no entries are an error");
}

/* A row without figures because nothing can measure them here is a skip; any other failure is not. */
static bool is_unsupported(const mew_memory_case *row, const char *what)
{
	if (row == nullptr || row->status != MEW_E_UNSUPPORTED)
		return false;
	skip(what, row->reason);
	return true;
}

static void check_memory()
{
	mew_memory_profiles *m =
		mew_memory_profile(mew_entries(), 50, mew::memory_options().filter("^cxx/(after|throws)$"));
	const mew_memory_case *row = mew_memory_find(m, "cxx/after");

	if (!is_unsupported(row, "new in the loop is counted"))
		check(row != nullptr && row->total_allocations == 50 && row->peak_bytes == 100 && row->net_bytes == 0,
		      "new in the loop is counted");
	row = mew_memory_find(m, "cxx/throws");
	check(row != nullptr && row->status != MEW_OK && row->present == 0, "a body that throws has no memory figures");
	check(mew_memory_count(m) == 2, "the filter leaves out the other cases");
	mew_memory_free(m);
}

/* --- who allocates ---------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void collect_numbers(std::vector<int> &numbers)
{
	for (int i = 0; i < 100; i++)
		numbers.push_back(i); /* operator new is four of the library's functions away */
}

static void collecting(mew_state *st, void *)
{
	MEW_LOOP(st) {
		std::vector<int> numbers;

		collect_numbers(numbers);
		mew_keep(numbers.data());
	}
}

static void check_functions_at(const char *page)
{
	static const mew_entry entries[] = { mew::options().name("collecting").run(mew::body<collecting>), mew_entry() };
	static const char what[] = "what std::vector allocates is its caller's";
	static const char name[] = "collect_numbers";
	const char *symbols = std::getenv("MEW_SYMBOLS");
	mew_memory_profiles *m = mew_memory_profile(entries, 10, mew::memory_options().flamegraph(page));
	const mew_memory_case *row = mew_memory_find(m, "collecting");

	if (symbols == nullptr || access(symbols, R_OK) != 0)
		skip(what, "there is no libmew_symbols, so functions have no names");
	else if (!is_unsupported(row, what))
		check(row != nullptr && row->nby_function == 1 &&
		      std::strncmp(row->by_function[0].function, name, sizeof name - 1) == 0 &&
		      row->by_function[0].allocations == row->total_allocations &&
		      row->by_function[0].peak_bytes == row->peak_bytes, what);
	mew_memory_free(m);
	m = mew_memory_profile(entries, 10);
	row = mew_memory_find(m, "collecting");
	if (!is_unsupported(row, "without stacks there is no such list"))
		check(row != nullptr && row->nby_function == 0 &&
		      std::strstr(mew_memory_why(row, MEW_FIG_BY_FUNCTION), ".flamegraph") != nullptr,
		      "without stacks there is no such list");
	mew_memory_free(m);
}

static void check_functions()
{
	const char *where = std::getenv("TMPDIR");
	std::string page = std::string(where != nullptr ? where : "/tmp") + "/mew-cxx-XXXXXX";
	int file = mkstemp(&page[0]);

	check(file >= 0, "a page can be written");
	if (file < 0)
		return;
	close(file);
	check_functions_at(page.c_str());
	unlink(page.c_str());
}

static void check_pause()
{
	mew_memory_profiles *m = mew_memory_profile(own_entries);
	const mew_memory_case *row = mew_memory_find(m, "own/keep");

	if (!is_unsupported(row, "a memory profile without a count runs 100 iterations"))
		check(row != nullptr && row->iterations == 100, "a memory profile without a count runs 100 iterations");
	row = mew_memory_find(m, "own/pause");
	if (!is_unsupported(row, "a pause hides what is in it and nothing after it"))
		check(row != nullptr && row->total_allocations == 20 && row->peak_bytes == 7,
		      "a pause hides what is in it and nothing after it");
	mew_memory_free(m);
}

static void check_cpu()
{
	mew::cpu_options options = mew::cpu_options().interval(0.001).inner_iterations(200).clock(MEW_CLOCK_CPU);
	mew_cpu_profiles *c = mew_cpu_profile(own_entries, options);
	const mew_cpu_case *row = mew_cpu_find(c, "own/keep");

	if (row == nullptr)
		check(false, "a CPU profile runs the iterations asked for");
	else if (row->status == MEW_E_UNSUPPORTED || row->status == MEW_E_DENIED)
		skip("a CPU profile runs the iterations asked for", row->reason);
	else
		check(row->status == MEW_OK && row->iterations == 200, "a CPU profile runs the iterations asked for");
	row = mew_cpu_find(c, "own/throws");
	check(row != nullptr && row->status != MEW_OK, "a body that throws has no CPU figures");
	mew_cpu_free(c);
}

static void leave_thread(mew_state *, void *)
{
	pthread_exit(&seven);
}

static void *run_body(void *)
{
	mew::body<leave_thread>(nullptr, nullptr);
	return nullptr;
}

/* pthread_exit() unwinds by a foreign exception; catching it for good would abort the process. */
static void check_forced_unwinding()
{
	pthread_t thread;
	void *value = nullptr;

	if (pthread_create(&thread, nullptr, run_body, nullptr) == 0)
		pthread_join(thread, &value);
	check(value == &seven, "pthread_exit passes through mew::body");
}

/* --- budgets ---------------------------------------------------------------------------------------------------- */

static unsigned long exceeded;

static void count_failure(const mew_span_failure *, void *)
{
	exceeded++;
}

static void throw_failure(const mew_span_failure *failure, void *)
{
	throw std::runtime_error(failure->text);
}

static void make_vectors(int n)
{
	for (int i = 0; i < n; i++)
		mew_keep(std::vector<int>(100));
}

static bool can_count(mew_span *span)
{
	if (mew_span_begin(span, MEW_SPAN_THREAD) == MEW_OK)
		return true;
	skip("spans and budgets", mew_last_error()->text);
	return false;
}

/* What a throwing handler says of the block; nothing when it was not called. */
static std::string verdict(unsigned budget, int vectors)
{
	try {
		mew_assert_allocs_le(budget) {
			counted local;

			make_vectors(vectors);
		}
	} catch (const std::runtime_error &error) {
		return error.what();
	}
	return std::string();
}

static bool leaves_by_exception()
{
	try {
		mew_assert_no_alloc {
			mew_assert_allocs_le(100) {
				make_vectors(1);
				throw 42;
			}
		}
	} catch (int) {
		return true;
	}
	return false;
}

static void check_budgets()
{
	mew_span span, after;
	std::string said;

	if (!can_count(&span))
		return;
	make_vectors(3);
	check(mew_span_end(&span) == MEW_OK && span.allocations == 3 && span.cumulative_bytes == 3 * 100 * sizeof(int) &&
		      span.net_blocks == 0,
	      "new and delete are counted in a span");
	mew_span_on_failure(count_failure, nullptr);
	mew_assert_allocs_le(3) {
		make_vectors(3);
	}
	check(exceeded == 0, "a budget that holds is silent");
	mew_assert_no_alloc {
		make_vectors(1);
	}
	check(exceeded == 1, "a budget that does not is told");
	check(leaves_by_exception() && exceeded == 1, "an exception leaves budgets without a verdict");
	mew_span_on_failure(throw_failure, nullptr);
	destroyed = 0;
	said = verdict(2, 5);
	check(said.find("5 allocations where at most 2 are allowed") != std::string::npos && destroyed == 1,
	      "the handler may throw");
	check(verdict(5, 5).empty(), "and the next budget is checked as before");
	check(mew_span_begin(&after, MEW_SPAN_PROCESS) == MEW_OK && mew_span_end(&after) == MEW_OK && after.allocations == 0,
	      "nothing is left open");
	mew_span_on_failure(nullptr, nullptr);
}

int main()
{
	check_registration();
	check_timing();
	check_own_entries();
	check_memory();
	check_functions();
	check_pause();
	check_cpu();
	check_forced_unwinding();
	check_budgets();
	std::printf("1..%u\n", checks);
	return failures == 0 ? 0 : 1;
}
