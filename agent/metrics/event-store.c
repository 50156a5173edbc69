/* SPDX-License-Identifier: Apache-2.0 */

/* The list of events, ordered by their numbers. An event that repeats gets a new number and moves
 * to the end. So one number is enough to record a reader's position; a slow reader misses counts,
 * but never an event that is still stored. */

#include "agent/metrics/event-store.h"

#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <jansson.h>

typedef struct StoredEvent StoredEvent;

struct StoredEvent {
        uint64_t number;
        uint64_t name;              /* makes the event's name unique while it is stored */
        const char *kind_of_object; /* static, as is 'api_version' */
        const char *api_version;
        /* The following strings point into 'strings'. */
        const char *uid;
        const char *namespace;
        const char *object;     /* its name */
        const char *field_path; /* "spec.containers{web}", or NULL */
        const char *reason;
        const char *message;
        PodEventKind kind;
        unsigned count;
        uint64_t first, last; /* realtime */
        StoredEvent *earlier, *later;
        char strings[]; /* one allocation for each event: a node stores many of them */
};

struct EventStore {
        const char *node_name;
        StoredEvent *oldest, *latest;
        size_t n;
        uint64_t last_number;
};

/* The reporting component of all events, by which tools select them. */
static const char event_component[] = "kubelet";

static const char *const event_type_names[N_POD_EVENT_KINDS] = {
        [POD_EVENT_NORMAL] = "Normal",
        [POD_EVENT_WARNING] = "Warning",
};

EventStore *event_store_new(const char *node_name) {
        EventStore *events = calloc(1, sizeof(*events));

        if (events)
                events->node_name = node_name;
        return events;
}

static void unlink_stored_event(EventStore *events, StoredEvent *stored) {
        if (stored->earlier)
                stored->earlier->later = stored->later;
        else
                events->oldest = stored->later;
        if (stored->later)
                stored->later->earlier = stored->earlier;
        else
                events->latest = stored->earlier;
        stored->earlier = stored->later = NULL;
        events->n--;
}

/* Moves an event to the end, with a new number. */
static void append_stored_event(EventStore *events, StoredEvent *stored) {
        stored->number = ++events->last_number;
        stored->earlier = events->latest;
        if (events->latest)
                events->latest->later = stored;
        else
                events->oldest = stored;
        events->latest = stored;
        events->n++;
}

EventStore *event_store_free(EventStore *events) {
        if (!events)
                return NULL;
        while (events->oldest) {
                StoredEvent *stored = events->oldest;

                unlink_stored_event(events, stored);
                free(stored);
        }
        free(events);
        return NULL;
}

/* The list in the spec that contains the container. */
static const char *find_container_list(const Pod *pod, const char *name) {
        const Container *container = pod_find_container(pod, name);

        switch (container ? container_role(&pod->spec, container) : ROLE_INIT) {
        case ROLE_MAIN:
                return "containers";
        case ROLE_EPHEMERAL:
                return "ephemeralContainers";
        case ROLE_INIT:
        case ROLE_SIDECAR:
                break;
        }
        return "initContainers";
}

/* NULL for the pod as a whole. 0 or -ENOMEM. */
static int format_event_field_path(const PodEvent *event, char **ret) {
        *ret = NULL;
        if (!event->container || !event->pod)
                return 0;
        *ret = text_format("spec.%s{%s}", find_container_list(event->pod, event->container),
                           event->container);
        if (!*ret)
                return -ENOMEM;
        return 0;
}

/* Truncated between characters at the limit; bytes that are not UTF-8 become '?'. */
static void copy_event_message(const char *message, char copy[static EVENT_MESSAGE_MAX + 1]) {
        size_t length = strlen(message), n = 0;

        for (size_t i = 0; i < length;) {
                size_t size = utf8_character_length(message + i, length - i);

                if (n + MAX(size, 1) > EVENT_MESSAGE_MAX)
                        break;
                memcpy(copy + n, size > 0 ? message + i : "?", MAX(size, 1));
                n += MAX(size, 1);
                i += MAX(size, 1);
        }
        copy[n] = '\0';
}

/* In events of the kubelet, the UID of a node is its name. */
static ObjectMeta node_object_metadata(const EventStore *events) {
        return (ObjectMeta){ .name = (char *) (uintptr_t) events->node_name,
                             .namespace = (char *) (uintptr_t) "default",
                             .uid = (char *) (uintptr_t) events->node_name };
}

/* Copies a string to '*end', and advances '*end' past it. */
static const char *store_string(char **end, const char *text) {
        size_t size = strlen(text) + 1;
        char *start = memcpy(*end, text, size);

        *end += size;
        return start;
}

static StoredEvent *stored_event_new(const EventStore *events, const PodEvent *event,
                                     uint64_t now) {
        const ObjectMeta node = node_object_metadata(events);
        const ObjectMeta *object = event->pod         ? &event->pod->metadata
                                   : event->daemonset ? &event->daemonset->metadata
                                   : event->claim     ? &event->claim->metadata
                                                      : &node;
        const char *uid = strna(object->uid), *namespace = strna(object->namespace),
                   *name = strna(object->name);
        cleanup_free char *field_path = NULL;
        char message[EVENT_MESSAGE_MAX + 1], *end;
        StoredEvent *stored;

        if (format_event_field_path(event, &field_path) < 0)
                return NULL;
        copy_event_message(event->message, message);
        stored = calloc(1, sizeof(*stored) + strlen(uid) + 1 + strlen(namespace) + 1 +
                                   strlen(name) + 1 + strlen(strna(field_path)) + 1 +
                                   strlen(event->reason) + 1 + strlen(message) + 1);
        if (!stored)
                return NULL;
        end = stored->strings;
        stored->kind_of_object = event->pod         ? "Pod"
                                 : event->daemonset ? "DaemonSet"
                                 : event->claim     ? "PersistentVolumeClaim"
                                                    : "Node";
        stored->api_version = event->daemonset && !event->pod ? "apps/v1" : "v1";
        stored->uid = store_string(&end, uid);
        stored->namespace = store_string(&end, namespace);
        stored->object = store_string(&end, name);
        stored->field_path = field_path ? store_string(&end, field_path) : NULL;
        stored->reason = store_string(&end, event->reason);
        stored->message = store_string(&end, message);
        stored->kind = event->kind;
        stored->first = now;
        return stored;
}

static bool is_same_event(const StoredEvent *a, const StoredEvent *b) {
        return a->kind == b->kind && streq(a->uid, b->uid) && streq(a->reason, b->reason) &&
               streq_ptr(a->field_path, b->field_path) && streq(a->message, b->message);
}

static StoredEvent *find_same_event(const EventStore *events, const StoredEvent *like) {
        for (StoredEvent *stored = events->latest; stored; stored = stored->earlier)
                if (is_same_event(stored, like))
                        return stored;
        return NULL;
}

static void drop_stored_event(EventStore *events, StoredEvent *stored) {
        unlink_stored_event(events, stored);
        free(stored);
}

/* Makes space for another event of this pod. */
static void make_space_for_event(EventStore *events, const char *uid) {
        StoredEvent *oldest_of_pod = NULL;
        size_t of_pod = 0;

        for (StoredEvent *stored = events->latest; stored; stored = stored->earlier)
                if (streq(stored->uid, uid)) {
                        oldest_of_pod = stored;
                        of_pod++;
                }
        if (of_pod >= STORED_EVENTS_OF_POD_MAX)
                drop_stored_event(events, oldest_of_pod);
        else if (events->n >= STORED_EVENTS_MAX)
                drop_stored_event(events, events->oldest);
}

bool event_store_add(EventStore *events, const PodEvent *event, uint64_t now) {
        StoredEvent *stored = stored_event_new(events, event, now), *same;

        if (!stored)
                return false;
        same = find_same_event(events, stored);
        if (same) {
                free(stored);
                stored = same;
                unlink_stored_event(events, stored);
        } else {
                make_space_for_event(events, stored->uid);
                stored->name = events->last_number + 1;
        }
        stored->count++;
        stored->last = now;
        append_stored_event(events, stored);
        return !same;
}

static json_t *event_time_to_json(uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        return json_string(format_rfc3339(buffer, realtime));
}

static json_t *event_metadata_to_json(const StoredEvent *stored) {
        char name[512];

        (void) snprintf(name, sizeof(name), "%s.%016" PRIx64, stored->object,
                        stored->first + stored->name);
        return json_pack("{s:s, s:s, s:o}", "name", name, "namespace", stored->namespace,
                         "creationTimestamp", event_time_to_json(stored->first));
}

static json_t *involved_object_to_json(const StoredEvent *stored) {
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*}", "kind", stored->kind_of_object,
                         "namespace", stored->namespace, "name", stored->object, "uid", stored->uid,
                         "apiVersion", stored->api_version, "fieldPath", stored->field_path);
}

static char *format_event_json(const EventStore *events, const StoredEvent *stored) {
        char *text;
        json_t *json = json_pack(
                "{s:s, s:s, s:o, s:o, s:s, s:s, s:{s:s, s:s}, s:o, s:o, s:I, s:s, s:n, s:s, s:s}",
                "kind", "Event", "apiVersion", "v1", "metadata", event_metadata_to_json(stored),
                "involvedObject", involved_object_to_json(stored), "reason", stored->reason,
                "message", stored->message, "source", "component", event_component, "host",
                events->node_name, "firstTimestamp", event_time_to_json(stored->first),
                "lastTimestamp", event_time_to_json(stored->last), "count",
                (json_int_t) stored->count, "type", event_type_names[stored->kind], "eventTime",
                "reportingComponent", event_component, "reportingInstance", events->node_name);

        text = json ? json_to_text(json, JSON_COMPACT) : NULL;
        json_decref(json);
        return text;
}

int event_store_next(const EventStore *events, uint64_t after, uint64_t *ret_number,
                     char **ret_json) {
        for (const StoredEvent *stored = events->oldest; stored; stored = stored->later) {
                char *json;

                if (stored->number <= after)
                        continue;
                json = format_event_json(events, stored);
                if (!json)
                        return -ENOMEM;
                *ret_number = stored->number;
                *ret_json = json;
                return 1;
        }
        return 0;
}
