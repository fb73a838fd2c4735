/*
 * ehframe.c - lists the functions of an .eh_frame, runs their frame programs and seals the rows into a table.
 * Layer L1. Outside windows; runs inside dlopen wrappers, so memory comes from the kernel, never from malloc.
 */
#include "config.h"

#include "ehframe.h"

#include <string.h>

#include "ehframe_entry.h"
#include "os.h"

#include "hotpath.h"

#define MAX_RULES 16383u /* libLLVM has 1,700 */
#define HASH_SLOTS 32768u /* a power of two, at least twice MAX_RULES */
#define PAGE_BYTES 4096u
#define ROWS_EACH 16u /* functions have ten; more cost another turn */

struct function {
	uintptr_t pc;
	size_t entry; /* offset of its FDE in the frames */
};

struct rows {
	uint32_t *offset;
	uint16_t *rule;
	size_t n, size;
	bool overrun; /* there was no room for one more */
};

struct builder {
	struct mew_frames frames;
	const struct mew_ehframe *in;
	struct mew_ehframe_scratch *scratch;
	struct function *functions;
	size_t nfunctions, room;
	struct rows rows;
	uint64_t *rules;
	uint16_t *slots; /* hash to index + 1 */
	uint32_t nrules, compiled;
};

/* --- listing functions -------------------------------------------------------------------------------------------- */

/*
 * Divide the scratch memory: room for n functions and for so many rows of each. Pages are used as they fill up, so there
 * may be plenty; libLLVM has ten rows a function.
 */
static bool reserve(struct builder *b, size_t n, size_t rows_each)
{
	struct mew_ehframe_scratch *s = b->scratch;
	size_t nrows, functions, offsets, rules, bytes;

	if (!mew_mul_size(n, rows_each, &nrows) || !mew_add_size(nrows, 64, &nrows) ||
	    !mew_mul_size(n, sizeof *b->functions, &functions) || !mew_mul_size(nrows, sizeof(uint32_t), &offsets))
		return false;
	rules = offsets / 2;
	bytes = MAX_RULES * sizeof *b->rules + HASH_SLOTS * sizeof *b->slots;
	if (!mew_add_size(bytes, functions, &bytes) || !mew_add_size(bytes, offsets, &bytes) ||
	    !mew_add_size(bytes, rules, &bytes))
		return false;
	if (bytes > s->bytes || s->memory == NULL) {
		if (!mew_os_whole_huge(&bytes)) /* also for a small file: the next ones need no pages of their own */
			return false;
		mew_ehframe_scratch_fini(s);
		s->memory = mew_os_map_huge(bytes);
		if (s->memory == NULL)
			return false;
		s->bytes = bytes;
	}
	b->rules = s->memory;
	b->functions = (struct function *)(b->rules + MAX_RULES);
	b->rows = (struct rows){ .offset = (uint32_t *)(b->functions + n), .size = nrows };
	b->rows.rule = (uint16_t *)(b->rows.offset + nrows);
	b->slots = b->rows.rule + nrows;
	memset(b->slots, 0, HASH_SLOTS * sizeof *b->slots);
	b->room = n;
	b->nfunctions = 0;
	return true;
}

void mew_ehframe_scratch_fini(struct mew_ehframe_scratch *s)
{
	mew_os_unmap(s->memory, s->bytes);
	*s = (struct mew_ehframe_scratch){ NULL, 0 };
}

static void add_function(struct builder *b, uintptr_t pc, size_t entry)
{
	if (pc >= b->in->lo && pc < b->in->hi && b->nfunctions < b->room)
		b->functions[b->nfunctions++] = (struct function){ pc, entry };
}

struct header {
	uintptr_t frames;        /* address of .eh_frame */
	size_t count;            /* pairs in the search table; 0 when it has another form */
	struct mew_reader pairs;
};

/* Version 1, three encodings, the address of .eh_frame, a count, and (function, FDE) pairs relative to the header. */
static bool read_header(const struct mew_span *span, struct header *out)
{
	struct mew_reader r = mew_reader_of(span, 0);
	uint64_t version = mew_read_bytes(&r, 1);
	uint8_t frames_form = (uint8_t)mew_read_bytes(&r, 1);
	uint8_t count_form = (uint8_t)mew_read_bytes(&r, 1);
	uint8_t pair_form = (uint8_t)mew_read_bytes(&r, 1);

	out->frames = mew_read_pointer(&r, frames_form, span->address);
	if (r.bad || version != 1 || out->frames == 0)
		return false;
	out->count = mew_read_pointer(&r, count_form, span->address);
	out->pairs = r;
	if (r.bad || pair_form != 0x3b || out->count > (size_t)(r.end - r.at) / 8)
		out->count = 0;
	return true;
}

uintptr_t mew_ehframe_address(const struct mew_span *header)
{
	struct header h;

	return read_header(header, &h) ? h.frames : 0;
}

/* List what the search table names. Returns the number of its functions when add is false. */
static size_t read_search_table(struct builder *b, bool add)
{
	const struct mew_span *span = &b->in->header;
	struct header h;

	if (span->size == 0 || !read_header(span, &h))
		return 0;
	for (size_t i = 0; add && i < h.count; i++) {
		uintptr_t pc = mew_read_pointer(&h.pairs, 0x3b, span->address);
		uintptr_t entry = mew_read_pointer(&h.pairs, 0x3b, span->address);

		add_function(b, pc, entry - b->in->frames.address); /* an entry outside fails when it is read */
	}
	return h.count;
}

/* The same for the entries themselves, one after the other. */
static size_t walk_entries(struct builder *b, bool add)
{
	const struct mew_span *frames = &b->in->frames;
	struct mew_reader entry;
	size_t at = 0, n = 0;
	uint32_t id;

	for (; mew_frames_entry(&b->frames, at, &entry, &id); at = (size_t)(entry.end - frames->bytes)) {
		struct mew_fde fde;

		if (id == 0)
			continue;
		n++;
		if (add && mew_frames_fde(&b->frames, at, &fde) != NULL)
			add_function(b, fde.lo, at);
	}
	return n;
}

static void sift_down(struct function *f, size_t root, size_t n)
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		struct function swap = f[root];

		if (child + 1 < n && f[child].pc < f[child + 1].pc)
			child++;
		if (f[child].pc <= swap.pc)
			return;
		f[root] = f[child];
		f[child] = swap;
	}
}

/* Heap sort in place; linkers sort the search table, so this is for the walk. */
static void sort_functions(struct function *f, size_t n)
{
	size_t sorted = 1;

	while (sorted < n && f[sorted - 1].pc <= f[sorted].pc)
		sorted++;
	if (sorted >= n)
		return;
	for (size_t root = n / 2; root-- > 0;)
		sift_down(f, root, n);
	for (size_t last = n - 1; last > 0; last--) {
		struct function swap = f[0];

		f[0] = f[last];
		f[last] = swap;
		sift_down(f, 0, last);
	}
}

/* --- rows and rules ----------------------------------------------------------------------------------------------- */

static uint16_t intern_rule(struct builder *b, uint64_t rule)
{
	uint32_t slot = (uint32_t)(rule * 0x9e3779b97f4a7c15u >> 49);

	for (; b->slots[slot] != 0; slot = (slot + 1) & (HASH_SLOTS - 1)) {
		if (b->rules[b->slots[slot] - 1] == rule)
			return (uint16_t)(b->slots[slot] - 1);
	}
	if (b->nrules == MAX_RULES)
		return MEW_RULE_UNSUPPORTED; /* its own index, see compile_all() */
	b->rules[b->nrules++] = rule;
	b->slots[slot] = (uint16_t)b->nrules;
	return (uint16_t)(b->nrules - 1);
}

/* Rows stay in ascending order whatever comes: the last word for an address counts, a step back is left out. */
static void add_row(void *to, uintptr_t pc, uint64_t packed)
{
	struct builder *b = to;
	struct rows *rows = &b->rows;
	uint32_t offset = (uint32_t)(pc - b->in->lo);
	uint16_t rule = intern_rule(b, packed);

	if (rows->n > 0 && rows->offset[rows->n - 1] >= offset) {
		if (rows->offset[rows->n - 1] == offset)
			rows->rule[rows->n - 1] = rule;
		return;
	}
	if (rows->n > 0 && rows->rule[rows->n - 1] == rule)
		return;
	if (rows->n == rows->size) {
		rows->overrun = true;
		return;
	}
	rows->offset[rows->n] = offset;
	rows->rule[rows->n++] = rule;
}

static void compile_function(struct builder *b, size_t i)
{
	const struct mew_cie *cie;
	struct mew_cfi run;
	struct mew_fde fde;

	cie = mew_frames_fde(&b->frames, b->functions[i].entry, &fde);
	if (cie == NULL || fde.lo != b->functions[i].pc)
		return;
	if (fde.hi > b->in->hi)
		fde.hi = b->in->hi;
	if (i + 1 < b->nfunctions && fde.hi > b->functions[i + 1].pc)
		fde.hi = b->functions[i + 1].pc;
	if (fde.lo >= fde.hi)
		return;
	b->compiled++;
	if (cie->signal) {
		add_row(b, fde.lo, MEW_RULE_SIGNAL);
	} else {
		mew_cfi_init(&run, b->frames.machine, fde.program, cie->code_align, cie->data_align);
		run.row = cie->initial;
		run.initial = &cie->initial;
		run.encoding = cie->encoding;
		run.pc = fde.lo;
		run.end = fde.hi;
		run.emit = add_row;
		run.to = b;
		(void)mew_cfi_run(&run); /* what it does not know became a row that says so */
	}
	add_row(b, fde.hi, MEW_RULE_NONE);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* The entries are about to be read one and all. */
static void expect_frames(const struct builder *b)
{
	size_t lo = SIZE_MAX, hi = 0;

	for (size_t i = 0; i < b->nfunctions; i++) {
		lo = b->functions[i].entry < lo ? b->functions[i].entry : lo;
		hi = b->functions[i].entry > hi ? b->functions[i].entry : hi;
	}
	if (lo < hi && hi < b->in->frames.size)
		mew_os_will_read(b->in->frames.bytes + lo, hi - lo);
}

/* The functions in ascending order, by the search table or, where that names none of them, by the entries. */
static bool list_functions(struct builder *b, size_t rows_each)
{
	size_t n = read_search_table(b, false);

	if (!reserve(b, n, rows_each))
		return false;
	(void)read_search_table(b, true);
	if (b->nfunctions == 0) {
		n = walk_entries(b, false);
		if (!reserve(b, n, rows_each))
			return false;
		(void)walk_entries(b, true);
	}
	sort_functions(b->functions, b->nfunctions);
	expect_frames(b);
	return true;
}

/* Compile every function, into so many rows each. Returns false without the memory. */
static bool compile_all(struct builder *b, size_t rows_each)
{
	b->nrules = b->compiled = 0;
	if (!list_functions(b, rows_each))
		return false;
	(void)intern_rule(b, MEW_RULE_NONE);
	(void)intern_rule(b, MEW_RULE_UNSUPPORTED); /* index 1 */
	for (size_t i = 0; i < b->nfunctions && !b->rows.overrun; i++)
		compile_function(b, i);
	return true;
}

static void index_pages(const struct builder *b, uint32_t *page, uint32_t npages)
{
	uint32_t row = 0, nrows = (uint32_t)b->rows.n;

	for (uint32_t p = 0; p < npages; p++) {
		while (row + 1 < nrows && b->rows.offset[row + 1] <= (uint64_t)p * PAGE_BYTES)
			row++;
		page[p] = row;
	}
	page[npages] = nrows - 1;
}

/* One piece of memory: the struct, rules (8 bytes), pages and offsets (4), rule numbers (2). */
static const struct mew_unwind_table *seal(const struct builder *b, struct mew_arena *arena)
{
	uint32_t npages = (uint32_t)((b->in->hi - b->in->lo - 1) / PAGE_BYTES) + 1;
	size_t nrows = b->rows.n, bytes = sizeof(struct mew_unwind_table) + b->nrules * sizeof(uint64_t) +
					  (npages + (size_t)1 + nrows) * sizeof(uint32_t) + nrows * sizeof(uint16_t);
	struct mew_unwind_table *t = mew_arena_alloc(arena, bytes);
	uint64_t *rules;
	uint32_t *page, *offset;
	uint16_t *rule;

	if (t == NULL)
		return NULL;
	rules = (uint64_t *)(t + 1);
	page = (uint32_t *)(rules + b->nrules);
	offset = page + npages + 1;
	rule = (uint16_t *)(offset + nrows);
	memcpy(rules, b->rules, b->nrules * sizeof *rules);
	memcpy(offset, b->rows.offset, nrows * sizeof *offset);
	memcpy(rule, b->rows.rule, nrows * sizeof *rule);
	index_pages(b, page, npages);
	*t = (struct mew_unwind_table){ .base = b->in->lo, .nrows = (uint32_t)nrows, .npages = npages,
					.nrules = b->nrules, .offset = offset, .rule = rule, .page = page,
					.rules = rules, .fdes = b->compiled, .bytes = bytes };
	for (size_t i = 0; i < nrows; i++)
		t->unsupported_rows += rule[i] == MEW_RULE_UNSUPPORTED;
	return t;
}

int mew_ehframe_compile_with(const struct mew_ehframe *in, struct mew_arena *arena, struct mew_ehframe_scratch *scratch,
			     const struct mew_unwind_table **out)
{
	struct builder b = { .frames = { .in = in, .cie = { .entry = SIZE_MAX } }, .in = in, .scratch = scratch };
	size_t rows_each = ROWS_EACH;

	*out = NULL;
	b.frames.machine = in->machine != NULL ? in->machine : &mew_machine;
	if (in->lo >= in->hi || in->hi - in->lo > UINT32_MAX)
		return 0;
	mew_os_will_read(in->header.bytes, in->header.size);
	do {
		if (!compile_all(&b, rows_each))
			return -1;
		rows_each *= 8; /* ends: a program has less rows than bytes */
	} while (b.rows.overrun);
	if (b.rows.n == 0)
		return 0;
	*out = seal(&b, arena);
	return *out != NULL ? 0 : -1;
}

int mew_ehframe_compile(const struct mew_ehframe *in, struct mew_arena *arena, const struct mew_unwind_table **out)
{
	struct mew_ehframe_scratch scratch = { NULL, 0 };
	int result = mew_ehframe_compile_with(in, arena, &scratch, out);

	mew_ehframe_scratch_fini(&scratch);
	return result;
}
