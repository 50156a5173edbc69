/* SPDX-License-Identifier: Apache-2.0 */

/* Histories on the disk: one sealed file for each set, so that what was undone stays so, and who
 * asks for the revision before gets it, whatever happened to the agent. */

#include "agent/daemons-private.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/names.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sealed.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
        HISTORY_MAX = 16 * 1024 * 1024
};

static int open_directory(const Daemons *daemons) {
        cleanup_free char *path = path_join(daemons->config.state_dir, "daemonsets");

        return path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;
}

int daemon_store(const Daemons *daemons, const Daemon *daemon, Error *reterr) {
        cleanup_free char *text = history_format(&daemon->history);
        cleanup_close int fd = -EBADF;
        int r;

        if (!text)
                return -ENOMEM;
        fd = open_directory(daemons);
        r = fd < 0 ? fd : sealed_write_at(fd, daemon->uid, text, 0600);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write the history of daemonset %s/%s: %s",
                                  daemon->history.namespace, daemon->history.name, strerror(-r));
        return 0;
}

void daemon_store_or_say(const Daemons *daemons, const Daemon *daemon) {
        cleanup_error Error error = ERROR_NULL;
        int r = daemon_store(daemons, daemon, &error);

        if (r < 0)
                log_error("%s", error_message(&error, r));
}

void daemon_forget(const Daemons *daemons, const Daemon *daemon) {
        cleanup_close int fd = open_directory(daemons);

        if (fd >= 0 && unlinkat(fd, daemon->uid, 0) < 0 && errno != ENOENT)
                (void) log_error_errno(-errno, "Cannot remove the history of daemonset '%s'",
                                       strna(daemon->history.name));
}

/* What an earlier agent was asked for last. NULL where there is none that we understand: then its
 * pods go on as they are. */
static DaemonSet *read_set(const DaemonHistory *history, const char *uid) {
        cleanup_error Error error = ERROR_NULL;
        DaemonSet *set = NULL;
        int r;

        if (!history->set || !history->origin)
                return NULL;
        r = manifest_parse_daemonset(history->set, strlen(history->set), &set, &error);
        if (r >= 0 && !streq(set->metadata.uid, uid)) {
                set = daemonset_free(set);
                r = error_setf(&error, EINVAL, "is of another UID");
        }
        if (r < 0)
                log_warning("DaemonSet '%s/%s': what an earlier agent was asked for: %s, ignoring "
                            "it",
                            history->namespace, history->name, error_message(&error, r));
        return set;
}

/* A clock that was set back leaves a time that is still to come. */
static void take_history(const Daemons *daemons, Daemon *daemon, const DaemonHistory *history) {
        daemon->history = *history;
        daemon->history.rollout_since = MIN(history->rollout_since, daemons->begun);
        daemon->set = read_set(history, daemon->uid);
}

static int load_one(Daemons *daemons, int fd, const char *uid) {
        cleanup_free char *text = NULL;
        DaemonHistory history = { 0 };
        Daemon *daemon;
        int r = sealed_read_at(fd, uid, HISTORY_MAX, &text);

        if (r >= 0)
                r = history_parse(text, &history);
        if (r == -EBADMSG) {
                log_error("%s/daemonsets/%s is damaged, setting it aside",
                          daemons->config.state_dir, uid);
                sealed_set_aside_at(fd, uid);
                return 0;
        }
        if (r < 0)
                return r;
        daemon = daemons_add(daemons, uid);
        if (!daemon) {
                daemon_history_done(&history);
                return -ENOMEM;
        }
        take_history(daemons, daemon, &history);
        return 0;
}

/* Whoever wished for them may not be able to say them again now. */
static int tell_known(Daemons *daemons) {
        int r = 0;

        for (const Daemon *daemon = daemons->list; daemon && r >= 0; daemon = daemon->next)
                if (daemon->set)
                        r = daemons->config.on_known(daemon->history.origin, daemon->set,
                                                     daemons->config.userdata);
        return r;
}

int daemons_load(Daemons *daemons, Error *reterr) {
        cleanup_close int fd = open_directory(daemons);
        cleanup_closedir DIR *dir = NULL;
        struct dirent *entry;
        int r = 0;

        if (fd >= 0)
                dir = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (!dir)
                return error_setf(reterr, fd < 0 ? -fd : errno, "cannot read %s/daemonsets: %s",
                                  daemons->config.state_dir, strerror(fd < 0 ? -fd : errno));
        while (r != -ENOMEM && (entry = readdir(dir))) {
                if (check_uid(entry->d_name, NULL) < 0)
                        continue;
                r = load_one(daemons, fd, entry->d_name);
                if (r < 0 && r != -ENOMEM)
                        (void) log_error_errno(r, "Cannot read %s/daemonsets/%s, ignoring it",
                                               daemons->config.state_dir, entry->d_name);
        }
        return r == -ENOMEM ? r : tell_known(daemons);
}

int daemon_read_template(const Daemon *daemon, const char *hash, Pod *ret) {
        const Revision *revision = history_find(&daemon->history, hash);

        if (!revision)
                return -ENOENT;
        return manifest_parse_template(revision->template, strlen(revision->template), ret, NULL);
}

int daemon_check_selector(const Daemons *daemons, Daemon *daemon, bool has_pods) {
        char *json = object_to_json(&label_selector_schema, daemon->set->spec.selector);
        bool is_same;

        if (!json)
                return -ENOMEM;
        is_same = !daemon->history.selector || streq(daemon->history.selector, json);
        if (!is_same && has_pods) {
                free(json);
                return 0;
        }
        free(daemon->history.selector);
        daemon->history.selector = json;
        if (!is_same)
                daemon_store_or_say(daemons, daemon);
        return 1;
}

static int note_names(Daemon *daemon) {
        const ObjectMeta *metadata = &daemon->set->metadata;

        if (daemon->history.name)
                return 0;
        daemon->history.namespace = strdup(metadata->namespace);
        daemon->history.name = strdup(metadata->name);
        return daemon->history.namespace && daemon->history.name ? 0 : -ENOMEM;
}

/* As what the set was wished for, and where. 1 where that is news; 0; -ENOMEM. */
static int note_wish(Daemon *daemon) {
        cleanup_free char *json = object_to_json(&daemonset_schema, daemon->set);
        cleanup_free char *origin = strdup(daemon->origin);
        DaemonHistory *history = &daemon->history;

        if (!json || !origin)
                return -ENOMEM;
        if (streq_ptr(history->set, json) && streq_ptr(history->origin, origin))
                return 0;
        free(history->set);
        history->set = TAKE_PTR(json);
        free(history->origin);
        history->origin = TAKE_PTR(origin);
        return 1;
}

/* The template as a revision; likewise. */
static int note_template(const Daemons *daemons, Daemon *daemon) {
        const DaemonSet *set = daemon->set;
        cleanup_free char *json = object_to_json(&pod_template_schema, &set->spec.template);
        char hash[REVISION_HASH_SIZE];
        int changed;

        if (!json || daemonset_revision_hash(&set->spec.template, hash) < 0)
                return -ENOMEM;
        /* The one that is replaced serves, however short a time it had to show that it lasts. */
        if (daemon->plan.is_available && !streq(daemon->history.file_hash, hash))
                (void) history_note_good(&daemon->history);
        changed = history_note_file(
                &daemon->history, hash, json,
                string_map_get(&set->metadata.annotations, "kubernetes.io/change-cause"),
                daemons->now);
        if (changed < 0)
                return changed;
        return history_trim(&daemon->history, set->spec.revision_history_limit.value) || changed;
}

int daemon_note_set(const Daemons *daemons, Daemon *daemon) {
        int r = note_names(daemon), is_news = 0;

        if (r >= 0)
                r = is_news = note_wish(daemon);
        if (r >= 0)
                r = note_template(daemons, daemon);
        if (r < 0)
                return r;
        if (r > 0 || is_news)
                daemon_store_or_say(daemons, daemon);
        return 0;
}
