/*
 * symbols.c - the entry point: opens a module, then names each offset by debug information, else by the symbol tables.
 * Layer L3, libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "dwarf_index.h"
#include "mew.h"
#include "servers.h"
#include "starts.h"
#include "symtab.h"

struct resolver {
	const struct mew_symbols_query *query;
	struct mew_elf_module module;
	struct mew_symtab symtab;
	const struct mew_servers *servers; /* NULL: none is asked */
	struct mew_starts starts;
	struct mew_dwarf dwarf;
	bool has_dwarf, has_symtab, is_out_of_memory;
	char why[MEW_WHY_MAX]; /* about the whole module; "" nothing is wrong with it */
};

/* The texts a frame borrows while the callback runs. */
struct texts {
	char *name, *file;
};

static void free_texts(struct texts *t)
{
	free(t->name);
	free(t->file);
}

/* Reading the symbol tables takes longer than all else where few are asked for, so not before one is. */
static const struct mew_symbol *symbol_at(struct resolver *r, uint64_t address)
{
	if (!r->has_symtab && !mew_symtab_init(&r->symtab, &r->module))
		r->is_out_of_memory = true;
	r->has_symtab = true;
	return r->is_out_of_memory ? NULL : mew_symtab_find(&r->symtab, address);
}

/* Assembly, and what the compiler made, is placed where its first instruction is. */
static bool place(struct resolver *r, uint64_t entry, struct mew_symbols_frame *f, struct texts *t)
{
	const char *file;
	uint32_t line;

	if (!r->has_dwarf || entry == 0 || !mew_dwarf_place(&r->dwarf, entry, &file, &line) || file == NULL)
		return true;
	t->file = strdup(file);
	if (t->file == NULL)
		return false;
	mew_path_simplify(t->file);
	f->file = t->file;
	f->function_line = line;
	return true;
}

/* The lines that place() will want are read together: each line program runs once more at most. */
static bool ask_places(struct resolver *r)
{
	const struct mew_symbols_query *q = r->query;
	struct mew_dwarf_frame frames[MEW_INLINE_MAX];

	for (size_t i = 0; i < q->n; i++) {
		size_t n = mew_dwarf_frames(&r->dwarf, q->offsets[i], frames);
		const struct mew_symbol *symbol = n > 0 ? NULL : symbol_at(r, q->offsets[i]);
		uint64_t entry = n > 0 ? frames[n - 1].entry : symbol != NULL ? symbol->lo : 0;

		if (r->is_out_of_memory || r->dwarf.is_out_of_memory || !mew_dwarf_ask(&r->dwarf, q->offsets[i], entry))
			return false;
	}
	return mew_dwarf_answer(&r->dwarf);
}

static bool name_by_symbol(const struct mew_symbol *symbol, struct mew_symbols_frame *f, struct texts *t,
			   bool keep_clone)
{
	char *stub = NULL;

	t->name = mew_demangle(symbol->name, keep_clone);
	if (t->name != NULL && symbol->is_stub) {
		if (asprintf(&stub, "%s@plt", t->name) < 0)
			return false;
		free(t->name);
		t->name = stub;
	}
	f->function = t->name;
	return t->name != NULL;
}

static int emit(struct resolver *r, size_t index, unsigned depth, const struct mew_dwarf_frame *from, bool is_outermost)
{
	bool is_unsure = is_outermost && (from->function[0] == '\0' || !from->is_qualified);
	const struct mew_symbol *symbol = is_unsure ? symbol_at(r, r->query->offsets[index]) : NULL;
	struct mew_symbols_frame f = { index, depth, from->function, from->file, from->function_line, from->line };
	struct texts t = { NULL, NULL };
	bool is_plain = from->function[0] == '\0' || (symbol != NULL && mew_is_mangled(symbol->name));
	int status = MEW_E_NOMEM;

	if (is_plain && symbol != NULL && !name_by_symbol(symbol, &f, &t, false))
		goto end;
	if (is_outermost && f.function_line == 0 && !place(r, from->entry, &f, &t))
		goto end;
	if (f.function[0] == '\0')
		f.function = "(unnamed function)";
	status = r->query->frame(r->query->data, &f) == 0 ? MEW_OK : MEW_E_NOMEM;
end:
	free_texts(&t);
	return status;
}

static int emit_symbol(struct resolver *r, size_t index, const struct mew_symbol *symbol)
{
	struct mew_symbols_frame f = { .index = index, .file = "" };
	struct texts t = { NULL, NULL };
	const char *file;
	int status = MEW_E_NOMEM;

	if (r->has_dwarf)
		(void)mew_dwarf_line(&r->dwarf, r->query->offsets[index], &file, &f.line);
	if (name_by_symbol(symbol, &f, &t, true) && place(r, symbol->lo, &f, &t) &&
	    r->query->frame(r->query->data, &f) == 0)
		status = MEW_OK;
	free_texts(&t);
	return status;
}

static int note(struct resolver *r, size_t index, const char *why)
{
	return r->query->note(r->query->data, index, why) == 0 ? MEW_OK : MEW_E_NOMEM;
}

static int resolve_one(struct resolver *r, size_t index)
{
	struct mew_dwarf_frame frames[MEW_INLINE_MAX];
	uint64_t offset = r->query->offsets[index];
	size_t n = r->has_dwarf ? mew_dwarf_frames(&r->dwarf, offset, frames) : 0;
	const struct mew_symbol *symbol = n > 0 ? NULL : symbol_at(r, offset);
	uint64_t start;
	const char *damage = r->has_dwarf ? mew_dwarf_note(&r->dwarf, offset) : NULL;
	char missing[MEW_WHY_MAX];
	int status = MEW_OK;

	if (r->is_out_of_memory || (r->has_dwarf && r->dwarf.is_out_of_memory))
		return MEW_E_NOMEM;
	for (size_t i = 0; i < n && status == MEW_OK; i++)
		status = emit(r, index, (unsigned)i, &frames[i], i + 1 == n);
	if (symbol != NULL)
		status = emit_symbol(r, index, symbol);
	if (status != MEW_OK)
		return status;
	if (n == 0 && symbol == NULL && (start = mew_starts_find(&r->starts, offset)) != 0 &&
	    r->query->start(r->query->data, index, start) != 0)
		return MEW_E_NOMEM;
	if (damage != NULL)
		return note(r, index, damage);
	if (r->why[0] != '\0')
		return note(r, index, r->why);
	if (n > 0 || symbol != NULL)
		return MEW_OK;
	(void)snprintf(missing, sizeof missing, "%s: %s", mew_elf_base_name(r->query->path),
		       r->symtab.n == 0 ? "the file has no symbols (stripped): install or keep its debug file"
					: "no symbol covers this address (stripped, or code without a function)");
	return note(r, index, missing);
}

static int resolve_all(struct resolver *r)
{
	const struct mew_symbols_query *q = r->query;
	int status = MEW_OK;

	mew_starts_init(&r->starts, &r->module);
	(void)snprintf(r->why, sizeof r->why, "%s", r->module.why);
	if (r->module.dwarf != NULL) {
		r->has_dwarf = mew_dwarf_open(&r->dwarf, &r->module, q->offsets, q->n, r->servers, r->why);
		if (r->has_dwarf && (!mew_dwarf_load(&r->dwarf) || !ask_places(r)))
			return MEW_E_NOMEM;
	}
	for (size_t i = 0; i < q->n && status == MEW_OK; i++)
		status = resolve_one(r, i);
	return status;
}

int mew_symbols_resolve(const struct mew_symbols_query *q)
{
	const struct mew_servers servers = { q->servers_until_ns, q->told, q->data };
	struct resolver r = { .query = q, .servers = q->servers_until_ns != 0 ? &servers : NULL,
			      .dwarf.shared_file.fd = -1 };
	int status = MEW_OK;

	if (q->abi != MEW_SYMBOLS_ABI)
		return MEW_E_UNSUPPORTED;
	if (mew_elf_module_open(&r.module, q->path, q->build_id, r.servers, r.why))
		status = resolve_all(&r);
	else
		for (size_t i = 0; i < q->n && status == MEW_OK; i++)
			status = note(&r, i, r.why);
	mew_dwarf_close(&r.dwarf);
	mew_symtab_fini(&r.symtab);
	mew_elf_module_close(&r.module);
	return status;
}
