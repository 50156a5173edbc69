/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mount-watch.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TABLE_BYTES_MAX (16 * MIB)

enum {
        FIELDS_BEFORE_PATH = 4
};

struct MountWatch {
        void (*on_changed)(void *userdata);
        void *userdata;
        char *path;
        char *lines; /* lines of the relevant mounts */
        int fd;
        sd_event_source *source;
};

/* One character of a path in the table, where some are written in octal. */
static char next_mount_character(const char **text) {
        const char *p = *text;

        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
                *text = p + 4;
                return (char) ((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
        }
        *text = p + 1;
        return p[0];
}

/* 'at' starts with the path of a mount and a space. */
static bool is_mounted_above(const char *at, const char *path) {
        if (strncmp(at, "/ ", 2) == 0)
                return true;
        while (*at && *at != ' ')
                if (next_mount_character(&at) != *path++)
                        return false;
        return *path == '\0' || *path == '/';
}

static const char *find_mount_path(const char *line) {
        for (unsigned i = 0; line && i < FIELDS_BEFORE_PATH; i++) {
                line = strchr(line, ' ');
                line = line ? line + 1 : NULL;
        }
        return line;
}

char *mount_watch_filter(const char *table, const char *path) {
        cleanup_free char *lines = strdup(""), *copy = strdup(table);
        char *rest = copy, *line;

        if (!lines || !copy)
                return NULL;
        while ((line = strsep(&rest, "\n"))) {
                const char *at = find_mount_path(line);

                if (at && is_mounted_above(at, path) && text_appendf(&lines, "%s\n", line) < 0)
                        return NULL;
        }
        return TAKE_PTR(lines);
}

static int read_mounts(MountWatch *watch, char **ret) {
        cleanup_free char *table = NULL;
        size_t length;
        int r = lseek(watch->fd, 0, SEEK_SET) < 0
                        ? -errno
                        : read_stream(watch->fd, TABLE_BYTES_MAX, &table, &length);

        if (r < 0)
                return r;
        *ret = mount_watch_filter(table, watch->path);
        return *ret ? 0 : -ENOMEM;
}

/* Pods cause many mounts, but in other places. An unreadable table counts as changed. */
static int on_mounts_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        MountWatch *watch = userdata;
        cleanup_free char *lines = NULL;

        if (read_mounts(watch, &lines) >= 0 && streq_ptr(lines, watch->lines))
                return 0;
        free(watch->lines);
        watch->lines = TAKE_PTR(lines);
        watch->on_changed(watch->userdata);
        return 0;
}

int mount_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                    void *userdata, MountWatch **ret) {
        cleanup_with(mount_watch_freep) MountWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->on_changed = on_changed;
        watch->userdata = userdata;
        watch->path = strdup(path);
        watch->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        if (!watch->path || watch->fd < 0)
                return watch->path ? -errno : -ENOMEM;
        r = read_mounts(watch, &watch->lines);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &watch->source, watch->fd, EPOLLPRI, on_mounts_changed, watch);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(watch->source, "mount-watch");
        *ret = TAKE_PTR(watch);
        return 0;
}

MountWatch *mount_watch_free(MountWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->source);
        close_fd(watch->fd);
        free(watch->lines);
        free(watch->path);
        free(watch);
        return NULL;
}
