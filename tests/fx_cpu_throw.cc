/*
 * fx_cpu_throw.cc - exceptions on their way through frames that have something to destroy.
 * Test fixture of the CPU backend.
 */
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int fx_throw(int depth);

namespace {

struct counted {
	explicit counted(int &n) : n_(n) {}
	~counted() { ++n_; }
	counted(const counted &) = delete;
	counted &operator=(const counted &) = delete;
	int &n_;
};

__attribute__((noinline)) void descend(int depth, int &destroyed)
{
	counted here(destroyed);
	std::vector<std::string> some(3, std::string(40, 'x'));

	if (depth == 0)
		throw std::runtime_error(some[1]);
	descend(depth - 1, destroyed);
	__asm__ volatile("" : : "r"(&some) : "memory");
}

} /* namespace */

/* Returns how many objects were destroyed on the way: depth + 1. */
extern "C" int fx_throw(int depth)
{
	int destroyed = 0;

	try {
		descend(depth, destroyed);
	} catch (const std::exception &) {
		return destroyed;
	}
	return -1;
}
