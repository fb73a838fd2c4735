/*
 * demangle.h - readable names of C++ and Rust functions.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_DEMANGLE_H
#define MEW_SYMBOLS_DEMANGLE_H

#include "base.h"

/* Is it a name that demangling would change? */
bool mew_is_mangled(const char *name);

/*
 * A copy of a symbol's name for people: without a version ("memcpy@@GLIBC_2.14"), demangled where possible;
 * Rust's, of either kind, without the hash behind them. One that would grow beyond 64 KiB stays as it is.
 *
 * keep_clone  leave what the compiler appended ("[clone .cold]", ".constprop.0")
 * Returns     a string to be freed; NULL without memory
 */
char *mew_demangle(const char *name, bool keep_clone);

#endif
