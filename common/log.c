/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include "common/cleanup.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <syslog.h>

printf_like(3, 0) static void log_line(int priority, int error, const char *format, va_list ap) {
        char line[4096];
        int n;

        if (getenv("JOURNAL_STREAM"))
                n = snprintf(line, sizeof(line), "<%d>", priority);
        else
                n = snprintf(line, sizeof(line), "%s: ", program_invocation_short_name);
        n += vsnprintf(line + n, sizeof(line) - (size_t) n - 1, format, ap);
        n = MIN(n, (int) sizeof(line) - 2);
        if (error > 0)
                n += snprintf(line + n, sizeof(line) - (size_t) n - 1, ": %s", strerror(error));
        n = MIN(n, (int) sizeof(line) - 2);
        line[n] = '\0';
        /* Programs in containers have a say in some: a line break is no end of ours. */
        utf8_disarm(line);
        line[n] = '\n';
        /* One write a line, so that lines of several processes do not mix. Nobody to tell if it
         * fails. */
        (void) !write(STDERR_FILENO, line, (size_t) n + 1);
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
        if (getenv("MAINSTAY_DEBUG"))
                LOG_AT(LOG_DEBUG);
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
