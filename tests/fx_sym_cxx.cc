/*
 * fx_sym_cxx.cc - C++ names that must come out readable: a template in a namespace, methods, an unnamed namespace.
 * A fixture: no layer; compiled with -g -O2 by t_symbolise.
 */
extern "C" {
enum { FX_TEMPLATE, FX_METHOD, FX_HIDDEN, FX_LOCAL, FX_SLOTS };
const void *fx_pcs[FX_SLOTS];
int fx_slots = FX_SLOTS;
int fx_value;
void fx_run();
__attribute__((noinline)) void fx_mark(int slot)
{
	fx_pcs[slot] = __builtin_return_address(0);
}
}

namespace fx
{
template <class T> __attribute__((noinline)) T twice(T x) /* line: TEMPLATE */
{
	fx_mark(FX_TEMPLATE); /* line: TEMPLATE_CALL */
	return x + x + static_cast<T>(fx_value);
}

struct counter {
	int n;
	__attribute__((noinline)) int add(int by);
};

int counter::add(int by) /* line: METHOD */
{
	fx_mark(FX_METHOD); /* line: METHOD_CALL */
	return n += by;
}

inline __attribute__((always_inline)) int step(int x) /* line: STEP */
{
	fx_mark(FX_LOCAL); /* line: STEP_CALL */
	return x + fx_value;
}
}

namespace
{
__attribute__((noinline)) int hidden(int x) /* line: HIDDEN */
{
	fx_mark(FX_HIDDEN); /* line: HIDDEN_CALL */
	return x + fx_value;
}

/* gcc places the code of the local class's method below the abstract instance of around() */
inline __attribute__((always_inline)) int around(int x)
{
	struct local {
		int n;
		__attribute__((noinline)) int act(int y) /* line: ACT */
		{
			return fx::step(y) * n; /* line: ACT_CALL */
		}
	};
	local l = { x };
	return l.act(x) + fx_value;
}
}

void fx_run()
{
	fx::counter c = { fx_value };
	fx_value += fx::twice<int>(3);
	fx_value += c.add(2);
	fx_value += hidden(1);
	fx_value += around(4);
}
