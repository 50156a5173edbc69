/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/kubeconfig-watch.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file-stamp.h"
#include "common/file-watch.h"
#include "common/strv.h"
#include "common/text.h"

#include <sys/stat.h>

enum {
        ERROR_SETTLE_SEC = 2, /* an error that persists for this long is reported */
};

struct KubeconfigWatch {
        KubeconfigWatchSpec spec;
        char *path;
        FileWatch *files;
        sd_event_source *timer;
        char *last_error; /* the persistent error, or NULL */
        char **warnings;
        bool was_used; /* whether a kubeconfig was ever loaded */
};

static void report_kubeconfig_error(KubeconfigWatch *watch, const char *error_text,
                                    char *const *warnings) {
        if (streq_ptr(error_text, watch->last_error) && strv_equal(warnings, watch->warnings))
                return;
        (void) text_replace(&watch->last_error, error_text);
        watch->warnings = strv_free(watch->warnings);
        (void) strv_extend(&watch->warnings, warnings);
        if (watch->spec.on_error)
                watch->spec.on_error(error_text, watch->warnings, watch->spec.userdata);
}

static void watch_kubeconfig_files(KubeconfigWatch *watch, const Kubeconfig *config) {
        const char *const paths[] = {
                watch->path,
                config->authority_data ? NULL : config->authority_file,
                config->certificate_data ? NULL : config->certificate_file,
                config->key_data ? NULL : config->key_file,
                config->token_file,
        };

        (void) file_watch_set(watch->files, paths, N_ELEMENTS(paths));
}

static FileStamp stamp_of_path(const char *path) {
        struct stat st = { 0 };

        (void) stat(path, &st);
        return file_stamp_of(&st);
}

/* The kubeconfig names the other watched files, so it is read before they are watched. The old
 * watch gets the events of changes in between, which 'ret_is_late' reports. */
static int load_and_apply_kubeconfig(KubeconfigWatch *watch, bool *ret_is_late,
                                     char ***ret_warnings, Error *reterr) {
        cleanup_with(kubeconfig_done) Kubeconfig config = { 0 };
        const FileStamp before = stamp_of_path(watch->path);
        FileStamp after;
        int r;

        r = kubeconfig_load(watch->path, &config, ret_warnings, reterr);
        if (r < 0)
                return r; /* the files of the last good kubeconfig are still watched */
        watch_kubeconfig_files(watch, &config);
        after = stamp_of_path(watch->path);
        *ret_is_late = !file_stamps_match(&before, &after);
        r = watch->spec.use(&config, watch->spec.userdata, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s", watch->path) : 0;
}

/* The first failure may be temporary. */
static void reload_kubeconfig(KubeconfigWatch *watch, bool is_final) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_strv char **warnings = NULL;
        bool is_late = false;
        int r = load_and_apply_kubeconfig(watch, &is_late, &warnings, &error);

        (void) sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
        if (is_late) {
                (void) event_timer_arm(watch->timer, 0);
                return;
        }
        if (r >= 0) {
                watch->was_used = true;
                report_kubeconfig_error(watch, NULL, warnings);
                return;
        }
        if (is_final || !watch->was_used) {
                report_kubeconfig_error(watch, error_message(&error, r), NULL);
                return;
        }
        (void) event_timer_arm(watch->timer, ERROR_SETTLE_SEC * USEC_PER_SEC);
}

static void on_kubeconfig_files_changed(void *userdata) {
        reload_kubeconfig(userdata, false);
}

static int on_kubeconfig_settle_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        reload_kubeconfig(userdata, true);
        return 0;
}

void kubeconfig_watch_reload(KubeconfigWatch *watch) {
        reload_kubeconfig(watch, true);
}

int kubeconfig_watch_new(const KubeconfigWatchSpec *spec, KubeconfigWatch **ret) {
        cleanup_with(kubeconfig_watch_freep) KubeconfigWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->spec = *spec;
        watch->path = strdup(spec->path);
        if (!watch->path)
                return -ENOMEM;
        r = sd_event_add_time_relative(spec->event, &watch->timer, CLOCK_BOOTTIME, 0,
                                       100 * USEC_PER_MSEC, on_kubeconfig_settle_timer, watch);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = file_watch_new(spec->event, on_kubeconfig_files_changed, watch, &watch->files);
        if (r < 0)
                return r;
        watch_kubeconfig_files(watch, &(Kubeconfig){ 0 });
        reload_kubeconfig(watch, true);
        *ret = TAKE_PTR(watch);
        return 0;
}

KubeconfigWatch *kubeconfig_watch_free(KubeconfigWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->timer);
        file_watch_free(watch->files);
        free(watch->path);
        free(watch->last_error);
        strv_free(watch->warnings);
        free(watch);
        return NULL;
}
