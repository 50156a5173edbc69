/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-store.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        OBJECT_BYTES_MAX = 1024 * 1024,
        FILE_MODE = 0600
};

#define DROPPED_FILE   ".dropped"
#define DAMAGED_SUFFIX ".damaged"

/* "NUMBER KEY TEXT" of a line, which is changed. 0 or -EBADMSG. */
static int restore_stored_line(ReportQueue *queue, const char *object, char *line) {
        char *key, *text, *end;
        uint64_t number = strtoull(line, &end, 10);

        if (end == line || *end != ' ')
                return -EBADMSG;
        key = end + 1;
        text = strchr(key, ' ');
        if (!text)
                return -EBADMSG;
        *text++ = '\0';
        return report_queue_restore(queue, object, key, number, text);
}

static int restore_stored_lines(ReportQueue *queue, const char *object, char *text) {
        char *rest = text;

        for (char *line; (line = strsep(&rest, "\n"));) {
                int r = line[0] ? restore_stored_line(queue, object, line) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_stored_object(int dir_fd, ReportQueue *queue, const char *name) {
        cleanup_free char *text = NULL;
        int r = checksummed_read_at(dir_fd, name, OBJECT_BYTES_MAX, &text);

        if (r >= 0)
                r = restore_stored_lines(queue, name, text);
        if (r >= 0 || r == -ENOMEM)
                return r;
        log_warning("report/%s is damaged and set aside: %s", name, strerror(-r));
        checksummed_set_aside_at(dir_fd, name);
        return 0;
}

static void load_dropped_count(int dir_fd, ReportQueue *queue) {
        cleanup_free char *text = NULL;

        if (checksummed_read_at(dir_fd, DROPPED_FILE, 256, &text) >= 0)
                report_queue_set_dropped(queue, strtoull(text, NULL, 10));
}

/* Also of what a writer left that was killed between writing and renaming: it starts with '.'. */
static bool is_stored_object(const char *name) {
        size_t length = strlen(name), suffix = strlen(DAMAGED_SUFFIX);

        return report_name_is_valid(name) &&
               (length < suffix || !streq(name + length - suffix, DAMAGED_SUFFIX));
}

int report_store_load(int dir_fd, ReportQueue *queue) {
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        load_dropped_count(dir_fd, queue);
        if (!directory) {
                close_fd(fd);
                return -errno;
        }
        while (r >= 0 && (entry = readdir(directory)))
                if (is_stored_object(entry->d_name))
                        r = load_stored_object(dir_fd, queue, entry->d_name);
        (void) closedir(directory);
        return r;
}

static int save_dropped_count(int dir_fd, uint64_t n) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%" PRIu64 "\n", n);
        return checksummed_write_at(dir_fd, DROPPED_FILE, text, FILE_MODE);
}

static int save_object(int dir_fd, const char *name, const char *text) {
        if (text)
                return checksummed_write_at(dir_fd, name, text, FILE_MODE);
        return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int report_store_save(int dir_fd, ReportQueue *queue, uint64_t *saved_dropped) {
        uint64_t dropped = report_queue_dropped(queue);
        const char *name;
        char *text;

        while ((name = report_queue_next_unsaved(queue, &text))) {
                cleanup_free char *lines = text;
                int r = save_object(dir_fd, name, lines);

                if (r < 0)
                        return r;
                report_queue_saved(queue, name);
        }
        if (dropped == *saved_dropped)
                return 0;
        *saved_dropped = dropped;
        return save_dropped_count(dir_fd, dropped);
}
