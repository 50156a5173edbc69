/* SPDX-License-Identifier: Apache-2.0 */
/* Connects devices/, node-devices/, csi/ and plugins/ with the pods that use devices and volumes,
 * and with the Node. */

#include "agent/model/object-identity.h"
#include "agent/plugins/resources-server.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>

static void on_device_capacity_changed(void *userdata) {
        agent_report_node_change(userdata);
}

static void on_pod_devices_changed(const char *uid, void *userdata) {
        const Agent *agent = userdata;

        if (!uid)
                node_device_provider_on_released(agent->node_devices);
        if (agent->pod_manager)
                pod_manager_on_devices_changed(agent->pod_manager, uid);
}

int agent_build_device_manager(Agent *agent) {
        cleanup_free char *boot_id = NULL;

        (void) read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &boot_id, NULL);
        return device_manager_new(
                &(DeviceManagerConfig){ .state_dir = agent->paths.state_dir,
                                        .boot_id = boot_id,
                                        .on_capacity_changed = on_device_capacity_changed,
                                        .on_pod_changed = on_pod_devices_changed,
                                        .userdata = agent },
                &agent->devices);
}

/* ---- CSI ---- */

static void on_csi_pod_changed(const char *uid, void *userdata) {
        const Agent *agent = userdata;

        if (agent->pod_manager)
                pod_manager_on_csi_changed(agent->pod_manager, uid);
        agent_report_node_change(userdata);
}

static void on_csi_drivers_changed(void *userdata) {
        const Agent *agent = userdata;

        if (agent->apiserver)
                apiserver_csi_drivers_changed(agent->apiserver);
}

int agent_build_csi_manager(Agent *agent) {
        int r = csi_manager_new(
                &(CsiManagerConfig){ .event = agent->event,
                                     .kubelet_dir = agent->bundle_config.kubelet_dir,
                                     .node_name = agent->node.name,
                                     .on_pod_changed = on_csi_pod_changed,
                                     .on_drivers_changed = on_csi_drivers_changed,
                                     .userdata = agent },
                &agent->csi);

        agent->bundle_config.csi_sets_group = csi_manager_driver_sets_group;
        agent->bundle_config.csi_userdata = agent->csi;
        return r;
}

/* ---- pod resources ---- */

typedef struct ActivePods {
        PodResourcesList *list;
        const char *name, *namespace; /* NULL: all */
        size_t n;
} ActivePods;

/* Excludes rejected pods, and pods that have ended unless they are still terminating. */
static int add_active_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        ActivePods *pods = userdata;

        if ((status->phase == POD_SUCCEEDED || status->phase == POD_FAILED) ||
            (pods->name && !object_has_name(&pod->metadata, pods->namespace, pods->name)))
                return 0;
        pods->n++;
        return pod_resources_list_add(pods->list, pod);
}

static int list_pod_resources(PluginListMethod method, const char *name, const char *namespace,
                              Buffer *ret, Error *reterr, void *userdata) {
        const Agent *agent = userdata;
        cleanup_with(pod_resources_list_freep) PodResourcesList *list = NULL;
        ActivePods pods = { 0 };
        int r;

        if (method == PLUGIN_LIST_ALLOCATABLE)
                return pod_resources_print_allocatable(agent->devices, ret);
        list = pod_resources_list_new(agent->devices);
        if (!list)
                return -ENOMEM;
        pods.list = list;
        if (method == PLUGIN_GET_POD) {
                pods.name = name;
                pods.namespace = namespace;
        }
        r = pod_manager_for_each_pod(agent->pod_manager, add_active_pod, &pods);
        if (r < 0)
                return r;
        if (method == PLUGIN_GET_POD && pods.n == 0)
                return error_setf(reterr, ENOENT, "pod %s in namespace %s not found", name,
                                  namespace);
        return pod_resources_print_list(list, ret);
}

/* ---- plugins ---- */

static bool has_pod_of_uid(const char *uid, void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_pod_source(agent->pod_manager, uid);
}

int agent_start_plugins(Agent *agent, const char *kubelet_dir) {
        int r;

        device_manager_sweep(agent->devices, has_pod_of_uid, agent);
        csi_manager_sweep(agent->csi, has_pod_of_uid, agent);
        r = node_device_provider_new(agent->event, &agent->config.mainstay.devices, agent->devices,
                                     &agent->node_devices);
        if (r < 0)
                return log_error_errno(r, "Cannot watch the devices of the node");
        return plugin_manager_new(&(PluginManagerConfig){ .event = agent->event,
                                                          .program = agent->paths.plugin_host,
                                                          .kubelet_dir = kubelet_dir,
                                                          .devices = agent->devices,
                                                          .csi = agent->csi,
                                                          .list = list_pod_resources,
                                                          .userdata = agent },
                                  &agent->plugins);
}
