/* SPDX-License-Identifier: Apache-2.0 */

/* Histories on the disk: one sealed file for each set, so that what was undone stays so, and who
 * asks for the revision before gets it, whatever happened to the agent. */

#include "agent/daemonset/controller-private.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/names.h"
#include "agent/model/schema.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
        HISTORY_MAX_BYTES = 16 * 1024 * 1024
};

static int open_daemonsets_directory(const DaemonSetController *controller) {
        cleanup_free char *path = path_join(controller->config.state_dir, "daemonsets");

        return path ? open_directory_at(AT_FDCWD, path, 0700) : -ENOMEM;
}

int daemonset_state_store(const DaemonSetController *controller, const DaemonSetState *state,
                          Error *reterr) {
        cleanup_free char *text = daemonset_history_format(&state->history);
        cleanup_close int fd = -EBADF;
        int r;

        if (!text)
                return -ENOMEM;
        fd = open_daemonsets_directory(controller);
        r = fd < 0 ? fd : checksummed_write_at(fd, state->uid, text, 0600);
        if (r < 0)
                return error_setf(reterr, -r, "cannot write the history of daemonset %s/%s: %s",
                                  state->history.namespace, state->history.name, strerror(-r));
        return 0;
}

void daemonset_state_store_or_log(const DaemonSetController *controller,
                                  const DaemonSetState *state) {
        cleanup_error Error error = ERROR_NULL;
        int r = daemonset_state_store(controller, state, &error);

        if (r < 0)
                log_error("%s", error_message(&error, r));
}

void daemonset_state_remove_file(const DaemonSetController *controller,
                                 const DaemonSetState *state) {
        cleanup_close int fd = open_daemonsets_directory(controller);

        if (fd >= 0 && unlinkat(fd, state->uid, 0) < 0 && errno != ENOENT)
                (void) log_error_errno(-errno, "Cannot remove the history of daemonset '%s'",
                                       strna(state->history.name));
}

/* What an earlier agent was asked for last. NULL where there is none that we understand: then its
 * pods go on as they are. */
static DaemonSet *parse_stored_daemonset(const DaemonSetHistory *history, const char *uid) {
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
static void restore_daemonset_history(const DaemonSetController *controller, DaemonSetState *state,
                                      const DaemonSetHistory *history) {
        state->history = *history;
        state->history.rollout_since = MIN(history->rollout_since, controller->started_at);
        state->set = parse_stored_daemonset(history, state->uid);
}

static int load_daemonset_history(DaemonSetController *controller, int fd, const char *uid) {
        cleanup_free char *text = NULL;
        DaemonSetHistory history = { 0 };
        DaemonSetState *state;
        int r = checksummed_read_at(fd, uid, HISTORY_MAX_BYTES, &text);

        if (r >= 0)
                r = daemonset_history_parse(text, &history);
        if (r == -EBADMSG) {
                log_error("%s/daemonsets/%s is damaged, setting it aside",
                          controller->config.state_dir, uid);
                checksummed_set_aside_at(fd, uid);
                return 0;
        }
        if (r < 0)
                return r;
        state = daemonset_controller_add(controller, uid);
        if (!state) {
                daemonset_history_done(&history);
                return -ENOMEM;
        }
        restore_daemonset_history(controller, state, &history);
        return 0;
}

/* Their sources may not be readable now. */
static int report_restored_daemonsets(const DaemonSetController *controller,
                                      restored_daemonset_t each, void *userdata) {
        for (const DaemonSetState *state = controller->sets; state; state = state->next) {
                cleanup_with(pod_source_done) PodSource source = { 0 };
                int r;

                if (!state->set)
                        continue;
                r = pod_source_parse(state->history.origin, &source);
                if (r >= 0)
                        r = each(&source, state->set, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

int daemonset_controller_load(DaemonSetController *controller, restored_daemonset_t each,
                              void *userdata, Error *reterr) {
        cleanup_close int fd = open_daemonsets_directory(controller);
        cleanup_closedir DIR *dir = NULL;
        struct dirent *entry;
        int r = 0;

        if (fd >= 0)
                dir = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (!dir)
                return error_setf(reterr, fd < 0 ? -fd : errno, "cannot read %s/daemonsets: %s",
                                  controller->config.state_dir, strerror(fd < 0 ? -fd : errno));
        while (r != -ENOMEM && (entry = readdir(dir))) {
                if (check_uid(entry->d_name, NULL) < 0)
                        continue;
                r = load_daemonset_history(controller, fd, entry->d_name);
                if (r < 0 && r != -ENOMEM)
                        (void) log_error_errno(r, "Cannot read %s/daemonsets/%s, ignoring it",
                                               controller->config.state_dir, entry->d_name);
        }
        return r == -ENOMEM ? r : report_restored_daemonsets(controller, each, userdata);
}

int daemonset_state_read_template(const DaemonSetState *state, const char *hash, Pod *ret) {
        const ControllerRevision *revision = daemonset_history_find(&state->history, hash);

        if (!revision)
                return -ENOENT;
        return manifest_parse_template(revision->template, strlen(revision->template), ret, NULL);
}

int daemonset_state_check_selector(const DaemonSetController *controller, DaemonSetState *state,
                                   bool has_pods) {
        char *json = object_to_json(&label_selector_schema, state->set->spec.selector);
        bool is_same;

        if (!json)
                return -ENOMEM;
        is_same = !state->history.selector || streq(state->history.selector, json);
        if (!is_same && has_pods) {
                free(json);
                return 0;
        }
        free(state->history.selector);
        state->history.selector = json;
        if (!is_same)
                daemonset_state_store_or_log(controller, state);
        return 1;
}

static int fill_history_names(DaemonSetState *state) {
        const ObjectMeta *metadata = &state->set->metadata;

        if (state->history.name)
                return 0;
        state->history.namespace = strdup(metadata->namespace);
        state->history.name = strdup(metadata->name);
        return state->history.namespace && state->history.name ? 0 : -ENOMEM;
}

/* As what the set was wished for, and where. 1 where that is news; 0; -ENOMEM. */
static int update_history_set(DaemonSetState *state) {
        cleanup_free char *json = object_to_json(&daemonset_schema, state->set);
        cleanup_free char *origin = strdup(pod_source_format(&state->source));
        DaemonSetHistory *history = &state->history;

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
static int update_history_template(const DaemonSetController *controller, DaemonSetState *state) {
        const DaemonSet *set = state->set;
        cleanup_free char *json = object_to_json(&pod_template_schema, &set->spec.template);
        char hash[REVISION_HASH_SIZE];
        int changed;

        if (!json || daemonset_revision_hash(&set->spec.template, hash) < 0)
                return -ENOMEM;
        /* The one that is replaced serves, however short a time it had to show that it lasts. */
        if (state->plan.is_available && !streq(state->history.template_hash, hash))
                (void) daemonset_history_mark_available(&state->history);
        changed = daemonset_history_set_template(
                &state->history, hash, json,
                string_map_get(&set->metadata.annotations, "kubernetes.io/change-cause"),
                controller->now);
        if (changed < 0)
                return changed;
        return daemonset_history_truncate(&state->history,
                                          set->spec.revision_history_limit.value) ||
               changed;
}

int daemonset_state_update_history(const DaemonSetController *controller, DaemonSetState *state) {
        int r = fill_history_names(state), has_changed = 0;

        if (r >= 0)
                r = has_changed = update_history_set(state);
        if (r >= 0)
                r = update_history_template(controller, state);
        if (r < 0)
                return r;
        if (r > 0 || has_changed)
                daemonset_state_store_or_log(controller, state);
        return 0;
}
