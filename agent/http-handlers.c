/* SPDX-License-Identifier: Apache-2.0 */

/* The handlers of requests on the local socket. Each of them calls the module that answers the
 * request. */

#include "agent/apiserver/local-node-object.h"
#include "agent/daemonset/daemonset-action.h"
#include "agent/desired/manifest-status.h"
#include "agent/eviction/signal-observations.h"
#include "agent/image/images-json.h"
#include "agent/model/config-json.h"
#include "agent/model/own-values.h"
#include "agent/node-api-handlers.h"
#include "agent/pods/stats/metrics-collect.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/memory-trim-timer.h"
#include "common/process-dump.h"
#include "common/strv.h"
#include "common/text.h"

#include <stdlib.h>

/* ---- /debug/dump: modules print their own state, the rest is printed here ---- */

static void dump_agent(const Agent *agent, FILE *out) {
        dump_section(out, "Agent");
        dump_line(out, 1, "version: %s", MAINSTAY_VERSION);
        dump_line(out, 1, "node: %s", agent->node.name);
        dump_line(out, 1, "ready: %s", agent->ready_since > 0 ? "yes" : "no");
        dump_line(out, 1, "log level: %s", log_level_name(log_level()));
        agent_paths_dump(&agent->paths, out);
        dump_line(out, 1, "cgroup driver: %s", agent->has_slices ? "systemd" : "cgroupfs");
        memory_trim_timer_dump(out, 1);
}

static void dump_modules(const Agent *agent, FILE *out) {
        desired_state_dump(agent->desired, out);
        pod_manager_dump(agent->pod_manager, out);
        image_store_dump(agent->images, out);
        cdi_registry_dump(agent->cdi, out);
        secret_opener_dump(agent->secrets, out);
        node_device_provider_dump(agent->node_devices, out);
        if (agent->csi)
                csi_manager_dump(agent->csi, out);
        daemonset_controller_dump(agent->daemonset_controller, out);
        eviction_manager_dump(agent->eviction_manager, out);
        if (agent->apiserver)
                apiserver_dump(agent->apiserver, out);
        http_server_dump(agent->http_server, out);
}

static char *agent_dump(void *userdata) {
        const Agent *agent = userdata;
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        dump_agent(agent, out);
        process_dump(agent->event, out);
        dump_modules(agent, out);
        if (dump_is_full(out))
                (void) fputs("The dump is cut here\n", out);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

static int agent_get_next_pod(void *userdata, const char *after, char **ret_key, char **ret_json) {
        Agent *agent = userdata;
        cleanup_free char *key = NULL, *json = NULL;
        const PodStatus *status;
        const Pod *pod;

        if (!pod_manager_next_pod(agent->pod_manager, after, &pod, &status))
                return 0;
        key = format_pod_key(pod);
        json = pod_manager_print_pod(agent->pod_manager, pod, status);
        if (!key || !json)
                return -ENOMEM;
        *ret_key = TAKE_PTR(key);
        *ret_json = TAKE_PTR(json);
        return 1;
}

static int agent_get_next_event(void *userdata, uint64_t after, uint64_t *ret_number,
                                char **ret_json) {
        return event_store_next(((Agent *) userdata)->events, after, ret_number, ret_json);
}

static int agent_get_next_object(void *userdata, ObjectKind kind, const char *after, char **ret_key,
                                 char **ret_json) {
        Agent *agent = userdata;

        return find_next_manifest_object(agent->manifests, agent->paths.manifest_dir, kind, after,
                                         ret_key, ret_json);
}

static void agent_report_manifests(void *userdata, HttpManifestReport *report) {
        Agent *agent = userdata;

        report_manifest_status(agent->manifests, agent->paths.manifest_dir, agent->pod_manager,
                               agent->images, report);
}

static int agent_find_log(void *userdata, const char *namespace, const char *pod,
                          const char *container, bool previous, HttpContainerLog *ret,
                          Error *reterr) {
        return pod_manager_find_log(((Agent *) userdata)->pod_manager, namespace, pod, container,
                                    previous, &ret->directory, &ret->attempt, &ret->is_live,
                                    reterr);
}

static int check_manifests_are_read(const Agent *agent, Error *reterr) {
        return desired_state_is_computed(agent->desired)
                       ? 0
                       : error_setf(reterr, EAGAIN, "%s has not been read yet",
                                    agent->paths.manifest_dir);
}

/* A pod that its source still desires starts again afterwards. */
static int agent_delete_pod(void *userdata, const char *namespace, const char *pod,
                            int64_t grace_seconds, Error *reterr) {
        Agent *agent = userdata;
        int r = check_manifests_are_read(agent, reterr);

        if (r < 0)
                return r;
        r = pod_manager_delete_pod(agent->pod_manager, namespace, pod, grace_seconds,
                                   "it was deleted", reterr);
        if (r < 0)
                return r;
        daemonset_controller_orphan_deleted(agent->daemonset_controller, namespace, pod);
        agent_request_recompute(agent);
        return 0;
}

static int agent_each_daemonset(void *userdata, http_each_object_t each, void *context) {
        return daemonset_controller_each(((Agent *) userdata)->daemonset_controller, each, context);
}

static int agent_each_revision(void *userdata, http_each_object_t each, void *context) {
        return daemonset_controller_each_revision(((Agent *) userdata)->daemonset_controller, each,
                                                  context);
}

static char *agent_get_node(void *userdata) {
        const Agent *agent = userdata;
        const NodeStatusInputs inputs = agent_node_status_inputs(agent);
        cleanup_free char *refused = NULL, *at_rest = secret_storage_describe(agent->storage);
        NodeApiServerConnection connection = { 0 };

        if (agent->apiserver)
                apiserver_connection_status(agent->apiserver, &connection, &refused);
        return node_object_to_json(
                &(NodeObjectSpec){ .inputs = &inputs,
                                   .settings_without_effect = agent->config.without_effect,
                                   .labels_taints = &agent->node_labels.effective,
                                   .connection = &connection,
                                   .secrets_at_rest = at_rest,
                                   .state_dir = agent->paths.state_dir,
                                   .ready_since = agent->ready_since });
}

static int agent_act_on_daemonset(void *userdata, const char *namespace, const char *name,
                                  const char *verb, int64_t revision, Error *reterr) {
        Agent *agent = userdata;
        int r = check_manifests_are_read(agent, reterr);

        if (r < 0)
                return r;
        return daemonset_action_run(&(DaemonSetAction){ .controller = agent->daemonset_controller,
                                                        .manifests = agent->manifests,
                                                        .manifest_dir = agent->paths.manifest_dir,
                                                        .on_recompute_due = agent_request_recompute,
                                                        .userdata = agent },
                                    namespace, name, verb, revision, reterr);
}

static int agent_exec(void *userdata, const char *namespace, const char *pod, const char *container,
                      const HttpExecOptions *exec, int socket_fd, Error *reterr) {
        return pod_manager_open_session(((Agent *) userdata)->pod_manager, namespace, pod,
                                        container,
                                        &(SandboxSession){ .argv = exec->argv,
                                                           .has_input = exec->has_input,
                                                           .has_output = exec->has_output,
                                                           .has_error = exec->has_error,
                                                           .has_terminal = exec->has_terminal,
                                                           .is_held = exec->is_held },
                                        socket_fd, reterr);
}

static int agent_attach(void *userdata, const char *namespace, const char *pod,
                        const char *container, const HttpExecOptions *attach, int socket_fd,
                        Error *reterr) {
        Agent *agent = userdata;

        return pod_manager_attach(agent->pod_manager, namespace, pod, container,
                                  &(SandboxAttach){ .has_input = attach->has_input,
                                                    .has_output = attach->has_output,
                                                    .has_error = attach->has_error },
                                  socket_fd, reterr);
}

static int agent_add_ephemeral_container(void *userdata, const char *namespace, const char *pod,
                                         const char *json, char **ret_name, Error *reterr) {
        return pod_manager_add_ephemeral_container(((Agent *) userdata)->pod_manager, namespace,
                                                   pod, json, ret_name, reterr);
}

static int agent_is_ready(void *userdata, Error *reterr) {
        Agent *agent = userdata;

        if (agent->ready_since > 0)
                return 0;
        return error_setf(reterr, EAGAIN, "the first scan of %s has not been applied yet",
                          agent->paths.manifest_dir);
}

static char *agent_get_metrics(void *userdata) {
        Agent *agent = userdata;

        cleanup_free char *counts = collect_agent_metrics(agent->pod_manager,
                                                          agent_collect_counts(agent)),
                          *volumes = stats_provider_volume_metrics(&agent->stats);

        return counts && volumes ? text_format("%s%s", counts, volumes) : NULL;
}

static char *agent_get_probe_metrics(void *userdata) {
        return collect_probe_metrics(((Agent *) userdata)->pod_manager);
}

static char *agent_get_resource_metrics(void *userdata) {
        Agent *agent = userdata;

        return collect_resource_usage(agent->pod_manager, &agent->bundle_config);
}

static char *agent_get_cadvisor_metrics(void *userdata) {
        return stats_provider_cadvisor_metrics(&((Agent *) userdata)->stats);
}

static char *agent_get_stats_summary(void *userdata, bool only_cpu_and_memory) {
        Agent *agent = userdata;
        SignalObservations observed;
        NodeStats node;

        if (only_cpu_and_memory)
                return stats_provider_summary(&agent->stats, NULL);
        observe_eviction_signals(&(ObservedPaths){ .state_dir = agent->paths.state_dir,
                                                   .images_dir = image_store_path(agent->images) },
                                 &observed);
        node = node_stats_of_observations(&observed);
        return stats_provider_summary(&agent->stats, &node);
}

static char *agent_list_running_pods(void *userdata) {
        return stats_provider_running_pods(&((Agent *) userdata)->stats);
}

static char *agent_print_configuration(void *userdata) {
        return config_to_configz_json(&((Agent *) userdata)->config);
}

/* ---- images ---- */

static char *agent_list_images(void *userdata) {
        const Agent *agent = userdata;

        return images_to_json(agent->images, &agent->manual_pulls);
}

static int agent_pull_image(void *userdata, const char *image, Error *reterr) {
        Agent *agent = userdata;

        return manual_pulls_start(&agent->manual_pulls, agent->images, image, reterr);
}

static int agent_remove_image(void *userdata, const char *image, Error *reterr) {
        return image_store_remove(((Agent *) userdata)->images, image, reterr);
}

static int agent_prune_images(void *userdata, const char *image, Error *reterr) {
        return image_store_prune(((Agent *) userdata)->images);
}

/* ---- the identity ---- */

static char *agent_get_identity(void *userdata) {
        return key_file_to_json(((Agent *) userdata)->identity);
}

static int agent_change_identity(void *userdata, const char *action, Error *reterr) {
        for (KeyFileAction i = 0; i < N_KEY_FILE_ACTIONS; i++)
                if (streq(action, key_file_action_names[i]))
                        return key_file_change(((Agent *) userdata)->identity, i, reterr);
        return error_setf(reterr, EINVAL, "the action must be make, rotate or remove-old");
}

static int append_encrypted_secret(SecretOpener *opener, const DataObject *secret, json_t *items,
                                   bool *is_busy) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *keys = json_array();
        int r = secret_opener_check(opener, secret, &error);

        if (r == -ENOMEM)
                return r;
        *is_busy = *is_busy || r == -EAGAIN;
        for (size_t i = 0; i < secret->values.n; i++)
                if (secret->values.items[i].seal != OBJECT_VALUE_CLEAR &&
                    json_array_append_new(keys, json_string(secret->values.items[i].key)) < 0)
                        return -ENOMEM;
        return json_array_append_new(
                items,
                json_pack("{s:s, s:s, s:s, s:O, s:s*, s:b, s:s*}", "source",
                          object_source_names[secret->metadata.source], "namespace",
                          secret->metadata.namespace, "name", secret->metadata.name, "keys", keys,
                          "encryptedFor",
                          own_value_as_written(&secret->metadata, OWN_KEY_ENCRYPTED_FOR), "canOpen",
                          r >= 0, "error", r < 0 ? error_message(&error, r) : NULL));
}

/* If several sources have an object with the same name, the result is the one that pods use. */
static bool is_secret_in_use(const Agent *agent, const DataObject *object) {
        const ObjectKey key =
                object_key_referred(&object->metadata, OBJECT_SECRET, object->metadata.name);

        return object->kind == OBJECT_SECRET && object->sealed_digest &&
               manifest_directory_find_object(agent->manifests, &key) == object;
}

static int list_encrypted_secrets(const Agent *agent, json_t *items, bool *is_busy) {
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(agent->manifests, &manifests);

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < manifests[i]->data.n; k++) {
                        const DataObject *object = manifests[i]->data.items[k];

                        if (is_secret_in_use(agent, object) &&
                            append_encrypted_secret(agent->secrets, object, items, is_busy) < 0)
                                return -ENOMEM;
                }
        return 0;
}

static char *agent_list_encrypted_secrets(void *userdata) {
        cleanup_json json_t *items = json_array(), *json = NULL;
        bool is_busy = false;

        if (list_encrypted_secrets(userdata, items, &is_busy) < 0)
                return NULL;
        json = json_pack("{s:b, s:O}", "isBusy", is_busy, "items", items);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

static char *agent_get_whole_configuration(void *userdata) {
        return config_to_masked_json(&((Agent *) userdata)->config);
}

const HttpServerHandlers agent_http_handlers = {
        .identity = agent_get_identity,
        .change_identity = agent_change_identity,
        .encrypted_secrets = agent_list_encrypted_secrets,
        .next_pod = agent_get_next_pod,
        .next_event = agent_get_next_event,
        .next_object = agent_get_next_object,
        .report = agent_report_manifests,
        .find_log = agent_find_log,
        .delete_pod = agent_delete_pod,
        .foreach_daemonset = agent_each_daemonset,
        .foreach_revision = agent_each_revision,
        .node = agent_get_node,
        .run_daemonset_action = agent_act_on_daemonset,
        .exec = agent_exec,
        .attach = agent_attach,
        .add_ephemeral_container = agent_add_ephemeral_container,
        .check_pod = agent_check_pod,
        .connect_to_port = agent_connect_to_port,
        .open_system_log = agent_open_system_log,
        .node_api_settings = agent_get_node_api_settings,
        .connect_signer = agent_connect_signer,
        .check_access = agent_check_access,
        .cancel_access = agent_cancel_access,
        .images = agent_list_images,
        .pull_image = agent_pull_image,
        .remove_image = agent_remove_image,
        .prune_images = agent_prune_images,
        .make_kubeconfig = agent_make_kubeconfig,
        .is_ready = agent_is_ready,
        .metrics = agent_get_metrics,
        .resource_metrics = agent_get_resource_metrics,
        .cadvisor_metrics = agent_get_cadvisor_metrics,
        .probe_metrics = agent_get_probe_metrics,
        .stats_summary = agent_get_stats_summary,
        .running_pods = agent_list_running_pods,
        .configuration = agent_print_configuration,
        .dump = agent_dump,
        .whole_configuration = agent_get_whole_configuration,
};
