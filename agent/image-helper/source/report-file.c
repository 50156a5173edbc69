/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/report-file.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/source/report-log.h"
#include "agent/model/source-index.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
        NODE_NAME_KEPT = 100, /* bytes kept of a longer name: a file name has at most 255 bytes */
        FILE_MODE = 0644      /* it is read on another machine by another user */
};

#define REPORT_ENDING ".ndjson"
#define LOGS_MAX      (1 * MIB) /* for all containers */

/* Node names are host names: they contain no '/' and do not start with a '.'. */
static char *format_report_name(const char *node) {
        char digest[SHA256_HEX_SIZE];

        if (strlen(node) <= NODE_NAME_KEPT)
                return text_format("%s" REPORT_ENDING, node);
        sha256_hex(node, strlen(node), digest);
        return text_format("%.*s-%.16s" REPORT_ENDING, NODE_NAME_KEPT, node, digest);
}

static int explain_report_directory(int r, const char *path, Error *reterr) {
        if (r == -ENOENT || r == -ENODEV || r == -ENOMEDIUM || r == -EHOSTDOWN)
                return error_setf(reterr, ENOMEDIUM, "%s: does not exist", path);
        if (r == -ELOOP)
                return error_setf(reterr, ELOOP,
                                  "%s: is or contains a symbolic link, which is not followed",
                                  path);
        return error_setf(reterr, -r, "%s: %s", path, strerror(-r));
}

static int explain_report_write(int r, const char *path, const char *name, Error *reterr) {
        const char *remedy =
                r == -EROFS    ? "; a file system that was mounted before the agent started is "
                                 "read-only for it: mount it again, or see ReadWritePaths= in "
                                 "systemd.exec(5)"
                : r == -ENOSPC ? "; remove files there"
                               : "";

        return error_setf(reterr, -r, "%s/%s: %s%s", path, name, strerror(-r), remedy);
}

/* ---- content ---- */

static int write_json_line(int fd, const json_t *line) {
        cleanup_free char *text = line ? json_to_text(line, JSON_COMPACT) : NULL;
        int r = text ? write_all(fd, text, strlen(text)) : -ENOMEM;

        return r < 0 ? r : write_all(fd, "\n", 1);
}

static int write_report_heading(const SourceSettings *settings, int fd) {
        char time[RFC3339_SIZE];
        cleanup_json json_t *heading =
                json_pack("{s:s, s:s, s:{s:s, s:s}, s:I}", "apiVersion", "v1", "kind", "Report",
                          "metadata", "name", settings->node, "creationTimestamp",
                          format_rfc3339(time, now_realtime_usec()), "dropped",
                          (json_int_t) settings->n_dropped);

        return write_json_line(fd, heading);
}

static int write_report_logs(const SourceSettings *settings, int log_fd, int fd) {
        size_t i, left = LOGS_MAX;
        const json_t *container;

        json_array_foreach(settings->logs, i, container) {
                cleanup_json json_t *line = NULL;
                int r = report_log_read(log_fd, container, settings->log_lines, &left, &line);

                if (r > 0)
                        r = write_json_line(fd, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int write_report_content(const SourceSettings *settings, int log_fd, int fd) {
        const char *body = strna(settings->body);
        int r = write_report_heading(settings, fd);

        if (r >= 0)
                r = write_all(fd, body, strlen(body));
        if (r >= 0 && log_fd >= 0)
                r = write_report_logs(settings, log_fd, fd);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

/* ---- files ---- */

static int write_new_report(const SourceSettings *settings, int dir_fd, int log_fd,
                            const char *name) {
        cleanup_close int fd = -EBADF;
        int r = unlink_if_present_at(dir_fd, name);

        if (r < 0)
                return r;
        fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
        if (fd < 0)
                return -errno;
        return write_report_content(settings, log_fd, fd);
}

/* The earlier report stays until the new one is complete. */
static int replace_report(const SourceSettings *settings, int dir_fd, int log_fd,
                          const char *name) {
        cleanup_free char *temporary = text_format(".%s.new", name);
        int r = temporary ? write_new_report(settings, dir_fd, log_fd, temporary) : -ENOMEM;

        DIE_AT("report.written");
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        if (r < 0 && temporary)
                (void) unlinkat(dir_fd, temporary, 0);
        if (r >= 0 && fsync(dir_fd) < 0 && errno != EINVAL)
                r = -errno;
        return r;
}

int write_report_file(const SourceSettings *settings, Error *reterr) {
        const char *path = source_stick_path(settings->url);
        cleanup_free char *name = format_report_name(strna(settings->node));
        cleanup_close int dir_fd = -EBADF, log_fd = -EBADF;
        int r;

        if (!name)
                return -ENOMEM;
        r = dir_fd = open_no_symlinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
        if (r < 0)
                return explain_report_directory(r, path, reterr);
        if (settings->log_directory)
                log_fd = open(settings->log_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = confine_report_writer(dir_fd, log_fd, reterr);
        if (r < 0)
                return r;
        r = replace_report(settings, dir_fd, log_fd, name);
        return r < 0 ? explain_report_write(r, path, name, reterr) : 0;
}
