/*
 * recorder_limits.c - limits of address space in a recorded program: what the recorder has mapped is none of the
 * program's. Layer L6. Any thread; also in a child of vfork or of a program that is not followed, where nothing is
 * added.
 *
 * A program that limits itself to 1 GiB would otherwise be beyond that already, and each allocation would fail. The
 * limit is set higher by what is reserved, and read lower by as much, so that a followed program that inherits it has
 * room too.
 */
#include "config.h"

#include "recorder_limits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define OWN_BYTES (MEW_RECORD_BYTES + ((rlim_t)256 << 20)) /* and libraries, tables for walks, buffers: measured, 86 MiB */
#define OF_EACH_BYTE 3 /* the table of blocks reserves two bytes of addresses for each of the heap's (shadow.h) */

static const struct mew_record_root *root;

void mew_recorder_limits_note(const struct mew_record_root *of)
{
	root = of;
}

static rlim_t with_own(rlim_t limit)
{
	return limit < (RLIM_INFINITY - OWN_BYTES) / OF_EACH_BYTE ? OF_EACH_BYTE * limit + OWN_BYTES : limit;
}

static rlim_t without_own(rlim_t limit)
{
	return limit == RLIM_INFINITY ? limit : limit > OWN_BYTES ? (limit - OWN_BYTES) / OF_EACH_BYTE : 0;
}

static int limit(pid_t pid, int resource, const struct rlimit *wanted, struct rlimit *old)
{
	pid_t self = getpid();
	bool counts = resource == (int)RLIMIT_AS && (pid == 0 || pid == self) && root != NULL && root->pid == (int)self;
	struct rlimit more;
	int status;

	if (counts && wanted != NULL) {
		more = (struct rlimit){ with_own(wanted->rlim_cur), with_own(wanted->rlim_max) };
		wanted = &more;
	}
	status = (int)syscall(SYS_prlimit64, pid, resource, wanted, old);
	if (counts && status == 0 && old != NULL)
		*old = (struct rlimit){ without_own(old->rlim_cur), without_own(old->rlim_max) };
	return status;
}

EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *wanted)
{
	return limit(0, (int)resource, wanted, NULL);
}

EXPORT int getrlimit(__rlimit_resource_t resource, struct rlimit *out)
{
	return limit(0, (int)resource, NULL, out);
}

EXPORT int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *wanted, struct rlimit *old)
{
	return limit(pid, (int)resource, wanted, old);
}

/* The same type on 64-bit machines, which are all that mew knows. */
EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *wanted)
{
	return limit(0, (int)resource, (const struct rlimit *)(const void *)wanted, NULL);
}

EXPORT int getrlimit64(__rlimit_resource_t resource, struct rlimit64 *out)
{
	return limit(0, (int)resource, NULL, (struct rlimit *)(void *)out);
}

EXPORT int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *wanted, struct rlimit64 *old)
{
	return limit(pid, (int)resource, (const struct rlimit *)(const void *)wanted, (struct rlimit *)(void *)old);
}
