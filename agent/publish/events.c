/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/publish/events.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <jansson.h>

/* A list in the order of the numbers. An event that happens again gets a new number and goes to the
 * end: so one number says all that a reader has seen, and a reader that is slow misses counts, but
 * never an event that is still here. */

typedef struct Kept Kept;

struct Kept {
        uint64_t number;
        uint64_t name;              /* makes the event's name unique, for as long as it is kept */
        const char *kind_of_object; /* static, as is: */
        const char *api_version;
        char *uid;
        char *namespace;
        char *object;     /* its name */
        char *field_path; /* "spec.containers{web}", or NULL */
        PodEventKind kind;
        char *reason;
        char *message;
        unsigned count;
        uint64_t first, last; /* realtime */
        Kept *earlier, *later;
};

struct Events {
        const char *node_name;
        Kept *oldest, *latest;
        size_t n;
        uint64_t last_number;
};

static const char *const kind_names[N_POD_EVENT_KINDS] = {
        [POD_EVENT_NORMAL] = "Normal",
        [POD_EVENT_WARNING] = "Warning",
};

Events *events_new(const char *node_name) {
        Events *events = calloc(1, sizeof(*events));

        if (events)
                events->node_name = node_name;
        return events;
}

static void kept_free(Kept *kept) {
        if (!kept)
                return;
        free(kept->uid);
        free(kept->namespace);
        free(kept->object);
        free(kept->field_path);
        free(kept->reason);
        free(kept->message);
        free(kept);
}

static void unlink_kept(Events *events, Kept *kept) {
        if (kept->earlier)
                kept->earlier->later = kept->later;
        else
                events->oldest = kept->later;
        if (kept->later)
                kept->later->earlier = kept->earlier;
        else
                events->latest = kept->earlier;
        kept->earlier = kept->later = NULL;
        events->n--;
}

/* At the end, with a new number. */
static void append(Events *events, Kept *kept) {
        kept->number = ++events->last_number;
        kept->earlier = events->latest;
        if (events->latest)
                events->latest->later = kept;
        else
                events->oldest = kept;
        events->latest = kept;
        events->n++;
}

Events *events_free(Events *events) {
        if (!events)
                return NULL;
        while (events->oldest) {
                Kept *kept = events->oldest;

                unlink_kept(events, kept);
                kept_free(kept);
        }
        free(events);
        return NULL;
}

static bool has_container(const Pod *pod, const char *name) {
        for (size_t i = 0; i < pod->spec.containers.n; i++)
                if (streq(pod->spec.containers.items[i].name, name))
                        return true;
        return false;
}

/* 0 with NULL for the pod as a whole, -ENOMEM. */
static int print_field_path(const PodEvent *event, char **ret) {
        const char *list;

        *ret = NULL;
        if (!event->container || !event->pod)
                return 0;
        list = has_container(event->pod, event->container) ? "containers" : "initContainers";
        if (asprintf(ret, "spec.%s{%s}", list, event->container) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* No more than the limit, no half of a character, and nothing that JSON cannot hold. */
static char *copy_message(const char *message) {
        size_t length = strlen(message), n = 0;
        char *copy = malloc(EVENT_MESSAGE_MAX + 1), *shorter;

        if (!copy)
                return NULL;
        for (size_t i = 0; i < length;) {
                size_t size = utf8_character_length(message + i, length - i);

                if (n + MAX(size, 1) > EVENT_MESSAGE_MAX)
                        break;
                memcpy(copy + n, size > 0 ? message + i : "?", MAX(size, 1));
                n += MAX(size, 1);
                i += MAX(size, 1);
        }
        copy[n] = '\0';
        shorter = realloc(copy, n + 1);
        return shorter ? shorter : copy;
}

/* As the kubelet has it, the UID of a node is its name. */
static ObjectMeta metadata_of_node(const Events *events) {
        return (ObjectMeta){ .name = (char *) (uintptr_t) events->node_name,
                             .namespace = (char *) (uintptr_t) "default",
                             .uid = (char *) (uintptr_t) events->node_name };
}

static Kept *kept_new(const Events *events, const PodEvent *event, uint64_t now) {
        const ObjectMeta node = metadata_of_node(events);
        const ObjectMeta *object = event->pod         ? &event->pod->metadata
                                   : event->daemonset ? &event->daemonset->metadata
                                                      : &node;
        Kept *kept = calloc(1, sizeof(*kept));

        if (!kept)
                return NULL;
        kept->kind_of_object = event->pod ? "Pod" : event->daemonset ? "DaemonSet" : "Node";
        kept->api_version = event->daemonset && !event->pod ? "apps/v1" : "v1";
        kept->uid = strdup(strna(object->uid));
        kept->namespace = strdup(strna(object->namespace));
        kept->object = strdup(strna(object->name));
        kept->kind = event->kind;
        kept->reason = strdup(event->reason);
        kept->message = copy_message(event->message);
        kept->first = now;
        if (print_field_path(event, &kept->field_path) < 0 || !kept->uid || !kept->namespace ||
            !kept->object || !kept->reason || !kept->message) {
                kept_free(kept);
                return NULL;
        }
        return kept;
}

static bool is_same(const Kept *a, const Kept *b) {
        return a->kind == b->kind && streq(a->uid, b->uid) && streq(a->reason, b->reason) &&
               streq_ptr(a->field_path, b->field_path) && streq(a->message, b->message);
}

static Kept *find_same(const Events *events, const Kept *like) {
        for (Kept *kept = events->latest; kept; kept = kept->earlier)
                if (is_same(kept, like))
                        return kept;
        return NULL;
}

static void drop(Events *events, Kept *kept) {
        unlink_kept(events, kept);
        kept_free(kept);
}

/* Makes room for one more of this pod. */
static void make_room(Events *events, const char *uid) {
        Kept *oldest_of_pod = NULL;
        size_t of_pod = 0;

        for (Kept *kept = events->latest; kept; kept = kept->earlier)
                if (streq(kept->uid, uid)) {
                        oldest_of_pod = kept;
                        of_pod++;
                }
        if (of_pod >= EVENTS_OF_POD_MAX)
                drop(events, oldest_of_pod);
        else if (events->n >= EVENTS_MAX)
                drop(events, events->oldest);
}

bool events_add(Events *events, const PodEvent *event, uint64_t now) {
        Kept *kept = kept_new(events, event, now), *same;

        if (!kept)
                return false;
        same = find_same(events, kept);
        if (same) {
                kept_free(kept);
                kept = same;
                unlink_kept(events, kept);
        } else {
                make_room(events, kept->uid);
                kept->name = events->last_number + 1;
        }
        kept->count++;
        kept->last = now;
        append(events, kept);
        return !same;
}

static json_t *time_of(uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        return json_string(format_rfc3339(buffer, realtime));
}

static json_t *metadata_of(const Kept *kept) {
        char name[512];

        (void) snprintf(name, sizeof(name), "%s.%016" PRIx64, kept->object,
                        kept->first + kept->name);
        return json_pack("{s:s, s:s, s:o}", "name", name, "namespace", kept->namespace,
                         "creationTimestamp", time_of(kept->first));
}

static json_t *object_of(const Kept *kept) {
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*}", "kind", kept->kind_of_object,
                         "namespace", kept->namespace, "name", kept->object, "uid", kept->uid,
                         "apiVersion", kept->api_version, "fieldPath", kept->field_path);
}

static char *print(const Events *events, const Kept *kept) {
        char *text;
        json_t *json = json_pack(
                "{s:s, s:s, s:o, s:o, s:s, s:s, s:{s:s, s:s}, s:o, s:o, s:I, s:s, s:n, s:s, s:s}",
                "kind", "Event", "apiVersion", "v1", "metadata", metadata_of(kept),
                "involvedObject", object_of(kept), "reason", kept->reason, "message", kept->message,
                "source", "component", "mainstay", "host", events->node_name, "firstTimestamp",
                time_of(kept->first), "lastTimestamp", time_of(kept->last), "count",
                (json_int_t) kept->count, "type", kind_names[kept->kind], "eventTime",
                "reportingComponent", "mainstay", "reportingInstance", events->node_name);

        text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        json_decref(json);
        return text;
}

int events_next(const Events *events, uint64_t after, uint64_t *ret_number, char **ret_json) {
        for (const Kept *kept = events->oldest; kept; kept = kept->later) {
                char *json;

                if (kept->number <= after)
                        continue;
                json = print(events, kept);
                if (!json)
                        return -ENOMEM;
                *ret_number = kept->number;
                *ret_json = json;
                return 1;
        }
        return 0;
}
