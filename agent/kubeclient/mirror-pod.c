/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the mirror pod of a static pod: sets its owner and annotation, and removes the fields that
 * NodeRestriction or an admission plugin refuses. */

#include "agent/kubeclient/mirror-pod.h"

#include "common/cleanup.h"
#include "common/json-text.h"

#include <string.h>

/* Fields that are not included in the spec of a mirror pod. Classes are objects of the API server,
 * where they may have other values than in this node's files; and pods cannot be created with
 * ephemeral containers. */
static const char *const omitted_spec_fields[] = {
        "imagePullSecrets",    "overhead",           "priority",
        "runtimeClassName",    "serviceAccountName", "resourceClaims",
        "ephemeralContainers",
};

static const char *const system_classes[] = { "system-node-critical", "system-cluster-critical" };

/* Volumes that NodeRestriction does not allow in a mirror pod. */
static const char *const refused_volumes[] = { "configMap", "projected", "secret" };

static const char *const container_lists[] = { "initContainers", "containers" };

static bool is_refused_volume(json_t *volume) {
        for (size_t i = 0; i < N_ELEMENTS(refused_volumes); i++)
                if (json_object_get(volume, refused_volumes[i]))
                        return true;
        return false;
}

static bool has_volume(json_t *volumes, json_t *name) {
        size_t i;
        json_t *volume;

        json_array_foreach(volumes, i, volume) {
                if (json_equal(json_object_get(volume, "name"), name))
                        return true;
        }
        return false;
}

static void remove_volumes(json_t *spec) {
        json_t *volumes = json_object_get(spec, "volumes");

        for (size_t i = json_array_size(volumes); i-- > 0;)
                if (is_refused_volume(json_array_get(volumes, i)))
                        (void) json_array_remove(volumes, i);
}

/* Whether the variable comes from an object, or from a file in a volume that was omitted. */
static bool is_refused_variable(json_t *variable, json_t *volumes) {
        json_t *source = json_object_get(variable, "valueFrom");
        json_t *file = json_object_get(source, "fileKeyRef");

        return json_object_get(source, "configMapKeyRef") ||
               json_object_get(source, "secretKeyRef") ||
               (file && !has_volume(volumes, json_object_get(file, "volumeName")));
}

static void strip_container(json_t *container, json_t *volumes) {
        json_t *mounts = json_object_get(container, "volumeMounts");
        json_t *variables = json_object_get(container, "env");

        (void) json_object_del(container, "envFrom");
        for (size_t i = json_array_size(mounts); i-- > 0;)
                if (!has_volume(volumes, json_object_get(json_array_get(mounts, i), "name")))
                        (void) json_array_remove(mounts, i);
        for (size_t i = json_array_size(variables); i-- > 0;)
                if (is_refused_variable(json_array_get(variables, i), volumes))
                        (void) json_array_remove(variables, i);
}

static bool is_system_class(json_t *name) {
        const char *text = json_string_value(name);

        for (size_t i = 0; text && i < N_ELEMENTS(system_classes); i++)
                if (streq(text, system_classes[i]))
                        return true;
        return false;
}

static void strip_pod_spec(json_t *spec) {
        json_t *volumes;

        remove_volumes(spec);
        volumes = json_object_get(spec, "volumes");
        for (size_t i = 0; i < N_ELEMENTS(omitted_spec_fields); i++)
                (void) json_object_del(spec, omitted_spec_fields[i]);
        if (!is_system_class(json_object_get(spec, "priorityClassName")))
                (void) json_object_del(spec, "priorityClassName");
        for (size_t i = 0; i < N_ELEMENTS(container_lists); i++) {
                size_t j;
                json_t *container;

                json_array_foreach(json_object_get(spec, container_lists[i]), j, container)
                        strip_container(container, volumes);
        }
}

/* Whether a file defines the pod, unlike a pod of a DaemonSet in a file. */
static bool is_static_pod_of_file(const json_t *pod) {
        const json_t *annotations = json_at(pod, "metadata", "annotations");

        return json_object_get(annotations, "kubernetes.io/config.hash") &&
               streq_ptr(json_text(annotations, "kubernetes.io/config.source"), "file");
}

/* As in the kubelet, the pod tolerates all NoExecute taints, because otherwise the cluster would
 * delete the mirror pod for each such taint of the node. */
static int tolerate_no_execute(json_t *spec) {
        cleanup_json json_t *toleration =
                json_pack("{s:s, s:s}", "operator", "Exists", "effect", "NoExecute");
        json_t *list = json_object_get(spec, "tolerations"), *own;
        size_t i;

        if (!list) {
                list = json_array();
                if (json_object_set_new(spec, "tolerations", list) < 0)
                        return -ENOMEM;
        }
        json_array_foreach(list, i, own) {
                if (json_equal(own, toleration))
                        return 0;
        }
        return json_array_append(list, toleration) < 0 ? -ENOMEM : 0;
}

static int set_mirror_metadata(json_t *metadata, const char *hash, const char *node_name,
                               const char *node_uid) {
        json_t *owners = json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind",
                                   "Node", "name", node_name, "uid", node_uid, "controller", 1);
        json_t *annotations = json_object_get(metadata, "annotations");

        if (!annotations) {
                annotations = json_object();
                if (json_object_set_new(metadata, "annotations", annotations) < 0)
                        return -ENOMEM;
        }
        (void) json_object_del(metadata, "creationTimestamp");
        (void) json_object_del(metadata, "deletionTimestamp");
        (void) json_object_del(metadata, "deletionGracePeriodSeconds");
        if (json_object_set_new(metadata, "ownerReferences", owners) < 0 ||
            json_object_set_new(annotations, "kubernetes.io/config.mirror", json_string(hash)) < 0)
                return -ENOMEM;
        return 0;
}

char *mirror_pod_build(json_t *pod, const char *hash, const char *node_name, const char *node_uid) {
        json_t *metadata = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");

        if (!json_is_object(metadata) || !json_is_object(spec) ||
            (is_static_pod_of_file(pod) && tolerate_no_execute(spec) < 0) ||
            set_mirror_metadata(metadata, hash, node_name, node_uid) < 0)
                return NULL;
        (void) json_object_del(pod, "status");
        strip_pod_spec(spec);
        return json_to_text(pod, JSON_COMPACT);
}
