/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/network-readiness.h"

#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/inotify.h>

enum {
        DUE_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 10, /* after all pending inotify events */
};

struct NetworkReadiness {
        sd_event *event;
        CniSettings *settings;
        void (*on_changed)(void *userdata);
        void *userdata;
        sd_event_source *inotify_source;
        sd_event_source *due; /* several events cause a single check */
        bool is_directory_gone;
        char *logged; /* why it is not ready; NULL: it is ready, or nothing was logged yet */
};

/* The kubelet's message, which includes containerd's message, because tools search for it. */
static const char not_ready_message[] =
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
        "message:Network plugin returns error: cni plugin not initialized";

static void log_not_ready(NetworkReadiness *readiness, const char *why) {
        if (streq_ptr(readiness->logged, why))
                return;
        (void) text_replace(&readiness->logged, why);
        log_warning("The network is not ready: %s; only pods of the host network start until a "
                    "network plugin has written its configuration",
                    why);
}

static void log_ready(NetworkReadiness *readiness, const char *file) {
        if (readiness->settings->not_ready)
                log_info("The network is ready: %s", file);
        free(TAKE_PTR(readiness->logged));
}

/* Returns true if the readiness of the network has changed. */
static bool check_network(NetworkReadiness *readiness) {
        CniSettings *settings = readiness->settings;
        const char *before = settings->not_ready;
        cleanup_free char *text = NULL, *file = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r = cni_config_load(settings, &text, &file, &error);

        if (r < 0)
                log_not_ready(readiness, error_message(&error, r));
        else
                log_ready(readiness, strna(file));
        settings->not_ready = r < 0 ? not_ready_message : NULL;
        return before != settings->not_ready;
}

static void watch_network_directory(NetworkReadiness *readiness);

static int on_network_check_due(sd_event_source *source, void *userdata) {
        NetworkReadiness *readiness = userdata;

        if (readiness->is_directory_gone)
                watch_network_directory(readiness);
        if (check_network(readiness))
                readiness->on_changed(readiness->userdata);
        return 0;
}

static int on_network_directory_event(sd_event_source *source, const struct inotify_event *event,
                                      void *userdata) {
        NetworkReadiness *readiness = userdata;

        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT))
                readiness->is_directory_gone = true;
        return sd_event_source_set_enabled(readiness->due, SD_EVENT_ONESHOT);
}

static int add_network_watch(NetworkReadiness *readiness) {
        const uint32_t mask = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
        const char *directory = readiness->settings->config_dir;
        int r = mkdir_parents_at(AT_FDCWD, directory, 0755);

        if (r < 0)
                return r;
        return sd_event_add_inotify(readiness->event, &readiness->inotify_source, directory, mask,
                                    on_network_directory_event, readiness);
}

static void watch_network_directory(NetworkReadiness *readiness) {
        int r;

        readiness->is_directory_gone = false;
        readiness->inotify_source = sd_event_source_disable_unref(readiness->inotify_source);
        r = add_network_watch(readiness);
        if (r < 0)
                (void) log_warning_errno(r,
                                         "Cannot watch %s for the configuration of a network "
                                         "plugin; create the directory and restart mainstayd",
                                         readiness->settings->config_dir);
}

int network_readiness_new(sd_event *event, CniSettings *settings,
                          void (*on_changed)(void *userdata), void *userdata,
                          NetworkReadiness **ret) {
        cleanup_with(network_readiness_freep) NetworkReadiness *readiness = NULL;
        int r;

        if (settings->has_default)
                return 0;
        readiness = calloc(1, sizeof(*readiness));
        if (!readiness)
                return -ENOMEM;
        *readiness = (NetworkReadiness){
                .event = event, .settings = settings, .on_changed = on_changed, .userdata = userdata
        };
        r = event_add_disabled_defer(event, &readiness->due, DUE_PRIORITY, on_network_check_due,
                                     readiness);
        if (r < 0)
                return r;
        watch_network_directory(readiness);
        (void) check_network(readiness);
        *ret = TAKE_PTR(readiness);
        return 0;
}

NetworkReadiness *network_readiness_free(NetworkReadiness *readiness) {
        if (!readiness)
                return NULL;
        sd_event_source_disable_unref(readiness->inotify_source);
        sd_event_source_disable_unref(readiness->due);
        free(readiness->logged);
        free(readiness);
        return NULL;
}
