/*
 * fx_walk.h - a stack that is known: every function of a chain notes its own return address.
 * Test fixture of t_unwind.c and t_unwind_nested.c, x86-64 only.
 */
#ifndef FX_WALK_H
#define FX_WALK_H

#include "base.h"
#include "modules.h"
#include "unwind.h"

#ifdef __has_feature /* clang */
#if __has_feature(thread_sanitizer)
#define FX_THREAD_SANITIZER
#elif __has_feature(address_sanitizer)
#define FX_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define FX_THREAD_SANITIZER
#elif defined(__SANITIZE_ADDRESS__)
#define FX_ADDRESS_SANITIZER
#endif

enum { MOST = 4096 };

static struct mew_unwind_thread walker;
static uintptr_t pcs[MOST];
static size_t npcs;
static enum mew_unwind_stop stop;
static uintptr_t expected[MOST]; /* return addresses, outermost first */
static size_t nexpected;
static volatile uintptr_t sink;

static uintptr_t entry_lo, entry_hi;
static size_t max = MOST;

#define NOTE_CALLER() (expected[nexpected++] = (uintptr_t)__builtin_return_address(0))

MEW_NOINLINE static void walk_here(void)
{
	struct mew_unwind_regs regs;

	NOTE_CALLER();
	mew_unwind_here(&regs);
	npcs = mew_unwind_walk(&walker, &regs, entry_lo, entry_hi, pcs, max, &stop);
	sink = npcs;
}

/* A walk starts anew: what the last one expected and found is forgotten. */
static void prepare(void)
{
	assert_int_equal(mew_modules_renew(), 0);
	assert_int_equal(mew_unwind_thread_init(&walker), 0);
	nexpected = npcs = 0;
	entry_lo = entry_hi = 0;
	max = MOST;
}

/* The innermost noted callers, starting at place `first` of the stack found. */
static void assert_callers(size_t first)
{
	assert_true(npcs >= first + nexpected);
	for (size_t i = 0; i < nexpected; i++)
		assert_int_equal(pcs[first + i], expected[nexpected - 1 - i]);
}

MEW_NOINLINE static void chain(unsigned depth, void (*leaf)(void))
{
	NOTE_CALLER();
	if (depth > 0)
		chain(depth - 1, leaf);
	else
		leaf();
	sink = depth; /* not a tail call */
}

#endif
