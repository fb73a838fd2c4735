/*
 * cxx_noexceptions.cc - the C++ header without exceptions (built with -fno-exceptions -fno-rtti), with MEW_MAIN.
 * Test program in C++11; run it with "-k quick" or any flag of `mew run`.
 */
#include <mew.h>

MEW_BENCHMARK(quick, mew::options().tags("noexcept").iterations(100))
{
	int sum = 0;

	MEW_LOOP(st) {
		sum++;
		MEW_PAUSED(st)
			mew_keep(sum);
		mew_assert_no_alloc {
			mew_keep(sum);
		}
	}
}

MEW_MAIN()
