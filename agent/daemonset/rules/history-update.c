/* SPDX-License-Identifier: Apache-2.0 */

/* Updates of a revision history; see the header. Its text form is in history.c. */

#include "agent/daemonset/rules/history-update.h"

#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>

int daemonset_history_update_selector(DaemonSetHistory *history, const DaemonSet *set,
                                      bool has_pods) {
        cleanup_free char *json = object_to_json(&label_selector_schema, set->spec.selector);
        bool is_same;

        if (!json)
                return -ENOMEM;
        is_same = !history->selector || streq(history->selector, json);
        if (!is_same && has_pods)
                return SELECTOR_MISMATCH;
        free(history->selector);
        history->selector = TAKE_PTR(json);
        return is_same ? SELECTOR_SAME : SELECTOR_REPLACED;
}

static int fill_history_names(DaemonSetHistory *history, const DaemonSet *set) {
        if (history->name)
                return 0;
        history->namespace = strdup(set->metadata.namespace);
        history->name = strdup(set->metadata.name);
        return history->namespace && history->name ? 0 : -ENOMEM;
}

static int update_history_json(DaemonSetHistory *history, const DaemonSet *set,
                               const char *source) {
        cleanup_free char *json = object_to_json(&daemonset_schema, set);
        cleanup_free char *copy = strdup(source);

        if (!json || !copy)
                return -ENOMEM;
        if (streq_ptr(history->set, json) && streq_ptr(history->source, copy))
                return 0;
        free(history->set);
        history->set = TAKE_PTR(json);
        free(history->source);
        history->source = TAKE_PTR(copy);
        return 1;
}

static int update_history_template(DaemonSetHistory *history, const DaemonSet *set,
                                   bool is_available, uint64_t now) {
        cleanup_free char *json = object_to_json(&pod_template_schema, &set->spec.template);
        const char *cause =
                string_map_get(&set->metadata.annotations, "kubernetes.io/change-cause");
        char hash[REVISION_HASH_SIZE];
        int changed;

        if (!json || daemonset_revision_hash(&set->spec.template, hash) < 0)
                return -ENOMEM;
        /* An available revision counts as good when it is replaced, even if it ran only for a short
         * time. */
        if (is_available && !streq(history->template_hash, hash))
                (void) daemonset_history_mark_available(history);
        changed = daemonset_history_set_template(history, hash, json, cause, now);
        if (changed < 0)
                return changed;
        return daemonset_history_truncate(history, set->spec.revision_history_limit.value) ||
               changed;
}

int daemonset_history_update_set(DaemonSetHistory *history, const DaemonSet *set,
                                 const char *source, bool is_available, uint64_t now) {
        int r, has_changed;

        r = fill_history_names(history, set);
        if (r < 0)
                return r;
        has_changed = update_history_json(history, set, source);
        if (has_changed < 0)
                return has_changed;
        r = update_history_template(history, set, is_available, now);
        return r < 0 ? r : r > 0 || has_changed > 0;
}
