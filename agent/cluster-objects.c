/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server's pods refer to: each object is followed by name, for that is all that a node
 * may see, and kept on the disk, so that a pod begins without the server when it has begun once. */

#include "agent/cluster-private.h"

#include "agent/model/references.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"

#include <stdio.h>

enum {
        OBJECT_FILE_MAX = 4 * 1024 * 1024
};

struct ClusterObject {
        ClusterObject *following;
        Cluster *cluster;
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
} kinds[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = { "/api/v1", "configmaps" },
        [OBJECT_SECRET] = { "/api/v1", "secrets" },
        [OBJECT_RUNTIME_CLASS] = { "/apis/node.k8s.io/v1", "runtimeclasses" },
};

/* ---- on the disk ---- */

static const char directory[] = "objects";

static void store(const ClusterObject *object, const char *json) {
        cluster_keep(object->cluster, directory, object->key, json);
}

static void forget_stored(const ClusterObject *object) {
        cluster_keep(object->cluster, directory, object->key, NULL);
}

/* ---- what the server says ---- */

static int parse(const ClusterObject *object, const char *json, size_t length, DataObject **ret,
                 Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse_api(object->key, object_kind_names[object->kind], json, length,
                                   object->cluster->config.node_name, &objects, reterr);

        if (r < 0)
                return r;
        if (objects.data.n != 1 || objects.data.items[0]->kind != object->kind)
                return error_setf(reterr, EINVAL, "%s: is another kind of object", object->key);
        *ret = objects.data.items[0];
        objects.data.n = 0;
        return 0;
}

static void set_object(ClusterObject *object, DataObject *data) {
        data_object_free(object->object);
        object->object = data;
        object->is_known = true;
        cluster_schedule_objects(object->cluster, object->key);
}

static void load(ClusterObject *object) {
        cleanup_free char *json = NULL;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r = cluster_read_kept(object->cluster, directory, object->key, OBJECT_FILE_MAX, &json);

        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = parse(object, json, strlen(json), &data, &error);
        if (json)
                explicit_bzero(json, strlen(json));
        if (r < 0) {
                log_error("What was kept of %s cannot be used: %s", object->key,
                          error_message(&error, r));
                cluster_set_kept_aside(object->cluster, directory, object->key);
                return;
        }
        object->object = data;
        object->is_known = true;
}

static void on_object(KubeChange change, const char *json, size_t length, void *userdata) {
        ClusterObject *object = userdata;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r;

        if (change == KUBE_DELETED) {
                forget_stored(object);
                set_object(object, NULL);
                return;
        }
        object->was_listed = true;
        r = parse(object, json, length, &data, &error);
        if (r < 0) { /* it stays as it was */
                log_error("The API server's %s", error_message(&error, r));
                return;
        }
        store(object, json);
        set_object(object, data);
}

static void on_list_begin(void *userdata) {
        ((ClusterObject *) userdata)->was_listed = false;
}

static void on_list_end(bool is_complete, void *userdata) {
        ClusterObject *object = userdata;

        if (!is_complete || object->was_listed)
                return;
        forget_stored(object);
        if (object->object || !object->is_known)
                set_object(object, NULL);
}

static void on_trouble(const char *error, unsigned status, void *userdata) {
        ClusterObject *object = userdata;

        if (!cluster_is_away(object->cluster, error, status) && error)
                log_warning("Cannot follow %s: %s", object->key, error);
}

static int follow(ClusterObject *object, const char *namespace, const char *name) {
        Cluster *cluster = object->cluster;
        cleanup_free char *path = NULL, *query = NULL;

        if (!cluster->client || object->reflector)
                return 0;
        if (asprintf(&path, "%s%s%s/%s", kinds[object->kind].group,
                     namespace[0] ? "/namespaces/" : "", namespace, kinds[object->kind].plural) < 0)
                path = NULL;
        if (asprintf(&query, "fieldSelector=metadata.name%%3D%s", name) < 0)
                query = NULL;
        if (!path || !query)
                return -ENOMEM;
        return kube_reflector_new(cluster->config.event,
                                  &(KubeReflectorSpec){ .client = cluster->client,
                                                        .path = path,
                                                        .query = query,
                                                        .on_object = on_object,
                                                        .on_list_begin = on_list_begin,
                                                        .on_list_end = on_list_end,
                                                        .on_trouble = on_trouble,
                                                        .userdata = object },
                                  &object->reflector);
}

/* ---- which ones ---- */

static void object_free(ClusterObject *object) {
        kube_reflector_free(object->reflector);
        data_object_free(object->object);
        free(object->key);
        free(object);
}

static int print_key(ObjectKind kind, const char *namespace, const char *name, char **ret) {
        return asprintf(ret, "%s_%s_%s", object_kind_words[kind], namespace, name) < 0 ? -ENOMEM
                                                                                       : 0;
}

/* Where it is, or belongs. */
static ClusterObject **find_place(Cluster *cluster, const char *key) {
        ClusterObject **link = &cluster->objects;

        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->following;
        return link;
}

static ClusterObject *get(Cluster *cluster, ObjectKind kind, const char *namespace,
                          const char *name) {
        cleanup_free char *key = NULL;
        ClusterObject **link, *object;

        if (print_key(kind, namespace, name, &key) < 0)
                return NULL;
        link = find_place(cluster, key);
        if (*link && streq((*link)->key, key))
                return *link;
        object = calloc(1, sizeof(*object));
        if (!object)
                return NULL;
        object->cluster = cluster;
        object->kind = kind;
        object->key = TAKE_PTR(key);
        object->following = *link;
        *link = object;
        load(object);
        return object;
}

static int note_reference(ObjectKind kind, const char *namespace, const char *name,
                          void *userdata) {
        Cluster *cluster = userdata;
        ClusterObject *object = kinds[kind].group ? get(cluster, kind, namespace, name) : NULL;

        if (!object)
                return kinds[kind].group ? -ENOMEM : 0;
        object->generation = cluster->objects_generation;
        return follow(object, namespace, name);
}

void cluster_begin_references(Cluster *cluster) {
        cluster->objects_generation++;
}

int cluster_note_references(Cluster *cluster, const Pod *pod) {
        return pod_each_reference(pod, note_reference, cluster);
}

/* Those that no pod names any more are not followed, nor kept. */
void cluster_end_references(Cluster *cluster) {
        ClusterObject **link = &cluster->objects;

        while (*link) {
                ClusterObject *object = *link;

                if (object->generation == cluster->objects_generation) {
                        link = &object->following;
                        continue;
                }
                *link = object->following;
                forget_stored(object);
                object_free(object);
        }
}

void cluster_forget_objects(Cluster *cluster) {
        while (cluster->objects) {
                ClusterObject *object = cluster->objects;

                cluster->objects = object->following;
                object_free(object);
        }
}

/* ---- who is told ---- */

/* Below 0: one of them is news. */
static int find_news(ObjectKind kind, const char *namespace, const char *name, void *userdata) {
        const Cluster *cluster = userdata;
        cleanup_free char *key = NULL;

        if (!kinds[kind].group)
                return 0;
        if (print_key(kind, namespace, name, &key) < 0)
                return -ENOMEM;
        return strv_contains(cluster->news, key) ? -EEXIST : 0;
}

bool cluster_has_news_for(const Pod *pod, void *userdata) {
        Cluster *cluster = userdata;

        return cluster->is_all_news || strv_contains(cluster->news, pod->metadata.uid) ||
               pod_each_reference(pod, find_news, cluster) < 0;
}

/* ---- lookups ---- */

static const ClusterObject *find(Cluster *cluster, ObjectKind kind, const char *namespace,
                                 const char *name) {
        cleanup_free char *key = NULL;
        const ClusterObject *object;

        if (!name || !kinds[kind].group || print_key(kind, namespace, name, &key) < 0)
                return NULL;
        object = *find_place(cluster, key);
        return object && streq(object->key, key) ? object : NULL;
}

const DataObject *cluster_find_object(Cluster *cluster, ObjectKind kind, const char *namespace,
                                      const char *name) {
        const ClusterObject *object = find(cluster, kind, namespace, name);

        return object ? object->object : NULL;
}

bool cluster_awaits_object(Cluster *cluster, ObjectKind kind, const char *namespace,
                           const char *name) {
        const ClusterObject *object = find(cluster, kind, namespace, name);

        return object && !object->is_known;
}
