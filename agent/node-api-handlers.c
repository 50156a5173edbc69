/* SPDX-License-Identifier: Apache-2.0 */

/* The handlers of mainstay-api's requests on the local socket: settings, its signer, kubeconfigs,
 * decisions about clients, connections to pods' ports. */

#include "agent/node-api-handlers.h"

#include "agent/kubeclient/review-request.h"
#include "agent/node/node-api-settings.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <errno.h>

/* Created by the first request that needs it. */
static int find_self_signed(Agent *agent) {
        const SelfSignedSpec spec = { .event = agent->event,
                                      .state_dir = agent->paths.state_dir,
                                      .certificate_dir = agent->paths.certificate_dir,
                                      .node_name = agent->node.name,
                                      .hostname = agent->node.reported_hostname,
                                      .address = agent->node.address,
                                      .other_address = agent->node.other_address };

        return agent->self_signed ? 0 : self_signed_new(&spec, &agent->self_signed);
}

/* Created by the first request that needs it. */
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

/* ---- the signer ---- */

static int find_authorizer(Agent *agent);

static void on_client_authorities(const char *hash, void *userdata) {
        Agent *agent = userdata;

        if (find_authorizer(agent) >= 0)
                authorizer_set_authorities(agent->authorizer, hash);
}

/* Created by the first request that needs it. */
static int find_signer(Agent *agent, Error *reterr) {
        const ApiSignerSpec spec = { .event = agent->event,
                                     .program = agent->paths.node_api,
                                     .run_dir = agent->paths.run_dir,
                                     .on_authorities = on_client_authorities,
                                     .userdata = agent };

        return agent->signer ? 0 : api_signer_new(&spec, &agent->signer, reterr);
}

static int print_node_api_settings(Agent *agent, char **ret_json, char **ret_material,
                                   Error *reterr) {
        const NodeApiSettingsSpec spec = {
                .config = &agent->config,
                .node_name = agent->node.name,
                .manifest_dir = agent->paths.manifest_dir,
                .config_file = agent->paths.config,
                .created = node_creation_time(agent->paths.state_dir),
                .issued_pair = agent->apiserver ? apiserver_serving_pair(agent->apiserver) : NULL,
                .self_signed = agent->self_signed,
                .lone = agent->lone
        };

        return node_api_settings_to_json(&spec, ret_json, ret_material, reterr);
}

int agent_get_node_api_settings(void *userdata, char **ret_json, Error *reterr) {
        Agent *agent = userdata;
        char *material = NULL;
        int r = agent->paths.kubeconfig ? find_self_signed(agent) : find_lone_node(agent);

        if (r >= 0)
                r = find_signer(agent, reterr);
        if (r >= 0)
                r = print_node_api_settings(agent, ret_json, &material, reterr);
        if (r < 0)
                return r;
        r = api_signer_set_material(agent->signer, material);
        if (r >= 0)
                return 0;
        free(TAKE_PTR(*ret_json));
        return error_prefixf(reterr, r, "cannot give the certificate to the signer");
}

int agent_connect_signer(void *userdata, Error *reterr) {
        Agent *agent = userdata;
        int r = find_signer(agent, reterr);

        if (r < 0)
                return r;
        r = api_signer_connect(agent->signer);
        return r < 0 ? error_prefixf(reterr, r, "cannot start the signer") : r;
}

/* ---- access ---- */

static void on_review_response(const KubeResponse *response, void *userdata) {
        cleanup_free char *json = kube_review_result(response);

        access_check_reviewed(userdata, json);
}

static int start_api_review(void *userdata, AccessReviewKind kind, const char *body,
                            AccessCheck *check, void **ret_request, Error *reterr) {
        Agent *agent = userdata;
        KubeRequestSpec spec = kind == ACCESS_REVIEW_OF_TOKEN ? kube_token_review_request(body)
                                                              : kube_access_review_request(body);
        KubeRequest *request = NULL;
        int r;

        if (!agent->apiserver)
                return error_setf(reterr, EAGAIN, "this node has joined no API server");
        spec.on_done = on_review_response;
        spec.userdata = check;
        r = apiserver_start_request(agent->apiserver, &spec, &request, reterr);
        if (r < 0)
                return r;
        *ret_request = request;
        return 0;
}

static void cancel_api_review(void *request) {
        kube_request_cancel(request);
}

static int make_authorizer(Agent *agent) {
        const NodeAccessSettings settings = node_access_settings(&agent->config);

        return authorizer_new(&(AuthorizerSpec){ .node_name = agent->node.name,
                                                 .ticket_key = api_signer_ticket_key(agent->signer),
                                                 .is_alone = !agent->paths.kubeconfig,
                                                 .has_anonymous = settings.has_anonymous,
                                                 .has_token_reviews = settings.has_token_reviews,
                                                 .has_access_reviews = settings.has_access_reviews,
                                                 .token_usec = settings.token_usec,
                                                 .allowed_usec = settings.allowed_usec,
                                                 .denied_usec = settings.denied_usec,
                                                 .start_review = start_api_review,
                                                 .cancel_review = cancel_api_review,
                                                 .userdata = agent },
                              &agent->authorizer);
}

/* Created by the first client. */
static int find_authorizer(Agent *agent) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (agent->authorizer)
                return 0;
        r = find_signer(agent, &error);
        if (r < 0)
                return log_warning_errno(r, "Cannot decide about clients: %s",
                                         error_message(&error, r));
        return make_authorizer(agent);
}

static void on_access_answer(const AccessAnswer *answer, void *userdata) {
        cleanup_json json_t *object = answer->user ? api_user_to_json(answer->user) : NULL;
        cleanup_free char *user = object ? json_to_text(object, JSON_COMPACT) : NULL;

        http_access_done(userdata, answer->status, answer->message, user);
}

int agent_check_access(void *userdata, const HttpAccessQuestion *question, HttpAccess *access,
                       void **ret_check) {
        Agent *agent = userdata;
        const AccessQuestion asked = { .ticket = question->ticket,
                                       .token = question->token,
                                       .attributes =
                                               request_attributes(question->method, question->path,
                                                                  question->is_session) };
        AccessCheck *check = NULL;
        int r = find_authorizer(agent);

        if (r >= 0)
                r = authorizer_check(agent->authorizer, &asked, on_access_answer, access, &check);
        *ret_check = check;
        return r;
}

void agent_cancel_access(void *check) {
        access_check_cancel(check);
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

/* Created by the first request. */
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
        authorizer_free(agent->authorizer);
        api_signer_free(agent->signer);
        lone_node_free(agent->lone);
        self_signed_free(agent->self_signed);
        system_logs_free(agent->system_logs);
}
