/*
 * mew/cxx.hpp - the C++ side of mew.h, C++11 and newer: options by named setters, exceptions turned into rows.
 * Included by mew.h; not to be included alone. Header only: everything ends in the C functions.
 *
 * Units, ownership, errors and contexts are those of mew.h. Nothing here throws.
 */
#ifndef MEW_CXX_HPP
#define MEW_CXX_HPP

#ifndef MEW_H
#error "include <mew.h>, which brings this file in"
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define MEW_CXX_EXCEPTIONS_ 1
#include <cxxabi.h>
#include <exception>
#else
#define MEW_CXX_EXCEPTIONS_ 0
#endif

namespace mew
{

/*
 * A mew_entry by named setters, for MEW_BENCHMARK, MEW_BENCHMARK_ENTRY and arrays: the members and their meaning are
 * those of struct mew_entry, and what is not set is zero. Pointers are kept, not copied: what they point to must live
 * as long as the entry. setup, teardown and expect are called from C and must not throw.
 *
 *     static const mew_entry entries[] = { mew::options().name("pack").run(mew::body<pack>).threads(2), mew_entry() };
 */
class options
{
public:
	options() : entry_() {}

	options &name(const char *text) { entry_.name = text; return *this; }
	options &run(mew_run_fn *fn) { entry_.run = fn; return *this; }
	options &arg(void *pointer) { entry_.arg = pointer; return *this; }
	options &cases(const char *const *labels) { entry_.cases = labels; return *this; }
	options &tags(const char *words) { entry_.tags = words; return *this; }
	options &threads(unsigned n) { entry_.threads = n; return *this; }
	options &setup(mew_setup_fn *fn) { entry_.setup = fn; return *this; }
	options &teardown(mew_setup_fn *fn) { entry_.teardown = fn; return *this; }
	options &after(const char *key) { entry_.after = key; return *this; }
	options &expect(mew_expect_fn *fn) { entry_.expect = fn; return *this; }
	options &min_time(double seconds) { entry_.min_time = seconds; return *this; }
	options &iterations(uint64_t n) { entry_.iterations = n; return *this; }
	options &repetitions(unsigned n) { entry_.repetitions = n; return *this; }

	operator mew_entry() const { return entry_; }

private:
	mew_entry entry_;
};

/* struct mew_run_options by named setters; what is not set has its default. Pointers are borrowed for the call. */
class run_options
{
public:
	run_options() : value_() { value_.size = sizeof value_; }

	run_options &min_time(double seconds) { value_.min_time = seconds; return *this; }
	run_options &max_time(double seconds) { value_.max_time = seconds; return *this; }
	run_options &min_warmup_time(double seconds) { value_.min_warmup_time = seconds; return *this; }
	run_options &precision(double fraction) { value_.precision = fraction; return *this; }
	run_options &repetitions(unsigned n) { value_.repetitions = n; return *this; }
	run_options &iterations(uint64_t n) { value_.iterations = n; return *this; }
	run_options &latency(bool yes = true) { value_.latency = yes; return *this; }
	run_options &interleave(bool yes = true) { value_.interleave = yes; return *this; }
	run_options &filter(const char *regex) { value_.filter = regex; return *this; }
	run_options &hooks(const mew_hook *list, size_t n) { value_.hooks = list; value_.nhooks = n; return *this; }

	operator mew_run_options() const { return value_; }

private:
	mew_run_options value_;
};

/* struct mew_memory_options by named setters. */
class memory_options
{
public:
	memory_options() : value_() { value_.size = sizeof value_; }

	memory_options &iterations(uint64_t n) { value_.iterations = n; return *this; }
	memory_options &flamegraph(const char *path) { value_.flamegraph = path; return *this; }
	memory_options &filter(const char *regex) { value_.filter = regex; return *this; }
	memory_options &hooks(const mew_hook *list, size_t n) { value_.hooks = list; value_.nhooks = n; return *this; }

	operator mew_memory_options() const { return value_; }

private:
	mew_memory_options value_;
};

/* struct mew_cpu_options by named setters. */
class cpu_options
{
public:
	cpu_options() : value_() { value_.size = sizeof value_; }

	cpu_options &interval(double seconds) { value_.interval = seconds; return *this; }
	cpu_options &inner_iterations(uint64_t n) { value_.inner_iterations = n; return *this; }
	cpu_options &output(const char *path) { value_.output = path; return *this; }
	cpu_options &filter(const char *regex) { value_.filter = regex; return *this; }
	cpu_options &pause_cpu(bool yes = true) { value_.pause_cpu = yes; return *this; }
	cpu_options &clock(mew_clock what) { value_.clock = what; return *this; }
	cpu_options &hooks(const mew_hook *list, size_t n) { value_.hooks = list; value_.nhooks = n; return *this; }

	operator mew_cpu_options() const { return value_; }

private:
	mew_cpu_options value_;
};

/*
 * `mew::body<fn>` is a mew_run_fn that calls fn and turns an exception out of it into a failed row (MEW_E_BODY, with
 * what() as the reason). MEW_BENCHMARK applies it by itself; entries built by hand need it. Under -fno-exceptions it
 * only calls. The unwinding of a cancelled thread passes through: to stop it would end the process.
 */
template <mew_run_fn *fn> void body(struct mew_state *st, void *arg)
{
#if MEW_CXX_EXCEPTIONS_
	try {
		fn(st, arg);
#ifdef __GLIBCXX__
	} catch (abi::__forced_unwind &) {
		throw;
#endif
	} catch (const std::exception &e) {
		mew_fail_exception_(st, e.what());
	} catch (...) {
		mew_fail_exception_(st, "unknown exception");
	}
#else
	fn(st, arg);
#endif
}

/* Private: an entry of MEW_BENCHMARK. The last argument ends the macro's list and is not used. */
inline mew_entry entry_of_(const char *name, mew_run_fn *run, options given, const options & = options())
{
	return given.name(name).run(run);
}

/* Private: runs a registration while the program's objects are initialised, in their order. */
struct registrar_ {
	explicit registrar_(void (*enlist)()) { enlist(); }
};

} /* namespace mew */

/* mew_run(entries, mew::run_options().min_time(0.1).repetitions(5)): see mew_run_with(). */
inline struct mew_results *mew_run(const struct mew_entry *entries,
				   const mew::run_options &options = mew::run_options())
{
	const mew_run_options value = options;

	return mew_run_with(entries, &value);
}

/* mew_memory_profile(entries, 100, mew::memory_options().flamegraph("m.html")): see mew_memory_profile_with(). */
inline struct mew_memory_profiles *mew_memory_profile(const struct mew_entry *entries, uint64_t iterations = 0,
						      mew::memory_options options = mew::memory_options())
{
	if (iterations != 0)
		options.iterations(iterations);
	const mew_memory_options value = options;

	return mew_memory_profile_with(entries, &value);
}

/* mew_cpu_profile(entries, mew::cpu_options().interval(0.001)): see mew_cpu_profile_with(). */
inline struct mew_cpu_profiles *mew_cpu_profile(const struct mew_entry *entries,
						const mew::cpu_options &options = mew::cpu_options())
{
	const mew_cpu_options value = options;

	return mew_cpu_profile_with(entries, &value);
}

/*
 * MEW_BENCHMARK(id) { body }                                              an entry named "id"
 * MEW_BENCHMARK(id, mew::options().cases(sizes).tags("io")) { body }      the same with options
 * MEW_BENCHMARK_NAMED(id, "zlib/inflate", mew::options()...) { body }     an entry with another name
 * MEW_BENCHMARK_ENTRY(id, entry)                                          an entry built by hand; copied
 *
 * `st` and `arg` are in scope in the body, which becomes the function mew_body_<id>.
 */
#define MEW_BENCHMARK(...) MEW_BENCHMARK_PICK_(__VA_ARGS__, ::mew::options())
#define MEW_BENCHMARK_PICK_(id, ...) MEW_BENCHMARK_DEFINE_(id, #id, __VA_ARGS__)
#define MEW_BENCHMARK_NAMED(id, ...) MEW_BENCHMARK_NAMED_PICK_(id, __VA_ARGS__, ::mew::options())
#define MEW_BENCHMARK_NAMED_PICK_(id, text, ...) MEW_BENCHMARK_DEFINE_(id, text, __VA_ARGS__)
#define MEW_BENCHMARK_DEFINE_(id, text, ...)                                                                           \
	static void mew_body_##id(struct mew_state *st, void *arg);                                                    \
	MEW_BENCHMARK_ENTRY(id, ::mew::entry_of_(text, ::mew::body<mew_body_##id>, __VA_ARGS__))                       \
	static void mew_body_##id(struct mew_state *st __attribute__((unused)), void *arg __attribute__((unused)))
#define MEW_BENCHMARK_ENTRY(id, ...)                                                                                   \
	static void mew_register_##id()                                                                                \
	{                                                                                                              \
		static const struct mew_entry entry_ = __VA_ARGS__;                                                    \
		static struct mew_registration_ node_ = { &entry_, nullptr, MEW_BUILD_ };                              \
		mew_register_(&node_);                                                                                 \
	}                                                                                                              \
	static const ::mew::registrar_ mew_registrar_##id __attribute__((unused))(mew_register_##id);

#endif
