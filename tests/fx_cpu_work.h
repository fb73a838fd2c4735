/*
 * fx_cpu_work.h - functions that take a known time, each in a section of its own so that a test knows its code range.
 * Test fixture of the CPU backend; x86-64.
 */
#ifndef FX_CPU_WORK_H
#define FX_CPU_WORK_H

#include <stddef.h>
#include <stdint.h>

/* The linker defines the bounds of a section whose name is an identifier. */
#define FX_BOUNDS(name) extern const char __start_in_##name[], __stop_in_##name[]
#define FX_RANGE(name) ((struct fx_range){ (uintptr_t)__start_in_##name, (uintptr_t)__stop_in_##name })
#define FX_IN(name) __attribute__((noinline, section("in_" #name)))

struct fx_range {
	uintptr_t lo, hi;
};

FX_BOUNDS(fx_one);
FX_BOUNDS(fx_two);
FX_BOUNDS(fx_seven);
FX_BOUNDS(fx_hog);
FX_BOUNDS(fx_after);
FX_BOUNDS(fx_sort);
FX_BOUNDS(fx_compare);

/* Ticks of the time-stamp counter, and how many of them a microsecond has (measured once, 50 ms). */
static inline uint64_t fx_tsc(void)
{
	return __builtin_ia32_rdtsc();
}
uint64_t fx_us(uint64_t us);

/* Spin until the counter has this value; return how many ticks it took. In the sections of fx_one and fx_two. */
uint64_t fx_one_until(uint64_t deadline);
uint64_t fx_two_until(uint64_t deadline);

/* Each works for so many ticks and returns how many it really took, samples and preemption included. */
uint64_t fx_one(uint64_t ticks);
uint64_t fx_two(uint64_t ticks);
uint64_t fx_seven(uint64_t ticks);
uint64_t fx_hog(uint64_t ticks);
uint64_t fx_after(uint64_t ticks);

/* Sorts n numbers through qsort of libc with a slow comparison. */
void fx_sort(int *numbers, size_t n, uint64_t compare_ticks);

/* Uses up the stack until `left` bytes above `low` remain, then spins in fx_one. */
uint64_t fx_deep(uintptr_t low, size_t left, uint64_t ticks);

#endif
