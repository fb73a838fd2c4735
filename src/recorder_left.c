/*
 * recorder_left.c - see recorder_left.h: what the recorder's libraries would break is started without them.
 * Layer L6. Any thread; also in a child of vfork, so that nothing is allocated but by maps.
 *
 * The loader of another C library stops at a library that it cannot load, and a sanitizer at one that comes before it:
 * a build whose tests are such programs would fail under --follow. A program that merely cannot be recorded keeps the
 * environment, since what it starts may be recorded again.
 */
#include "config.h"

#include "recorder_left.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os.h"
#include "record_target.h"
#include "recorder_exec.h"
#include "recorder_held.h"

#define EXPORT __attribute__((visibility("default")))
#define PRELOAD_NAME "LD_PRELOAD"
#define PRELOAD PRELOAD_NAME "="

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
		     char *const *, char *const *);

static char socket_name[sizeof((struct mew_record_orders *)0)->socket];
static char ours[4096]; /* our entries of LD_PRELOAD; "": nothing is looked at */

/* --- talking to the command --------------------------------------------------------------------------------------- */

static int connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memcpy(address.sun_path + 1, name, n);
	if (connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

bool mew_recorder_tell(const char *socket, int file, const char *why, bool is_left_out)
{
	struct mew_record_hello hello = { .magic = MEW_RECORD_MAGIC, .pid = (int)getpid(), .is_left_out = is_left_out };
	struct iovec part = { &hello, sizeof hello };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fd = connect_to(socket);
	bool sent;

	if (fd < 0)
		return false;
	memcpy(hello.why, why, strnlen(why, sizeof hello.why - 1)); /* the rest is zero; no printf on a small stack */
	if (file >= 0) {
		memset(&control, 0, sizeof control);
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof control.bytes;
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
							     .cmsg_len = CMSG_LEN(sizeof file) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &file, sizeof file);
	}
	sent = sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof hello;
	(void)close(fd);
	return sent;
}

/* --- the environment ---------------------------------------------------------------------------------------------- */

static bool ends_entry(char c)
{
	return c == '\0' || c == ':' || c == ' ';
}

void mew_recorder_left_init(const struct mew_record_orders *o)
{
	const char *text = getenv("LD_PRELOAD"), *end = text;

	for (unsigned i = 0; end != NULL && i < o->preloaded; i++)
		end = strchrnul(end + (i > 0), ':');
	if (end == NULL || (size_t)(end - text) >= sizeof ours)
		return;
	memcpy(ours, text, (size_t)(end - text));
	memcpy(socket_name, o->socket, sizeof socket_name);
}

/* Our entries in a value of LD_PRELOAD, to which the program may have added its own; NULL: they are not there. */
static const char *find_ours(const char *value)
{
	size_t n = strlen(ours);
	const char *at = n > 0 ? strstr(value, ours) : NULL;

	return at != NULL && (at == value || ends_entry(at[-1])) && ends_entry(at[n]) ? at : NULL;
}

/* The copy: the texts are the caller's but for the one that changes, which stands behind the list. */
static char *const *without_ours(char *const *envp, size_t n, size_t preload, struct mew_recorder_left_env *mine)
{
	const char *value = envp[preload] + sizeof PRELOAD - 1, *at = find_ours(value), *rest = at + strlen(ours);
	size_t bytes = (n + 1) * sizeof *mine->list + strlen(envp[preload]) + 1, out = 0;
	char *text;

	mine->list = mew_recorder_held_map(bytes);
	if (mine->list == NULL)
		return envp;
	mine->bytes = bytes;
	text = (char *)(mine->list + n + 1);
	/* the colon before stays, or the one behind */
	(void)stpcpy(mempcpy(stpcpy(text, PRELOAD), value, (size_t)(at - value)),
		     rest[0] != '\0' && at == value ? rest + 1 : rest);
	for (size_t i = 0; i < n; i++)
		if (i == preload && text[sizeof PRELOAD - 1] != '\0')
			mine->list[out++] = text;
		else if (i != preload && strncmp(envp[i], MEW_RECORD_ENV "=", sizeof MEW_RECORD_ENV) != 0)
			mine->list[out++] = envp[i];
	return mine->list;
}

/* --- the look ----------------------------------------------------------------------------------------------------- */

#define TAKEN(name) \
	"is started without " name ", which its caller took away, and so is what it starts: let it keep " PRELOAD_NAME \
	" and " MEW_RECORD_ENV

/*
 * Not on the stack: programs are started from the smallest ones that threads and signal handlers may have. A whole
 * exec or posix_spawn() of ours has 1.2 KiB of it (gcc 12, x86-64, measured), the variadic forms 1.1 KiB more.
 */
struct room {
	struct mew_record_look look;
	char found[PATH_MAX], name[PATH_MAX], first[sizeof ours];
	char why[MEW_RECORD_WHY_BYTES]; /* the program is left out; "" it is not, or it is none, which the exec shows */
};

/* The loader complains of each library that it does not find: another root has none of ours. */
static bool are_ours_there(char first[sizeof ours])
{
	size_t n = (size_t)(strchrnul(ours, ':') - ours);

	memcpy(first, ours, n);
	first[n] = '\0';
	return access(first, R_OK) == 0;
}

/* The file behind a descriptor, by whose number no reader knows it. */
static const char *name_of(const char *path, char *name, size_t size)
{
	ssize_t n = strncmp(path, "/proc/self/", 11) == 0 ? readlink(path, name, size - 1) : -1;

	if (n <= 0)
		return path;
	name[n] = '\0';
	return name;
}

/* May the program have our libraries? `taken` why it would be left out all the same; NULL: it would not. */
static bool may_have_ours(const char *path, bool searches, const char *taken, struct room *room)
{
	const char *why = taken, *subject;
	bool may = false;

	if (searches && strchr(path, '/') == NULL) {
		if (!mew_record_path(path, room->found, sizeof room->found))
			return true;
		path = room->found;
	}
	subject = path;
	if (are_ours_there(room->first)) {
		int status = mew_record_look(path, &room->look);

		may = !room->look.breaks;
		if (status != MEW_OK) {
			why = status == MEW_E_UNSUPPORTED ? room->look.why : NULL;
			subject = room->look.path;
		}
	} else {
		why = "runs where the libraries of mew are not (chroot?): copy them to the same path there";
	}
	/* a shell of its own may try folder by folder */
	if (why != NULL && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
		mew_record_say(name_of(subject, room->name, sizeof room->name), why, room->why, sizeof room->why);
	return may;
}

char *const *mew_recorder_left_env(const char *path, bool searches, char *const *envp,
				   struct mew_recorder_left_env *mine)
{
	size_t n = 0, preload = SIZE_MAX;
	bool has_ours, has_orders = false;
	int saved = errno;
	struct room *room;

	*mine = (struct mew_recorder_left_env){ 0 };
	if (path == NULL || ours[0] == '\0')
		return envp;
	for (; envp != NULL && envp[n] != NULL; n++) {
		if (preload == SIZE_MAX && strncmp(envp[n], PRELOAD, sizeof PRELOAD - 1) == 0)
			preload = n;
		if (strncmp(envp[n], MEW_RECORD_ENV "=", sizeof MEW_RECORD_ENV) == 0)
			has_orders = true;
	}
	has_ours = preload != SIZE_MAX && find_ours(envp[preload] + sizeof PRELOAD - 1) != NULL;
	room = mew_os_map(sizeof *room);
	if (room != NULL) {
		const char *taken = !has_ours ? TAKEN(PRELOAD_NAME) : !has_orders ? TAKEN(MEW_RECORD_ENV) : NULL;

		if (!may_have_ours(path, searches, taken, room) && has_ours)
			envp = without_ours(envp, n, preload, mine);
		if (room->why[0] != '\0')
			mine->is_left_out = mew_recorder_tell(socket_name, -1, room->why, true);
		mew_os_unmap(room, sizeof *room); /* a child of vfork would leave it to its parent */
	}
	errno = saved;
	return envp;
}

void mew_recorder_left_free(struct mew_recorder_left_env *mine)
{
	int saved = errno;

	if (mine->list != NULL)
		mew_recorder_held_unmap(mine->list, mine->bytes);
	mine->list = NULL;
	errno = saved;
}

/* --- programs that are started without a fork of the caller's ----------------------------------------------------- */

static spawn_fn *next_spawn, *next_spawnp;

static int spawn(bool searches, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	spawn_fn **next = searches ? &next_spawnp : &next_spawn;
	struct mew_recorder_left_env mine;
	int status;

	if (*next == NULL)
		mew_recorder_find(next, searches ? "posix_spawnp" : "posix_spawn");
	status = (*next)(pid, path, actions, attributes, argv, mew_recorder_left_env(path, searches, envp, &mine));
	mew_recorder_left_free(&mine);
	return status;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(false, pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	return spawn(true, pid, file, actions, attributes, argv, envp);
}
