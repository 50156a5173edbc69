/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for references of variables and files: fields of the pod, resources of its
 * containers, keys of objects. Whether an object exists is checked when it is used. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "agent/model/resource.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>

/* Kubernetes' limit. */
enum {
        FILE_KEY_MAX = 128
};

static int reference_error(const Rules *rules, const char *path, const char *format, ...)
        printf_like(3, 4);

static int reference_error(const Rules *rules, const char *path, const char *format, ...) {
        char sentence[512];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(sentence, sizeof(sentence), format, ap);
        va_end(ap);
        return rules_at(rules, error_setf(rules->reterr, EINVAL, "%s", sentence), "%s", path);
}

/* clang-format off */
static const struct {
        const char *path;
        bool in_variable;
        bool in_file;
} field_paths[] = {
        { "metadata.name",           true,  true  },
        { "metadata.namespace",      true,  true  },
        { "metadata.uid",            true,  true  },
        { "metadata.labels",         false, true  },
        { "metadata.annotations",    false, true  },
        { "spec.nodeName",           true,  false },
        { "spec.serviceAccountName", true,  false },
        { "status.hostIP",           true,  false },
        { "status.hostIPs",          true,  false },
        { "status.podIP",            true,  false },
        { "status.podIPs",           true,  false },
};

/* Divisors are compared in canonical form, as in Kubernetes: 1000m equals 1; 1e3 is not in the
 * list. */
static const char *const cpu_divisors[] = { "1m", "1", NULL };
static const char *const memory_divisors[] = {
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL,
};
/* clang-format on */

/* "metadata.labels['key']" with an empty key is accepted. */
static bool is_subscript(const char *path, const char *map) {
        size_t n = strlen(map), length = strlen(path);

        return strncmp(path, map, n) == 0 && strncmp(path + n, "['", 2) == 0 && length > n + 4 &&
               streq(path + length - 2, "']");
}

static bool is_field_path(const char *path, bool is_file) {
        if (is_subscript(path, "metadata.labels") || is_subscript(path, "metadata.annotations"))
                return true;
        for (size_t i = 0; i < N_ELEMENTS(field_paths); i++)
                if (streq(path, field_paths[i].path))
                        return is_file ? field_paths[i].in_file : field_paths[i].in_variable;
        return false;
}

/* "metadata.labels['key']" is valid if the key is a valid key of the map. */
static int check_subscript(const Rules *rules, const char *path, const char *where) {
        const char *start = strchr(path, '[');
        cleanup_free char *key = start ? strndup(start + 2, strlen(start) - 4) : NULL;
        bool is_label = strncmp(path, "metadata.labels", strlen("metadata.labels")) == 0;
        int r;

        if (!start)
                return 0;
        if (!key)
                return -ENOMEM;
        r = is_label ? check_label_key(key, rules->reterr)
                     : check_annotation_key(key, rules->reterr);
        return r < 0 ? rules_at(rules, r, "%s", where) : 0;
}

static int check_field_path(const Rules *rules, const FieldReference *reference, const char *path) {
        const ObjectFieldSelector *field = reference->field;
        char text[EXCERPT_SIZE], where[DECODE_PATH_SIZE];

        if (rules_are_of_api(rules)) /* the variable or the volume fails later */
                return 0;
        if (field->api_version && !streq(field->api_version, "v1")) {
                (void) snprintf(where, sizeof(where), "%s.fieldRef.apiVersion", path);
                return reference_error(rules, where, "must be v1, not '%s'",
                                       excerpt(text, field->api_version));
        }
        (void) snprintf(where, sizeof(where), "%s.fieldRef.fieldPath", path);
        if (is_field_path(field->field_path, reference->is_file))
                return check_subscript(rules, field->field_path, where);
        return reference_error(rules, where, "is not a field that a %s can refer to: '%s'",
                               reference->is_file ? "file" : "variable",
                               excerpt(text, field->field_path));
}

static bool is_resource_path(const char *path) {
        static const ResourceRequirements none = { 0 };
        ResourceType type;

        return resource_find(&none, path, &type) != NULL;
}

static int check_divisor(const Rules *rules, const ResourceFieldSelector *resource,
                         const char *path) {
        bool is_cpu = strstr(resource->resource, ".cpu") != NULL;
        char where[DECODE_PATH_SIZE];

        if (!quantity_is_set(&resource->divisor) || resource->divisor.milli == 0 ||
            text_is_one_of(resource->divisor.text, is_cpu ? cpu_divisors : memory_divisors))
                return 0;
        (void) snprintf(where, sizeof(where), "%s.resourceFieldRef.divisor", path);
        return reference_error(rules, where, "must be %s, not '%s'",
                               is_cpu ? "1 or 1m"
                                      : "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or "
                                        "1Ei",
                               resource->divisor.text);
}

static int check_resource_reference(const Rules *rules, const FieldReference *reference,
                                    const char *path) {
        const ResourceFieldSelector *resource = reference->resource;
        char text[EXCERPT_SIZE], where[DECODE_PATH_SIZE];

        if (rules_are_of_api(rules)) /* the variable or the volume fails later */
                return 0;
        (void) snprintf(where, sizeof(where), "%s.resourceFieldRef.containerName", path);
        if (reference->is_file && !resource->container_name)
                return reference_error(rules, where, "is required");
        if (resource->container_name && !pod_find_container(rules->pod, resource->container_name))
                return reference_error(rules, where, "must name a container of this pod, not '%s'",
                                       excerpt(text, resource->container_name));
        (void) snprintf(where, sizeof(where), "%s.resourceFieldRef.resource", path);
        if (!is_resource_path(resource->resource))
                return reference_error(rules, where,
                                       "must be cpu, memory, ephemeral-storage, hugepages-1Gi or "
                                       "hugepages-2Mi after limits. or requests., not '%s'",
                                       excerpt(text, resource->resource));
        return check_divisor(rules, resource, path);
}

static int check_field_reference(const Rules *rules, const FieldReference *reference,
                                 const char *path) {
        if (!reference->field && !reference->resource)
                return rules_are_of_api(rules)
                               ? 0
                               : reference_error(rules, path,
                                                 "must have one of fieldRef and resourceFieldRef");
        if (reference->field && reference->resource)
                return reference_error(rules, path, "must have one source, not several");
        return reference->field ? check_field_path(rules, reference, path)
                                : check_resource_reference(rules, reference, path);
}

/* The kubelet reads files of emptyDir volumes only. */
static int check_file_key(const Rules *rules, const FileKeySelector *selector, const char *path) {
        const Volume *volume = pod_find_volume(&rules->pod->spec, selector->volume_name);
        char where[DECODE_PATH_SIZE];

        (void) snprintf(where, sizeof(where), "%.480s.fileKeyRef.key", path);
        if (strlen(selector->key) > FILE_KEY_MAX)
                return reference_error(rules, where, "must be at most %d characters, not %zu",
                                       FILE_KEY_MAX, strlen(selector->key));
        (void) snprintf(where, sizeof(where), "%.480s.fileKeyRef.volumeName", path);
        if (!volume)
                return reference_error(rules, where, "must name a volume of this pod, not '%s'",
                                       selector->volume_name);
        if (!volume->empty_dir)
                return reference_error(rules, where, "must name an emptyDir, which '%s' is not",
                                       selector->volume_name);
        return 0;
}

static int check_env_var_source(const Rules *rules, const EnvVar *variable, const char *path) {
        const EnvVarSource *source = variable->value_from;
        int n = (source->field_ref != NULL) + (source->resource_field_ref != NULL) +
                (source->config_map_key_ref != NULL) + (source->secret_key_ref != NULL) +
                (source->file_key_ref != NULL);
        const FieldReference reference = { source->field_ref, source->resource_field_ref, false };

        if (variable->value)
                return reference_error(rules, path,
                                       "may not be specified when `value` is not empty");
        if (n == 0 && rules_are_of_api(rules))
                return 0; /* a newer API server supports more */
        if (n == 0)
                return reference_error(rules, path,
                                       "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                       "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
        if (n > 1)
                return reference_error(rules, path,
                                       "may not have more than one field specified at a time");
        if (source->file_key_ref)
                return check_file_key(rules, source->file_key_ref, path);
        if (!source->field_ref && !source->resource_field_ref)
                return 0;
        return check_field_reference(rules, &reference, path);
}

static int check_env_from(const Rules *rules, const EnvFromSource *source, const char *path) {
        if (!source->config_map_ref && !source->secret_ref)
                return rules_are_of_api(rules)
                               ? 0
                               : reference_error(
                                         rules, path,
                                         "must specify one of: `configMapRef` or `secretRef`");
        if (source->config_map_ref && source->secret_ref)
                return reference_error(rules, path,
                                       "may not have more than one field specified at a time");
        return 0;
}

int check_environment(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        char path[DECODE_PATH_SIZE];
        int r;

        for (size_t j = 0; j < container->env_from.n; j++) {
                (void) snprintf(path, sizeof(path), "%s.envFrom[%zu]", at->path, j);
                r = rules_keep(rules, check_env_from(rules, &container->env_from.items[j], path));
                if (r < 0)
                        return r;
        }
        for (size_t j = 0; j < container->env.n; j++) {
                if (!container->env.items[j].value_from)
                        continue;
                (void) snprintf(path, sizeof(path), "%s.env[%zu].valueFrom", at->path, j);
                r = rules_keep(rules, check_env_var_source(rules, &container->env.items[j], path));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- volumes ---- */

static int check_downward_files(const Rules *rules, const DownwardAPIVolumeSource *source,
                                const char *path) {
        for (size_t i = 0; i < source->items.n; i++) {
                const DownwardAPIVolumeFile *file = &source->items.items[i];
                const FieldReference reference = { file->field_ref, file->resource_field_ref,
                                                   true };
                char where[DECODE_PATH_SIZE];
                int r;

                (void) snprintf(where, sizeof(where), "%.400s.items[%zu]", path, i);
                r = check_field_reference(rules, &reference, where);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_projection(const Rules *rules, const VolumeProjection *projection,
                            const char *path) {
        int n = (projection->config_map != NULL) + (projection->secret != NULL) +
                (projection->downward_api != NULL) + (projection->service_account_token != NULL);
        char where[DECODE_PATH_SIZE];

        /* A missing list of sources counts as an empty one. */
        if (n > 1)
                return reference_error(rules, path,
                                       "may not specify more than 1 volume type per source");
        (void) snprintf(where, sizeof(where), "%.400s.downwardAPI", path);
        return projection->downward_api
                       ? check_downward_files(rules, projection->downward_api, where)
                       : 0;
}

int check_data_volume(const Rules *rules, size_t i) {
        const Volume *volume = &rules->pod->spec.volumes.items[i];
        size_t n = volume->projected ? volume->projected->sources.n : 0;
        char path[DECODE_PATH_SIZE];
        int r;

        (void) snprintf(path, sizeof(path), "spec.volumes[%zu].downwardAPI", i);
        if (volume->downward_api)
                return check_downward_files(rules, volume->downward_api, path);
        for (size_t j = 0; j < n; j++) {
                (void) snprintf(path, sizeof(path), "spec.volumes[%zu].projected.sources[%zu]", i,
                                j);
                r = check_projection(rules, &volume->projected->sources.items[j], path);
                if (r < 0)
                        return r;
        }
        return n > 0 ? check_projected_files(rules, i) : 0;
}

/* ---- mounts ---- */

static int check_recursive_read_only(const Rules *rules, const VolumeMount *mount,
                                     const char *path) {
        char where[DECODE_PATH_SIZE];

        if (mount->recursive_read_only <= RECURSIVE_READ_ONLY_DISABLED)
                return 0;
        (void) snprintf(where, sizeof(where), "%s.recursiveReadOnly", path);
        if (!mount->read_only)
                return reference_error(rules, where, "may only be specified when readOnly is true");
        if (mount->mount_propagation > MOUNT_PROPAGATION_NONE)
                return reference_error(rules, where,
                                       "may only be specified when mountPropagation is None or not "
                                       "specified");
        return 0;
}

int check_mount_options(const Rules *rules, const ContainerAt *at, size_t j) {
        const Container *container = at->container;
        const VolumeMount *mount = &container->volume_mounts.items[j];
        char path[128], where[DECODE_PATH_SIZE];

        (void) snprintf(path, sizeof(path), "%s.volumeMounts[%zu]", at->path, j);
        if (mount->sub_path && mount->sub_path_expr) {
                (void) snprintf(where, sizeof(where), "%s.subPathExpr", path);
                return reference_error(rules, where,
                                       "subPathExpr and subPath are mutually exclusive");
        }
        if (at->role == ROLE_EPHEMERAL && (mount->sub_path || mount->sub_path_expr)) {
                (void) snprintf(where, sizeof(where), "%s.%s", path,
                                mount->sub_path ? "subPath" : "subPathExpr");
                return reference_error(rules, where, "cannot be set for an ephemeral container");
        }
        /* A mount that the container makes becomes visible on the node. */
        if (mount->mount_propagation == MOUNT_PROPAGATION_BIDIRECTIONAL &&
            !container->security_context.privileged) {
                (void) snprintf(where, sizeof(where), "%s.mountPropagation", path);
                return reference_error(
                        rules, where,
                        "Bidirectional mount propagation is available only to privileged "
                        "containers");
        }
        return check_recursive_read_only(rules, mount, path);
}
