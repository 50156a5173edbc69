/* SPDX-License-Identifier: Apache-2.0 */

/* What mainstay-api asks for on the local socket: settings, reviews by the API server, connections
 * to ports of pods. It is without the key of the node and reads no file: it gets what it needs
 * here. */

#include "agent/node-api-handlers.h"

#include "agent/model/duration.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>
#include <jansson.h>

enum {
        PEM_BYTES_MAX = 512 * 1024,
};

/* ---- settings ---- */

static int add_pem_file(json_t *settings, const char *name, const char *path, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        if (!path || !path[0])
                return 0;
        r = read_file_at(AT_FDCWD, path, PEM_BYTES_MAX, &text, &length);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        r = json_object_set_new(settings, name, json_string(text));
        explicit_bzero(text, length);
        return r < 0 ? error_setf(reterr, EINVAL, "%s is not a PEM file", path) : 0;
}

/* A duration of the configuration, which has been checked. */
static json_int_t read_cache_msec(const char *text, uint64_t usec) {
        if (text)
                (void) duration_parse(text, &usec);
        return (json_int_t) (usec / USEC_PER_MSEC);
}

static bool is_on_unless_off(OptionalBool value) {
        return !value.is_set || value.value;
}

static json_t *list_plain_settings(const Agent *agent) {
        const AuthenticationConfig *authentication = &agent->config.authentication;
        const AuthorizationConfig *authorization = &agent->config.authorization;

        return json_pack(
                "{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:I, s:I, s:I}", "nodeName",
                agent->node.name, "kubernetesVersion", NODE_KUBELET_VERSION, "manifestDirectory",
                agent->manifest_dir, "alone", !agent->kubeconfig, "anonymous",
                authentication->anonymous.enabled, "tokenReviews",
                is_on_unless_off(authentication->webhook.enabled), "accessReviews",
                authorization->mode != AUTHORIZATION_ALWAYS_ALLOW, "debuggingHandlers",
                is_on_unless_off(agent->config.enable_debugging_handlers), "systemLogs",
                is_on_unless_off(agent->config.enable_system_log_handler), "systemLogQuery",
                agent->config.enable_system_log_query, "tokenCacheMilliseconds",
                read_cache_msec(authentication->webhook.cache_ttl, 120 * USEC_PER_SEC),
                "allowedCacheMilliseconds",
                read_cache_msec(authorization->webhook.cache_authorized_ttl, 300 * USEC_PER_SEC),
                "deniedCacheMilliseconds",
                read_cache_msec(authorization->webhook.cache_unauthorized_ttl, 30 * USEC_PER_SEC));
}

/* The certificate that the API server has issued; the settings contain one only. */
static int add_issued_certificate(const Agent *agent, json_t *settings) {
        const char *pair = agent->apiserver ? apiserver_serving_pair(agent->apiserver) : NULL;

        if (!pair)
                return 0;
        if (json_object_set_new(settings, "certificate", json_string(pair)) < 0 ||
            json_object_set_new(settings, "key", json_string(pair)) < 0)
                return -ENOMEM;
        return 1;
}

static int add_configured_certificate(const Agent *agent, json_t *settings, Error *reterr) {
        int r = add_pem_file(settings, "certificate", agent->config.tls_cert_file, reterr);

        return r < 0 ? r
                     : add_pem_file(settings, "key", agent->config.tls_private_key_file, reterr);
}

/* Made by the first request that needs it. */
static int find_self_signed(Agent *agent) {
        if (!agent->certificate_dir)
                agent->certificate_dir = path_join(agent->state_dir, "pki");
        if (!agent->certificate_dir)
                return -ENOMEM;
        return agent->self_signed
                       ? 0
                       : self_signed_new(
                                 &(SelfSignedSpec){ .event = agent->event,
                                                    .directory = agent->certificate_dir,
                                                    .node_name = agent->node.name,
                                                    .hostname = agent->node.reported_hostname,
                                                    .address = agent->node.address },
                                 &agent->self_signed);
}

static int add_self_signed_certificate(Agent *agent, json_t *settings, Error *reterr) {
        int r;

        if (json_object_get(settings, "certificate"))
                return 0;
        r = find_self_signed(agent);
        return r < 0 ? r : self_signed_add_settings(agent->self_signed, settings, reterr);
}

/* Made by the first request that needs it. */
static int find_lone_node(Agent *agent) {
        const LoneNodeSpec spec = { .event = agent->event,
                                    .state_dir = agent->state_dir,
                                    .node_name = agent->node.name };

        return agent->lone ? 0 : lone_node_new(&spec, &agent->lone);
}

static int add_lone_node_settings(Agent *agent, json_t *settings, Error *reterr) {
        int r;

        if (agent->kubeconfig)
                return 0;
        r = find_lone_node(agent);
        return r < 0 ? r : lone_node_add_settings(agent->lone, settings, reterr);
}

int agent_make_kubeconfig(void *userdata, char **ret_json, Error *reterr) {
        Agent *agent = userdata;
        int r;

        if (agent->kubeconfig)
                return error_setf(reterr, EINVAL,
                                  "this node belongs to an API server (%s); use a kubeconfig of "
                                  "the cluster",
                                  agent->kubeconfig);
        r = find_lone_node(agent);
        return r < 0 ? r
                     : lone_node_make_kubeconfig(agent->lone, agent->config.tls_cert_file, ret_json,
                                                 reterr);
}

int agent_get_node_api_settings(void *userdata, char **ret_json, Error *reterr) {
        Agent *agent = userdata;
        const Config *config = &agent->config;
        cleanup_with(json_decrefp) json_t *settings = list_plain_settings(agent);
        int r;

        if (!settings)
                return -ENOMEM;
        r = add_issued_certificate(agent, settings);
        if (r == 0)
                r = add_configured_certificate(agent, settings, reterr);
        if (r >= 0)
                r = add_pem_file(settings, "clientCA", config->authentication.x509.client_ca_file,
                                 reterr);
        if (r >= 0)
                r = add_lone_node_settings(agent, settings, reterr);
        if (r >= 0)
                r = add_self_signed_certificate(agent, settings, reterr);
        if (r < 0)
                return r;
        *ret_json = json_dumps(settings, JSON_COMPACT);
        return *ret_json ? 0 : -ENOMEM;
}

/* ---- reviews ---- */

static char *format_review_error(const KubeResponse *response) {
        cleanup_free char *message = kube_response_describe_error(response);
        cleanup_with(json_decrefp) json_t *json =
                json_pack("{s:s}", "error", message ? message : "out of memory");

        return json ? json_dumps(json, JSON_COMPACT) : NULL;
}

static void on_review_response(const KubeResponse *response, void *userdata) {
        bool is_good = !response->error && response->status / 100 == 2;

        http_review_done(userdata,
                         is_good ? strdup(response->body) : format_review_error(response));
}

int agent_start_review(void *userdata, HttpReviewKind kind, const char *body, HttpReview *review,
                       void **ret_request, Error *reterr) {
        Agent *agent = userdata;
        KubeRequestSpec spec = { .method = "POST",
                                 .path = kind == HTTP_TOKEN_REVIEW
                                                 ? "/apis/authentication.k8s.io/v1/tokenreviews"
                                                 : "/apis/authorization.k8s.io/v1/"
                                                   "subjectaccessreviews",
                                 .body = body,
                                 .body_length = strlen(body),
                                 .deadline_usec = 10 * USEC_PER_SEC,
                                 .on_done = on_review_response,
                                 .userdata = review };
        KubeRequest *request = NULL;
        int r;

        if (!agent->apiserver)
                return error_setf(reterr, EAGAIN, "this node has joined no API server");
        r = apiserver_start_request(agent->apiserver, &spec, &request, reterr);
        if (r >= 0)
                *ret_request = request;
        return r;
}

void agent_cancel_review(void *request) {
        kube_request_cancel(request);
}

/* ---- ports ---- */

int agent_open_port(void *userdata, const char *namespace, const char *pod, const char *uid,
                    unsigned port, bool is_ipv6, Error *reterr) {
        Agent *agent = userdata;

        return pod_manager_open_port(agent->pod_manager, namespace, pod, uid, port, is_ipv6,
                                     reterr);
}

/* ---- logs of the node ---- */

int agent_open_system_log(void *userdata, const char *path, const SystemLogQuery *query,
                          const char **ret_type, Error *reterr) {
        Agent *agent = userdata;
        int r = 0;

        if (!is_on_unless_off(agent->config.enable_system_log_handler) ||
            (query && !agent->config.enable_system_log_query))
                return error_setf(reterr, EPERM, "logs endpoint is disabled.");
        if (!agent->system_logs) /* made by the first request */
                r = system_logs_new(agent->event, agent->log_dir, &agent->system_logs);
        if (r < 0)
                return r;
        if (!query)
                return system_logs_open(agent->system_logs, path, ret_type);
        *ret_type = "text/plain; charset=utf-8";
        return system_logs_query(agent->system_logs, query, reterr);
}

void agent_free_node_api(Agent *agent) {
        lone_node_free(agent->lone);
        self_signed_free(agent->self_signed);
        system_logs_free(agent->system_logs);
}
