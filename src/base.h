/*
 * base.h - attributes, array length, checked arithmetic.
 * Layer L0. No state.
 */
#ifndef MEW_BASE_H
#define MEW_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEW_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))
#define MEW_LIKELY(x) __builtin_expect(!!(x), 1)
#define MEW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MEW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MEW_NOINLINE __attribute__((noinline))

/* A thread-local that a signal handler or a malloc hook may touch: its access never allocates. */
#define MEW_HOT_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* *out = a op b; returns false when the result does not fit. Context: any thread, signal, malloc. */
static inline bool mew_add_size(size_t a, size_t b, size_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}
static inline bool mew_mul_size(size_t a, size_t b, size_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

#endif
