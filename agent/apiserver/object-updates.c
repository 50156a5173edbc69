/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the keys of changed API objects and compares them with the references of a pod. */

#include "agent/apiserver/object-updates.h"

#include "agent/model/references.h"
#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/strv.h"
#include "common/text.h"

struct ObjectUpdates {
        sd_event_source *source; /* deferred to the end of the turn */
        char **keys;
        bool is_everything; /* any object may have changed */
        void (*on_due)(void *userdata);
        void *userdata;
};

static void clear_object_updates(ObjectUpdates *updates) {
        updates->keys = strv_free(updates->keys);
        updates->is_everything = false;
}

static int on_object_updates_due(sd_event_source *source, void *userdata) {
        ObjectUpdates *updates = userdata;

        updates->on_due(updates->userdata);
        clear_object_updates(updates);
        return 0;
}

int object_updates_new(sd_event *event, void (*on_due)(void *userdata), void *userdata,
                       ObjectUpdates **ret) {
        ObjectUpdates *updates = calloc(1, sizeof(*updates));
        int r;

        if (!updates)
                return -ENOMEM;
        updates->on_due = on_due;
        updates->userdata = userdata;
        r = event_add_disabled_defer(event, &updates->source, SD_EVENT_PRIORITY_NORMAL + 5,
                                     on_object_updates_due, updates);
        if (r < 0) {
                object_updates_free(updates);
                return r;
        }
        *ret = updates;
        return 0;
}

ObjectUpdates *object_updates_free(ObjectUpdates *updates) {
        if (!updates)
                return NULL;
        sd_event_source_disable_unref(updates->source);
        clear_object_updates(updates);
        free(updates);
        return NULL;
}

void object_updates_schedule(ObjectUpdates *updates, const char *which) {
        if (!which || strv_append(&updates->keys, which) < 0)
                updates->is_everything = true;
        (void) sd_event_source_set_enabled(updates->source, SD_EVENT_ONESHOT);
}

int object_key_format(const ObjectKey *key, char **ret) {
        *ret = text_format("%s_%s_%s", object_kind_words[key->kind], key->namespace, key->name);
        return *ret ? 0 : -ENOMEM;
}

/* Negative if the object has changed, which ends the search. Pods of all sources are checked,
 * because the object may be shared with them. */
static int match_updated_reference(const ObjectKey *key, void *userdata) {
        const ObjectUpdates *updates = userdata;
        cleanup_free char *text = NULL;

        if (object_key_format(key, &text) < 0)
                return -ENOMEM;
        return strv_contains(updates->keys, text) ? -EEXIST : 0;
}

bool object_updates_concern(const ObjectUpdates *updates, const Pod *pod) {
        return updates->is_everything || strv_contains(updates->keys, pod->metadata.uid) ||
               pod_foreach_reference(pod, match_updated_reference, (void *) (uintptr_t) updates) <
                       0;
}
