/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-watch.h"

#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/strv.h"

#include <sys/inotify.h>
#include <sys/stat.h>

enum {
        DIRECTORIES_MAX = 16,
        DUE_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 10, /* after all pending inotify events */
};

typedef struct WatchedDirectory {
        FileWatch *watch;
        char *path;
        char **names; /* watched files in it */
        sd_event_source *inotify_source;
} WatchedDirectory;

struct FileWatch {
        sd_event *event;
        void (*on_changed)(void *userdata);
        void *userdata;
        sd_event_source *due; /* several events cause one check */
        WatchedDirectory directories[DIRECTORIES_MAX];
        size_t n;
};

static int on_file_watch_due(sd_event_source *source, void *userdata) {
        FileWatch *watch = userdata;

        watch->on_changed(watch->userdata);
        return 0;
}

/* A new file has yet to be written; a new link or directory is already complete. */
static bool is_complete_file_event(const WatchedDirectory *directory,
                                   const struct inotify_event *event) {
        cleanup_free char *path = NULL;
        struct stat st;

        if (!(event->mask & IN_CREATE))
                return true;
        path = path_join(directory->path, event->name);
        return !path || lstat(path, &st) < 0 || S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode) ||
               st.st_nlink > 1;
}

/* A mounted directory may replace its files through a link with another name. */
static int on_file_watch_event(sd_event_source *source, const struct inotify_event *event,
                               void *userdata) {
        WatchedDirectory *directory = userdata;

        if (event->len > 0 && !streq(event->name, "..data") &&
            !strv_contains(directory->names, event->name))
                return 0;
        if (event->len > 0 && !is_complete_file_event(directory, event))
                return 0;
        return sd_event_source_set_enabled(directory->watch->due, SD_EVENT_ONESHOT);
}

static int add_watched_directory(FileWatch *watch, const char *path, WatchedDirectory **ret) {
        const uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF |
                              IN_MOVE_SELF | IN_ONLYDIR;
        WatchedDirectory *directory = &watch->directories[watch->n];
        int r;

        if (watch->n == DIRECTORIES_MAX)
                return -ENOSPC;
        *directory = (WatchedDirectory){ .watch = watch, .path = strdup(path) };
        if (!directory->path)
                return -ENOMEM;
        r = sd_event_add_inotify(watch->event, &directory->inotify_source, path, mask,
                                 on_file_watch_event, directory);
        if (r < 0) {
                free(directory->path);
                return r;
        }
        watch->n++;
        *ret = directory;
        return 0;
}

/* One watch per directory, regardless of the number of its files. */
static int add_watched_file(FileWatch *watch, const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        cleanup_free char *parent =
                slash ? strndup(path, (size_t) MAX(slash - path, 1)) : strdup(".");
        WatchedDirectory *directory = NULL;
        int r = 0;

        if (!parent)
                return -ENOMEM;
        for (size_t i = 0; i < watch->n && !directory; i++)
                if (streq(watch->directories[i].path, parent))
                        directory = &watch->directories[i];
        if (!directory)
                r = add_watched_directory(watch, parent, &directory);
        return r < 0 ? r : strv_append(&directory->names, name);
}

static int add_watched_file_and_target(FileWatch *watch, const char *path) {
        cleanup_free char *target = realpath(path, NULL);
        int r = add_watched_file(watch, path);

        if (r < 0)
                return r;
        if (target && !streq(target, path))
                return add_watched_file(watch, target);
        return 0;
}

static void clear_file_watch(FileWatch *watch) {
        for (size_t i = 0; i < watch->n; i++) {
                sd_event_source_disable_unref(watch->directories[i].inotify_source);
                strv_free(watch->directories[i].names);
                free(watch->directories[i].path);
        }
        watch->n = 0;
}

int file_watch_set(FileWatch *watch, const char *const *paths, size_t n) {
        int first = 0;

        clear_file_watch(watch);
        for (size_t i = 0; i < n; i++) {
                int r = paths[i] ? add_watched_file_and_target(watch, paths[i]) : 0;

                if (r < 0 && r != -ENOENT && first == 0)
                        first = r;
        }
        return first;
}

int file_watch_new(sd_event *event, void (*on_changed)(void *userdata), void *userdata,
                   FileWatch **ret) {
        cleanup_with(file_watch_freep) FileWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        *watch = (FileWatch){ .event = event, .on_changed = on_changed, .userdata = userdata };
        r = event_add_disabled_defer(event, &watch->due, DUE_PRIORITY, on_file_watch_due, watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

FileWatch *file_watch_free(FileWatch *watch) {
        if (!watch)
                return NULL;
        clear_file_watch(watch);
        sd_event_source_disable_unref(watch->due);
        free(watch);
        return NULL;
}
