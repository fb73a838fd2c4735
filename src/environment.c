/*
 * environment.c - see environment.h.
 * Layer L4. A fact that cannot be read is left out, never guessed.
 */
#include "config.h"

#include "environment.h"

#include "entries.h"
#include "allocator.h"
#include "hooks_link.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static bool read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got;

	if (f == NULL)
		return false;
	got = fgets(line, (int)size, f) != NULL;
	(void)fclose(f);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static void fact(struct mew_model *m, const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		(void)mew_model_add_fact(m, name, value);
}

static void file_fact(struct mew_model *m, const char *name, const char *path)
{
	char line[128];

	if (read_line(path, line, sizeof line))
		fact(m, name, line);
}

/* From /proc/cpuinfo: the first "model name", and whether the processor says it is virtual. */
static void cpu_facts(struct mew_model *m)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[4096], count[24];
	bool named = false, has_flags = false, virtual = false;

	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		char *value = strchr(line, ':');

		if (value == NULL)
			continue;
		if (!named && strncmp(line, "model name", 10) == 0) {
			value[strcspn(value, "\n")] = '\0';
			fact(m, "cpu_model", value + 2);
			named = true;
		}
		if (strncmp(line, "flags", 5) != 0) /* of x86: others do not tell */
			continue;
		has_flags = true;
		virtual = virtual || strstr(line, " hypervisor") != NULL;
	}
	if (f != NULL)
		(void)fclose(f);
	if (has_flags)
		fact(m, "virtual_machine", virtual ? "yes" : "no");
	(void)snprintf(count, sizeof count, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	fact(m, "cpu_count", count);
}

static void turbo_fact(struct mew_model *m)
{
	char line[16];

	if (read_line("/sys/devices/system/cpu/intel_pstate/no_turbo", line, sizeof line))
		fact(m, "turbo", line[0] == '1' ? "off" : "on");
	else if (read_line("/sys/devices/system/cpu/cpufreq/boost", line, sizeof line))
		fact(m, "turbo", line[0] == '1' ? "on" : "off");
}

void mew_environment_machine(struct mew_model *m)
{
	char text[128], line[16];
	struct utsname kernel;
	double load[1];
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) != 0)
		fact(m, "date", text);
	cpu_facts(m);
	file_fact(m, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	turbo_fact(m);
	if (read_line("/proc/sys/kernel/randomize_va_space", line, sizeof line)) {
		int p = personality(0xffffffff);

		fact(m, "aslr", line[0] == '0' || (p != -1 && (p & ADDR_NO_RANDOMIZE) != 0) ? "off" : "on");
	}
	if (getloadavg(load, 1) == 1) {
		(void)snprintf(text, sizeof text, "%d.%02d", (int)load[0], (int)((load[0] - (int)load[0]) * 100));
		fact(m, "load_1min", text);
	}
	if (uname(&kernel) == 0) {
		(void)snprintf(text, sizeof text, "%.60s %.60s", kernel.sysname, kernel.release);
		fact(m, "kernel", text);
		fact(m, "machine", kernel.machine);
	}
}

void mew_environment_process(struct mew_model *m)
{
	const struct mew_hooks_api *hooks = mew_hooks_link();
	const struct mew_registration_ *first = mew_registrations();
	char text[64];

	(void)snprintf(text, sizeof text, "glibc %s", gnu_get_libc_version());
	fact(m, "libc", text);
	fact(m, "mew", mew_version());
	if (first != NULL && first->compiler != NULL) {
		fact(m, "compiler", first->compiler);
		fact(m, "optimized", first->optimized ? "yes" : "no");
	}
	if (hooks != NULL) {
		fact(m, "hooks", hooks->selftest() == 0 ? "loaded, not first" : "first");
		fact(m, "allocator", hooks->next_path());
	} else {
		fact(m, "hooks", "absent");
	}
	fact(m, "malloc", mew_allocator_in_use(hooks, text, sizeof text));
	fact(m, "malloc_version", text);
	fact(m, "sanitizer", mew_allocator_sanitizer());
	fact(m, "linked", mew_allocator_is_static() ? "statically" : "dynamically");
	fact(m, "operator_new", mew_allocator_own_operators(hooks));
}

/* --- the grade -------------------------------------------------------------------------------------------------- */

static bool is_fact(const struct mew_model *m, const char *name, const char *value)
{
	const char *got = mew_model_fact(m, name);

	return got != NULL && strcmp(got, value) == 0;
}

/* Load per processor in percent; -1 unknown. */
static int load_percent(const struct mew_model *m)
{
	const char *load = mew_model_fact(m, "load_1min"), *cpus = mew_model_fact(m, "cpu_count");
	char *end;
	long whole, part = 0, n;

	if (load == NULL || cpus == NULL)
		return -1;
	whole = strtol(load, &end, 10);
	if (*end == '.')
		part = strtol(end + 1, NULL, 10);
	n = strtol(cpus, NULL, 10);
	return n > 0 ? (int)((whole * 100 + part) / n) : -1;
}

size_t mew_environment_advice(const struct mew_model *m, struct mew_advice *out, size_t max)
{
	const char *governor = mew_model_fact(m, "governor");
	const struct {
		bool here;
		struct mew_advice advice;
	} all[] = {
		{ is_fact(m, "optimized", "no"), { "the benchmarks were compiled without optimisation",
						   "build them with -O2" } },
		{ load_percent(m) > 30,
		  { "other programs keep the processors busy", "stop them, or measure when they are done" } },
		{ governor != NULL && strcmp(governor, "performance") != 0,
		  { "the frequency governor is not \"performance\"", "cpupower frequency-set -g performance" } },
		{ is_fact(m, "turbo", "on"), { "turbo changes the clock rate with heat and load",
					       "switch it off in the firmware or in /sys" } },
		{ is_fact(m, "virtual_machine", "yes"),
		  { "this is a virtual machine: neighbours take time unseen",
		    "use real hardware for small differences" } },
	};
	size_t n = 0;

	for (size_t i = 0; i < MEW_COUNTOF(all) && n < max; i++)
		if (all[i].here)
			out[n++] = all[i].advice;
	return n;
}

void mew_environment_grade(struct mew_model *m)
{
	struct mew_advice found[2];
	size_t n = mew_environment_advice(m, found, MEW_COUNTOF(found));
	const char *governor = mew_model_fact(m, "governor");
	int load = load_percent(m);
	char text[256];

	m->grade = 'A';
	if (n > 0)
		m->grade = 'B';
	if (load > 30 || (governor != NULL && strcmp(governor, "performance") != 0))
		m->grade = 'C';
	if (load > 80 || is_fact(m, "optimized", "no"))
		m->grade = 'D';
	if (n == 0)
		(void)snprintf(text, sizeof text, "nothing known disturbs it");
	else
		(void)snprintf(text, sizeof text, "%s%s%s", found[0].what, n > 1 ? "; " : "",
			       n > 1 ? found[1].what : "");
	m->grade_reason = mew_model_string(m, text);
}
