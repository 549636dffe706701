#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/secret.h"

enum {
	KEY_BYTES = 32,
	KEY_DIGITS = 2 * KEY_BYTES,
	KEY_FILE_MAX = KEY_DIGITS + 8, /* digits and a line's end */
	VERSION = 1,
	SECRET_FILE_MAX = 4096,
	NONCE_AT = 1,
	CIPHER_AT = NONCE_AT + crypto_secretbox_NONCEBYTES,
	BOX_MIN = CIPHER_AT + crypto_secretbox_MACBYTES
};

struct node_key {
	unsigned char bytes[KEY_BYTES];
};

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The file that is meant, or else the credential of the unit. */
static bool key_open(const char *file, char path[PATH_MAX], int *fd,
    bool *credential, struct err *err)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");

	*credential = false;
	*fd = -1;
	if (file && *file) {
		snprintf(path, PATH_MAX, "%s", file);
		*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (*fd >= 0)
			return true;
		if (errno != ENOENT || !dir)
			return err_set(err, ERR_ABSENT, "node key file %s: %s",
			    path, strerror(errno));
	}
	if (!dir)
		return err_set(err, ERR_ABSENT, "no node_key_file is set");
	snprintf(path, PATH_MAX, "%s/node_key", dir);
	*credential = true;
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return *fd >= 0 ||
	    err_set(err, ERR_ABSENT, "node key %s: %s", path, strerror(errno));
}

/* A credential's rights are systemd's affair. */
static bool rights_check(
    int fd, const char *path, bool credential, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a file", path);
	if (!credential && (st.st_mode & 077))
		return err_set(err, ERR_INVALID,
		    "%s is open to others (mode %o), want 600", path,
		    (unsigned)(st.st_mode & 07777));
	return true;
}

static bool key_read(
    int fd, const char *path, unsigned char key[KEY_BYTES], struct err *err)
{
	char text[KEY_FILE_MAX + 1];
	ssize_t len = read(fd, text, sizeof(text));
	size_t bytes = 0;

	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		len--;
	if (len != KEY_DIGITS ||
	    sodium_hex2bin(
		key, KEY_BYTES, text, KEY_DIGITS, NULL, &bytes, NULL) != 0 ||
	    bytes != KEY_BYTES) {
		sodium_memzero(text, sizeof(text));
		return err_set(err, ERR_INVALID,
		    "node key %s does not hold 64 hex digits", path);
	}
	sodium_memzero(text, sizeof(text));
	return true;
}

static bool write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return fsync(fd) == 0;
}

/* mkstemp gives mode 0600. */
static bool key_write(char *temporary)
{
	AUTO(fd_close) int fd = mkostemp(temporary, O_CLOEXEC);
	unsigned char key[KEY_BYTES];
	char text[KEY_DIGITS + 2];
	bool ok;

	if (fd < 0)
		return false;
	randombytes_buf(key, sizeof(key));
	sodium_bin2hex(text, sizeof(text), key, sizeof(key));
	memcpy(text + KEY_DIGITS, "\n", 2);
	ok = write_all(fd, text, KEY_DIGITS + 1);
	sodium_memzero(key, sizeof(key));
	sodium_memzero(text, sizeof(text));
	return ok;
}

/* One key a context: a box opens only where it was sealed for. */
static void context_key(const struct node_key *key, const char *context,
    unsigned char out[crypto_secretbox_KEYBYTES])
{
	crypto_generichash(out, crypto_secretbox_KEYBYTES,
	    (const unsigned char *)context, strlen(context), key->bytes,
	    sizeof(key->bytes));
}

bool node_key_load(const char *file, struct node_key **key, struct err *err)
{
	AUTO(fd_close) int fd = -1;
	char path[PATH_MAX];
	bool credential;
	struct node_key *loaded;

	if (sodium_init() < 0)
		abort();
	if (!key_open(file, path, &fd, &credential, err) ||
	    !rights_check(fd, path, credential, err))
		return false;
	/* Locked into memory where allowed, and left out of core dumps. */
	loaded = sodium_malloc(sizeof(*loaded));
	if (!loaded)
		abort();
	if (!key_read(fd, path, loaded->bytes, err)) {
		node_key_free(&loaded);
		return false;
	}
	*key = loaded;
	return true;
}

bool node_key_create(const char *file, struct err *err)
{
	char temporary[PATH_MAX];
	bool ok;

	if (sodium_init() < 0)
		abort();
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", file) >=
	    (int)sizeof(temporary))
		return err_set(err, ERR_INVALID, "node key path is too long");
	if (access(file, F_OK) == 0)
		return true;
	/* Linked when complete: no crash leaves half a key under the name. */
	ok = key_write(temporary) &&
	    (link(temporary, file) == 0 || errno == EEXIST);
	if (!ok)
		err_set(err, ERR_INVALID, "node key file %s: %s", file,
		    strerror(errno));
	unlink(temporary);
	return ok;
}

void node_key_free(struct node_key **key)
{
	sodium_free(*key);
	*key = NULL;
}

bool secret_file_read(
    struct arena *arena, const char *file, const char **secret, struct err *err)
{
	AUTO(fd_close) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = arena_alloc(arena, SECRET_FILE_MAX + 1);
	ssize_t len;

	if (fd < 0)
		return err_set(err, ERR_ABSENT, "secret file %s: %s", file,
		    strerror(errno));
	if (!rights_check(fd, file, false, err))
		return false;
	len = read(fd, text, SECRET_FILE_MAX);
	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	if (len <= 0 || strlen(text) != (size_t)len)
		return err_set(
		    err, ERR_INVALID, "secret file %s holds none", file);
	*secret = text;
	return true;
}

struct bytes secret_seal(struct arena *arena, const struct node_key *key,
    const char *context, const char *text)
{
	unsigned char sub[crypto_secretbox_KEYBYTES];
	size_t len = strlen(text);
	unsigned char *box = arena_alloc(arena, BOX_MIN + len);

	box[0] = VERSION;
	randombytes_buf(box + NONCE_AT, crypto_secretbox_NONCEBYTES);
	context_key(key, context, sub);
	crypto_secretbox_easy(box + CIPHER_AT, (const unsigned char *)text, len,
	    box + NONCE_AT, sub);
	sodium_memzero(sub, sizeof(sub));
	return (struct bytes){ box, BOX_MIN + len };
}

const char *secret_open(struct arena *arena, const struct node_key *key,
    const char *context, struct bytes box)
{
	unsigned char sub[crypto_secretbox_KEYBYTES];
	const unsigned char *data = box.data;
	char *text;
	bool ok;

	if (box.len < BOX_MIN || data[0] != VERSION)
		return NULL;
	text = arena_alloc(arena, box.len - BOX_MIN + 1);
	context_key(key, context, sub);
	ok = crypto_secretbox_open_easy((unsigned char *)text, data + CIPHER_AT,
		 box.len - CIPHER_AT, data + NONCE_AT, sub) == 0;
	sodium_memzero(sub, sizeof(sub));
	return ok ? text : NULL;
}
