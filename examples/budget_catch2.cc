// budget_catch2.cc - Catch2 tests with budgets of allocations; version 2 (one header) or 3.
// c++ budget_catch2.cc $(pkg-config --cflags --libs mew)            (version 3: and catch2)
#if defined(__has_include) && __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <string>
#include <vector>

#include <mew.h>

// FAIL throws, which ends the test case; the budget was closed before.
static void fail_test(const mew_span_failure *failure, void *)
{
	FAIL(failure->text);
}

TEST_CASE("a vector that reserved allocates no more")
{
	std::vector<int> numbers;

	mew_assert_allocs_le(1) {
		numbers.reserve(1000);
		for (int i = 0; i < 1000; i++)
			numbers.push_back(i);
	}
	REQUIRE(numbers.size() == 1000);
}

// What a budget says that is exceeded: hidden, run with [exceeding].
TEST_CASE("a string that grows by itself", "[.][exceeding]")
{
	std::string text;

	mew_assert_no_alloc {
		for (int i = 0; i < 1000; i++)
			text += 'x';
	}
}

int main(int argc, char **argv)
{
	mew_span_on_failure(fail_test, nullptr);
	return Catch::Session().run(argc, argv);
}
