/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server's pods refer to: each object is followed by name, for that is all that a node
 * may see, and kept on the disk, so that a pod begins without the server when it has begun once. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/model/references.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"

#include <stdio.h>

enum {
        OBJECT_FILE_MAX_BYTES = 4 * 1024 * 1024
};

struct ApiServerObject {
        ApiServerObject *next;
        ApiServerSync *api;
        char *key; /* "configmap_default_settings": its file, too */
        ObjectKind kind;
        DataObject *object; /* NULL: there is none, or it is not known yet */
        bool is_known;      /* whether there is one, now or when it was last heard of */
        bool was_listed;    /* in the list that is under way */
        unsigned generation;
        KubeReflector *reflector;
};

static const struct {
        const char *group; /* NULL: not followed */
        const char *plural;
} watched_kinds[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = { "/api/v1", "configmaps" },
        [OBJECT_SECRET] = { "/api/v1", "secrets" },
        [OBJECT_RUNTIME_CLASS] = { "/apis/node.k8s.io/v1", "runtimeclasses" },
};

/* ---- on the disk ---- */

static const char objects_directory[] = "objects";

static void cache_object(const ApiServerObject *object, const char *json) {
        apiserver_cache_write(object->api, objects_directory, object->key, json);
}

static void uncache_object(const ApiServerObject *object) {
        apiserver_cache_write(object->api, objects_directory, object->key, NULL);
}

/* ---- what the server says ---- */

static int parse_referenced_object(const ApiServerObject *object, const char *json, size_t length,
                                   DataObject **ret, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse_api(object->key, object_kind_names[object->kind], json, length,
                                   object->api->config.node_name, &objects, reterr);

        if (r < 0)
                return r;
        if (objects.data.n != 1 || objects.data.items[0]->kind != object->kind)
                return error_setf(reterr, EINVAL, "%s: is another kind of object", object->key);
        *ret = objects.data.items[0];
        objects.data.n = 0;
        return 0;
}

static void set_referenced_object(ApiServerObject *object, DataObject *data) {
        data_object_free(object->object);
        object->object = data;
        object->is_known = true;
        apiserver_schedule_object_update(object->api, object->key);
}

static void load_cached_object(ApiServerObject *object) {
        cleanup_free char *json = NULL;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r = apiserver_cache_read(object->api, objects_directory, object->key,
                                     OBJECT_FILE_MAX_BYTES, &json);

        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = parse_referenced_object(object, json, strlen(json), &data, &error);
        if (json)
                explicit_bzero(json, strlen(json));
        if (r < 0) {
                log_error("What was kept of %s cannot be used: %s", object->key,
                          error_message(&error, r));
                apiserver_cache_set_aside(object->api, objects_directory, object->key);
                return;
        }
        object->object = data;
        object->is_known = true;
}

static void on_referenced_object(KubeWatchEvent change, const char *json, size_t length,
                                 void *userdata) {
        ApiServerObject *object = userdata;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r;

        if (change == KUBE_DELETED) {
                uncache_object(object);
                set_referenced_object(object, NULL);
                return;
        }
        object->was_listed = true;
        r = parse_referenced_object(object, json, length, &data, &error);
        if (r < 0) { /* it stays as it was */
                log_error("The API server's %s", error_message(&error, r));
                return;
        }
        cache_object(object, json);
        set_referenced_object(object, data);
}

static void on_referenced_list_begin(void *userdata) {
        ((ApiServerObject *) userdata)->was_listed = false;
}

static void on_referenced_list_end(bool is_complete, void *userdata) {
        ApiServerObject *object = userdata;

        if (!is_complete || object->was_listed)
                return;
        uncache_object(object);
        if (object->object || !object->is_known)
                set_referenced_object(object, NULL);
}

static void on_object_watch_error(const char *error, unsigned status, void *userdata) {
        ApiServerObject *object = userdata;

        if (!apiserver_is_unreachable(object->api, error, status) && error)
                log_warning("Cannot follow %s: %s", object->key, error);
}

static int watch_referenced_object(ApiServerObject *object, const char *namespace,
                                   const char *name) {
        ApiServerSync *api = object->api;
        cleanup_free char *path = NULL, *query = NULL;

        if (!api->client || object->reflector)
                return 0;
        if (asprintf(&path, "%s%s%s/%s", watched_kinds[object->kind].group,
                     namespace[0] ? "/namespaces/" : "", namespace,
                     watched_kinds[object->kind].plural) < 0)
                path = NULL;
        if (asprintf(&query, "fieldSelector=metadata.name%%3D%s", name) < 0)
                query = NULL;
        if (!path || !query)
                return -ENOMEM;
        return kube_reflector_new(api->config.event,
                                  &(KubeReflectorSpec){ .client = api->client,
                                                        .path = path,
                                                        .query = query,
                                                        .on_object = on_referenced_object,
                                                        .on_list_begin = on_referenced_list_begin,
                                                        .on_list_end = on_referenced_list_end,
                                                        .on_error = on_object_watch_error,
                                                        .userdata = object },
                                  &object->reflector);
}

/* ---- which ones ---- */

static void referenced_object_free(ApiServerObject *object) {
        kube_reflector_free(object->reflector);
        data_object_free(object->object);
        free(object->key);
        free(object);
}

static int format_object_key(ObjectKind kind, const char *namespace, const char *name, char **ret) {
        return asprintf(ret, "%s_%s_%s", object_kind_words[kind], namespace, name) < 0 ? -ENOMEM
                                                                                       : 0;
}

/* Where it is, or belongs. */
static ApiServerObject **find_object_link(ApiServerSync *api, const char *key) {
        ApiServerObject **link = &api->objects;

        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->next;
        return link;
}

static ApiServerObject *get_referenced_object(ApiServerSync *api, ObjectKind kind,
                                              const char *namespace, const char *name) {
        cleanup_free char *key = NULL;
        ApiServerObject **link, *object;

        if (format_object_key(kind, namespace, name, &key) < 0)
                return NULL;
        link = find_object_link(api, key);
        if (*link && streq((*link)->key, key))
                return *link;
        object = calloc(1, sizeof(*object));
        if (!object)
                return NULL;
        object->api = api;
        object->kind = kind;
        object->key = TAKE_PTR(key);
        object->next = *link;
        *link = object;
        load_cached_object(object);
        return object;
}

static int add_referenced_object(ObjectKind kind, const char *namespace, const char *name,
                                 void *userdata) {
        ApiServerSync *api = userdata;
        ApiServerObject *object = watched_kinds[kind].group
                                          ? get_referenced_object(api, kind, namespace, name)
                                          : NULL;

        if (!object)
                return watched_kinds[kind].group ? -ENOMEM : 0;
        object->generation = api->objects_generation;
        return watch_referenced_object(object, namespace, name);
}

void apiserver_begin_references(ApiServerSync *api) {
        api->objects_generation++;
}

int apiserver_add_references(ApiServerSync *api, const Pod *pod) {
        return pod_foreach_reference(pod, add_referenced_object, api);
}

/* Those that no pod names any more are not followed, nor kept. */
void apiserver_end_references(ApiServerSync *api) {
        ApiServerObject **link = &api->objects;

        while (*link) {
                ApiServerObject *object = *link;

                if (object->generation == api->objects_generation) {
                        link = &object->next;
                        continue;
                }
                *link = object->next;
                uncache_object(object);
                referenced_object_free(object);
        }
}

void apiserver_free_objects(ApiServerSync *api) {
        while (api->objects) {
                ApiServerObject *object = api->objects;

                api->objects = object->next;
                referenced_object_free(object);
        }
}

/* ---- who is told ---- */

/* Below 0: one of them is news. */
static int find_updated_reference(ObjectKind kind, const char *namespace, const char *name,
                                  void *userdata) {
        const ApiServerSync *api = userdata;
        cleanup_free char *key = NULL;

        if (!watched_kinds[kind].group)
                return 0;
        if (format_object_key(kind, namespace, name, &key) < 0)
                return -ENOMEM;
        return strv_contains(api->updated_keys, key) ? -EEXIST : 0;
}

bool apiserver_has_updates_for(const Pod *pod, void *userdata) {
        ApiServerSync *api = userdata;

        return api->is_everything_updated || strv_contains(api->updated_keys, pod->metadata.uid) ||
               pod_foreach_reference(pod, find_updated_reference, api) < 0;
}

/* ---- lookups ---- */

static const ApiServerObject *find_referenced_object(ApiServerSync *api, ObjectKind kind,
                                                     const char *namespace, const char *name) {
        cleanup_free char *key = NULL;
        const ApiServerObject *object;

        if (!name || !watched_kinds[kind].group ||
            format_object_key(kind, namespace, name, &key) < 0)
                return NULL;
        object = *find_object_link(api, key);
        return object && streq(object->key, key) ? object : NULL;
}

const DataObject *apiserver_find_object(ObjectKind kind, const char *namespace, const char *name,
                                        void *userdata) {
        ApiServerSync *api = userdata;
        const ApiServerObject *object = find_referenced_object(api, kind, namespace, name);

        return object ? object->object : NULL;
}

bool apiserver_is_object_pending(ObjectKind kind, const char *namespace, const char *name,
                                 void *userdata) {
        ApiServerSync *api = userdata;
        const ApiServerObject *object = find_referenced_object(api, kind, namespace, name);

        return object && !object->is_known;
}
