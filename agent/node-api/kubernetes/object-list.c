/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/object-list.h"

#include "agent/model/hidden-value.h"
#include "agent/node-api/kubernetes/metrics-objects.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/json-text.h"
#include "common/text.h"

#include <inttypes.h>

enum {
        SECRET_BYTES_MAX = 1024 * 1024, /* the API's limit */
};

void list_query_done(ListQuery *query) {
        label_terms_done(&query->labels);
        field_terms_done(&query->fields);
        *query = (ListQuery){ 0 };
}

/* ---- the form ---- */

/* A media range may have its parameters in any order. */
static bool has_media_parameter(const char *media, size_t length, const char *parameter) {
        size_t n = strlen(parameter);

        for (size_t i = 1; i + n <= length; i++)
                if (strchr("; ", media[i - 1]) && memcmp(media + i, parameter, n) == 0 &&
                    (i + n == length || strchr("; ", media[i + n])))
                        return true;
        return false;
}

bool accepts_form(const char *accept, const char *as, const char *version) {
        while (accept && *accept) {
                size_t length = strcspn(accept, ",");

                if (has_media_parameter(accept, length, as) &&
                    has_media_parameter(accept, length, version))
                        return true;
                accept += length + (accept[length] == ',');
        }
        return false;
}

ObjectForm object_form_negotiate(const char *accept, const char *include_object) {
        ObjectForm form = { 0 };

        if (accepts_form(accept, "as=Table", "v=v1"))
                form.table_version = "v1";
        else if (accepts_form(accept, "as=Table", "v=v1beta1"))
                form.table_version = "v1beta1";
        if (streq_ptr(include_object, "Object"))
                form.included = TABLE_OBJECT_WHOLE;
        else if (streq_ptr(include_object, "None"))
                form.included = TABLE_OBJECT_NONE;
        return form;
}

/* ---- the agent's objects ---- */

static int compare_texts(const char *a, const char *b) {
        return strcmp(strna(a), strna(b));
}

static int compare_object_places(const json_t *a, const json_t *b) {
        int r = compare_texts(json_text(a, "metadata", "namespace"),
                              json_text(b, "metadata", "namespace"));

        return r != 0 ? r
                      : compare_texts(json_text(a, "metadata", "name"),
                                      json_text(b, "metadata", "name"));
}

static int compare_sorted_objects(const void *a, const void *b) {
        return compare_object_places(*(json_t *const *) a, *(json_t *const *) b);
}

static int sort_objects(const json_t *objects, json_t **ret) {
        size_t n = json_array_size(objects);
        cleanup_free json_t **pointers = calloc(n + 1, sizeof(json_t *));
        json_t *sorted = json_array();

        if (!pointers || !sorted) {
                json_decref(sorted);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                pointers[i] = json_array_get(objects, i);
        qsort(pointers, n, sizeof(json_t *), compare_sorted_objects);
        for (size_t i = 0; i < n; i++)
                (void) json_array_append(sorted, pointers[i]);
        *ret = sorted;
        return 0;
}

const char *const permanent_namespaces[] = { "default", "kube-node-lease", "kube-system", NULL };

json_t *make_namespace_object(const char *name) {
        return json_pack("{s:{s:s, s:{s:s}}, s:{s:[s]}, s:{s:s}}", "metadata", "name", name,
                         "labels", "kubernetes.io/metadata.name", name, "spec", "finalizers",
                         "kubernetes", "status", "phase", "Active");
}

static void append_namespace(json_t *namespaces, const char *name) {
        size_t i;
        json_t *namespace;

        json_array_foreach(namespaces, i, namespace)
                if (streq_ptr(json_text(namespace, "metadata", "name"), name))
                        return;
        (void) json_array_append_new(namespaces, make_namespace_object(name));
}

/* There are no Namespace objects: a namespace exists if pods are in it, or always. */
static json_t *namespaces_of(const json_t *pods) {
        json_t *namespaces = json_array();
        size_t i;
        json_t *pod;

        for (size_t j = 0; permanent_namespaces[j]; j++)
                append_namespace(namespaces, permanent_namespaces[j]);
        json_array_foreach(pods, i, pod)
                append_namespace(namespaces, strna(json_text(pod, "metadata", "namespace")));
        return namespaces;
}

/* The classes that exist without a manifest. */
static void append_system_classes(json_t *classes) {
        for (size_t i = 0; i < SYSTEM_CLASSES; i++)
                (void) json_array_append_new(classes, make_system_class_object(&system_classes[i]));
}

/* The node does not renew a lease; its response itself shows that it is alive. */
static json_t *lease_of_node(const json_t *node) {
        const char *name = strna(json_text(node, "metadata", "name"));
        char now[RFC3339_SIZE];
        size_t length = sizeof("2026-01-02T03:04:05.123456") - 1;

        (void) format_rfc3339_nano(now, now_realtime_usec());
        now[length] = 'Z'; /* a MicroTime has six digits */
        now[length + 1] = '\0';
        return json_pack("[{s:{s:s, s:s, s:s*}, s:{s:s, s:i, s:s}}]", "metadata", "name", name,
                         "namespace", "kube-node-lease", "creationTimestamp",
                         json_text(node, "metadata", "creationTimestamp"), "spec", "holderIdentity",
                         name, "leaseDurationSeconds", 40, "renewTime", now);
}

static json_t *objects_of_reply(const ServedResource *resource, json_t *reply) {
        json_t *items = json_object_get(reply, "items");

        if (streq(resource->group, METRICS_GROUP))
                return resource->is_namespaced ? pod_metrics_of_summary(reply)
                                               : node_metrics_of_summary(reply);
        if (streq(resource->plural, "namespaces"))
                return namespaces_of(items);
        if (streq(resource->kind, "Lease"))
                return lease_of_node(reply);
        if (streq(resource->kind, "PriorityClass"))
                append_system_classes(items);
        return items ? json_incref(items) : json_pack("[O]", reply);
}

json_t *make_system_class_object(const SystemClass *class) {
        return json_pack("{s:{s:s}, s:I, s:s, s:s}", "metadata", "name", class->name, "value",
                         (json_int_t) class->value, "description", class->description,
                         "preemptionPolicy", "PreemptLowerPriority");
}

/* Clients decode the values of Secrets and print their lengths, so each value is replaced by the
 * same number of asterisks. */
static void encode_hidden_values(json_t *values) {
        const char *key;
        json_t *value;
        void *next;

        json_object_foreach_safe(values, next, key, value) {
                size_t length;
                cleanup_free char *asterisks = NULL, *text = NULL;

                if (!hidden_value_parse(strna(json_string_value(value)), &length) ||
                    length > SECRET_BYTES_MAX)
                        continue;
                asterisks = malloc(length + 1);
                text = malloc((length + 2) / 3 * 4 + 1);
                if (!asterisks || !text)
                        continue;
                memset(asterisks, '*', length);
                base64_encode(asterisks, length, text);
                (void) json_object_set_new(values, key, json_string(text));
        }
}

/* Objects that have no UID in the agent get one that is derived from their name. */
static void set_uid(const ServedResource *resource, json_t *object) {
        json_t *metadata = json_object_get(object, "metadata");
        cleanup_free char *name = NULL;
        char hex[SHA256_HEX_SIZE];

        if (!streq(resource->kind, "Pod") && !json_object_get(metadata, "uid"))
                name = text_format("%s/%s/%s", resource->kind,
                                   strna(json_text(metadata, "namespace")),
                                   strna(json_text(metadata, "name")));
        if (!name)
                return;
        sha256_hex(name, strlen(name), hex);
        (void) json_object_set_new(metadata, "uid",
                                   json_sprintf("%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                                                hex + 16, hex + 20));
}

void set_creation_time(json_t *object, const char *node_created) {
        json_t *metadata = json_object_get(object, "metadata");

        if (node_created && !json_object_get(metadata, "creationTimestamp"))
                (void) json_object_set_new(metadata, "creationTimestamp",
                                           json_string(node_created));
}

void set_creation_times(json_t *objects, const char *node_created) {
        size_t i;
        json_t *object;

        json_array_foreach(objects, i, object)
                set_creation_time(object, node_created);
}

void complete_served_object(const ServedResource *resource, json_t *object) {
        char version[API_VERSION_SIZE];
        json_t *spec = json_object_get(object, "spec");

        (void) json_object_set_new(object, "kind", json_string(resource->kind));
        (void) json_object_set_new(object, "apiVersion",
                                   json_string(served_api_version(resource, version)));
        if (streq(resource->kind, "PriorityClass") && !json_object_get(object, "preemptionPolicy"))
                (void) json_object_set_new(object, "preemptionPolicy",
                                           json_string("PreemptLowerPriority"));
        /* Defaults from an API server, which kubectl describe and debug rely on. */
        if (streq(resource->kind, "Pod") && spec && !json_object_get(spec, "securityContext"))
                (void) json_object_set_new(spec, "securityContext", json_object());
        if (streq(resource->kind, "Secret"))
                encode_hidden_values(json_object_get(object, "data"));
        set_uid(resource, object);
}

int served_objects_parse(const ServedResource *resource, const char *body, json_t **ret) {
        cleanup_json json_t *reply = json_loads(body, 0, NULL), *objects = NULL;
        size_t i;
        json_t *object;

        if (!json_is_object(reply))
                return -EBADMSG;
        objects = objects_of_reply(resource, reply);
        if (!objects)
                return -ENOMEM;
        json_array_foreach(objects, i, object)
                complete_served_object(resource, object);
        return sort_objects(objects, ret);
}

/* ---- lists ---- */

bool list_query_matches(const ListQuery *query, const json_t *object) {
        const char *namespace = strna(json_text(object, "metadata", "namespace"));

        return (!query->namespace || streq(query->namespace, namespace)) &&
               (!query->name || streq_ptr(query->name, json_text(object, "metadata", "name"))) &&
               label_terms_match(&query->labels, json_at(object, "metadata", "labels")) &&
               field_terms_match(&query->fields, object);
}

bool list_query_may_match(const ListQuery *query, const json_t *object) {
        ListQuery known = *query;

        known.fields.n = 0;
        if (!list_query_matches(&known, object))
                return false;
        for (size_t i = 0; i < query->fields.n; i++)
                if (strncmp(query->fields.items[i].path, "metadata.", 9) == 0 &&
                    !field_terms_match(&(FieldTerms){ &query->fields.items[i], 1 }, object))
                        return false;
        return true;
}

/* True if the object comes after the end of the previous part of the list. */
static bool is_after_continue(const ListQuery *query, const json_t *object) {
        const char *slash = query->after ? strchr(query->after, '/') : NULL;
        const char *namespace = strna(json_text(object, "metadata", "namespace"));
        size_t length;
        int r;

        if (!slash)
                return true;
        length = (size_t) (slash - query->after);
        r = strncmp(namespace, query->after, length);
        if (r == 0 && strlen(namespace) > length)
                r = 1;
        return r > 0 ||
               (r == 0 && compare_texts(json_text(object, "metadata", "name"), slash + 1) > 0);
}

/* The objects of this part, and a continue token if it is not the last. */
static json_t *take_list_part(const json_t *objects, const ListQuery *query, json_t *metadata) {
        json_t *part = json_array(), *object;
        const json_t *last = NULL;
        size_t i, n_more = 0;

        json_array_foreach(objects, i, object) {
                if (!list_query_matches(query, object) || !is_after_continue(query, object))
                        continue;
                if (query->limit > 0 && json_array_size(part) == query->limit) {
                        n_more++;
                        continue;
                }
                (void) json_array_append(part, object);
                last = object;
        }
        if (n_more == 0)
                return part;
        (void) json_object_set_new(metadata, "continue",
                                   json_sprintf("%s/%s",
                                                strna(json_text(last, "metadata", "namespace")),
                                                strna(json_text(last, "metadata", "name"))));
        (void) json_object_set_new(metadata, "remainingItemCount",
                                   json_integer((json_int_t) n_more));
        return part;
}

static json_t *format_table(const ServedResource *resource, const json_t *objects,
                            const ObjectForm *form, uint64_t now_usec) {
        cleanup_json json_t *table = table_new(resource->table, form->table_version, true);
        size_t i;
        json_t *object;

        json_array_foreach(objects, i, object)
                if (!table || table_add_row(table, resource->table, form->table_version, object,
                                            form->included, now_usec) < 0)
                        return NULL;
        return json_incref(table);
}

json_t *object_list_format(const ServedResource *resource, const json_t *objects,
                           const ListQuery *query, const ObjectForm *form, uint64_t list_version,
                           uint64_t now_usec) {
        cleanup_json json_t *metadata =
                json_pack("{s:o}", "resourceVersion", json_sprintf("%" PRIu64, list_version));
        cleanup_json json_t *part = take_list_part(objects, query, metadata);
        char version[API_VERSION_SIZE];
        json_t *table;

        if (!form->table_version)
                return json_pack("{s:s+, s:s, s:O, s:O}", "kind", resource->kind, "List",
                                 "apiVersion", served_api_version(resource, version), "metadata",
                                 metadata, "items", part);
        table = format_table(resource, part, form, now_usec);
        (void) json_object_set(table, "metadata", metadata);
        return table;
}

json_t *object_format(const ServedResource *resource, json_t *object, const ObjectForm *form,
                      uint64_t now_usec) {
        cleanup_json json_t *one = NULL;

        if (!form->table_version)
                return json_incref(object);
        one = json_pack("[O]", object);
        return one ? format_table(resource, one, form, now_usec) : NULL;
}
