/*
 * t_demangle.c - names of C++ and of both of Rust's manglings for people; names made to harm the demangler.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

static void expect(const char *name, bool keep_clone, const char *wanted)
{
	char *text = mew_demangle(name, keep_clone);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

#if !defined HAVE_LIBIBERTY && !defined HAVE_CXA_DEMANGLE
static void skip_without(void)
{
	print_message("skipped: built without a demangler\n");
	skip();
}
#else
static void skip_without(void)
{
}
#endif

static void skip_without_rust(void)
{
#ifndef HAVE_LIBIBERTY
	print_message("skipped: built without libiberty (libiberty-dev), which knows Rust\n");
	skip();
#endif
}

static void names_of_c_stay(void **state)
{
	static const char *const names[] = { "", "_", "_Z", "_R", "_Read", "_Rust", "main", "_ZN", "_ZNSt", "_RNv", "_Z3fo", "_R1" };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(names); i++)
		expect(names[i], true, names[i]);
	expect("memcpy@@GLIBC_2.14", true, "memcpy");
	expect("work.constprop.0", false, "work.constprop.0");
}

static void names_of_cxx(void **state)
{
	(void)state;
	skip_without();
	expect("_ZN2fx5twiceIiEET_S1_", false, "int fx::twice<int>(int)");
	expect("_ZNSt6vectorIiSaIiEE9push_backERKi", false, "std::vector<int, std::allocator<int> >::push_back(int const&)");
	expect("_Z4workv.cold", true, "work() [clone .cold]");
	expect("_Z4workv.cold", false, "work()");
	expect("_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_@@GLIBCXX_3.4", false,
	       "std::basic_ostream<char, std::char_traits<char> >& std::endl<char, std::char_traits<char> "
	       ">(std::basic_ostream<char, std::char_traits<char> >&)");
}

static void names_of_rust(void **state)
{
	(void)state;
	skip_without_rust();
	expect("_ZN4core3fmt5write17h0123456789abcdefE", false, "core::fmt::write");
	expect("_ZN49_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$Drop$GT$4drop17h0123456789abcdefE", false,
	       "<alloc::vec::Vec<T> as Drop>::drop");
	expect("_RNvCs1234_7mycrate3foo", false, "mycrate::foo");
	expect("_RNvMCs1234_7mycrateNtB2_5Thing3act", false, "<mycrate::Thing>::act");
	expect("_RINvNtC3std3mem8align_ofdE", false, "std::mem::align_of::<f64>");
	expect("_RNCNvCs1234_7mycrate4main0", false, "mycrate::main::{closure#0}");
	expect("_RNvC6_123foo3bar", false, "123foo::bar");
	expect("_RNvCs1234_7mycrate3foo.llvm.1234567", false, "mycrate::foo");
}

/* --- names made to harm ------------------------------------------------------------------------------------------- */

static void base62(char *out, size_t bytes, unsigned value)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (value == 0)
		(void)snprintf(out, bytes, "_");
	else if (value - 1 < 62)
		(void)snprintf(out, bytes, "%c_", digits[value - 1]);
	else
		(void)snprintf(out, bytes, "%c%c_", digits[(value - 1) / 62], digits[(value - 1) % 62]);
}

/* Each argument is a pair of the one before: 2^60 types when it is written out. */
static void a_name_of_rust_that_doubles_sixty_times(void **state)
{
	char name[2048] = "_RINvC1a1f", back[8];
	size_t before = strlen(name);

	(void)state;
	skip_without_rust();
	(void)strcat(name, "TaaE");
	for (int i = 0; i < 60; i++) {
		size_t here = strlen(name);

		base62(back, sizeof back, (unsigned)before - 2);
		(void)snprintf(name + here, sizeof name - here, "TB%sB%sE", back, back);
		before = here;
	}
	(void)strcat(name, "E");
	expect(name, false, name);
}

/* The same in C++: p<p<..>, p<..> >, each level by two references to the one before. */
static void a_name_of_cxx_that_doubles_sixty_times(void **state)
{
#ifdef HAVE_LIBIBERTY
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[2048] = "_Z1f1pIiiE";
	size_t n = strlen(name);

	(void)state;
	/* S_ is p, S0_ is p<int, int>, and each new pair is the next */
	for (unsigned i = 0; i < 30; i++)
		n += (size_t)snprintf(name + n, sizeof name - n, "S_IS%c_S%c_E", digits[i], digits[i]);
	expect(name, false, name);
#else
	(void)state;
	print_message("skipped: the C++ runtime's demangler cannot be stopped\n");
	skip();
#endif
}

static void deep_long_and_random_names_end(void **state)
{
	static const char letters[] = "_ZRNSTIEBCFGKMXYDPdjpvs0123456789aif.$u";
	char name[20000];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		memset(name, i == 0 ? 'N' : i == 1 ? 'P' : 'R', sizeof name - 1);
		memcpy(name, i == 2 ? "_R" : "_Z", 2);
		name[sizeof name - 1] = '\0';
		expect(name, true, name);
		name[9000] = '\0';
		expect(name, true, name);
	}
	srand(1);
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = 2 + (size_t)rand() % 60;
		char *text;

		memcpy(name, i % 2 == 0 ? "_R" : "_Z", 2);
		for (size_t k = 2; k < n; k++)
			name[k] = letters[(size_t)rand() % (sizeof letters - 1)];
		name[n] = '\0';
		text = mew_demangle(name, i % 3 == 0);
		assert_non_null(text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_c_stay),
		cmocka_unit_test(names_of_cxx),
		cmocka_unit_test(names_of_rust),
		cmocka_unit_test(a_name_of_rust_that_doubles_sixty_times),
		cmocka_unit_test(a_name_of_cxx_that_doubles_sixty_times),
		cmocka_unit_test(deep_long_and_random_names_end),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
