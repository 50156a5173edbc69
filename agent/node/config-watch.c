/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the configuration file: SIGHUP and inotify. */

#include "agent/node/config-watch.h"

#include "common/file-watch.h"
#include "common/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct ConfigWatch {
        void (*on_changed)(void *userdata);
        void *userdata;
        sd_event_source *signal_source;
        FileWatch *files;
};

static int on_sighup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        ConfigWatch *watch = userdata;

        log_info("Reloading the configuration after SIGHUP");
        watch->on_changed(watch->userdata);
        return 0;
}

int config_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret) {
        ConfigWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->on_changed = on_changed;
        watch->userdata = userdata;
        r = sd_event_add_signal(event, &watch->signal_source, SIGHUP, on_sighup, watch);
        if (r >= 0)
                r = file_watch_new(event, on_changed, userdata, &watch->files);
        if (r < 0) {
                config_watch_free(watch);
                return r;
        }
        r = file_watch_set(watch->files, &path, 1);
        if (r < 0)
                log_warning("Cannot watch the configuration %s for changes: %s; SIGHUP reloads it",
                            path, strerror(-r));
        *ret = watch;
        return 0;
}

ConfigWatch *config_watch_free(ConfigWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->signal_source);
        file_watch_free(watch->files);
        free(watch);
        return NULL;
}
