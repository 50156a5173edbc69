/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config-watch.h"

#include "common/cleanup.h"
#include "common/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>

struct ConfigWatch {
        char *name; /* in its directory */
        void (*on_changed)(void *userdata);
        void *userdata;
        sd_event_source *signal_source;
        sd_event_source *bell;
        sd_event_source *due; /* ten letters are one look */
};

static int on_due(sd_event_source *source, void *userdata) {
        ConfigWatch *watch = userdata;

        watch->on_changed(watch->userdata);
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        ConfigWatch *watch = userdata;

        log_info("Reading the configuration again");
        return sd_event_source_set_enabled(watch->due, SD_EVENT_ONESHOT);
}

/* A directory that is mounted may exchange its files through a link of another name. */
static int on_bell(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        ConfigWatch *watch = userdata;

        if (event->len > 0 && !streq(event->name, watch->name) && !streq(event->name, "..data"))
                return 0;
        return sd_event_source_set_enabled(watch->due, SD_EVENT_ONESHOT);
}

static void watch_directory(ConfigWatch *watch, sd_event *event, const char *path) {
        const char *slash = strrchr(path, '/');
        cleanup_free char *directory =
                slash ? strndup(path, (size_t) MAX(slash - path, 1)) : strdup(".");
        int r = -ENOMEM;

        if (directory)
                r = sd_event_add_inotify(event, &watch->bell, directory,
                                         IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR, on_bell, watch);
        if (r < 0 && r != -ENOENT)
                log_warning_errno(r, "Cannot watch the configuration %s; SIGHUP reads it again",
                                  path);
}

int config_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret) {
        ConfigWatch *watch = calloc(1, sizeof(*watch));
        const char *slash = strrchr(path, '/');
        int r = -ENOMEM;

        if (!watch)
                return -ENOMEM;
        watch->on_changed = on_changed;
        watch->userdata = userdata;
        watch->name = strdup(slash ? slash + 1 : path);
        if (watch->name)
                r = sd_event_add_signal(event, &watch->signal_source, SIGHUP, on_signal, watch);
        if (r >= 0)
                r = sd_event_add_defer(event, &watch->due, on_due, watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(watch->due, SD_EVENT_OFF);
        if (r < 0) {
                config_watch_free(watch);
                return r;
        }
        watch_directory(watch, event, path);
        *ret = watch;
        return 0;
}

ConfigWatch *config_watch_free(ConfigWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->signal_source);
        sd_event_source_disable_unref(watch->bell);
        sd_event_source_disable_unref(watch->due);
        free(watch->name);
        free(watch);
        return NULL;
}
