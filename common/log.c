/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include "common/cleanup.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <syslog.h>

enum {
        LINE_SIZE = 4000, /* for a message; a line is at most a page */
};

static log_sink_t log_sink;
static const LogSubject *log_subject;
static const char *log_message_id;
static int max_log_level = LOG_INFO;

static const struct {
        const char *name;
        int priority;
} log_levels[] = {
        { "error", LOG_ERR },
        { "warning", LOG_WARNING },
        { "info", LOG_INFO },
        { "debug", LOG_DEBUG },
};

void log_read_environment(void) {
        if (getenv("MAINSTAY_DEBUG"))
                log_set_level(LOG_DEBUG);
}

void log_set_level(int priority) {
        max_log_level = priority;
}

int log_level(void) {
        return max_log_level;
}

bool log_is_debug(void) {
        return max_log_level >= LOG_DEBUG;
}

const char *log_level_name(int priority) {
        for (size_t i = 0; i < N_ELEMENTS(log_levels); i++)
                if (log_levels[i].priority == priority)
                        return log_levels[i].name;
        return NULL;
}

int log_level_parse(const char *name) {
        for (size_t i = 0; i < N_ELEMENTS(log_levels); i++)
                if (streq(log_levels[i].name, name))
                        return log_levels[i].priority;
        return -EINVAL;
}

const LogSubject *log_set_subject(const LogSubject *subject) {
        const LogSubject *before = log_subject;

        log_subject = subject;
        return before;
}

void log_set_message_id(const char *message_id) {
        log_message_id = message_id;
}

void log_set_sink(log_sink_t sink) {
        log_sink = sink;
}

/* One write per line, so that lines of several processes do not mix. A failure cannot be
 * reported. */
static void write_log_line(int priority, const char *message) {
        char line[LINE_SIZE + 96];
        int n;

        if (getenv("JOURNAL_STREAM"))
                n = snprintf(line, sizeof(line), "<%d>%s\n", priority, message);
        else
                n = snprintf(line, sizeof(line), "%s: %s\n", program_invocation_short_name,
                             message);
        n = MIN(n, (int) sizeof(line) - 1);
        line[n - 1] = '\n';
        (void) !write(STDERR_FILENO, line, (size_t) n);
}

printf_like(3, 0) static void log_line(int priority, int error, const char *format, va_list ap) {
        const char *message_id = log_message_id;
        char message[LINE_SIZE];
        int n;

        log_message_id = NULL;
        if (priority > max_log_level)
                return;
        n = vsnprintf(message, sizeof(message), format, ap);
        n = MIN(n, (int) sizeof(message) - 1);
        if (error > 0)
                (void) snprintf(message + n, sizeof(message) - (size_t) n, ": %s", strerror(error));
        /* Some messages contain strings from containers, in which a line break must not start a new
         * line. */
        utf8_sanitize(message);
        if (log_sink)
                log_sink(priority, message, message_id, log_subject);
        else
                write_log_line(priority, message);
}

#define LOG_AT(priority)                           \
        do {                                       \
                va_list ap;                        \
                va_start(ap, format);              \
                log_line(priority, 0, format, ap); \
                va_end(ap);                        \
        } while (0)

void log_error(const char *format, ...) {
        LOG_AT(LOG_ERR);
}

void log_warning(const char *format, ...) {
        LOG_AT(LOG_WARNING);
}

void log_info(const char *format, ...) {
        LOG_AT(LOG_INFO);
}

void log_debug(const char *format, ...) {
        LOG_AT(LOG_DEBUG);
}

/* Most errors follow a prefix and start in lower case. A name, such as that of a file, is not
 * changed. */
static char first_letter_of_message(const char *message) {
        static const char *const words[] = { "cannot ", "the " };

        for (size_t i = 0; i < N_ELEMENTS(words); i++)
                if (strncmp(message, words[i], strlen(words[i])) == 0)
                        return (char) toupper((unsigned char) message[0]);
        return message[0];
}

void log_error_message(const Error *error, int r) {
        const char *message = error_message(error, r);

        log_error("%c%s", first_letter_of_message(message), message + 1);
}

void log_warning_message(const Error *error, int r) {
        const char *message = error_message(error, r);

        log_warning("%c%s", first_letter_of_message(message), message + 1);
}

int log_error_errno(int r, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_line(LOG_ERR, -r, format, ap);
        va_end(ap);
        return r;
}

int log_warning_errno(int r, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_line(LOG_WARNING, -r, format, ap);
        va_end(ap);
        return r;
}
