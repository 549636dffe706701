#include "common/net/http_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

static int file_without_name(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/postrider-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static bool write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t done = write(fd, data, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		data += done;
		len -= (size_t)done;
	}
	return true;
}

static bool move_to_file(struct http_spool *spool)
{
	spool->fd = file_without_name(spool->dir);
	if (spool->fd < 0 ||
	    !write_all(spool->fd, spool->memory.data, spool->memory.len))
		return false;
	buf_done(&spool->memory);
	return true;
}

void http_spool_init(struct http_spool *spool, const char *dir, int64_t above)
{
	*spool = (struct http_spool){ .dir = dir, .above = above, .fd = -1 };
	buf_init(&spool->memory, NULL, (size_t)above);
}

void http_spool_done(struct http_spool *spool)
{
	if (spool->map != NULL)
		munmap(spool->map, (size_t)spool->size);
	if (spool->fd >= 0)
		close(spool->fd);
	buf_done(&spool->memory);
	spool->map = NULL;
	spool->fd = -1;
}

bool http_spool_add(struct http_spool *spool, const void *data, size_t len)
{
	if (spool->fd < 0 && spool->size + (int64_t)len > spool->above &&
	    !move_to_file(spool))
		return false;
	spool->size += (int64_t)len;
	if (spool->fd >= 0)
		return write_all(spool->fd, data, len);
	buf_add(&spool->memory, data, len);
	return true;
}

bool http_spool_end(struct http_spool *spool)
{
	void *map;

	if (spool->fd < 0)
		return true;
	map = mmap(
	    NULL, (size_t)spool->size, PROT_READ, MAP_PRIVATE, spool->fd, 0);
	if (map == MAP_FAILED)
		return false;
	spool->map = map;
	return true;
}

struct bytes http_spool_bytes(const struct http_spool *spool)
{
	if (spool->map != NULL)
		return (struct bytes){ spool->map, (size_t)spool->size };
	if (spool->memory.data == NULL)
		return (struct bytes){ "", 0 };
	return buf_bytes(&spool->memory);
}
