/*
 * log -- one line of key=value text per event, on stderr.
 *
 * level, event (a stable dotted name such as relay.refused), then the fields
 * of the open scopes, then the line's own. Control characters are escaped and
 * long values cut, so that no outsider can forge a line. systemd's journal
 * adds time, unit and pid. Bodies, tokens, secrets and signatures are never
 * logged. Field names: level event req delivery entry peer user conversation
 * queue worker lease attempt code reason class ms bytes wait_ms style seq
 * route err sqlstate.
 *
 * Any thread. Scopes belong to the thread that opened them.
 */
#ifndef POSTRIDER_LOG_H
#define POSTRIDER_LOG_H

#include "common/base/val.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Lines below the level are not written. Called at start and on reload. */
void log_level_set(enum log_level level);

/* Name and instance that every line carries; static for good. From here on
 * lines at level error are counted. */
void log_daemon_set(const char *name, const char *instance);

/* Lines go to fd instead of stderr (tests). */
void log_output_set(int fd);

void log_write(enum log_level level, const char *event,
    const struct field *fields, size_t count);

#define LOG_FIELDS(...) \
	((const struct field[]){ { .name = NULL }, ##__VA_ARGS__ }) + 1, \
	    sizeof( \
		(const struct field[]){ { .name = NULL }, ##__VA_ARGS__ }) / \
		sizeof(struct field) - \
	    1
#define log_debug(event, ...) \
	log_write(LOG_DEBUG, event, LOG_FIELDS(__VA_ARGS__))
#define log_info(event, ...) log_write(LOG_INFO, event, LOG_FIELDS(__VA_ARGS__))
#define log_warn(event, ...) log_write(LOG_WARN, event, LOG_FIELDS(__VA_ARGS__))
#define log_error(event, ...) \
	log_write(LOG_ERROR, event, LOG_FIELDS(__VA_ARGS__))

/* Fields that all lines of this thread carry until the scope ends. */
struct log_scope {
	struct field fields[3];
	int count;
	struct log_scope *outer;
};

void log_scope_begin(
    struct log_scope *scope, const struct field *fields, size_t count);
void log_scope_end(struct log_scope *scope);

#endif
