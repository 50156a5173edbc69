/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the configuration: SIGHUP and inotify. The drop-in directory may appear and disappear,
 * and has subdirectories, so all of its watches are recreated before its files are read, and no
 * change in between is missed. */

#include "agent/node/config-watch.h"

#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/file-watch.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum {
        WATCHED_MAX = 64,
        DUE_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 10 /* after all pending inotify events */
};

typedef struct WatchedDropinDirectory {
        ConfigWatch *watch;
        char *path;
        sd_event_source *source;
} WatchedDropinDirectory;

struct ConfigWatch {
        void (*on_changed)(void *userdata);
        void *userdata;
        sd_event *event;
        sd_event_source *signal_source;
        FileWatch *files;
        const char *directory; /* drop-in directory, borrowed; NULL: none */
        char *parent;          /* its parent directory */
        sd_event_source *due;
        WatchedDropinDirectory watches[WATCHED_MAX];
        size_t n_watches;
};

static int on_sighup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        ConfigWatch *watch = userdata;

        log_info("Reloading the configuration after SIGHUP");
        watch->on_changed(watch->userdata);
        return 0;
}

/* ---- drop-ins ---- */

/* A new file has yet to be written, and is reported again when it is closed; a new link is
 * complete. */
static bool is_dropin_event(const WatchedDropinDirectory *directory,
                            const struct inotify_event *event) {
        cleanup_free char *path = NULL;
        struct stat st;

        if (event->len == 0 || event->mask & IN_ISDIR)
                return true;
        if (!config_dropin_is_name(event->name))
                return false;
        if (!(event->mask & IN_CREATE))
                return true;
        path = path_join(directory->path, event->name);
        return !path || lstat(path, &st) < 0 || S_ISLNK(st.st_mode) || st.st_nlink > 1;
}

static int on_dropin_event(sd_event_source *source, const struct inotify_event *event,
                           void *userdata) {
        const WatchedDropinDirectory *directory = userdata;

        if (!is_dropin_event(directory, event))
                return 0;
        return sd_event_source_set_enabled(directory->watch->due, SD_EVENT_ONESHOT);
}

static int on_parent_event(sd_event_source *source, const struct inotify_event *event,
                           void *userdata) {
        const ConfigWatch *watch = ((const WatchedDropinDirectory *) userdata)->watch;

        if (event->len > 0 && !streq(event->name, strrchr(watch->directory, '/') + 1))
                return 0;
        return sd_event_source_set_enabled(watch->due, SD_EVENT_ONESHOT);
}

static int add_directory_watch(ConfigWatch *watch, const char *path, uint32_t mask,
                               sd_event_inotify_handler_t handler) {
        WatchedDropinDirectory *directory = &watch->watches[watch->n_watches];
        int r;

        if (watch->n_watches == WATCHED_MAX)
                return -ENOSPC;
        *directory = (WatchedDropinDirectory){ .watch = watch, .path = strdup(path) };
        if (!directory->path)
                return -ENOMEM;
        r = sd_event_add_inotify(watch->event, &directory->source, path, mask | IN_ONLYDIR, handler,
                                 directory);
        if (r < 0)
                free(directory->path);
        watch->n_watches += r >= 0;
        return r;
}

static void forget_directory_watches(ConfigWatch *watch) {
        while (watch->n_watches > 0) {
                WatchedDropinDirectory *directory = &watch->watches[--watch->n_watches];

                sd_event_source_disable_unref(directory->source);
                free(directory->path);
        }
}

static int add_dropin_watches(ConfigWatch *watch) {
        const uint32_t moves = IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CREATE;
        cleanup_with(config_dropins_done) ConfigDropins dropins = { 0 };
        int r = add_directory_watch(watch, watch->parent, moves, on_parent_event);

        if (r < 0 && r != -ENOENT)
                return r;
        r = config_dropins_list(watch->directory, &dropins, NULL);
        strv_foreach(directory, dropins.directories) {
                int q = add_directory_watch(watch, *directory, moves | IN_CLOSE_WRITE,
                                            on_dropin_event);

                r = q < 0 && q != -ENOENT ? q : r;
        }
        return r;
}

static void watch_dropins(ConfigWatch *watch) {
        int r;

        forget_directory_watches(watch);
        if (!watch->directory)
                return;
        r = add_dropin_watches(watch);
        if (r < 0)
                log_warning("Cannot watch the drop-ins of %s for changes: %s; SIGHUP reloads them",
                            watch->directory, strerror(-r));
}

static int on_dropins_due(sd_event_source *source, void *userdata) {
        ConfigWatch *watch = userdata;

        watch_dropins(watch);
        watch->on_changed(watch->userdata);
        return 0;
}

static int start_watching_dropins(ConfigWatch *watch, const char *directory) {
        const char *slash = directory ? strrchr(directory, '/') : NULL;

        if (!slash)
                return 0;
        watch->directory = directory;
        watch->parent =
                slash == directory ? strdup("/") : strndup(directory, (size_t) (slash - directory));
        if (!watch->parent)
                return -ENOMEM;
        watch_dropins(watch);
        return 0;
}

/* ---- all ---- */

int config_watch_new(sd_event *event, const ConfigFiles *files, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret) {
        cleanup_with(config_watch_freep) ConfigWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->event = event;
        watch->on_changed = on_changed;
        watch->userdata = userdata;
        r = sd_event_add_signal(event, &watch->signal_source, SIGHUP, on_sighup, watch);
        if (r >= 0)
                r = file_watch_new(event, on_changed, userdata, &watch->files);
        if (r >= 0)
                r = event_add_disabled_defer(event, &watch->due, DUE_PRIORITY, on_dropins_due,
                                             watch);
        if (r >= 0)
                r = start_watching_dropins(watch, files->directory);
        if (r < 0)
                return r;
        r = file_watch_set(watch->files, &files->file, 1);
        if (r < 0)
                log_warning("Cannot watch the configuration %s for changes: %s; SIGHUP reloads it",
                            files->file, strerror(-r));
        *ret = TAKE_PTR(watch);
        return 0;
}

ConfigWatch *config_watch_free(ConfigWatch *watch) {
        if (!watch)
                return NULL;
        forget_directory_watches(watch);
        sd_event_source_disable_unref(watch->due);
        sd_event_source_disable_unref(watch->signal_source);
        file_watch_free(watch->files);
        free(watch->parent);
        free(watch);
        return NULL;
}
