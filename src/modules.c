/*
 * modules.c - takes snapshots of the loaded files and compiles the unwind table of each, once.
 * Layer L1. Renewal outside windows, without malloc (it may run inside a dlopen wrapper); look-ups anywhere.
 */
#include "config.h"

#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arena.h"
#include "fnv.h"
#include "image.h"
#include "kept.h"

#define VDSO_NAME "[vdso]"
#define DELETED " (deleted)"
#define LINE_BYTES (PATH_MAX + 128)

/* One file at one place. Kept for the life of the process, so that a library that comes back finds its table. */
struct known {
	struct known *next;
	struct mew_module_map map;
	uint64_t fingerprint; /* stands in for a missing build id */
	uint64_t seen;        /* generation of the newest snapshot that has it */
};

static struct {
	pthread_mutex_t lock; /* serialises renewal; readers take none */
	struct mew_arena arena;
	struct mew_arena lists; /* what a snapshot is made of, but for the tables */
	bool frozen;
	struct known *known;
	uint64_t adds, subs; /* of the loader, at the newest snapshot */
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .arena = { .huge = true }, .lists = { .kept = true } };

static _Atomic(const struct mew_modules *) newest;
static void (*on_change)(void); /* atomic */

struct visit {
	uint64_t generation; /* being made */
	uint64_t adds, subs;
	uintptr_t vdso;
	size_t live;
	bool first, unchanged, no_memory;
};

/* --- names -------------------------------------------------------------------------------------------------------- */

static const char *keep_text(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = mew_arena_alloc(&registry.lists, bytes);

	return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void mew_modules_cut_deleted(char *path)
{
	size_t n = strlen(path), tail = sizeof DELETED - 1;

	if (n > tail && strcmp(path + n - tail, DELETED) == 0)
		path[n - tail] = '\0';
}

static const char *program_path(char buffer[LINE_BYTES])
{
	ssize_t n = readlink("/proc/self/exe", buffer, PATH_MAX - 1);
	unsigned long name = getauxval(AT_EXECFN);

	if (n > 0) {
		buffer[n] = '\0';
		mew_modules_cut_deleted(buffer);
		return buffer;
	}
	return name != 0 ? (const char *)name : "";
}

static uintptr_t parse_hex(const char **text)
{
	uintptr_t value = 0;

	for (;; (*text)++) {
		char c = **text;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return value;
	}
}

/* "lo-hi perms offset device inode   /path": the path, when the line's range holds address. */
static char *path_in_line(char *line, uintptr_t address)
{
	const char *at = line;
	uintptr_t lo = parse_hex(&at), hi;

	if (*at++ != '-')
		return NULL;
	hi = parse_hex(&at);
	return address >= lo && address < hi ? strchr(line, '/') : NULL;
}

/* The name that the kernel has for the file mapped at address; NULL where it has none. line is the buffer. */
static const char *mapped_path(uintptr_t address, char line[LINE_BYTES])
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;
	char *found = NULL;

	if (fd < 0)
		return NULL;
	while (found == NULL && (got = read(fd, line + used, LINE_BYTES - 1 - used)) > 0) {
		char *start = line, *end;

		used += (size_t)got;
		line[used] = '\0';
		while (found == NULL && (end = strchr(start, '\n')) != NULL) {
			*end = '\0';
			found = path_in_line(start, address);
			start = end + 1;
		}
		if (found == NULL) {
			used -= (size_t)(start - line);
			memmove(line, start, used);
		}
	}
	(void)close(fd);
	if (found != NULL)
		mew_modules_cut_deleted(found);
	return found;
}

static const char *module_path(const char *name, uintptr_t code, char buffer[LINE_BYTES])
{
	const char *path;

	if (name == NULL || name[0] == '\0')
		return program_path(buffer);
	if (name[0] == '/' && strncmp(name, "/proc/", 6) != 0)
		return name;
	/*
	 * opened by a relative name, and the directory may have changed since; or by a descriptor, which nobody else
	 * has
	 */
	path = mapped_path(code, buffer);
	return path != NULL ? path : name;
}

/* --- known files -------------------------------------------------------------------------------------------------- */

/* Over the functions' addresses and sizes, as the search table has them. */
static uint64_t fingerprint(const struct mew_ehframe *frames)
{
	return mew_fnv_bytes(MEW_FNV_START, frames->header.bytes, frames->header.size);
}

static struct known *find_known(const struct mew_module_map *map, uint64_t print)
{
	for (struct known *k = registry.known; k != NULL; k = k->next) {
		if (k->map.lo == map->lo && k->map.hi == map->hi && k->map.bias == map->bias &&
		    k->fingerprint == print && strcmp(k->map.build_id, map->build_id) == 0 &&
		    strcmp(k->map.path, map->path) == 0)
			return k;
	}
	return NULL;
}

static struct known *add_known(const struct mew_module_map *map, uint64_t print, const struct mew_ehframe *frames)
{
	struct known *k = mew_arena_alloc(&registry.arena, sizeof *k);

	if (k == NULL)
		return NULL;
	*k = (struct known){ .map = *map, .fingerprint = print };
	k->map.path = keep_text(map->path);
	k->map.build_id = keep_text(map->build_id);
	if (k->map.path == NULL || k->map.build_id == NULL)
		return NULL;
	if (frames != NULL && mew_ehframe_compile(frames, &registry.arena, &k->map.table) != 0)
		return NULL;
	k->next = registry.known;
	registry.known = k;
	return k;
}

static void see(struct visit *v, const struct mew_image *image, const char *name)
{
	char buffer[LINE_BYTES], build_id[MEW_BUILD_ID_TEXT];
	struct mew_module_map map = { .bias = image->bias, .build_id = build_id };
	struct mew_ehframe frames;
	struct known *k;
	uint64_t print;
	bool unwinds;

	if (!mew_image_code(image, &map.lo, &map.hi))
		return;
	if (v->vdso >= map.lo && v->vdso < map.hi) {
		name = VDSO_NAME;
		v->vdso = 0;
		map.path = name;
	} else {
		map.path = module_path(name, map.lo, buffer);
	}
	mew_image_build_id(image, build_id);
	unwinds = MEW_EHFRAME_SUPPORTED && mew_image_frames(image, map.path, &frames);
	print = unwinds && build_id[0] == '\0' ? fingerprint(&frames) : 0;
	k = find_known(&map, print);
	if (k == NULL)
		k = add_known(&map, print, unwinds ? &frames : NULL);
	if (k == NULL) {
		v->no_memory = true;
	} else if (k->seen != v->generation) {
		k->seen = v->generation;
		v->live++;
	}
}

/* The loader holds its lock while this runs, so nothing is unmapped under our eyes. */
static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct visit *v = data;
	struct mew_image image = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };

	if (v->first && size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
		v->adds = info->dlpi_adds;
		v->subs = info->dlpi_subs;
		v->unchanged = v->generation > 1 && v->adds == registry.adds && v->subs == registry.subs;
	}
	v->first = false;
	if (!v->unchanged)
		see(v, &image, info->dlpi_name);
	return v->unchanged || v->no_memory;
}

/* --- snapshots ---------------------------------------------------------------------------------------------------- */

static bool overlaps(const struct mew_module_map *map, size_t n, const struct mew_module_map *m)
{
	for (size_t i = 0; i < n; i++) {
		if (m->lo < map[i].hi && map[i].lo < m->hi)
			return true;
	}
	return false;
}

static void insert(struct mew_module_map *map, size_t n, const struct mew_module_map *m)
{
	for (; n > 0 && map[n - 1].lo > m->lo; n--)
		map[n] = map[n - 1];
	map[n] = *m;
}

/* What is loaded, then what was and whose place nobody took. A gone file keeps its name, not its table. */
static int publish(const struct visit *v, const struct mew_modules *old)
{
	struct mew_modules *now = mew_arena_alloc(&registry.lists, sizeof *now);
	size_t most = v->live + (old != NULL ? old->n : 0), n = 0;
	struct mew_module_map *map = mew_arena_alloc(&registry.lists, most * sizeof *map);

	if (now == NULL || map == NULL)
		return -1;
	for (const struct known *k = registry.known; k != NULL; k = k->next) {
		if (k->seen == v->generation && !overlaps(map, n, &k->map))
			insert(map, n++, &k->map);
	}
	for (size_t i = 0; old != NULL && i < old->n; i++) {
		struct mew_module_map gone = old->map[i];

		gone.gone = true;
		gone.table = NULL;
		if (!overlaps(map, n, &gone))
			insert(map, n++, &gone);
	}
	*now = (struct mew_modules){ v->generation, n, map };
	atomic_store_explicit(&newest, now, memory_order_release);
	registry.adds = v->adds;
	registry.subs = v->subs;
	return 0;
}

static int renew(void)
{
	const struct mew_modules *old = atomic_load_explicit(&newest, memory_order_relaxed);
	struct visit v = { .generation = old != NULL ? old->generation + 1 : 1, .first = true };
	struct mew_image vdso;

	v.vdso = getauxval(AT_SYSINFO_EHDR);
	(void)dl_iterate_phdr(visit, &v);
	if (v.unchanged)
		return 0;
	if (v.vdso != 0 && mew_image_at(v.vdso, &vdso)) /* not every C library lists it */
		see(&v, &vdso, VDSO_NAME);
	return v.no_memory ? -1 : publish(&v, old);
}

int mew_modules_renew(void)
{
	int saved = errno; /* a wrapper around dlopen must not show ours */
	const struct mew_modules *old;
	void (*function)(void);
	bool changed;
	int result;

	if (pthread_mutex_lock(&registry.lock) != 0)
		return -1;
	old = mew_modules_current();
	result = registry.frozen ? 0 : renew();
	changed = mew_modules_current() != old;
	(void)pthread_mutex_unlock(&registry.lock);
	function = __atomic_load_n(&on_change, __ATOMIC_ACQUIRE);
	if (changed && function != NULL)
		function();
	errno = saved;
	return result;
}

void mew_modules_on_change(void (*function)(void))
{
	__atomic_store_n(&on_change, function, __ATOMIC_RELEASE);
}

void mew_modules_static(struct mew_kept_static *s)
{
	*s = (struct mew_kept_static){ (void *)(uintptr_t)&newest, sizeof newest };
}

void mew_modules_freeze(void)
{
	registry.frozen = true;
}

const struct mew_modules *mew_modules_current(void)
{
	return atomic_load_explicit(&newest, memory_order_acquire);
}

const struct mew_module_map *mew_modules_find(const struct mew_modules *m, uintptr_t pc)
{
	size_t lo = 0, hi = m != NULL ? m->n : 0;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (m->map[middle].hi <= pc)
			lo = middle + 1;
		else
			hi = middle;
	}
	return m != NULL && lo < m->n && pc >= m->map[lo].lo ? &m->map[lo] : NULL;
}

bool mew_modules_is_code(const struct mew_modules *m, uintptr_t return_address)
{
	const struct mew_module_map *map = mew_modules_find(m, return_address - 1);

	return map != NULL && !map->gone;
}
