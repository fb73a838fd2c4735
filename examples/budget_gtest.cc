// budget_gtest.cc - GoogleTest tests with budgets of allocations.
// c++ budget_gtest.cc $(pkg-config --cflags --libs mew gtest)
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <mew.h>

// A budget that is exceeded is a failure at its own line, with the stacks; the test goes on.
static void add_failure(const mew_span_failure *failure, void *)
{
	ADD_FAILURE_AT(failure->file, failure->line) << failure->text;
}

TEST(Vector, ReservesOnce)
{
	std::vector<int> numbers;

	mew_assert_allocs_le(1) {
		numbers.reserve(1000);
		for (int i = 0; i < 1000; i++)
			numbers.push_back(i);
	}
	EXPECT_EQ(numbers.size(), 1000u);
}

TEST(String, SwapsWithoutCopies)
{
	std::string a(100, 'a'), b(200, 'b');

	mew_assert_no_alloc {
		a.swap(b);
	}
	EXPECT_EQ(a.size(), 200u);
}

// What a budget says that is exceeded: run with --gtest_also_run_disabled_tests.
TEST(Vector, DISABLED_GrowsByItself)
{
	std::vector<int> numbers;

	mew_assert_allocs_le(1) {
		for (int i = 0; i < 100; i++)
			numbers.push_back(i);
	}
}

int main(int argc, char **argv)
{
	::testing::InitGoogleTest(&argc, argv);
	mew_span_on_failure(add_failure, nullptr);
	return RUN_ALL_TESTS();
}
