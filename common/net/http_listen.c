#include "common/net/http_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Closes fd and says why address cannot be listened on. */
static int failed(int fd, const char *address, const char *why, struct err *err)
{
	if (fd >= 0)
		close(fd);
	err_set(err, ERR_INVALID, "cannot listen on %s: %s", address, why);
	return -1;
}

static int socket_new(int family)
{
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket file that nobody listens on any more is in the way. */
static void remove_stale(const struct sockaddr_un *name)
{
	int fd = socket_new(AF_UNIX);

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 &&
	    errno == ECONNREFUSED)
		unlink(name->sun_path);
	close(fd);
}

static int listen_unix(const char *address, const char *path, struct err *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd;

	if (*path == '\0' || strlen(path) >= sizeof(name.sun_path))
		return failed(-1, address, "path is empty or too long", err);
	memcpy(name.sun_path, path, strlen(path) + 1);
	remove_stale(&name);
	fd = socket_new(AF_UNIX);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return failed(fd, address, strerror(errno), err);
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	socklen_t len = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0)
		return 0;
	memcpy(&in, &name, sizeof(in));
	memcpy(&in6, &name, sizeof(in6));
	if (name.ss_family == AF_INET)
		return ntohs(in.sin_port);
	return name.ss_family == AF_INET6 ? ntohs(in6.sin6_port) : 0;
}

static int listen_inherited(
    const char *address, const char *text, int *port, struct err *err)
{
	char *end;
	long fd = strtol(text, &end, 10);
	int listening = 0;
	socklen_t len = sizeof(listening);

	if (end == text || *end != '\0' || fd < 0 || fd > INT32_MAX)
		return failed(-1, address, "not a descriptor", err);
	if (getsockopt((int)fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) <
		0 ||
	    !listening)
		return failed(-1, address, "not a listening socket", err);
	fcntl((int)fd, F_SETFL, fcntl((int)fd, F_GETFL) | O_NONBLOCK);
	fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	*port = port_of((int)fd);
	return (int)fd;
}

/* "127.0.0.1:80", "[::1]:80", ":80", "*:80" into host and port. */
static bool split(
    const char *address, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(address, ':');
	const char *begin = address;
	size_t len;

	if (colon == NULL || colon[1] == '\0')
		return false;
	len = (size_t)(colon - address);
	if (*begin == '[') {
		if (len < 2 || begin[len - 1] != ']')
			return false;
		begin++;
		len -= 2;
	} else if (memchr(begin, ':', len) != NULL) {
		return false;
	}
	if (len == 1 && *begin == '*')
		len = 0;
	if (len >= room)
		return false;
	memcpy(host, begin, len);
	host[len] = '\0';
	*port = colon + 1;
	return true;
}

static int listen_tcp(const char *address, int *port, struct err *err)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char host[256];
	const char *service;
	int one = 1;
	int fd, result;

	if (!split(address, host, sizeof(host), &service))
		return failed(-1, address, "not host:port", err);
	result =
	    getaddrinfo(*host != '\0' ? host : NULL, service, &hints, &found);
	if (result != 0)
		return failed(-1, address, gai_strerror(result), err);
	fd = socket_new(found->ai_family);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 &&
	    (bind(fd, found->ai_addr, found->ai_addrlen) < 0 ||
		listen(fd, SOMAXCONN) < 0))
		fd = failed(fd, address, strerror(errno), err);
	else if (fd < 0)
		failed(fd, address, strerror(errno), err);
	freeaddrinfo(found);
	if (fd >= 0)
		*port = port_of(fd);
	return fd;
}

int http_listen_socket(const char *address, int *port, struct err *err)
{
	if (strncmp(address, "unix:", 5) == 0)
		return listen_unix(address, address + 5, err);
	if (strncmp(address, "fd:", 3) == 0)
		return listen_inherited(address, address + 3, port, err);
	return listen_tcp(address, port, err);
}
