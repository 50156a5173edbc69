/* SPDX-License-Identifier: Apache-2.0 */
/* v1.PodStatus as JSON. A status is never parsed, so this code is written by hand instead of using
 * a table. */

#include "agent/model/pod-status-json.h"

#include "agent/model/containers.h"
#include "agent/model/json-tree.h"
#include "agent/model/signals.h"
#include "agent/model/total-resources.h"
#include "common/cleanup.h"

static json_t *waiting_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_writer_put_string(writer, json, "reason", state->reason);
        json_writer_put_string(writer, json, "message", state->message);
        return json;
}

static json_t *running_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_writer_put(writer, json, "startedAt", json_writer_timestamp(state->started_at));
        return json;
}

static json_t *terminated_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_writer_put(writer, json, "exitCode", json_integer(state->exit_code));
        if (state->signal != 0)
                json_writer_put(writer, json, "signal", json_integer(state->signal));
        json_writer_put_string(writer, json, "reason", state->reason);
        json_writer_put_string(writer, json, "message", state->message);
        json_writer_put(writer, json, "startedAt", json_writer_timestamp(state->started_at));
        json_writer_put(writer, json, "finishedAt", json_writer_timestamp(state->finished_at));
        json_writer_put_string(writer, json, "containerID", state->container_id);
        return json;
}

static json_t *container_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        switch (state->kind) {
        case STATE_NONE:
                break;
        case STATE_WAITING:
                json_writer_put(writer, json, "waiting", waiting_state_to_json(writer, state));
                break;
        case STATE_RUNNING:
                json_writer_put(writer, json, "running", running_state_to_json(writer, state));
                break;
        case STATE_TERMINATED:
                json_writer_put(writer, json, "terminated",
                                terminated_state_to_json(writer, state));
                break;
        }
        return json;
}

/* As in the kubelet: writable mounts are not listed; "if possible" is reported as enabled, because
 * every supported kernel can do it. */
static json_t *volume_mount_status_to_json(JsonWriter *writer, const VolumeMount *mount) {
        bool is_recursive = mount->recursive_read_only > RECURSIVE_READ_ONLY_DISABLED;
        json_t *json = json_object();

        json_writer_put_string(writer, json, "name", mount->name);
        json_writer_put_string(writer, json, "mountPath", mount->mount_path);
        if (!mount->read_only)
                return json;
        json_writer_put(writer, json, "readOnly", json_true());
        json_writer_put_string(writer, json, "recursiveReadOnly",
                               is_recursive ? "Enabled" : "Disabled");
        return json;
}

static void put_mount_statuses(JsonWriter *writer, json_t *json, const Container *container) {
        json_t *array;

        if (container->volume_mounts.n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                json_writer_append(
                        writer, array,
                        volume_mount_status_to_json(writer, &container->volume_mounts.items[i]));
        json_writer_put(writer, json, "volumeMounts", array);
}

static void put_container_user(JsonWriter *writer, json_t *json, const ContainerUser *user) {
        json_t *outer = json_object(), *inner = json_object();

        json_writer_put(writer, inner, "uid", json_integer(user->uid));
        json_writer_put(writer, inner, "gid", json_integer(user->gid));
        json_writer_put_ints(writer, inner, "supplementalGroups", &user->groups);
        json_writer_put(writer, outer, "linux", inner);
        json_writer_put(writer, json, "user", outer);
}

static json_t *resource_health_to_json(JsonWriter *writer, const ResourceStatus *status) {
        json_t *json = json_object(), *list = json_array();

        json_writer_put(writer, json, "name", json_writer_string(status->name));
        for (size_t i = 0; i < status->resources.n; i++) {
                const ResourceHealth *health = &status->resources.items[i];
                json_t *item = json_object();

                json_writer_put(writer, item, "resourceID", json_writer_string(health->id));
                json_writer_put(writer, item, "health",
                                json_string(health->is_unhealthy ? "Unhealthy" : "Healthy"));
                json_writer_append(writer, list, item);
        }
        json_writer_put(writer, json, "resources", list);
        return json;
}

static void put_allocated_resources_status(JsonWriter *writer, json_t *json,
                                           const ResourceStatusList *statuses) {
        json_t *list;

        if (statuses->n == 0)
                return;
        list = json_array();
        for (size_t i = 0; i < statuses->n; i++)
                json_writer_append(writer, list,
                                   resource_health_to_json(writer, &statuses->items[i]));
        json_writer_put(writer, json, "allocatedResourcesStatus", list);
}

static void put_if_not_empty(JsonWriter *writer, json_t *json, const char *key, json_t *value) {
        if (json_object_size(value) > 0)
                json_writer_put(writer, json, key, value);
        else
                json_decref(value);
}

/* Fields of a container that has started. */
static void put_started_container_status(JsonWriter *writer, json_t *json,
                                         const Container *container,
                                         const ContainerStatus *status) {
        static const ResourceRequirements none = { 0 };
        char signal[SIGNAL_NAME_SIZE];
        json_t *allocated =
                json_writer_object(writer, &resource_list_schema, &container->resources.requests);

        put_if_not_empty(writer, json, "allocatedResources", allocated);
        json_writer_put(writer, json, "resources",
                        json_writer_object(writer, &resource_requirements_schema,
                                           status->resources ? status->resources : &none));
        put_mount_statuses(writer, json, container);
        if (status->user.is_known)
                put_container_user(writer, json, &status->user);
        if (status->stop_signal > 0)
                json_writer_put_string(writer, json, "stopSignal",
                                       signal_name(status->stop_signal, signal));
}

static json_t *container_status_to_json(JsonWriter *writer, const Pod *pod,
                                        const ContainerStatus *status) {
        const Container *container = pod_find_container(pod, strna(status->name));
        json_t *json = json_object();

        json_writer_put(writer, json, "name", json_writer_string(strna(status->name)));
        json_writer_put(writer, json, "state", container_state_to_json(writer, &status->state));
        json_writer_put(writer, json, "lastState",
                        container_state_to_json(writer, &status->last_state));
        json_writer_put(writer, json, "ready", json_boolean(status->ready));
        json_writer_put(writer, json, "restartCount", json_integer(status->restart_count));
        json_writer_put(writer, json, "image", json_writer_string(strna(status->image)));
        json_writer_put(writer, json, "imageID", json_writer_string(strna(status->image_id)));
        json_writer_put_string(writer, json, "containerID", status->container_id);
        /* The kubelet does not report it for ephemeral containers. */
        if (!container || container_role(&pod->spec, container) != ROLE_EPHEMERAL)
                json_writer_put(writer, json, "started", json_boolean(status->started));
        if (container && status->container_id)
                put_started_container_status(writer, json, container, status);
        put_allocated_resources_status(writer, json, &status->allocated_resources_status);
        return json;
}

static json_t *pod_condition_to_json(JsonWriter *writer, PodConditionType type,
                                     const PodCondition *condition) {
        json_t *json = json_object();

        json_writer_put(writer, json, "type", json_string(pod_condition_names[type]));
        json_writer_put(writer, json, "status", json_string(condition->is_true ? "True" : "False"));
        json_writer_put(writer, json, "lastProbeTime", json_null());
        json_writer_put(writer, json, "lastTransitionTime",
                        json_writer_timestamp(condition->last_transition));
        json_writer_put_string(writer, json, "reason", condition->reason);
        json_writer_put_string(writer, json, "message", condition->message);
        return json;
}

static json_t *pod_conditions_to_json(JsonWriter *writer, const PodStatus *status) {
        json_t *array = json_array();

        for (PodConditionType type = 0; type < N_POD_CONDITIONS; type++)
                if ((status->conditions[type].is_true || !pod_condition_is_passing(type)) &&
                    (type != CONDITION_ALL_CONTAINERS_RESTARTING || status->may_restart_all))
                        json_writer_append(
                                writer, array,
                                pod_condition_to_json(writer, type, &status->conditions[type]));
        return array;
}

static void put_container_statuses(JsonWriter *writer, json_t *json, const char *key,
                                   const Pod *pod, const ContainerStatusList *list) {
        json_t *array;

        if (list->n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < list->n; i++)
                json_writer_append(writer, array,
                                   container_status_to_json(writer, pod, &list->items[i]));
        json_writer_put(writer, json, key, array);
}

static void append_address(JsonWriter *writer, json_t *list, const char *address) {
        json_t *entry = json_object();

        json_writer_put(writer, entry, "ip", json_writer_string(address));
        json_writer_append(writer, list, entry);
}

/* "podIP" and "podIPs", which also contains the address of the other family. */
static void put_address(JsonWriter *writer, json_t *json, const char *key, const char *list_key,
                        const char *address, const char *other) {
        json_t *list;

        if (!address || !address[0])
                return;
        json_writer_put(writer, json, key, json_writer_string(address));
        list = json_array();
        append_address(writer, list, address);
        if (other)
                append_address(writer, list, other);
        json_writer_put(writer, json, list_key, list);
}

/* The resources that are allocated to the pod as a whole, and, unless a resize is in progress, in
 * effect. */
static void put_pod_resources(JsonWriter *writer, json_t *json, const Pod *pod,
                              const PodStatus *status) {
        bool is_resizing = status->conditions[CONDITION_RESIZE_IN_PROGRESS].is_true;
        ResourceRequirements total = { 0 };

        if (pod_total_resources(&pod->spec, &total) >= 0) {
                put_if_not_empty(
                        writer, json, "allocatedResources",
                        json_writer_object(writer, &resource_list_schema, &total.requests));
                if (!is_resizing)
                        put_if_not_empty(
                                writer, json, "resources",
                                json_writer_object(writer, &resource_requirements_schema, &total));
        }
        schema_done(&resource_requirements_schema, &total);
}

json_t *json_writer_pod_status(JsonWriter *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        json_writer_put(writer, json, "phase", json_string(pod_phase_names[status->phase]));
        if (!status->is_rejected)
                json_writer_put(writer, json, "conditions", pod_conditions_to_json(writer, status));
        json_writer_put_string(writer, json, "message", status->message);
        json_writer_put_string(writer, json, "reason", status->reason);
        put_address(writer, json, "hostIP", "hostIPs", status->host_ip, status->other_host_ip);
        put_address(writer, json, "podIP", "podIPs", status->pod_ip, status->other_pod_ip);
        if (status->start_time > 0)
                json_writer_put(writer, json, "startTime",
                                json_writer_timestamp(status->start_time));
        put_container_statuses(writer, json, "initContainerStatuses", pod,
                               &status->init_containers);
        put_container_statuses(writer, json, "containerStatuses", pod, &status->containers);
        put_container_statuses(writer, json, "ephemeralContainerStatuses", pod,
                               &status->ephemeral_containers);
        json_writer_put(writer, json, "qosClass", json_string(qos_class_names[status->qos_class]));
        if (!status->is_rejected && status->containers.n > 0)
                put_pod_resources(writer, json, pod, status);
        return json;
}

json_t *pod_status_to_json_tree(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        json_t *json = json_writer_pod_status(&writer, pod, status);

        return json_writer_finish_tree(&writer, json);
}
