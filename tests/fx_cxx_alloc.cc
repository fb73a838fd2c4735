// fx_cxx_alloc.cc - one case per form of operator new, delete and the malloc family: so many calls, so many bytes.
// Test fixture of allocators.sh, C++17. The figures asked for stand beside each case; they are the same under every
// allocator.
#include <mew.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <malloc.h>
#include <unistd.h>

extern "C" {
void cfree(void *) __attribute__((weak));
void free_sized(void *, std::size_t) __attribute__((weak));
void free_aligned_sized(void *, std::size_t, std::size_t) __attribute__((weak));
}

namespace
{

constexpr std::align_val_t aligned{64};

// The compiler may leave out a pair of new and delete that nobody looks at.
template <class T> T *seen(T *block)
{
	mew_keep(block);
	if (block == nullptr)
		std::abort();
	return block;
}

// one allocation and one free each, of the bytes in the name (as libstdc++ asks malloc)

MEW_BENCHMARK_NAMED(new_100, "cxx/new/1/100")
{
	MEW_LOOP(st)
		::operator delete(seen(::operator new(100)));
}

MEW_BENCHMARK_NAMED(new_array, "cxx/new-array/1/100")
{
	MEW_LOOP(st)
		::operator delete[](seen(::operator new[](100)));
}

MEW_BENCHMARK_NAMED(new_nothing, "cxx/new-of-0/2/2")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(0)));
		::operator delete[](seen(::operator new[](0)));
	}
}

MEW_BENCHMARK_NAMED(new_nothrow, "cxx/nothrow/2/200")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(100, std::nothrow)), std::nothrow);
		::operator delete[](seen(::operator new[](100, std::nothrow)), std::nothrow);
	}
}

MEW_BENCHMARK_NAMED(delete_sized, "cxx/sized/2/200")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(100)), std::size_t{100});
		::operator delete[](seen(::operator new[](100)), std::size_t{100});
	}
}

// 100 bytes aligned to 64 are rounded up to 128
MEW_BENCHMARK_NAMED(new_aligned, "cxx/aligned/2/256")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(100, aligned)), aligned);
		::operator delete[](seen(::operator new[](100, aligned)), aligned);
	}
}

MEW_BENCHMARK_NAMED(new_aligned_nothrow, "cxx/aligned-nothrow/2/256")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(100, aligned, std::nothrow)), aligned, std::nothrow);
		::operator delete[](seen(::operator new[](100, aligned, std::nothrow)), aligned, std::nothrow);
	}
}

MEW_BENCHMARK_NAMED(delete_aligned_sized, "cxx/aligned-sized/2/256")
{
	MEW_LOOP(st) {
		::operator delete(seen(::operator new(100, aligned)), std::size_t{100}, aligned);
		::operator delete[](seen(::operator new[](100, aligned)), std::size_t{100}, aligned);
	}
}

MEW_BENCHMARK_NAMED(new_aligned_nothing, "cxx/aligned-of-0/1/64")
{
	MEW_LOOP(st)
		::operator delete(seen(::operator new(0, aligned)), aligned);
}

// 1, 2, 4, 8 elements of 8 bytes
MEW_BENCHMARK_NAMED(vector_growth, "cxx/vector/4/120")
{
	MEW_LOOP(st) {
		std::vector<double> v;

		for (int i = 0; i < 8; i++) {
			v.push_back(i);
			mew_keep(v.data());
		}
	}
}

// inside libstdc++, which calls operator new itself
MEW_BENCHMARK_NAMED(string_copy, "cxx/string/1/101")
{
	const std::string text(100, 'x');

	MEW_LOOP(st) {
		std::string copy(text);

		mew_keep(copy.data());
	}
}

[[noreturn]] void throw_number()
{
	throw 1;
}

// 3 calls that fail: one throws bad_alloc, one returns nothing, and in one the new-handler throws what it likes
MEW_BENCHMARK_NAMED(new_refused, "refused/new")
{
	volatile std::size_t huge = static_cast<std::size_t>(1) << 62;

	MEW_LOOP(st) {
		try {
			mew_keep(::operator new(huge));
			mew_fail(st, "a block of 2^62 bytes was had");
		} catch (const std::bad_alloc &) {
			mew_clobber();
		}
		if (::operator new(huge, std::nothrow) != nullptr)
			mew_fail(st, "a block of 2^62 bytes was had");
		std::set_new_handler(throw_number);
		try {
			mew_keep(::operator new(huge));
			mew_fail(st, "the new-handler was not called");
		} catch (int) {
			mew_clobber();
		}
		std::set_new_handler(nullptr);
	}
}

MEW_BENCHMARK_NAMED(c_plain, "c/malloc-calloc-realloc/3/300")
{
	MEW_LOOP(st) {
		std::free(seen(std::malloc(100)));
		std::free(seen(std::calloc(25, 4)));
		std::free(seen(std::realloc(nullptr, 100)));
	}
}

MEW_BENCHMARK_NAMED(c_reallocarray, "c/reallocarray/1/100")
{
	MEW_LOOP(st)
		std::free(seen(reallocarray(nullptr, 50, 2)));
}

MEW_BENCHMARK_NAMED(c_aligned, "c/aligned/3/328")
{
	MEW_LOOP(st) {
		void *block = nullptr;

		if (posix_memalign(&block, 256, 100) != 0)
			std::abort();
		std::free(seen(block));
		std::free(seen(aligned_alloc(64, 128)));
		std::free(seen(memalign(128, 100)));
	}
}

// under an allocator without pvalloc too, whose free must not meet a block of the C library
MEW_BENCHMARK_NAMED(c_pages, "c/pages/2/200")
{
	MEW_LOOP(st) {
		void *block = seen(pvalloc(100));

		std::memset(block, 1, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
		std::free(block);
		std::free(seen(valloc(100)));
	}
}

void free_with(void (*function)(void *), void *block)
{
	if (function != nullptr)
		function(block);
	else
		std::free(block);
}

MEW_BENCHMARK_NAMED(c_frees, "c/other-frees/3/328")
{
	MEW_LOOP(st) {
		void *block = seen(std::malloc(100));

		free_with(cfree, block);
		block = seen(std::malloc(100));
		if (free_sized != nullptr)
			free_sized(block, 100);
		else
			std::free(block);
		block = seen(aligned_alloc(64, 128));
		if (free_aligned_sized != nullptr)
			free_aligned_sized(block, 64, 128);
		else
			std::free(block);
	}
}

} // namespace

MEW_MAIN()
