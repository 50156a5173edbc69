/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the metadata of an API object. */

#include "agent/kubeclient/object-summary.h"

#include "agent/kubeclient/json-string.h"
#include "common/cleanup.h"
#include "common/json-text.h"

static const char mirror_annotation[] = "kubernetes.io/config.mirror";
static const char hash_annotation[] = "kubernetes.io/config.hash";

void kube_object_summary_done(KubeObjectSummary *metadata) {
        free(metadata->name);
        free(metadata->namespace);
        free(metadata->uid);
        free(metadata->resource_version);
        free(metadata->mirror_hash);
        free(metadata->config_hash);
        free(metadata->phase);
        free(metadata->status);
        *metadata = (KubeObjectSummary){ 0 };
}

static int read_object_status(const json_t *object, KubeObjectSummary *ret) {
        const json_t *status = json_object_get(object, "status");

        if (!json_is_object(status))
                return 0;
        ret->status = json_to_text(status, JSON_COMPACT);
        if (!ret->status)
                return -ENOMEM;
        return json_copy_string(status, "phase", &ret->phase);
}

static int read_object_metadata(const json_t *object, KubeObjectSummary *ret) {
        const json_t *metadata = json_object_get(object, "metadata");
        const json_t *grace = json_object_get(metadata, "deletionGracePeriodSeconds");
        const json_t *generation = json_object_get(metadata, "generation");
        int r = json_copy_string(metadata, "name", &ret->name);

        if (r < 0)
                return r;
        r = json_copy_string(metadata, "namespace", &ret->namespace);
        if (r < 0)
                return r;
        if (!ret->namespace && !(ret->namespace = strdup("")))
                return -ENOMEM;
        r = json_copy_string(metadata, "uid", &ret->uid);
        if (r < 0)
                return r;
        r = json_copy_string(metadata, "resourceVersion", &ret->resource_version);
        if (r < 0)
                return r;
        r = json_copy_string(json_object_get(metadata, "annotations"), mirror_annotation,
                             &ret->mirror_hash);
        if (r < 0)
                return r;
        r = json_copy_string(json_object_get(metadata, "annotations"), hash_annotation,
                             &ret->config_hash);
        if (r < 0)
                return r;
        ret->is_deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
        ret->generation = json_is_integer(generation) ? json_integer_value(generation) : 0;
        ret->grace_seconds = json_is_integer(grace) ? json_integer_value(grace) : -1;
        return read_object_status(object, ret);
}

int kube_object_summary_parse(const char *json, size_t length, KubeObjectSummary *ret,
                              Error *reterr) {
        json_error_t why;
        cleanup_json json_t *object = NULL;
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };
        int r = json_parse_text(json, length, 0, &object, &why);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, EBADMSG, "is not JSON: %s", why.text);
        r = read_object_metadata(object, &metadata);
        if (r < 0)
                return r;
        if (!metadata.name || !metadata.uid)
                return error_setf(reterr, EBADMSG, "has no %s", metadata.name ? "UID" : "name");
        *ret = metadata;
        metadata = (KubeObjectSummary){ 0 };
        return 0;
}

int kube_object_summary_conditions(const KubeObjectSummary *metadata, StringMap *ret) {
        cleanup_json json_t *status =
                metadata->status ? json_loads(metadata->status, 0, NULL) : NULL;
        cleanup_with(string_map_done) StringMap conditions = { 0 };
        size_t i;
        json_t *condition;

        if (metadata->status && !status)
                return -ENOMEM;
        json_array_foreach(json_object_get(status, "conditions"), i, condition) {
                const char *type = json_text(condition, "type");
                const char *value = json_text(condition, "status");
                int r = type && value ? string_map_set(&conditions, type, value) : 0;

                if (r < 0)
                        return r;
        }
        *ret = conditions;
        conditions = (StringMap){ 0 };
        return 0;
}
