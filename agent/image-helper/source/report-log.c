/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/report-log.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/redact.h"
#include "common/text.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_BYTES_MAX (64 * KIB) /* for one file */
#define LOG_SUFFIX    ".log"

/* The two latest attempts; negative: none. */
typedef struct LogAttempts {
        long long latest, before;
} LogAttempts;

/* "12.log"; -1 for another name, such as that of a rotated file. */
static long long attempt_of_log(const char *name) {
        char *end;
        long long attempt = *name >= '0' && *name <= '9' ? strtoll(name, &end, 10) : -1;

        return attempt >= 0 && streq(end, LOG_SUFFIX) ? attempt : -1;
}

static LogAttempts find_attempts(DIR *directory) {
        LogAttempts found = { -1, -1 };
        const struct dirent *entry;

        while (read_directory_entry(directory, &entry) > 0) {
                long long attempt = attempt_of_log(entry->d_name);

                if (attempt > found.latest)
                        found = (LogAttempts){ attempt, found.latest };
                else if (attempt > found.before)
                        found.before = attempt;
        }
        return found;
}

/* Appends whole lines from the end of the file; an unreadable log counts as empty. */
static int append_log_end(int dir_fd, long long attempt, size_t max, Buffer *buffer) {
        cleanup_free char *name = text_format("%lld" LOG_SUFFIX, attempt), *data = malloc(max + 1);
        cleanup_close int fd = -EBADF;
        const char *start = data;
        struct stat st;
        ssize_t n;

        if (!name || !data)
                return -ENOMEM;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        n = pread(fd, data, max, st.st_size > (off_t) max ? st.st_size - (off_t) max : 0);
        if (n <= 0)
                return 0;
        if (st.st_size > (off_t) max) {
                start = memchr(data, '\n', (size_t) n);
                if (!start)
                        return 0;
                start++;
        }
        for (char *p = data; p < data + n; p++)
                if (*p == '\0')
                        *p = '?';
        return buffer_append(buffer, start, (size_t) (data + n - start), SIZE_MAX);
}

static char *find_last_lines(char *text, unsigned n_max) {
        char *at = text + strlen(text);

        while (at > text && (at[-1] != '\n' || at[0] == '\0' || n_max-- > 1))
                at--;
        return at;
}

static json_t *split_log_lines(char *text) {
        json_t *lines = json_array();
        char *line;

        while (lines && (line = strsep(&text, "\n"))) {
                if (!*line)
                        continue;
                utf8_sanitize(line);
                (void) json_array_append_new(lines, json_string(line));
        }
        return lines;
}

static DIR *open_container_logs(int log_fd, const json_t *container) {
        cleanup_free char *path =
                text_format("%s_%s_%s/%s", strna(json_text(container, "namespace")),
                            strna(json_text(container, "name")), strna(json_text(container, "uid")),
                            strna(json_text(container, "container")));
        cleanup_close int fd =
                path ? open_no_symlinks(log_fd, path, O_RDONLY | O_DIRECTORY, 0) : -ENOMEM;
        DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

        if (directory)
                (void) TAKE_FD(fd);
        return directory;
}

int report_log_read(int log_fd, const json_t *container, unsigned n_max, size_t *left,
                    json_t **ret) {
        cleanup_closedir DIR *directory = open_container_logs(log_fd, container);
        size_t max = MIN(*left / 2, (size_t) LOG_BYTES_MAX);
        cleanup_buffer Buffer buffer = { 0 };
        cleanup_free char *text = NULL;
        LogAttempts attempts;
        int r = 0;

        if (!directory || max == 0)
                return 0;
        attempts = find_attempts(directory);
        if (attempts.before >= 0)
                r = append_log_end(dirfd(directory), attempts.before, max, &buffer);
        if (r >= 0 && attempts.latest >= 0)
                r = append_log_end(dirfd(directory), attempts.latest, max, &buffer);
        if (r < 0 || buffer.length == 0)
                return r;
        *left -= buffer.length;
        text = redact_text(buffer.data, REDACT_CONTAINER);
        if (!text)
                return -ENOMEM;
        *ret = json_pack("{s:s, s:s, s:{s:s*, s:s*, s:s*}, s:s*, s:o}", "apiVersion", "v1", "kind",
                         "ContainerLog", "metadata", "namespace", json_text(container, "namespace"),
                         "name", json_text(container, "name"), "uid", json_text(container, "uid"),
                         "container", json_text(container, "container"), "lines",
                         split_log_lines(find_last_lines(text, n_max)));
        return *ret ? 1 : -ENOMEM;
}
