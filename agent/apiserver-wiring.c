/* SPDX-License-Identifier: Apache-2.0 */
/* Connects apiserver/, which synchronizes the node with an API server, with the sources of its
 * reports and the users of its objects. */

#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/log.h"

void report_events_to_apiserver(Agent *agent) {
        while (agent->apiserver && apiserver_accepts_events(agent->apiserver)) {
                cleanup_free char *json = NULL;

                if (event_store_next(agent->events, agent->last_reported_event,
                                     &agent->last_reported_event, &json) <= 0)
                        return;
                apiserver_record_event(agent->apiserver, json);
        }
}

NodeSources agent_list_sources(void *userdata) {
        const Agent *agent = userdata;

        return status_report_add_to(agent->report, desired_state_sources(agent->desired));
}

NodeStatusInputs agent_node_status_inputs(const Agent *agent) {
        return (NodeStatusInputs){
                .local = &agent->node_labels.local,
                .hostname = agent->node.reported_hostname,
                .address = agent->node.address,
                .other_address = agent->node.other_address,
                .machine = &agent->node,
                .network = &agent->cni_settings,
                .storage = agent->bundle_config.storage_capacity,
                .max_pods = config_max_pods(&agent->config, agent->node.n_cpus),
                .node_api_port = config_node_api_port(&agent->config),
                .system = &agent->config.system,
                .kube = &agent->config.kube,
                .eviction = &agent->config.eviction,
                .conditions = eviction_manager_conditions(agent->eviction_manager),
                .images = agent->images,
                .runtimes = &agent->config.mainstay.runtimes,
                .list_sources = agent_list_sources,
                .devices = agent->devices,
                .csi = agent->csi,
                .userdata = (void *) (uintptr_t) agent,
        };
}

void agent_report_node_change(void *userdata) {
        const Agent *agent = userdata;

        if (agent->apiserver)
                apiserver_node_changed(agent->apiserver);
        if (agent->http_server)
                http_server_notify_objects(agent->http_server, HTTP_NODE);
}

/* The Node object at the API server has other labels or taints. */
static void on_external_node_labels(const NodeLabelsTaints *external, void *userdata) {
        Agent *agent = userdata;
        int r = node_labels_set_external(&agent->node_labels, external);

        if (r < 0)
                (void) log_error_errno(r, "Cannot apply the labels and taints of the Node object");
        if (r > 0)
                agent_apply_node_labels(agent);
}

static void on_apiserver_state_changed(void *userdata) {
        report_events_to_apiserver(userdata);
        agent_schedule_status_update(userdata);
}

int build_apiserver_sync(Agent *agent, bool drain) {
        if (!agent->paths.kubeconfig || drain)
                return 0;
        return apiserver_new(
                &(ApiServerConfig){ .event = agent->event,
                                    .kubeconfig = agent->paths.kubeconfig,
                                    .bootstrap_kubeconfig = agent->paths.bootstrap_kubeconfig,
                                    .certificate_dir = agent->paths.certificate_dir,
                                    .rotates_embedded = agent->config.rotate_certificates,
                                    .has_serving_certificate = agent->config.server_tls_bootstrap,
                                    .node_name = agent->node.name,
                                    .state_dir = agent->paths.state_dir,
                                    .run_dir = agent->paths.run_dir,
                                    .storage = agent->storage,
                                    .pod_manager = agent->pod_manager,
                                    .daemonsets_by = agent->config.mainstay.daemonsets_by,
                                    .shared = &agent->config.mainstay.shared_objects,
                                    .daemonset_namespaces =
                                            agent->config.mainstay.daemonset_namespaces,
                                    .node = &agent->node_labels.effective,
                                    .node_inputs = agent_node_status_inputs(agent),
                                    .on_recompute_due = agent_request_recompute,
                                    .on_node = on_external_node_labels,
                                    .on_event = agent_on_event,
                                    .on_state_changed = on_apiserver_state_changed,
                                    .userdata = agent },
                &agent->apiserver);
}

/* Authors of manifests are trusted; users who create DaemonSets at an API server are not. */
int agent_admit_daemonset_pod(const PodSource *source, const DaemonSet *set, const Pod *pod,
                              DaemonSetRefusal *ret, void *userdata) {
        const Agent *agent = userdata;

        if (source->kind != POD_SOURCE_APISERVER_DAEMONSET)
                return 1;
        if (agent->apiserver)
                return apiserver_admit_daemonset_pod(agent->apiserver, set, pod, ret);
        *ret = (DaemonSetRefusal){ "NamespaceUnknown", strdup("the node has no API server") };
        return ret->message ? 0 : -ENOMEM;
}

void plug_in_apiserver(Agent *agent, ApiServerPodSource *source) {
        ApiServerSync *api = agent->apiserver;

        *source = (ApiServerPodSource){ .add_daemonsets = apiserver_add_daemonsets,
                                        .add_pods = apiserver_add_desired_pods,
                                        .explain_stop = apiserver_explain_stop,
                                        .restore_pod = apiserver_restore_pod,
                                        .restore_daemonset = apiserver_restore_daemonset,
                                        .userdata = api };
        agent->resolvers.apiserver_objects =
                (ObjectLookup){ .find = apiserver_find_object,
                                .is_awaited = apiserver_is_object_pending,
                                .userdata = api };
        agent->resolvers.apiserver_services =
                (ServiceLookup){ .add_variables = apiserver_add_service_variables,
                                 .userdata = api };
        agent->resolvers.apiserver_tokens =
                (TokenLookup){ .find = apiserver_find_token, .userdata = api };
        agent->resolvers.apiserver_claims = (ClaimAccess){ .refresh = apiserver_refresh_claim,
                                                           .update = apiserver_update_claim,
                                                           .userdata = api };
}
