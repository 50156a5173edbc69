/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/client-watch.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <inttypes.h>

int client_watch_start(ClientWatch *watch) {
        watch->selected = json_object();
        watch->present = json_object();
        watch->namespaces = json_object();
        watch->latest = watch->since;
        return watch->selected && watch->present && watch->namespaces ? 0 : -ENOMEM;
}

void client_watch_done(ClientWatch *watch) {
        list_query_done(&watch->query);
        free(watch->namespace);
        free(watch->name);
        free(watch->node_created);
        json_decref(watch->selected);
        json_decref(watch->present);
        json_decref(watch->namespaces);
        *watch = (ClientWatch){ 0 };
}

/* ---- events ---- */

static void write_watch_event(const char *type, json_t *object_consume, FILE *out) {
        cleanup_json json_t *event =
                object_consume ? json_pack("{s:s, s:o}", "type", type, "object", object_consume)
                               : NULL;

        if (!event)
                return;
        (void) json_dumpf(event, out, JSON_COMPACT);
        fputc('\n', out);
}

static json_t *format_event_table(ClientWatch *watch, json_t *object, uint64_t now_usec) {
        const TableKind *kind = watch->resource->table;
        const char *version = watch->form.table_version;
        cleanup_json json_t *table = table_new(kind, version, !watch->has_sent_columns);

        if (!table ||
            table_add_row(table, kind, version, object, watch->form.included, now_usec) < 0)
                return NULL;
        watch->has_sent_columns = true;
        (void) json_object_set_new(table, "metadata",
                                   json_pack("{s:O*}", "resourceVersion",
                                             json_at(object, "metadata", "resourceVersion")));
        return json_incref(table);
}

static void report_object(ClientWatch *watch, const char *type, json_t *object, uint64_t now_usec,
                          FILE *out) {
        write_watch_event(type,
                          watch->form.table_version ? format_event_table(watch, object, now_usec)
                                                    : json_incref(object),
                          out);
}

/* Only objects that this watch has processed count, because other watches may be ahead. */
static void report_bookmark(ClientWatch *watch, bool is_end_of_list, FILE *out) {
        uint64_t latest =
                watch->latest > 0 ? watch->latest : object_versions_latest(watch->versions);
        cleanup_json json_t *metadata =
                json_pack("{s:o}", "resourceVersion", json_sprintf("%" PRIu64, latest));
        char version[API_VERSION_SIZE];

        if (is_end_of_list)
                (void) json_object_set_new(metadata, "annotations",
                                           json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
        if (watch->form.table_version)
                write_watch_event("BOOKMARK",
                                  json_pack("{s:s, s:s+, s:O, s:[], s:[]}", "kind", "Table",
                                            "apiVersion", "meta.k8s.io/", watch->form.table_version,
                                            "metadata", metadata, "columnDefinitions", "rows"),
                                  out);
        else
                write_watch_event("BOOKMARK",
                                  json_pack("{s:s, s:s, s:O}", "kind", watch->resource->kind,
                                            "apiVersion",
                                            served_api_version(watch->resource, version),
                                            "metadata", metadata),
                                  out);
}

/* ---- the objects of the client ---- */

static uint64_t selected_version(const ClientWatch *watch, const char *key) {
        return (uint64_t) json_integer_value(json_object_get(watch->selected, key));
}

static int select_object(ClientWatch *watch, const char *key, uint64_t version) {
        if (json_object_size(watch->selected) >= WATCHED_OBJECTS_MAX)
                return -ENOBUFS;
        return json_object_set_new(watch->selected, key, json_integer((json_int_t) version)) < 0
                       ? -ENOMEM
                       : 0;
}

static int take_object(ClientWatch *watch, const char *key, json_t *object, uint64_t now_usec,
                       FILE *out) {
        bool matches = list_query_matches(&watch->query, object), had_it;
        uint64_t created, before = selected_version(watch, key);
        uint64_t version = object_versions_observe(watch->versions, object, &created);

        if (version == 0)
                return -ENOMEM;
        watch->latest = MAX(watch->latest, version);
        if (version == before)
                return 0;
        /* For changes before the start of this watch, it is not known whether the object was
         * selected. */
        had_it = before > 0 || (watch->present && created <= watch->since);
        if (watch->present && version <= watch->since)
                return matches ? select_object(watch, key, version) : 0;
        if (matches) {
                report_object(watch, had_it ? "MODIFIED" : "ADDED", object, now_usec, out);
                return select_object(watch, key, version);
        }
        if (had_it)
                report_object(watch, "DELETED", object, now_usec, out);
        (void) json_object_del(watch->selected, key);
        return 0;
}

static int take_deleted_object(ClientWatch *watch, const char *key, json_t *object,
                               uint64_t now_usec, FILE *out) {
        bool had_it = selected_version(watch, key) > 0;
        uint64_t version = object_versions_observe_deleted(watch->versions, object);

        if (version == 0)
                return -ENOMEM;
        watch->latest = MAX(watch->latest, version);
        if (had_it)
                report_object(watch, "DELETED", object, now_usec, out);
        (void) json_object_del(watch->selected, key);
        return 0;
}

/* Objects that disappeared between the client's list and this watch. Only the name and the
 * namespace of their fields are known. */
static void report_gone_objects(ClientWatch *watch, uint64_t now_usec, FILE *out) {
        cleanup_json json_t *gone = object_versions_list_deleted(watch->versions, watch->since);
        size_t i;
        json_t *object;

        json_array_foreach(gone, i, object)
                if (list_query_may_match(&watch->query, object))
                        report_object(watch, "DELETED", object, now_usec, out);
}

static void finish_first_list(ClientWatch *watch, uint64_t now_usec, FILE *out) {
        if (!watch->present)
                return;
        object_versions_keep_only(watch->versions, watch->present);
        json_decref(TAKE_PTR(watch->present));
        if (watch->since > 0)
                report_gone_objects(watch, now_usec, out);
        if (watch->has_end_of_list)
                report_bookmark(watch, true, out);
}

/* ---- the agent ---- */

static int take_served_object(ClientWatch *watch, const char *type, json_t *object,
                              uint64_t now_usec, FILE *out) {
        cleanup_free char *key = NULL;

        complete_served_object(watch->resource, object);
        set_creation_time(object, watch->node_created);
        key = object_key(object);
        if (!key)
                return -ENOMEM;
        if (streq(type, "DELETED")) {
                (void) json_object_del(watch->present, key);
                return take_deleted_object(watch, key, object, now_usec, out);
        }
        if (watch->present)
                (void) json_object_set_new(watch->present, key, json_true());
        return take_object(watch, key, object, now_usec, out);
}

static int take_namespace(ClientWatch *watch, const char *type, const char *name, uint64_t now_usec,
                          FILE *out) {
        cleanup_json json_t *namespace = make_namespace_object(name);

        return namespace ? take_served_object(watch, type, namespace, now_usec, out) : -ENOMEM;
}

static bool is_permanent_namespace(const char *name) {
        return text_is_one_of(name, permanent_namespaces);
}

/* A namespace exists while it contains pods. */
static int take_pod_of_namespace(ClientWatch *watch, const char *type, const json_t *pod,
                                 uint64_t now_usec, FILE *out) {
        const char *name = strna(json_text(pod, "metadata", "namespace"));
        json_t *pods = json_object_get(watch->namespaces, name);
        cleanup_free char *key = object_key(pod);

        if (!key)
                return -ENOMEM;
        if (is_permanent_namespace(name))
                return 0;
        if (streq(type, "DELETED")) {
                if (json_object_del(pods, key) < 0 || json_object_size(pods) > 0)
                        return 0;
                (void) json_object_del(watch->namespaces, name);
                return take_namespace(watch, type, name, now_usec, out);
        }
        if (pods)
                return json_object_set_new(pods, key, json_true());
        if (json_object_set_new(watch->namespaces, name, json_pack("{s:b}", key, 1)) < 0)
                return -ENOMEM;
        return take_namespace(watch, "ADDED", name, now_usec, out);
}

static int take_permanent_namespaces(ClientWatch *watch, uint64_t now_usec, FILE *out) {
        int r = 0;

        for (size_t i = 0; permanent_namespaces[i] && r >= 0; i++)
                r = take_namespace(watch, "ADDED", permanent_namespaces[i], now_usec, out);
        return r;
}

/* The agent's pods also determine the namespaces. */
static bool is_watch_of_namespaces(const ClientWatch *watch) {
        return streq(watch->resource->kind, "Namespace");
}

static int take_agent_object(ClientWatch *watch, const char *type, json_t *object,
                             uint64_t now_usec, FILE *out) {
        return is_watch_of_namespaces(watch)
                       ? take_pod_of_namespace(watch, type, object, now_usec, out)
                       : take_served_object(watch, type, object, now_usec, out);
}

static int take_system_classes(ClientWatch *watch, uint64_t now_usec, FILE *out) {
        int r = 0;

        for (size_t i = 0; i < SYSTEM_CLASSES && r >= 0; i++) {
                cleanup_json json_t *class = make_system_class_object(&system_classes[i]);

                r = class ? take_served_object(watch, "ADDED", class, now_usec, out) : -ENOMEM;
        }
        return r;
}

/* The agent has sent all its objects; the objects that always exist follow. */
static int take_agent_bookmark(ClientWatch *watch, uint64_t now_usec, FILE *out) {
        int r = 0;

        if (is_watch_of_namespaces(watch))
                r = take_permanent_namespaces(watch, now_usec, out);
        else if (streq(watch->resource->kind, "PriorityClass"))
                r = take_system_classes(watch, now_usec, out);
        if (r < 0)
                return r;
        finish_first_list(watch, now_usec, out);
        return 0;
}

int client_watch_take_line(ClientWatch *watch, const char *line, size_t length, uint64_t now_usec,
                           FILE *out) {
        cleanup_json json_t *event = json_loadb(line, length, 0, NULL);
        const char *type = json_text(event, "type");
        json_t *object = json_object_get(event, "object");

        if (!type)
                return -EBADMSG;
        if (streq(type, "BOOKMARK"))
                return take_agent_bookmark(watch, now_usec, out);
        if (!json_is_object(json_object_get(object, "metadata")))
                return -EBADMSG;
        return take_agent_object(watch, type, object, now_usec, out);
}

/* Objects that the client has but the list does not contain; 'latest' belongs to the previous
 * list. */
static void report_missing_objects(ClientWatch *watch, const json_t *present, uint64_t latest,
                                   uint64_t now_usec, FILE *out) {
        cleanup_json json_t *gone = NULL;
        size_t i;
        json_t *object;

        object_versions_keep_only(watch->versions, present);
        gone = object_versions_list_deleted(watch->versions, latest);
        json_array_foreach(gone, i, object) {
                cleanup_free char *key = object_key(object);

                if (!key || selected_version(watch, key) == 0)
                        continue;
                report_object(watch, "DELETED", object, now_usec, out);
                (void) json_object_del(watch->selected, key);
        }
        watch->latest = object_versions_latest(watch->versions);
}

int client_watch_take_list(ClientWatch *watch, const json_t *objects, uint64_t now_usec,
                           FILE *out) {
        cleanup_json json_t *present = json_object();
        uint64_t latest = watch->latest;
        size_t i;
        json_t *object;
        int r = present ? 0 : -ENOMEM;

        json_array_foreach(objects, i, object) {
                cleanup_free char *key = object_key(object);

                r = key ? json_object_set_new(present, key, json_true()) : -ENOMEM;
                if (r >= 0)
                        r = take_served_object(watch, "ADDED", object, now_usec, out);
                if (r < 0)
                        break;
        }
        if (r < 0)
                return r;
        if (watch->present)
                finish_first_list(watch, now_usec, out);
        else
                report_missing_objects(watch, present, latest, now_usec, out);
        return 0;
}

void client_watch_finish(ClientWatch *watch, FILE *out) {
        if (watch->has_bookmarks && !watch->present)
                report_bookmark(watch, false, out);
}
