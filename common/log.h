/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Logging: each message is one line on standard error, prefixed with "<N>" if the journal reads it,
 * otherwise with the program's name. Messages start with a capital letter and have no period; user
 * strings are in 'ticks'. */

#include "common/error.h"
#include "common/macros.h"

void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
void log_info(const char *format, ...) printf_like(1, 2);
void log_debug(const char *format, ...) printf_like(1, 2);

/* The log level: lines with a lower priority are dropped. Initially LOG_INFO of syslog(3);
 * log_read_environment(), which is called once when the program starts, sets it to LOG_DEBUG if
 * MAINSTAY_DEBUG is in the environment. */
void log_read_environment(void);
void log_set_level(int priority);
int log_level(void);

/* True if log_debug() writes anything; checked before a line that is expensive to create. */
bool log_is_debug(void);

/* Converts "error", "warning", "info" or "debug" to its priority, or -EINVAL, and back. */
const char *log_level_name(int priority);
int log_level_parse(const char *name);

/* The object of a message, by which it can be found in the journal. Strings are borrowed. */
typedef struct LogSubject {
        const char *namespace, *pod, *uid; /* of the pod; NULL: none */
        const char *container;             /* name of the container; NULL: none */
} LogSubject;

/* Sets the object of later messages (NULL: none). Returns the previous one, which the caller
 * restores. */
const LogSubject *log_set_subject(const LogSubject *subject);
static inline void log_restore_subject(const LogSubject **before) {
        (void) log_set_subject(*before);
}

/* Sets the object for the current scope. */
#define LOG_ABOUT(subject)                                                                       \
        cleanup_with(log_restore_subject) __attribute__((unused)) const LogSubject *log_before = \
                log_set_subject(subject)

/* Sets the MESSAGE_ID of the next message, one of common/message-ids.h. */
void log_set_message_id(const char *message_id);

/* The function that receives messages instead of standard error; NULL: standard error. 'message_id'
 * may be NULL. */
typedef void (*log_sink_t)(int priority, const char *sentence, const char *message_id,
                           const LogSubject *subject);
void log_set_sink(log_sink_t sink);

/* Logs "<message>: <strerror>"; returns r, so that a failure is logged and returned in one line. */
int log_error_errno(int r, const char *format, ...) printf_like(2, 3);
int log_warning_errno(int r, const char *format, ...) printf_like(2, 3);

/* Logs the message of an error, or strerror(-r), as a separate line: "cannot …" becomes "Cannot
 * …". */
void log_error_message(const Error *error, int r);
void log_warning_message(const Error *error, int r);
