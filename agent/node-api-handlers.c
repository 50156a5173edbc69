/* SPDX-License-Identifier: Apache-2.0 */

/* The handlers of what mainstay-api asks for on the local socket: settings, kubeconfigs, reviews by
 * the API server, connections to ports of pods. */

#include "agent/node-api-handlers.h"

#include "agent/kubeclient/review-request.h"
#include "agent/node/node-api-settings.h"
#include "agent/wiring.h"

#include <errno.h>

/* Made by the first request that needs it. */
static int find_self_signed(Agent *agent) {
        const SelfSignedSpec spec = { .event = agent->event,
                                      .state_dir = agent->paths.state_dir,
                                      .certificate_dir = agent->paths.certificate_dir,
                                      .node_name = agent->node.name,
                                      .hostname = agent->node.reported_hostname,
                                      .address = agent->node.address };

        return agent->self_signed ? 0 : self_signed_new(&spec, &agent->self_signed);
}

/* Made by the first request that needs it. */
static int find_lone_node(Agent *agent) {
        const LoneNodeSpec spec = { .event = agent->event,
                                    .state_dir = agent->paths.state_dir,
                                    .node_name = agent->node.name };

        return agent->lone ? 0 : lone_node_new(&spec, &agent->lone);
}

int agent_make_kubeconfig(void *userdata, char **ret_json, Error *reterr) {
        Agent *agent = userdata;
        int r;

        if (agent->paths.kubeconfig)
                return error_setf(reterr, EINVAL,
                                  "this node belongs to an API server (%s); use a kubeconfig of "
                                  "the cluster",
                                  agent->paths.kubeconfig);
        r = find_lone_node(agent);
        return r < 0 ? r : lone_node_make_kubeconfig(agent->lone, &agent->config, ret_json, reterr);
}

int agent_get_node_api_settings(void *userdata, char **ret_json, Error *reterr) {
        Agent *agent = userdata;
        int r = agent->paths.kubeconfig ? find_self_signed(agent) : find_lone_node(agent);

        if (r < 0)
                return r;
        return node_api_settings_to_json(
                &(NodeApiSettingsSpec){
                        .config = &agent->config,
                        .node_name = agent->node.name,
                        .manifest_dir = agent->paths.manifest_dir,
                        .config_file = agent->paths.config,
                        .created = node_creation_time(agent->paths.state_dir),
                        .issued_pair =
                                agent->apiserver ? apiserver_serving_pair(agent->apiserver) : NULL,
                        .self_signed = agent->self_signed,
                        .lone = agent->lone },
                ret_json, reterr);
}

/* ---- reviews ---- */

static void on_review_response(const KubeResponse *response, void *userdata) {
        http_review_done(userdata, kube_review_result(response));
}

int agent_start_review(void *userdata, HttpReviewKind kind, const char *body, HttpReview *review,
                       void **ret_request, Error *reterr) {
        Agent *agent = userdata;
        KubeRequestSpec spec = kind == HTTP_TOKEN_REVIEW ? kube_token_review_request(body)
                                                         : kube_access_review_request(body);
        KubeRequest *request = NULL;
        int r;

        if (!agent->apiserver)
                return error_setf(reterr, EAGAIN, "this node has joined no API server");
        spec.on_done = on_review_response;
        spec.userdata = review;
        r = apiserver_start_request(agent->apiserver, &spec, &request, reterr);
        if (r < 0)
                return r;
        *ret_request = request;
        return 0;
}

void agent_cancel_review(void *request) {
        kube_request_cancel(request);
}

/* ---- ports ---- */

int agent_check_pod(void *userdata, const char *namespace, const char *pod, const char *uid,
                    Error *reterr) {
        Agent *agent = userdata;

        return pod_manager_check_pod(agent->pod_manager, namespace, pod, uid, reterr);
}

int agent_connect_to_port(void *userdata, const char *namespace, const char *pod, const char *uid,
                          unsigned port, bool is_ipv6, Error *reterr) {
        Agent *agent = userdata;

        return pod_manager_connect_to_port(agent->pod_manager, namespace, pod, uid, port, is_ipv6,
                                           reterr);
}

/* ---- logs of the node ---- */

/* Made by the first request. */
static int find_system_logs(Agent *agent) {
        const OptionalBool *is_on = &agent->config.enable_system_log_handler;
        const SystemLogsConfig config = { .event = agent->event,
                                          .directory = agent->paths.log_dir,
                                          .is_enabled = !is_on->is_set || is_on->value,
                                          .has_query = agent->config.enable_system_log_query };

        return agent->system_logs ? 0 : system_logs_new(&config, &agent->system_logs);
}

int agent_open_system_log(void *userdata, const char *path, const SystemLogQuery *query,
                          const char **ret_type, Error *reterr) {
        Agent *agent = userdata;
        int r = find_system_logs(agent);

        return r < 0 ? r : system_logs_open(agent->system_logs, path, query, ret_type, reterr);
}

void agent_free_node_api(Agent *agent) {
        node_api_launcher_free(agent->node_api_launcher);
        lone_node_free(agent->lone);
        self_signed_free(agent->self_signed);
        system_logs_free(agent->system_logs);
}
