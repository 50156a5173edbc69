/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod.h"

#include "agent/model/eviction.h"
#include "agent/model/schema.h"
#include "agent/model/system-class.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *const restart_policy_names[N_RESTART_POLICIES] = {
        [RESTART_POLICY_ALWAYS] = "Always",
        [RESTART_POLICY_ON_FAILURE] = "OnFailure",
        [RESTART_POLICY_NEVER] = "Never",
        [RESTART_POLICY_OTHER] = "Other",
};

const char *const pull_policy_names[N_PULL_POLICIES] = {
        [PULL_POLICY_ALWAYS] = "Always",
        [PULL_POLICY_IF_NOT_PRESENT] = "IfNotPresent",
        [PULL_POLICY_NEVER] = "Never",
};

const char *const host_path_type_names[N_HOST_PATH_TYPES] = {
        [HOST_PATH_DIRECTORY_OR_CREATE] = "DirectoryOrCreate",
        [HOST_PATH_DIRECTORY] = "Directory",
        [HOST_PATH_FILE_OR_CREATE] = "FileOrCreate",
        [HOST_PATH_FILE] = "File",
        [HOST_PATH_SOCKET] = "Socket",
        [HOST_PATH_CHAR_DEVICE] = "CharDevice",
        [HOST_PATH_BLOCK_DEVICE] = "BlockDevice",
        [HOST_PATH_OTHER] = "Other",
};

const char *const medium_names[N_MEDIA] = {
        [MEDIUM_MEMORY] = "Memory",
        [MEDIUM_HUGE_PAGES] = "HugePages",
        [MEDIUM_HUGE_PAGES_1GI] = "HugePages-1Gi",
        [MEDIUM_HUGE_PAGES_2MI] = "HugePages-2Mi",
        [MEDIUM_OTHER] = "Other",
};

const char *const protocol_names[N_PROTOCOLS] = {
        [PROTOCOL_TCP] = "TCP",
        [PROTOCOL_UDP] = "UDP",
        [PROTOCOL_SCTP] = "SCTP",
};

const char *const dns_policy_names[N_DNS_POLICIES] = {
        [DNS_POLICY_CLUSTER_FIRST] = "ClusterFirst",
        [DNS_POLICY_CLUSTER_FIRST_WITH_HOST_NET] = "ClusterFirstWithHostNet",
        [DNS_POLICY_DEFAULT] = "Default",
        [DNS_POLICY_NONE] = "None",
};

const char *const os_names[N_OS_NAMES] = {
        [OS_LINUX] = "linux",
        [OS_WINDOWS] = "windows",
        [OS_OTHER] = "other",
};

const char *const mount_propagation_names[N_MOUNT_PROPAGATIONS] = {
        [MOUNT_PROPAGATION_NONE] = "None",
        [MOUNT_PROPAGATION_HOST_TO_CONTAINER] = "HostToContainer",
        [MOUNT_PROPAGATION_BIDIRECTIONAL] = "Bidirectional",
        [MOUNT_PROPAGATION_OTHER] = "Other",
};

const char *const recursive_read_only_names[N_RECURSIVE_READ_ONLY] = {
        [RECURSIVE_READ_ONLY_DISABLED] = "Disabled",
        [RECURSIVE_READ_ONLY_IF_POSSIBLE] = "IfPossible",
        [RECURSIVE_READ_ONLY_ENABLED] = "Enabled",
        [RECURSIVE_READ_ONLY_OTHER] = "Other",
};

const char *const termination_message_policy_names[N_TERMINATION_MESSAGE_POLICIES] = {
        [TERMINATION_MESSAGE_FILE] = "File",
        [TERMINATION_MESSAGE_FALLBACK_TO_LOGS] = "FallbackToLogsOnError",
};

const char *const restart_action_names[N_RESTART_ACTIONS] = {
        [RESTART_ACTION_RESTART] = "Restart",
        [RESTART_ACTION_RESTART_ALL] = "RestartAllContainers",
};

const char *const exit_code_operator_names[N_EXIT_CODE_OPERATORS] = {
        [EXIT_CODE_IN] = "In",
        [EXIT_CODE_NOT_IN] = "NotIn",
};

const char *const resize_resource_names[N_RESIZE_RESOURCES] = {
        [RESIZE_CPU] = "cpu",
        [RESIZE_MEMORY] = "memory",
};

const char *const resize_restart_names[N_RESIZE_RESTARTS] = {
        [RESIZE_RESTART_NOT_REQUIRED] = "NotRequired",
        [RESIZE_RESTART_CONTAINER] = "RestartContainer",
};

Pod *pod_free(Pod *pod) {
        if (pod) {
                schema_done(&pod_schema, pod);
                free(pod);
        }
        return NULL;
}

int pod_copy(const Pod *pod, Pod **ret) {
        Pod *copy = calloc(1, sizeof(*copy));
        int r = copy ? schema_copy(&pod_schema, copy, pod) : -ENOMEM;

        if (r < 0) {
                free(copy);
                return r;
        }
        copy->metadata.source = pod->metadata.source;
        *ret = copy;
        return 0;
}

bool pod_spec_equal(const PodSpec *a, const PodSpec *b) {
        return schema_equal(&pod_spec_schema, a, b);
}

int64_t system_priority_class_value(const char *class_name) {
        for (size_t i = 0; i < SYSTEM_CLASSES; i++)
                if (streq(system_classes[i].name, class_name))
                        return system_classes[i].value;
        return 0;
}

const Volume *pod_find_volume(const PodSpec *spec, const char *name) {
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (streq(spec->volumes.items[i].name, name))
                        return &spec->volumes.items[i];
        return NULL;
}

const char pod_source_annotation[] = "kubernetes.io/config.source";

bool pod_is_of_manifest(const Pod *pod) {
        ObjectSource source = pod->metadata.source;

        return source == OBJECT_SOURCE_FILE || source == OBJECT_SOURCE_URL ||
               source == OBJECT_SOURCE_INDEX;
}

bool pod_is_of_api(const Pod *pod) {
        return streq(strna(string_map_get(&pod->metadata.annotations, pod_source_annotation)),
                     "api");
}

bool pod_is_critical(const PodSpec *spec) {
        return spec->priority.is_set && spec->priority.value >= SYSTEM_CRITICAL_PRIORITY;
}

bool pod_has_own_users(const PodSpec *spec) {
        return spec->host_users.is_set && !spec->host_users.value;
}

const ResourceRequirements *pod_level_resources(const PodSpec *spec) {
        static const ResourceRequirements none = { 0 };

        return spec->resources ? spec->resources : &none;
}

const ResourceList *pod_overhead(const PodSpec *spec) {
        static const ResourceList none = { 0 };

        return spec->overhead ? spec->overhead : &none;
}

bool pod_has_overhead(const PodSpec *spec) {
        const ResourceList *overhead = pod_overhead(spec);

        return quantity_is_set(&overhead->cpu) || quantity_is_set(&overhead->memory);
}

static void *drop_if_empty(const Schema *schema, void *object, const void *none) {
        if (!object || !schema_equal(schema, object, none))
                return object;
        schema_done(schema, object);
        free(object);
        return NULL;
}

void pod_drop_empty_resources(PodSpec *spec) {
        static const ResourceRequirements none = { 0 };

        spec->resources = drop_if_empty(&resource_requirements_schema, spec->resources, &none);
        spec->overhead = drop_if_empty(&resource_list_schema, spec->overhead, &none.limits);
}

int pod_set_overhead(PodSpec *spec, const ResourceList *overhead) {
        ResourceList *copy = calloc(1, sizeof(*copy));
        int r = copy ? schema_copy(&resource_list_schema, copy, overhead) : -ENOMEM;

        if (r < 0) {
                free(copy);
                return r;
        }
        if (spec->overhead)
                schema_done(&resource_list_schema, spec->overhead);
        free(spec->overhead);
        spec->overhead = copy;
        pod_drop_empty_resources(spec);
        return 0;
}

size_t volume_count_sources(const Volume *volume) {
        size_t n = 0;

        for (size_t i = 0; i < volume_schema.n_fields; i++) {
                const Field *field = &volume_schema.fields[i];
                const void *at = field_at_const(field, volume);

                n += (field->type == FIELD_PRESENT && *(const bool *) at) ||
                     (field->type == FIELD_OPTIONAL && *(const void *const *) at);
        }
        return n;
}

const char *volume_unmountable_kind(const Volume *volume) {
        for (size_t i = 0; i < volume_schema.n_fields; i++) {
                const Field *field = &volume_schema.fields[i];

                if (field->type == FIELD_PRESENT && !streq(field->key, "ephemeral") &&
                    *(const bool *) field_at_const(field, volume))
                        return field->key;
        }
        return NULL;
}

char *volume_claim_name(const Pod *pod, const Volume *volume) {
        if (volume->persistent_volume_claim)
                return strdup(volume->persistent_volume_claim->claim_name);
        if (!volume->ephemeral)
                return NULL;
        return text_format("%s-%s", pod->metadata.name, volume->name);
}

bool volume_is_data(const Volume *volume) {
        return volume->config_map || volume->secret || volume->downward_api || volume->projected;
}
