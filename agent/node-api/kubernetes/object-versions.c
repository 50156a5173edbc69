/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/object-versions.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <inttypes.h>

typedef struct ObjectVersion {
        char *key;
        json_t *identity; /* an object with only name, namespace, uid and labels */
        uint64_t hash;    /* hash of its content */
        uint64_t version, created;
        bool is_deleted;
} ObjectVersion;

struct ObjectVersions {
        ObjectVersion *items; /* sorted by key */
        size_t n;
        uint64_t latest;
        uint64_t forgotten; /* changes up to this version are not all known */
};

ObjectVersions *object_versions_new(uint64_t start) {
        ObjectVersions *versions = calloc(1, sizeof(*versions));

        if (versions)
                versions->latest = versions->forgotten = start;
        return versions;
}

static void object_version_done(ObjectVersion *item) {
        free(item->key);
        json_decref(item->identity);
}

ObjectVersions *object_versions_free(ObjectVersions *versions) {
        if (!versions)
                return NULL;
        for (size_t i = 0; i < versions->n; i++)
                object_version_done(&versions->items[i]);
        free(versions->items);
        free(versions);
        return NULL;
}

uint64_t object_versions_latest(const ObjectVersions *versions) {
        return versions->latest;
}

bool object_versions_reach(const ObjectVersions *versions, uint64_t since) {
        return since >= versions->forgotten && since <= versions->latest;
}

/* ---- one object ---- */

char *object_key(const json_t *object) {
        return text_format("%s/%s/%s", strna(json_text(object, "metadata", "namespace")),
                           strna(json_text(object, "metadata", "name")),
                           strna(json_text(object, "metadata", "uid")));
}

/* FNV-1a. */
static int hash_dumped_json(const char *data, size_t length, void *context) {
        uint64_t *hash = context;

        for (size_t i = 0; i < length; i++)
                *hash = (*hash ^ (unsigned char) data[i]) * UINT64_C(0x100000001b3);
        return 0;
}

static uint64_t hash_object(const json_t *object) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        (void) json_dump_callback(object, hash_dumped_json, &hash, JSON_COMPACT);
        return hash;
}

static json_t *copy_identity(const json_t *object) {
        const json_t *metadata = json_object_get(object, "metadata");

        return json_pack(
                "{s:O*, s:O*, s:{s:O*, s:O*, s:O*, s:O*}}", "kind", json_object_get(object, "kind"),
                "apiVersion", json_object_get(object, "apiVersion"), "metadata", "name",
                json_object_get(metadata, "name"), "namespace",
                json_object_get(metadata, "namespace"), "uid", json_object_get(metadata, "uid"),
                "labels", json_object_get(metadata, "labels"));
}

static void set_resource_version(json_t *object, uint64_t version) {
        (void) json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                                   json_sprintf("%" PRIu64, version));
}

/* ---- the table ---- */

static int compare_version_key(const char *key, const ObjectVersion *item) {
        return strcmp(key, item->key);
}

/* If the object is seen again, it counts as new, which does no harm; but a deletion can no longer
 * be reported. */
static void forget_oldest_version(ObjectVersions *versions) {
        size_t oldest = 0;

        for (size_t i = 1; i < versions->n; i++)
                if (versions->items[i].version < versions->items[oldest].version)
                        oldest = i;
        versions->forgotten = MAX(versions->forgotten, versions->items[oldest].version);
        object_version_done(&versions->items[oldest]);
        ARRAY_REMOVE(versions->items, versions->n, oldest);
}

static ObjectVersion *insert_version(ObjectVersions *versions, char *key_consume) {
        ObjectVersion *item;
        size_t place;

        if (versions->n >= OBJECT_VERSIONS_MAX)
                forget_oldest_version(versions);
        place = ARRAY_FIND_PLACE(key_consume, versions->items, versions->n, compare_version_key);
        item = ARRAY_INSERT(versions->items, versions->n, place);
        if (item)
                *item = (ObjectVersion){ .key = key_consume, .is_deleted = true };
        else
                free(key_consume);
        return item;
}

static ObjectVersion *find_version(ObjectVersions *versions, const json_t *object) {
        char *key = object_key(object);
        ObjectVersion *item;

        if (!key)
                return NULL;
        item = ARRAY_FIND(key, versions->items, versions->n, compare_version_key);
        if (!item)
                return insert_version(versions, key);
        free(key);
        return item;
}

/* ---- observations ---- */

static void delete_version(ObjectVersions *versions, ObjectVersion *item) {
        if (item->is_deleted)
                return;
        item->is_deleted = true;
        item->version = ++versions->latest;
        set_resource_version(item->identity, item->version);
}

uint64_t object_versions_observe(ObjectVersions *versions, json_t *object, uint64_t *ret_created) {
        uint64_t hash;
        ObjectVersion *item;

        (void) json_object_del(json_object_get(object, "metadata"), "resourceVersion");
        hash = hash_object(object);
        item = find_version(versions, object);
        if (!item)
                return 0;
        if (item->is_deleted || item->hash != hash) {
                item->version = ++versions->latest;
                json_decref(item->identity);
                item->identity = copy_identity(object);
        }
        if (item->is_deleted)
                item->created = item->version;
        item->is_deleted = false;
        item->hash = hash;
        set_resource_version(object, item->version);
        if (ret_created)
                *ret_created = item->created;
        return item->version;
}

uint64_t object_versions_observe_deleted(ObjectVersions *versions, json_t *object) {
        ObjectVersion *item = find_version(versions, object);

        if (!item)
                return 0;
        if (!item->identity)
                item->identity = copy_identity(object);
        if (item->version == 0)
                item->is_deleted = false; /* it was not seen before */
        delete_version(versions, item);
        set_resource_version(object, item->version);
        return item->version;
}

void object_versions_observe_all(ObjectVersions *versions, const json_t *objects) {
        cleanup_json json_t *present = json_object();
        size_t i;
        json_t *object;

        json_array_foreach(objects, i, object) {
                cleanup_free char *key = object_key(object);

                (void) object_versions_observe(versions, object, NULL);
                if (key)
                        (void) json_object_set_new(present, key, json_true());
        }
        object_versions_keep_only(versions, present);
}

void object_versions_keep_only(ObjectVersions *versions, const json_t *present) {
        for (size_t i = 0; i < versions->n; i++)
                if (!json_object_get(present, versions->items[i].key))
                        delete_version(versions, &versions->items[i]);
}

json_t *object_versions_list_deleted(const ObjectVersions *versions, uint64_t since) {
        json_t *list = json_array();

        for (size_t i = 0; i < versions->n; i++) {
                const ObjectVersion *item = &versions->items[i];

                if (item->is_deleted && item->version > since && item->created <= since)
                        (void) json_array_append(list, item->identity);
        }
        return list;
}
