/* SPDX-License-Identifier: Apache-2.0 */

/* The Node object: what an API server gets of it, and /node on the local socket. */

#include "agent/node-handlers.h"

#include "agent/kubeclient/node-status-json.h"
#include "agent/model/json.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <fcntl.h>
#include <sys/stat.h>

#define cleanup_json cleanup_with(json_decrefp)

NodeStatusInputs agent_node_status_inputs(const Agent *agent) {
        return (NodeStatusInputs){
                .local = &agent->node_labels.local,
                .hostname = agent->node.reported_hostname,
                .address = agent->node.address,
                .machine = &agent->node,
                .storage = agent->bundle_config.storage_capacity,
                .max_pods = config_max_pods(&agent->config, agent->node.n_cpus),
                .node_api_port = config_node_api_port(&agent->config),
                .system = &agent->config.system,
                .kube = &agent->config.kube,
                .eviction = &agent->config.eviction,
                .conditions = eviction_manager_conditions(agent->eviction_manager),
                .images = agent->images,
                .runtimes = &agent->config.mainstay.runtimes,
        };
}

void agent_report_node_change(const Agent *agent) {
        if (agent->apiserver)
                apiserver_node_changed(agent->apiserver);
        if (agent->http_server)
                http_server_notify_objects(agent->http_server, HTTP_NODE);
}

/* Since when the directory of the agent's state exists; 0: not known. */
static uint64_t find_node_creation(const Agent *agent) {
        struct statx st;

        if (statx(AT_FDCWD, agent->state_dir, 0, STATX_BTIME, &st) < 0 ||
            !(st.stx_mask & STATX_BTIME))
                return 0;
        return (uint64_t) st.stx_btime.tv_sec * USEC_PER_SEC;
}

static json_t *print_node_time(uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        return realtime > 0 ? json_string(format_rfc3339(buffer, realtime)) : NULL;
}

/* Nothing asks the agent at times of its own, so a condition was checked last when it changed: the
 * object is the same as long as nothing happens. */
static void add_condition_times(const Agent *agent, json_t *conditions) {
        size_t i;
        json_t *condition;

        json_array_foreach(conditions, i, condition) {
                json_t *since = json_object_get(condition, "lastTransitionTime");

                if (!since && agent->ready_since > 0) {
                        since = print_node_time(agent->ready_since);
                        (void) json_object_set_new(condition, "lastTransitionTime", since);
                }
                if (since)
                        (void) json_object_set(condition, "lastHeartbeatTime", since);
        }
}

static int add_node_status(Agent *agent, json_t *node) {
        const NodeStatusInputs inputs = agent_node_status_inputs(agent);
        json_t *status = json_object_get(node, "status");
        cleanup_json json_t *collected_json = NULL;
        NodeStatus collected = { 0 };
        int r = collect_node_status(&inputs, NULL, NULL, &collected);

        if (r < 0)
                return r;
        collected_json = node_status_to_json(&collected);
        node_status_done(&collected);
        if (!collected_json || json_object_update(status, collected_json) < 0)
                return -ENOMEM;
        add_condition_times(agent, json_object_get(status, "conditions"));
        return 0;
}

char *agent_get_node(void *userdata) {
        Agent *agent = userdata;
        cleanup_free char *refused = NULL, *text = NULL;
        cleanup_json json_t *node = NULL;
        NodeApiServerConnection connection = { 0 };

        if (agent->apiserver)
                apiserver_connection_status(agent->apiserver, &connection, &refused);
        text = node_to_json(&agent->node_labels.effective,
                            eviction_manager_conditions(agent->eviction_manager), &connection);
        node = text ? json_loads(text, 0, NULL) : NULL;
        if (!node || add_node_status(agent, node) < 0)
                return NULL;
        (void) json_object_set_new(json_object_get(node, "metadata"), "creationTimestamp",
                                   print_node_time(find_node_creation(agent)));
        return json_dumps(node, JSON_COMPACT);
}
