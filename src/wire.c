/*
 * wire.c - the codec's numbers and texts, and the frames on a socket.
 * Layer L4. Outside windows.
 */
#include "config.h"

#include "wire.h"

#include "os.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void mew_wire_init(struct mew_wire *w)
{
	*w = (struct mew_wire){ NULL, 0, 0, 0, false };
}

void mew_wire_fini(struct mew_wire *w)
{
	free(w->data);
	mew_wire_init(w);
}

void mew_wire_reset(struct mew_wire *w)
{
	w->size = w->at = 0;
	w->failed = false;
}

static bool reserve(struct mew_wire *w, size_t more)
{
	size_t need, capacity;
	unsigned char *data;

	if (w->failed || !mew_add_size(w->size, more, &need) || need > MEW_WIRE_MAX) {
		w->failed = true;
		return false;
	}
	if (need <= w->capacity)
		return true;
	capacity = need < 4096 ? 4096 : need * 2;
	data = realloc(w->data, capacity);
	if (data == NULL) {
		w->failed = true;
		return false;
	}
	w->data = data;
	w->capacity = capacity;
	return true;
}

static void put_bytes(struct mew_wire *w, const void *bytes, size_t n)
{
	if (!reserve(w, n))
		return;
	memcpy(w->data + w->size, bytes, n);
	w->size += n;
}

void mew_wire_put_number(struct mew_wire *w, uint64_t value)
{
	unsigned char bytes[10];
	size_t n = 0;

	do {
		bytes[n] = (unsigned char)(value & 0x7f);
		value >>= 7;
		if (value != 0)
			bytes[n] |= 0x80;
		n++;
	} while (value != 0);
	put_bytes(w, bytes, n);
}

void mew_wire_put_real(struct mew_wire *w, double value)
{
	put_bytes(w, &value, sizeof value);
}

void mew_wire_put_text(struct mew_wire *w, const char *text)
{
	size_t n = text != NULL ? strlen(text) + 1 : 0;

	mew_wire_put_number(w, n);
	if (n != 0)
		put_bytes(w, text, n); /* with its NUL, so that it can be read in place */
}

uint64_t mew_wire_number(struct mew_wire *w)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char byte;

		if (w->failed || w->at == w->size)
			break;
		byte = w->data[w->at++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return value;
	}
	w->failed = true;
	return 0;
}

double mew_wire_real(struct mew_wire *w)
{
	double value;

	if (w->failed || w->size - w->at < sizeof value) {
		w->failed = true;
		return 0;
	}
	memcpy(&value, w->data + w->at, sizeof value);
	w->at += sizeof value;
	return value;
}

const char *mew_wire_text(struct mew_wire *w)
{
	uint64_t n = mew_wire_number(w);
	const char *text;

	if (n == 0)
		return NULL;
	if (w->failed || n > w->size - w->at || w->data[w->at + n - 1] != '\0') {
		w->failed = true;
		return NULL;
	}
	text = (const char *)w->data + w->at;
	w->at += n;
	return text;
}

/* --- frames ----------------------------------------------------------------------------------------------------- */

static int send_all(int fd, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes > 0) {
		ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return MEW_E_IO;
		p += n;
		bytes -= (size_t)n;
	}
	return MEW_OK;
}

#define HEAD_BYTES 9u

static void put_u32(unsigned char *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t u32_at(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

int mew_wire_send(int fd, enum mew_message type, const struct mew_wire *w)
{
	unsigned char head[HEAD_BYTES];

	put_u32(head, MEW_WIRE_MAGIC);
	put_u32(head + 4, (uint32_t)w->size); /* at most MEW_WIRE_MAX */
	head[8] = (unsigned char)type;
	if (w->failed || send_all(fd, head, sizeof head) != MEW_OK)
		return MEW_E_IO;
	return send_all(fd, w->data, w->size);
}

/* 1 when readable, or a status of mew_wire_receive(). */
static int wait_for(int fd, uint64_t deadline_ns, const volatile int *cancelled, int wake_fd)
{
	for (;;) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = wake_fd, .events = POLLIN } };
		uint64_t now = mew_os_now_ns();
		int wait = -1, n;

		if (cancelled != NULL && *cancelled != 0)
			return MEW_E_BUSY;
		if (deadline_ns != 0) {
			if (now >= deadline_ns)
				return MEW_E_BODY;
			wait = deadline_ns - now > 1000000000u ? 1000 : (int)((deadline_ns - now) / 1000000 + 1);
		}
		n = poll(p, 2, wait);
		if (n > 0 && p[0].revents != 0)
			return 1;
		if (n < 0 && errno != EINTR)
			return MEW_E_IO;
	}
}

static int receive_all(int fd, void *data, size_t bytes, uint64_t deadline_ns, const volatile int *cancelled,
		       int wake_fd)
{
	char *p = data;

	while (bytes > 0) {
		ssize_t n;
		int ready = wait_for(fd, deadline_ns, cancelled, wake_fd);

		if (ready != 1)
			return ready;
		n = recv(fd, p, bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		p += n;
		bytes -= (size_t)n;
	}
	return 1;
}

int mew_wire_receive(int fd, struct mew_wire *w, uint64_t deadline_ns, const volatile int *cancelled, int wake_fd)
{
	unsigned char head[HEAD_BYTES];
	size_t bytes;
	int got;

	mew_wire_reset(w);
	got = receive_all(fd, head, sizeof head, deadline_ns, cancelled, wake_fd);
	if (got != 1)
		return got;
	bytes = u32_at(head + 4);
	if (u32_at(head) != MEW_WIRE_MAGIC || !reserve(w, bytes))
		return MEW_E_IO;
	got = receive_all(fd, w->data, bytes, deadline_ns, cancelled, wake_fd);
	if (got != 1)
		return got;
	w->size = bytes;
	return head[8];
}
