/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the parts of the module, connects them, and connects to the API server. It makes no
 * decisions. */

#include "agent/apiserver/apiserver.h"

#include "agent/apiserver/cache.h"
#include "agent/apiserver/claim-updates.h"
#include "agent/apiserver/cluster-identity.h"
#include "agent/apiserver/connection-status.h"
#include "agent/apiserver/csi-node.h"
#include "agent/apiserver/evaluated-daemonsets.h"
#include "agent/apiserver/node-credentials.h"
#include "agent/apiserver/node-registration.h"
#include "agent/apiserver/object-updates.h"
#include "agent/apiserver/referenced-objects.h"
#include "agent/apiserver/server-pods.h"
#include "agent/apiserver/service-account-tokens.h"
#include "agent/apiserver/services.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/text.h"

struct ApiServerSync {
        ApiServerConfig config;
        KubeClient *client; /* NULL: no kubeconfig was read yet */
        KubeClient *trial;  /* of 'next', whose cluster is being queried; NULL: none */
        Kubeconfig next;
        ClusterIdentity *cluster;
        ApiServerCache *cache, *run_cache;
        ConnectionStatus *connection;
        ObjectUpdates *updates;
        ReferencedObjects *objects;
        ServiceAccountTokens *tokens;
        ApiServerServices *services;
        AdmittedPods *admitted;
        NamespacePolicies *policies;
        ApiServerDaemonSets *daemonsets;
        bool has_started_daemonsets;
        ApiServerPods *pods;
        NodeRegistration *node;
        CsiNodeWriter *csi_node; /* NULL: there are no CSI drivers */
        ClaimUpdates *claims;
        ApiServerCredentials *credentials;
};

/* ---- callbacks of the parts ---- */

static void schedule_recompute(void *userdata) {
        const ApiServerSync *api = userdata;

        api->config.on_recompute_due(api->config.userdata);
}

static bool has_updated_objects(const Pod *pod, void *userdata) {
        const ApiServerSync *api = userdata;

        return object_updates_concern(api->updates, pod);
}

static void update_pods_of_changed_objects(void *userdata) {
        ApiServerSync *api = userdata;

        pod_manager_on_objects_changed(api->config.pod_manager, has_updated_objects, api);
}

static KubeClientState read_client_state(void *userdata) {
        const ApiServerSync *api = userdata;

        return api->client ? kube_client_state(api->client) : (KubeClientState){ 0 };
}

static KubeClient *read_connected_client(void *userdata) {
        const ApiServerSync *api = userdata;

        return api->client;
}

static void report_state_changed(void *userdata) {
        const ApiServerSync *api = userdata;

        api->config.on_state_changed(api->config.userdata);
}

static void on_client_state_changed(void *userdata) {
        const ApiServerSync *api = userdata;

        namespace_policies_on_connection(api->policies);
        report_state_changed(userdata);
}

static void report_node_status(void *userdata) {
        ApiServerSync *api = userdata;

        node_registration_update(api->node);
}

static const Pod *find_bound_pod(const DaemonSet *set, void *userdata) {
        ApiServerSync *api = userdata;

        return apiserver_pods_controlled_pod(api->pods, set);
}

static void retire_bound_pod(const DaemonSet *set, const char *why, void *userdata) {
        ApiServerSync *api = userdata;

        apiserver_pods_retire_controlled(api->pods, set, why);
}

static void on_pod_unbound(const Pod *pod, void *userdata) {
        ApiServerSync *api = userdata;

        admitted_pods_add(api->admitted, pod);
}

static void on_external_node(const NodeLabelsTaints *external, void *userdata) {
        const ApiServerSync *api = userdata;

        api->config.on_node(external, api->config.userdata);
}

static void on_node_uid_changed(const char *uid, void *userdata) {
        ApiServerSync *api = userdata;

        apiserver_pods_set_node_uid(api->pods, uid);
        if (api->csi_node)
                csi_node_writer_set_node_uid(api->csi_node, uid);
}

static void on_server_event(const PodEvent *event, void *userdata) {
        const ApiServerSync *api = userdata;

        api->config.on_event(event, api->config.userdata);
}

static void take_claim(const ObjectKey *key, const char *json, size_t length, void *userdata) {
        const ApiServerSync *api = userdata;

        referenced_objects_take(api->objects, key, json, length);
}

static void relist_objects(void *userdata) {
        ApiServerSync *api = userdata;

        kube_client_discard_versions(api->client);
}

/* Called only after the server has answered the pod list: otherwise the agent could create another
 * pod for a DaemonSet whose pod the controller has already bound to this node. */
static void start_daemonsets(void *userdata) {
        ApiServerSync *api = userdata;
        int r;

        if (api->has_started_daemonsets)
                return;
        r = apiserver_daemonsets_start(api->daemonsets, api->client);
        if (r < 0)
                log_error("Cannot watch the DaemonSets of the API server: %s; retrying when it "
                          "lists the pods again",
                          strerror(-r));
        api->has_started_daemonsets = r >= 0;
}

/* ---- the connection ---- */

static int start_parts(ApiServerSync *api) {
        int r = service_account_tokens_start(api->tokens, api->client);

        if (r < 0)
                return r;
        r = referenced_objects_set_client(api->objects, api->client);
        if (r < 0)
                return r;
        r = node_registration_start(api->node, api->client);
        if (r >= 0 && api->csi_node)
                r = csi_node_writer_start(api->csi_node, api->client);
        if (r >= 0)
                r = claim_updates_start(api->claims, api->client);
        if (r < 0)
                return r;
        namespace_policies_set_client(api->policies, api->client);
        r = apiserver_services_watch(api->services, api->client);
        if (r < 0)
                return r;
        return apiserver_pods_start(api->pods, api->client);
}

/* If it is only likely that this is another cluster, the pods follow from the pod list of the new
 * server. */
static void forget_cluster(ApiServerSync *api, bool is_certain) {
        log_warning(
                "The API server of %s %s to another cluster than before: the cache of objects and "
                "tokens is dropped%s",
                api->config.kubeconfig, is_certain ? "belongs" : "seems to belong",
                is_certain ? ", and the pods of the other cluster are stopped" : "");
        referenced_objects_forget_cached(api->objects);
        service_account_tokens_forget_cached(api->tokens);
        apiserver_services_forget_cached(api->services);
        namespace_policies_forget_cached(api->policies);
        admitted_pods_forget(api->admitted);
        if (is_certain)
                apiserver_pods_forget_bound(api->pods);
}

static void drop_trial(ApiServerSync *api) {
        cluster_identity_cancel_trial(api->cluster);
        api->trial = kube_client_free(api->trial);
        kubeconfig_done(&api->next);
}

/* While the agent runs, a change of the kubeconfig does not change the cluster. */
static void on_trial_decided(ClusterVerdict verdict, void *userdata) {
        ApiServerSync *api = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = verdict != CLUSTER_SAME ? -EXDEV
                                        : kube_client_reload(api->client, &api->next, &error);

        if (r >= 0)
                cluster_identity_accept_trial(api->cluster);
        else if (r == -EXDEV)
                log_error("The kubeconfig %s belongs to another cluster now; the last one stays in "
                          "use until mainstayd is restarted",
                          api->config.kubeconfig);
        else
                log_error("Cannot use the kubeconfig %s: %s; the last one stays in use",
                          api->config.kubeconfig, error_message(&error, r));
        drop_trial(api);
}

/* Nothing from the new server has been used yet; see cluster_identity_guard(). */
static void on_other_cluster(ClusterVerdict verdict, void *userdata) {
        ApiServerSync *api = userdata;

        forget_cluster(api, verdict == CLUSTER_OTHER);
        kube_client_discard_versions(api->client);
        schedule_recompute(api);
}

/* A server with another address or authority is not used before its cluster is known. */
static int try_kubeconfig(ApiServerSync *api, const Kubeconfig *kubeconfig, Error *reterr) {
        int r = cluster_identity_is_doubtful(api->cluster, kubeconfig);

        if (r <= 0)
                return r < 0 ? r : kube_client_reload(api->client, kubeconfig, reterr);
        drop_trial(api);
        r = kubeconfig_copy(kubeconfig, &api->next);
        if (r >= 0)
                r = kube_client_new(api->config.event, kubeconfig, &api->trial, reterr);
        if (r >= 0)
                r = cluster_identity_try(api->cluster, api->trial, kubeconfig);
        if (r < 0)
                drop_trial(api);
        return r;
}

static int connect_apiserver(ApiServerSync *api, const Kubeconfig *kubeconfig, Error *reterr) {
        const char *credentials_error;
        int r = kube_client_new(api->config.event, kubeconfig, &api->client, reterr);

        if (r < 0)
                return r;
        kube_client_set_state_callback(api->client, on_client_state_changed, api);
        r = cluster_identity_guard(api->cluster, api->client, kubeconfig);
        if (r >= 0)
                r = start_parts(api);
        if (r < 0)
                return r;
        log_info("Using the API server %s of %s", kubeconfig->server, api->config.kubeconfig);
        credentials_error = kube_client_state(api->client).credentials_error;
        if (credentials_error)
                log_warning("Cannot use the credentials of kubeconfig %s: %s",
                            api->config.kubeconfig, credentials_error);
        schedule_recompute(api); /* from now on the objects of pods are watched */
        api->config.on_state_changed(api->config.userdata);
        return 0;
}

static int use_kubeconfig(const Kubeconfig *kubeconfig, void *userdata, Error *reterr) {
        ApiServerSync *api = userdata;

        return api->client ? try_kubeconfig(api, kubeconfig, reterr)
                           : connect_apiserver(api, kubeconfig, reterr);
}

/* ---- construction ---- */

static int new_object_parts(ApiServerSync *api) {
        const ApiServerConfig *config = &api->config;
        int r = object_updates_new(config->event, update_pods_of_changed_objects, api,
                                   &api->updates);

        if (r < 0)
                return r;
        r = referenced_objects_new(&(ReferencedObjectsSpec){ .event = config->event,
                                                             .node_name = config->node_name,
                                                             .cache = api->cache,
                                                             .connection = api->connection,
                                                             .shared = config->shared,
                                                             .updates = api->updates,
                                                             .on_renewed = schedule_recompute,
                                                             .userdata = api },
                                   &api->objects);
        if (r >= 0 && config->node_inputs.csi)
                r = csi_node_writer_new(config->event, config->node_name,
                                        csi_manager_drivers(config->node_inputs.csi),
                                        &api->csi_node);
        if (r < 0)
                return r;
        r = claim_updates_new(config->event, take_claim, api, &api->claims);
        if (r < 0)
                return r;
        r = service_account_tokens_new(&(ServiceAccountTokensSpec){ .event = config->event,
                                                                    .cache = api->cache,
                                                                    .run_cache = api->run_cache,
                                                                    .updates = api->updates },
                                       &api->tokens);
        if (r < 0)
                return r;
        return apiserver_services_new(&(ApiServerServicesSpec){ .event = config->event,
                                                                .cache = api->cache,
                                                                .connection = api->connection,
                                                                .updates = api->updates },
                                      &api->services);
}

static int new_daemonset_parts(ApiServerSync *api) {
        const ApiServerConfig *config = &api->config;
        int r = admitted_pods_new(api->cache, &api->admitted);

        if (r < 0)
                return r;
        r = namespace_policies_new(&(NamespacePoliciesSpec){ .event = config->event,
                                                             .cache = api->cache,
                                                             .connection = api->connection,
                                                             .on_changed = schedule_recompute,
                                                             .userdata = api },
                                   &api->policies);
        if (r < 0)
                return r;
        return apiserver_daemonsets_new(
                &(ApiServerDaemonSetsSpec){ .event = config->event,
                                            .node_name = config->node_name,
                                            .daemonsets_by = config->daemonsets_by,
                                            .namespaces = config->daemonset_namespaces,
                                            .admitted = api->admitted,
                                            .policies = api->policies,
                                            .connection = api->connection,
                                            .on_recompute_due = schedule_recompute,
                                            .node = config->node,
                                            .find_bound_pod = find_bound_pod,
                                            .retire_bound_pod = retire_bound_pod,
                                            .on_event = on_server_event,
                                            .userdata = api },
                &api->daemonsets);
}

static int new_pod_parts(ApiServerSync *api) {
        const ApiServerConfig *config = &api->config;

        return apiserver_pods_new(&(ApiServerPodsSpec){ .event = config->event,
                                                        .node_name = config->node_name,
                                                        .run_dir = config->run_dir,
                                                        .pod_manager = config->pod_manager,
                                                        .cache = api->cache,
                                                        .connection = api->connection,
                                                        .objects = api->objects,
                                                        .tokens = api->tokens,
                                                        .on_unbound = on_pod_unbound,
                                                        .on_answered = start_daemonsets,
                                                        .on_recompute_due = schedule_recompute,
                                                        .userdata = api },
                                  &api->pods);
}

static int new_node_parts(ApiServerSync *api) {
        const ApiServerConfig *config = &api->config;
        int r = node_registration_new(&(NodeRegistrationSpec){ .event = config->event,
                                                               .node_name = config->node_name,
                                                               .inputs = config->node_inputs,
                                                               .connection = api->connection,
                                                               .on_external = on_external_node,
                                                               .on_node_uid = on_node_uid_changed,
                                                               .on_event = on_server_event,
                                                               .on_history_lost = relist_objects,
                                                               .userdata = api },
                                      &api->node);

        if (r < 0)
                return r;
        return apiserver_credentials_new(
                &(ApiServerCredentialsSpec){ .event = config->event,
                                             .kubeconfig = config->kubeconfig,
                                             .bootstrap_kubeconfig = config->bootstrap_kubeconfig,
                                             .certificate_dir = config->certificate_dir,
                                             .rotates_embedded = config->rotates_embedded,
                                             .node_name = config->node_name,
                                             .state_dir = config->state_dir,
                                             .has_serving_certificate =
                                                     config->has_serving_certificate,
                                             .hostname = config->node_inputs.hostname,
                                             .address = config->node_inputs.address,
                                             .other_address = config->node_inputs.other_address,
                                             .connection = api->connection,
                                             .use_kubeconfig = use_kubeconfig,
                                             .get_client = read_connected_client,
                                             .userdata = api },
                &api->credentials);
}

static int build_apiserver_parts(ApiServerSync *api) {
        const ApiServerConfig *config = &api->config;
        int r = apiserver_cache_new(config->event, config->state_dir, config->storage, &api->cache);

        if (r >= 0)
                r = apiserver_cache_new(config->event, config->run_dir, NULL, &api->run_cache);
        if (r >= 0)
                r = cluster_identity_new(
                        &(ClusterIdentitySpec){ .event = config->event,
                                                .cache = api->cache,
                                                .on_other_cluster = on_other_cluster,
                                                .on_trial_decided = on_trial_decided,
                                                .userdata = api },
                        &api->cluster);
        if (r < 0)
                return r;
        r = connection_status_new(
                &(ConnectionStatusSpec){ .get_client_state = read_client_state,
                                         .on_changed = report_state_changed,
                                         .on_permissions_changed = report_node_status,
                                         .userdata = api },
                &api->connection);
        if (r < 0)
                return r;
        r = new_object_parts(api);
        if (r < 0)
                return r;
        r = new_daemonset_parts(api);
        if (r < 0)
                return r;
        r = new_pod_parts(api);
        return r < 0 ? r : new_node_parts(api);
}

static void on_storage_key(void *userdata) {
        ApiServerSync *api = userdata;

        apiserver_cache_on_key(api->cache);
        referenced_objects_reload_cached(api->objects);
        service_account_tokens_reload_cached(api->tokens);
}

int apiserver_new(const ApiServerConfig *config, ApiServerSync **ret) {
        cleanup_with(apiserver_freep) ApiServerSync *api = calloc(1, sizeof(*api));
        int r;

        if (!api)
                return -ENOMEM;
        api->config = *config;
        r = build_apiserver_parts(api);
        if (r < 0)
                return r;
        secret_storage_set_callback(config->storage, on_storage_key, api);
        *ret = TAKE_PTR(api);
        return 0;
}

/* Frees each part before those that it borrows. */
ApiServerSync *apiserver_free(ApiServerSync *api) {
        if (!api)
                return NULL;
        secret_storage_set_callback(api->config.storage, NULL, NULL);
        apiserver_credentials_free(api->credentials);
        apiserver_pods_free(api->pods);
        node_registration_free(api->node);
        csi_node_writer_free(api->csi_node);
        claim_updates_free(api->claims);
        service_account_tokens_free(api->tokens);
        apiserver_services_free(api->services);
        apiserver_daemonsets_free(api->daemonsets);
        namespace_policies_free(api->policies);
        admitted_pods_free(api->admitted);
        referenced_objects_free(api->objects);
        object_updates_free(api->updates);
        cluster_identity_free(api->cluster);
        kube_client_free(api->trial);
        kubeconfig_done(&api->next);
        apiserver_cache_free(api->cache);
        apiserver_cache_free(api->run_cache);
        kube_client_free(api->client);
        connection_status_free(api->connection);
        free(api);
        return NULL;
}

void apiserver_start(ApiServerSync *api) {
        apiserver_credentials_start(api->credentials);
}

void apiserver_start_now(ApiServerSync *api) {
        apiserver_credentials_start_now(api->credentials);
}

void apiserver_reload_kubeconfig(ApiServerSync *api) {
        apiserver_credentials_reload(api->credentials);
}

/* ---- desired pods and DaemonSets ---- */

int apiserver_restore_pod(const Pod *desired, void *userdata) {
        ApiServerSync *api = userdata;

        return apiserver_pods_restore(api->pods, desired);
}

int apiserver_restore_daemonset(const DaemonSet *set, void *userdata) {
        ApiServerSync *api = userdata;

        return apiserver_daemonsets_restore(api->daemonsets, set);
}

int apiserver_add_desired_pods(DesiredPods *desired, void *userdata) {
        ApiServerSync *api = userdata;

        return apiserver_pods_add_desired(api->pods, desired);
}

int apiserver_add_daemonsets(DesiredDaemonSets *sets, void *userdata) {
        ApiServerSync *api = userdata;

        return apiserver_daemonsets_add_desired(api->daemonsets, sets);
}

int apiserver_admit_daemonset_pod(const ApiServerSync *api, const DaemonSet *set, const Pod *pod,
                                  DaemonSetRefusal *ret) {
        return apiserver_daemonsets_admit(api->daemonsets, set, pod, ret);
}

char *apiserver_explain_stop(const PodSource *source, const Pod *local_pod, void *userdata) {
        const ApiServerSync *api = userdata;

        return apiserver_pods_explain_stop(api->pods, source, local_pod);
}

/* ---- objects to which pods refer ---- */

const DataObject *apiserver_find_object(const ObjectKey *key, void *userdata) {
        const ApiServerSync *api = userdata;

        return referenced_objects_find(api->objects, key);
}

bool apiserver_is_object_pending(const ObjectKey *key, void *userdata) {
        const ApiServerSync *api = userdata;

        return referenced_objects_is_pending(api->objects, key);
}

void apiserver_refresh_claim(const DataObject *claim, void *userdata) {
        const ApiServerSync *api = userdata;

        referenced_objects_refresh(api->objects,
                                   &(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_VOLUME_CLAIM,
                                                 claim->metadata.namespace, claim->metadata.name });
}

void apiserver_update_claim(const DataObject *claim, const ClaimUpdate *update, void *userdata) {
        const ApiServerSync *api = userdata;

        claim_updates_add(api->claims, claim, update);
}

int apiserver_find_token(const Pod *pod, const TokenProjection *projection, IssuedToken *ret,
                         Error *reterr, void *userdata) {
        ApiServerSync *api = userdata;

        return service_account_tokens_find(api->tokens, pod, projection, ret, reterr);
}

int apiserver_add_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata) {
        const ApiServerSync *api = userdata;

        return pod_is_of_api(pod)
                       ? apiserver_services_add_variables(api->services, pod, env, reterr)
                       : 0;
}

/* ---- reports ---- */

void apiserver_on_pod(ApiServerSync *api, const Pod *local_pod, bool is_gone) {
        apiserver_pods_on_pod(api->pods, local_pod, is_gone);
}

void apiserver_node_changed(ApiServerSync *api) {
        node_registration_update(api->node);
}

void apiserver_csi_drivers_changed(ApiServerSync *api) {
        if (api->csi_node)
                csi_node_writer_update(api->csi_node);
}

void apiserver_set_synced(ApiServerSync *api) {
        apiserver_pods_set_synced(api->pods);
}

void apiserver_set_shutting_down(ApiServerSync *api, bool is_shutting_down) {
        node_registration_set_shutting_down(api->node, is_shutting_down);
        apiserver_pods_set_shutting_down(api->pods, is_shutting_down);
}

void apiserver_record_event(ApiServerSync *api, const char *json) {
        cleanup_free char *renamed = apiserver_pods_rename_event(api->pods, json);

        node_registration_record_event(api->node, renamed ? renamed : json);
}

bool apiserver_accepts_events(const ApiServerSync *api) {
        return node_registration_accepts_events(api->node);
}

/* ---- the connection as the administrator sees it ---- */

int apiserver_start_request(ApiServerSync *api, const KubeRequestSpec *spec, KubeRequest **ret,
                            Error *reterr) {
        if (!api->client)
                return error_setf(reterr, EAGAIN, "there is no kubeconfig of an API server yet");
        return kube_client_start_request(api->client, spec, ret, reterr);
}

const char *apiserver_serving_pair(const ApiServerSync *api) {
        return apiserver_credentials_serving_pair(api->credentials);
}

const char *apiserver_last_error(const ApiServerSync *api) {
        return connection_status_last_error(api->connection);
}

static char *print_refused(const ApiServerSync *api) {
        cleanup_free char *permissions = connection_status_print_refused(api->connection);
        cleanup_free char *pods = apiserver_pods_print_refused(api->pods);
        if (!permissions || !pods)
                return permissions ? TAKE_PTR(permissions) : TAKE_PTR(pods);
        return text_format("%s; %s", permissions, pods);
}

void apiserver_connection_status(const ApiServerSync *api, NodeApiServerConnection *ret,
                                 char **ret_refused) {
        *ret_refused = print_refused(api);
        connection_status_describe(api->connection, ret);
        ret->daemonsets_by = apiserver_daemonsets_placed_by(api->daemonsets);
        ret->refused = *ret_refused;
}

void apiserver_dump(const ApiServerSync *api, FILE *out) {
        dump_section(out, "API server");
        if (api->client)
                kube_client_dump(api->client, out);
        else
                dump_line(out, 1, "connection: none, no kubeconfig was read yet");
        cluster_identity_dump(api->cluster, out);
        connection_status_dump(api->connection, out);
        apiserver_credentials_dump(api->credentials, out);
        node_registration_dump(api->node, out);
        apiserver_pods_dump(api->pods, out);
        referenced_objects_dump(api->objects, out);
        if (api->csi_node)
                csi_node_writer_dump(api->csi_node, out);
        claim_updates_dump(api->claims, out);
        service_account_tokens_dump(api->tokens, out);
        apiserver_services_dump(api->services, out);
        apiserver_daemonsets_dump(api->daemonsets, out);
        namespace_policies_dump(api->policies, out);
}
