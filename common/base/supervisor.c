#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/supervisor.h"

enum { FIRST_FD = 3, SOCKETS_MAX = 64, PATIENCE_S = 1 };

static void say(const char *text, int flags)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* A supervisor that does not listen is no reason to stop. */
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | flags,
	    (const struct sockaddr *)&to,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void supervisor_tell(const char *text)
{
	say(text, 0);
}

void supervisor_mention(const char *text)
{
	say(text, MSG_DONTWAIT);
}

/* A positive number from the environment, or 0. */
static int64_t env_number(const char *name)
{
	const char *text = getenv(name);
	int64_t number = text ? strtoll(text, NULL, 10) : 0;

	return number > 0 ? number : 0;
}

/* Is what the environment says meant for this process? */
static bool is_for_us(const char *name, bool if_unset)
{
	return getenv(name) ? env_number(name) == getpid() : if_unset;
}

int64_t supervisor_watchdog_ms(void)
{
	if (!is_for_us("WATCHDOG_PID", true))
		return 0;
	return env_number("WATCHDOG_USEC") / 1000;
}

int supervisor_sockets(void)
{
	int64_t count = env_number("LISTEN_FDS");

	if (!is_for_us("LISTEN_PID", false) || count > SOCKETS_MAX)
		return 0;
	for (int fd = FIRST_FD; fd < FIRST_FD + count; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return 0;
	return (int)count;
}
