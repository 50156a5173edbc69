/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the modules in the order of their layers, connects their callbacks, runs the event loop,
 * and frees the modules in reverse order. */

#include "agent/agent.h"

#include "agent/bundle/bundle.h"
#include "agent/bundle/seccomp.h"
#include "agent/cdi/cdi-registry.h"
#include "agent/daemonset/controller.h"
#include "agent/http/http-server.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/metrics/event-store.h"
#include "agent/metrics/journal.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/service-notifier.h"
#include "agent/model/json.h"
#include "agent/node/agent-paths.h"
#include "agent/node/bundle-config.h"
#include "agent/node/cgroup-driver.h"
#include "agent/node/config-watch.h"
#include "agent/node/machine-info.h"
#include "agent/node/reserved-resources.h"
#include "agent/pods/machine/start-limiter.h"
#include "agent/pods/manager/node-shutdown-manager.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/metrics-collect.h"
#include "agent/sandbox/sandbox.h"
#include "agent/sandbox/systemd-client.h"
#include "agent/wiring.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory-trim-timer.h"
#include "common/message-ids.h"
#include "common/strv.h"

/* ---- events ---- */

void agent_on_event(const PodEvent *event, void *userdata) {
        Agent *agent = userdata;

        if (event_store_add(agent->events, event, now_realtime_usec()))
                journal_report_event(event);
        report_events_to_apiserver(agent);
        status_report_events(agent->report);
        if (agent->http_server)
                http_server_notify_event(agent->http_server);
}

void agent_request_recompute(void *userdata) {
        const Agent *agent = userdata;

        if (agent->desired)
                desired_state_request_recompute(agent->desired);
}

void agent_schedule_status_update(Agent *agent) {
        (void) sd_event_source_set_enabled(agent->status_source, SD_EVENT_ONESHOT);
}

static void on_daemonsets_changed(void *userdata) {
        Agent *agent = userdata;

        if (agent->http_server)
                http_server_notify_objects(agent->http_server, HTTP_DAEMONSETS);
}

void agent_apply_node_labels(Agent *agent) {
        log_info("Labels or taints of the node changed; DaemonSets are evaluated again");
        pod_manager_on_node_changed(agent->pod_manager);
        agent_report_node_change(agent);
        agent_request_recompute(agent);
}

/* Labels and taints take effect at once. A broken configuration changes nothing. */
static void on_config_changed(void *userdata) {
        Agent *agent = userdata;
        cleanup_with(service_notifier_end_reloadp) ServiceNotifier *notifier = agent->notifier;
        cleanup_error Error error = ERROR_NULL;
        int r;

        service_notifier_begin_reload(notifier);
        if (agent->apiserver)
                apiserver_reload_kubeconfig(agent->apiserver);
        r = node_labels_reload(&agent->node_labels, &agent->config_files, &agent->config, &error);
        if (r < 0) {
                log_set_message_id(MESSAGE_CONFIG_INVALID);
                log_error("%s; continuing with the previous configuration",
                          error_message(&error, r));
        } else
                config_files_need_present(&agent->config_files);
        if (r > 0)
                agent_apply_node_labels(agent);
}

static void on_images_changed(void *userdata) {
        Agent *agent = userdata;

        if (agent->pod_manager)
                pod_manager_on_images_changed(agent->pod_manager);
        if (agent->daemonset_controller)
                daemonset_controller_images_changed(agent->daemonset_controller);
        agent_report_node_change(agent);
}

static void on_cdi_changed(void *userdata) {
        const Agent *agent = userdata;

        if (agent->pod_manager)
                pod_manager_on_objects_changed(agent->pod_manager, /* concerns= */ NULL, NULL);
}

static void on_cdi_invalid(const char *message, void *userdata) {
        log_warning("%s; its devices are not available", message);
        agent_on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                    .reason = "InvalidCDISpec",
                                    .message = (char *) (uintptr_t) message },
                       userdata);
}

static int build_cdi_registry(Agent *agent) {
        int r = cdi_registry_new(
                &(CdiRegistryConfig){ .event = agent->event,
                                      .directories = agent->config.mainstay.cdi_spec_dirs,
                                      .on_changed = on_cdi_changed,
                                      .on_invalid = on_cdi_invalid,
                                      .userdata = agent },
                &agent->cdi);

        if (r >= 0)
                agent->bundle_config.cdi = cdi_registry_lookup(agent->cdi);
        return r;
}

/* ---- encrypted Secrets ---- */

static void on_secret_opened(void *userdata) {
        const Agent *agent = userdata;

        if (agent->pod_manager)
                pod_manager_on_objects_changed(agent->pod_manager, /* concerns= */ NULL, NULL);
}

static void on_identity_changed(void *userdata) {
        const Agent *agent = userdata;

        if (agent->secrets)
                secret_opener_retry(agent->secrets);
}

static int open_secret(const DataObject *object, const DataObject **ret, Error *reterr,
                       void *userdata) {
        return secret_opener_open(userdata, object, ret, reterr);
}

static int build_secret_opener(Agent *agent) {
        bool is_kept_clear = agent->config.mainstay.secrets_at_rest == SECRETS_CLEAR;
        int r = key_file_new(&(KeyFileConfig){ .event = agent->event,
                                               .role = &node_identity_role,
                                               .state_dir = agent->paths.state_dir,
                                               .is_kept_clear = is_kept_clear,
                                               .on_changed = on_identity_changed,
                                               .userdata = agent },
                             &agent->identity);

        if (r >= 0)
                r = secret_storage_new(&(SecretStorageConfig){ agent->event, agent->paths.state_dir,
                                                               is_kept_clear },
                                       &agent->storage);
        if (r >= 0)
                r = secret_opener_new(
                        &(SecretOpenerConfig){ .event = agent->event,
                                               .helper_path = agent->paths.secret_helper,
                                               .identity = agent->identity,
                                               .on_opened = on_secret_opened,
                                               .userdata = agent },
                        &agent->secrets);
        agent->resolvers.open_secret = open_secret;
        agent->resolvers.secrets = agent->secrets;
        return r;
}

static const DataObject *find_secret_of_manifest(const ObjectKey *key, void *userdata) {
        return manifest_directory_find_object(((const Agent *) userdata)->manifests, key);
}

static void sweep_opened_secrets(Agent *agent) {
        secret_opener_sweep(agent->secrets, find_secret_of_manifest, agent);
}

static void on_network_changed(void *userdata) {
        Agent *agent = userdata;

        pod_manager_on_network_changed(agent->pod_manager);
        agent_report_node_change(agent);
}

/* ---- changes of pods ---- */

static void on_pod_changed(const Pod *pod, bool is_new, bool is_gone, void *userdata) {
        Agent *agent = userdata;
        cleanup_free char *key = NULL, *json = NULL;
        const PodStatus *status = pod_manager_pod_status(agent->pod_manager, pod->metadata.uid);
        HttpWatchEventType change = is_gone  ? HTTP_WATCH_DELETED
                                    : is_new ? HTTP_WATCH_ADDED
                                             : HTTP_WATCH_MODIFIED;

        agent_schedule_status_update(agent);
        eviction_manager_wake(agent->eviction_manager);
        if (is_gone)
                image_store_check_disk_usage(agent->images);
        daemonset_controller_on_pod(agent->daemonset_controller, pod, is_new, is_gone);
        desired_state_on_pod(agent->desired, pod);
        status_report_pod(agent->report, pod, is_gone);
        if (agent->apiserver)
                apiserver_on_pod(agent->apiserver, pod, is_gone);
        if (!status || !agent->http_server || !http_server_has_pod_watchers(agent->http_server))
                return;
        key = format_pod_key(pod);
        json = pod_manager_print_pod(agent->pod_manager, pod, status);
        if (key && json)
                http_server_notify_pod(agent->http_server, change, key, json);
}

static void on_attempt_log_ended(const char *directory, unsigned attempt, void *userdata) {
        Agent *agent = userdata;

        if (agent->http_server)
                http_server_notify_log_end(agent->http_server, directory, attempt);
}

AgentMetrics agent_collect_counts(Agent *agent) {
        AgentMetrics counts = collect_agent_counts(agent->node.name, agent->pod_manager,
                                                   agent->manifests, agent->images);

        counts.conditions = eviction_manager_conditions(agent->eviction_manager);
        counts.evictions = pod_evictor_counts(agent->pod_evictor);
        counts.sources = agent_list_sources(agent);
        if (agent->apiserver)
                counts.api_server_error = apiserver_last_error(agent->apiserver);
        return counts;
}

static int on_status_update_due(sd_event_source *source, void *userdata) {
        Agent *agent = userdata;
        PodManagerCounts pods = pod_manager_counts(agent->pod_manager);
        bool is_computed = desired_state_is_computed(agent->desired);

        if (agent->ready_since == 0 && is_computed && pod_manager_is_synced(agent->pod_manager)) {
                agent->ready_since = now_realtime_usec();
                service_notifier_ready(agent->notifier);
                if (agent->apiserver)
                        apiserver_set_synced(agent->apiserver);
        }
        if (service_notifier_has_socket(agent->notifier)) {
                AgentMetrics counts = agent_collect_counts(agent);
                cleanup_free char *status = agent_metrics_format_status(&counts);

                if (status)
                        service_notifier_status(agent->notifier, status);
        }
        if (agent->apiserver && is_computed &&
            (pods.containers_started > 0 || pods.pods_desired == 0))
                apiserver_start_now(agent->apiserver);
        if (pods.containers_started != agent->last_containers_started)
                memory_trim_timer_schedule();
        agent->last_containers_started = pods.containers_started;
        return 0;
}

/* ---- setup ---- */

static int load_agent_config(Agent *agent, const AgentOptions *options, Error *reterr) {
        cleanup_strv char **warnings = NULL;
        int r = agent_paths_choose_config(&agent->paths, options, &agent->config_files);

        if (r >= 0)
                r = config_files_load(&agent->config_files, &agent->config, &warnings, reterr);
        if (r < 0)
                return r;
        config_files_need_present(&agent->config_files);
        strv_foreach(warning, warnings)
                log_warning("%s", *warning);
        if (agent->config.without_effect)
                log_warning("Ignoring kubelet settings of %s that do not apply to Mainstay: %s",
                            options->config_path, agent->config.without_effect);
        if (strna(getenv(KUBELET_FLAGS_VARIABLE))[0]) /* the agent has logged them */
                r = config_note_without_effect(&agent->config, getenv(KUBELET_FLAGS_VARIABLE));
        if (r >= 0)
                r = agent_paths_choose(&agent->paths, options, &agent->config, reterr);
        return r < 0 ? r : built_in_ranges_note_unused(&agent->config, agent->paths.kubeconfig);
}

static int choose_pod_ranges(Agent *agent) {
        agent->own_pod_range = built_in_ranges_load_own(agent->paths.state_dir, "/etc/machine-id");
        if (!agent->own_pod_range)
                return -ENOMEM;
        agent->built_in_network = built_in_ranges_choose(&agent->config, agent->own_pod_range);
        return 0;
}

static void fill_shared_configs(Agent *agent) {
        agent->bundle_config =
                make_bundle_config(&agent->config, &agent->node, &agent->paths, agent->has_slices);
        agent->bundle_config.node = &agent->node_labels.effective;
        agent->bundle_config.seccomp = agent->seccomp;
        agent->resolvers.shared = &agent->config.mainstay.shared_objects;
        set_bundle_resolvers(&agent->resolvers, &agent->bundle_config);
        agent->sandbox_config = (SandboxConfig){
                .event = agent->event,
                .shim_path = agent->paths.shim,
                .connect_path = agent->paths.connector,
                .runtime_path = agent->config.mainstay.runtime,
                .runtime_copy = agent->runtime_copy,
                .run_dir = agent->paths.run_dir,
                .shim_cgroup = agent->paths.shim_cgroup,
                .systemd = agent->systemd,
        };
        agent->cni_settings = (CniSettings){
                .config_dir = agent->config.mainstay.cni_conf_dir,
                .plugin_path = agent->config.mainstay.cni_bin_dir,
                .has_default = config_has_built_in_network(&agent->config, agent->paths.kubeconfig),
                .built_in = &agent->built_in_network,
                .is_ipv6_first = agent->node.address && strchr(agent->node.address, ':'),
        };
}

static int build_pod_manager(Agent *agent) {
        static const PodManagerCallbacks callbacks = { .on_pod = on_pod_changed,
                                                       .on_log_ended = on_attempt_log_ended,
                                                       .on_event = agent_on_event };
        const Config *config = &agent->config;

        return pod_manager_new(
                &(PodManagerConfig){
                        .event = agent->event,
                        .bundle = &agent->bundle_config,
                        .sandbox = &agent->sandbox_config,
                        .network = &agent->cni_settings,
                        .runtimes = &agent->config.mainstay.runtimes,
                        .images = agent->images,
                        .back_off = { config->back_off_initial_usec, config->back_off_max_usec },
                        .log_max_size = config->log_max_size_bytes,
                        .log_max_files = (unsigned) config->container_log_max_files.value,
                        .start_limit = start_limit_of(agent->node.n_cpus,
                                                      (uint64_t) agent->node.memory_capacity),
                        .host_ips = { agent->node.address, agent->node.other_address },
                        .node = &agent->node_labels.effective,
                        .allocatable = &agent->allocatable,
                        .devices = agent->devices,
                        .csi = agent->csi,
                        .conditions = eviction_manager_conditions(agent->eviction_manager),
                },
                &callbacks, agent, &agent->pod_manager);
}

static int build_daemonset_controller(Agent *agent) {
        int r = daemonset_controller_new(
                &(DaemonSetControllerConfig){ .event = agent->event,
                                              .state_dir = agent->paths.state_dir,
                                              .node_labels = &agent->node_labels.effective,
                                              .pod_access = &pod_manager_access,
                                              .pods = agent->pod_manager,
                                              .clock = &agent->clock,
                                              .on_recompute_due = agent_request_recompute,
                                              .on_changed = on_daemonsets_changed,
                                              .on_event = agent_on_event,
                                              .admit = agent_admit_daemonset_pod,
                                              .userdata = agent },
                &agent->daemonset_controller);

        if (r < 0)
                return r;
        return config_watch_new(agent->event, &agent->config_files, on_config_changed, agent,
                                &agent->config_watch);
}

static void on_desired_pods_recomputed(void *userdata) {
        Agent *agent = userdata;

        sweep_opened_secrets(agent);
        if (agent->http_server)
                http_server_notify_objects(agent->http_server, HTTP_DATA_OBJECTS);
        agent_schedule_status_update(userdata);
        memory_trim_timer_schedule();
}

static int build_desired_state(Agent *agent) {
        DesiredStateConfig config = {
                .event = agent->event,
                .paths = &agent->paths,
                .config = &agent->config,
                .node_name = agent->node.name,
                .clock = &agent->clock,
                .objects = &agent->bundle_config.objects,
                .pod_manager = agent->pod_manager,
                .eviction_manager = agent->eviction_manager,
                .daemonsets = { .add_pods = daemonset_controller_add_pods,
                                .warnings = daemonset_controller_warnings,
                                .explain_stop = daemonset_controller_explain_stop,
                                .claim_record = daemonset_controller_claim_record,
                                .find_unready = daemonset_controller_find_unready,
                                .userdata = agent->daemonset_controller },
                .images = agent->images,
                .node = &agent->node_labels.effective,
                .on_event = agent_on_event,
                .on_recomputed = on_desired_pods_recomputed,
                .on_source_status = agent_report_node_change,
                .userdata = agent,
        };
        int r;

        if (agent->apiserver)
                plug_in_apiserver(agent, &config.apiserver);
        r = desired_state_new(&config, &agent->desired);
        if (r < 0)
                return r;
        agent->manifests = desired_state_manifests(agent->desired);
        agent->resolvers.manifests = agent->manifests;
        return 0;
}

static void on_agent_terminating(void *userdata) {
        desired_state_suspend(((Agent *) userdata)->desired);
}

static void on_node_shutting_down(bool is_shutting_down, void *userdata) {
        const Agent *agent = userdata;

        if (agent->apiserver)
                apiserver_set_shutting_down(agent->apiserver, is_shutting_down);
}

static int build_node_shutdown_manager(Agent *agent) {
        agent->notifier = service_notifier_new();
        if (!agent->notifier)
                return -ENOMEM;
        return node_shutdown_manager_new(
                &(NodeShutdownConfig){ .event = agent->event,
                                       .pod_manager = agent->pod_manager,
                                       .systemd = agent->systemd,
                                       .notifier = agent->notifier,
                                       .stages = agent->config.shutdown_stages,
                                       .n_stages = agent->config.n_shutdown_stages,
                                       .on_terminating = on_agent_terminating,
                                       .on_shutting_down = on_node_shutting_down,
                                       .userdata = agent },
                &agent->shutdown_manager);
}

/* As long as there is no pod manager, the existing pods are unknown. */
static void list_wanted_images(ImageSet *ret, void *userdata) {
        const Agent *agent = userdata;

        ret->is_everything = !agent->pod_manager || !agent->desired;
        if (ret->is_everything)
                return;
        pod_manager_list_images(agent->pod_manager, ret);
        desired_state_list_images(agent->desired, ret);
}

static int open_image_store(Agent *agent, Error *reterr) {
        return image_store_new(
                &(ImageStoreConfig){ .event = agent->event,
                                     .helper_path = agent->paths.image_helper,
                                     .state_dir = agent->paths.state_dir,
                                     .config = &agent->config.mainstay,
                                     .node_config = &agent->config,
                                     .list_wanted = list_wanted_images,
                                     .gc_high_percent = agent->config.image_gc_high_percent,
                                     .gc_low_percent = agent->config.image_gc_low_percent,
                                     .gc_min_age_usec = agent->config.image_gc_min_age_usec,
                                     .gc_max_age_usec = agent->config.image_gc_max_age_usec },
                on_images_changed, agent, &agent->images, reterr);
}

static int build_modules(Agent *agent, bool drain, Error *reterr) {
        int r;

        agent->events = event_store_new(agent->node.name);
        if (!agent->events)
                return -ENOMEM;
        r = build_cdi_registry(agent);
        if (r < 0)
                return r;
        r = build_secret_opener(agent);
        if (r < 0)
                return r;
        r = open_image_store(agent, reterr);
        if (r < 0)
                return r;
        r = build_eviction_manager(agent);
        if (r < 0)
                return r;
        r = agent_build_device_manager(agent);
        if (r >= 0 && !drain)
                r = agent_build_csi_manager(agent);
        if (r < 0)
                return r;
        r = build_pod_manager(agent);
        if (r < 0)
                return r;
        agent->stats = (StatsProvider){ .event = agent->event,
                                        .pods = agent->pod_manager,
                                        .csi = agent->csi,
                                        .bundle = &agent->bundle_config,
                                        .sandbox = &agent->sandbox_config,
                                        .started_at = now_realtime_usec(),
                                        .node_name = agent->node.name };
        r = build_daemonset_controller(agent);
        if (r < 0)
                return r;
        r = build_apiserver_sync(agent, drain);
        if (r < 0)
                return r;
        r = build_desired_state(agent);
        if (r < 0)
                return r;
        r = http_server_new(&(HttpServerConfig){ .event = agent->event,
                                                 .socket_path = agent->paths.socket,
                                                 .handlers = &agent_http_handlers,
                                                 .is_alone = !agent->paths.kubeconfig,
                                                 .userdata = agent },
                            &agent->http_server, reterr);
        if (r < 0)
                return r;
        r = status_report_new(&(StatusReportConfig){ agent->event, &agent->config, &agent->paths,
                                                     agent->node.name, agent->pod_manager,
                                                     agent->events, agent_http_handlers.node,
                                                     agent_on_event, agent_report_node_change,
                                                     agent },
                              &agent->report);
        if (r < 0)
                return r;
        return build_node_shutdown_manager(agent);
}

/* WATCHDOG=1 is sent while the loop turns, if the unit has WatchdogSec=. */
static int enable_systemd_watchdog(sd_event *event) {
        return sd_event_set_watchdog(event, true);
}

static int build_event_loop(Agent *agent) {
        int r = sd_event_default(&agent->event);

        if (r < 0)
                return r;
        /* Runs after all other events of a turn. */
        r = event_add_disabled_defer(agent->event, &agent->status_source, SD_EVENT_PRIORITY_IDLE,
                                     on_status_update_due, agent);
        if (r < 0)
                return r;
        r = memory_trim_timer_start(agent->event);
        if (r >= 0)
                r = runtime_copy_new(agent->event, &agent->runtime_copy);
        return r < 0 ? r : enable_systemd_watchdog(agent->event);
}

/* A service has its own mount namespace, and a unit that ran before has prepared the mounts. A
 * program started by a service inherits INVOCATION_ID, but not the PID. */
static bool is_main_process_of_unit(void) {
        const char *pid = getenv("SYSTEMD_EXEC_PID");

        /* systemd before version 248 does not set this variable. */
        return pid ? strtoll(pid, NULL, 10) == getpid() : getenv("INVOCATION_ID") != NULL;
}

/* If systemd is PID 1 it starts the shims, and, on cgroup v2, it can be the cgroup driver. */
static int detect_service_manager(Agent *agent, Error *reterr) {
        bool is_there = systemd_is_init();
        int r = cgroup_check_hierarchies(reterr);

        if (r < 0)
                return r;
        r = choose_cgroup_driver(agent->config.cgroup_driver, is_there, cgroup_version(),
                                 &agent->has_slices, reterr);
        if (r < 0)
                return r;
        warn_of_cgroups();
        return is_there ? systemd_client_new(agent->event, &agent->systemd) : 0;
}

static int load_node_labels(Agent *agent, const AgentOptions *options, Error *reterr) {
        int r;

        agent->node_labels = (MergedNodeLabels){ .node_name = agent->node.name,
                                                 .hostname = agent->node.reported_hostname,
                                                 .state_dir = agent->paths.state_dir,
                                                 .clock = &agent->clock };
        r = node_labels_set_given(&agent->node_labels, options->node_labels,
                                  options->register_with_taints, reterr);
        if (r < 0)
                return r;
        return node_labels_load(&agent->node_labels, &agent->config, agent->paths.kubeconfig);
}

static int build_agent(Agent *agent, const AgentOptions *options, Error *reterr) {
        int r = load_agent_config(agent, options, reterr);

        if (r < 0)
                return r;
        r = agent_paths_make_directories(&agent->paths, options, reterr);
        if (r < 0)
                return r;
        r = agent_paths_lock(&agent->paths, reterr);
        if (r < 0)
                return r;
        agent_paths_check_state(&agent->paths);
        if (!options->drain)
                agent_paths_make_kubelet_directories(options);
        r = machine_info_discover(options->node_name, systemd_is_init(), &agent->node, reterr);
        if (r < 0)
                return r;
        r = machine_info_set_address(&agent->node, options->node_ip, reterr);
        if (r < 0)
                return r;
        r = load_node_labels(agent, options, reterr);
        if (r < 0)
                return r;
        r = agent_paths_find_programs(&agent->paths);
        if (r < 0)
                return r;
        r = build_event_loop(agent);
        if (r < 0)
                return r;
        r = seccomp_profile_load_default(agent->config.mainstay.seccomp_profile, &agent->seccomp,
                                         reterr);
        if (r < 0)
                return r;
        r = detect_service_manager(agent, reterr);
        if (r < 0)
                return r;
        r = choose_pod_ranges(agent);
        if (r < 0)
                return r;
        fill_shared_configs(agent);
        agent->bundle_config.kubelet_dir = options->kubelet_dir;
        r = network_readiness_new(agent->event, &agent->cni_settings, on_network_changed, agent,
                                  &agent->network_readiness);
        if (r < 0)
                return r;
        agent->allocatable = find_allocatable_resources(&agent->config, &agent->node,
                                                        agent->bundle_config.storage_capacity);
        if (!agent->systemd || !is_main_process_of_unit())
                r = sandbox_prepare(&agent->sandbox_config, options->kubelet_dir, reterr);
        if (r < 0)
                return r;
        return build_modules(agent, options->drain, reterr);
}

static int start_drain(Agent *agent) {
        int r = desired_state_start_drain(agent->desired, agent->systemd);

        if (r >= 0)
                log_info("Draining node '%s' (version %s): stopping all pods", agent->node.name,
                         MAINSTAY_VERSION);
        return r;
}

static int start_agent(Agent *agent, const char *kubelet_dir, bool drain, Error *reterr) {
        int r;

        if (agent->apiserver)
                secret_storage_start(agent->storage);
        r = daemonset_controller_load(agent->daemonset_controller, desired_state_restore_daemonset,
                                      agent->desired, reterr);
        if (r >= 0)
                r = pod_manager_load_records(agent->pod_manager, desired_state_restore_pod,
                                             agent->desired, drain, reterr);
        restore_eviction_conditions(agent);
        if (r < 0)
                return r;
        if (drain)
                return start_drain(agent);
        r = agent_start_plugins(agent, kubelet_dir);
        if (r < 0)
                return r;
        r = desired_state_start(agent->desired, reterr);
        if (r < 0)
                return r;
        if (agent->apiserver)
                report_node_start(&agent->config, agent->bundle_config.storage_capacity,
                                  agent_on_event, agent);
        report_settings_without_effect(&agent->config, agent_on_event, agent);
        enforce_reservations(&agent->config, agent_on_event, agent);
        if (agent->apiserver)
                apiserver_start(agent->apiserver);
        r = node_shutdown_manager_start(agent->shutdown_manager);
        if (r < 0)
                return r;
        agent->healthz_server = healthz_server_start(agent->event, &agent->config);
        node_api_launcher_start(&(NodeApiLauncherSpec){ .event = agent->event,
                                                        .config = &agent->config,
                                                        .has_systemd = agent->systemd != NULL,
                                                        .has_joined = agent->paths.kubeconfig,
                                                        .program = agent->paths.node_api,
                                                        .agent_socket = agent->paths.socket,
                                                        .admit_user = http_server_admit_api_user,
                                                        .userdata = agent->http_server },
                                &agent->node_api_launcher);
        agent_schedule_status_update(agent);
        log_set_message_id(MESSAGE_AGENT_STARTED);
        log_info("Started version %s on node '%s'; watching manifests in %s", MAINSTAY_VERSION,
                 agent->node.name, agent->paths.manifest_dir);
        return 0;
}

/* A module that others notify is set to NULL once it is freed, because plugins report their devices
 * as gone. */
static void agent_done(Agent *agent) {
        healthz_server_free(agent->healthz_server);
        agent->http_server = http_server_free(agent->http_server);
        stats_provider_done(&agent->stats);
        config_watch_free(agent->config_watch);
        network_readiness_free(agent->network_readiness);
        node_shutdown_manager_free(agent->shutdown_manager);
        agent->apiserver = apiserver_free(agent->apiserver);
        daemonset_controller_free(agent->daemonset_controller);
        desired_state_free(agent->desired);
        pod_evictor_free(agent->pod_evictor);
        status_report_free(agent->report);
        plugin_manager_free(agent->plugins);
        agent->node_devices = node_device_provider_free(agent->node_devices);
        agent->pod_manager = pod_manager_free(agent->pod_manager);
        device_manager_free(agent->devices);
        runtime_copy_free(agent->runtime_copy);
        csi_manager_free(agent->csi);
        eviction_manager_free(agent->eviction_manager);
        free(agent->pods_group);
        systemd_client_free(agent->systemd);
        manual_pulls_done(&agent->manual_pulls);
        image_store_free(agent->images);
        cdi_registry_free(agent->cdi);
        secret_opener_free(agent->secrets);
        key_file_free(agent->identity);
        secret_storage_free(agent->storage);
        service_notifier_free(agent->notifier);
        event_store_free(agent->events);
        agent_free_node_api(agent);
        sd_event_source_disable_unref(agent->status_source);
        memory_trim_timer_end();
        sd_event_unref(agent->event);
        config_done(&agent->config);
        machine_info_done(&agent->node);
        free(agent->own_pod_range);
        node_labels_done(&agent->node_labels);
        seccomp_profile_free(agent->seccomp);
        agent_paths_done(&agent->paths);
}

int agent_run(const AgentOptions *options, Error *reterr) {
        cleanup_with(agent_done)
                Agent agent = { .paths = AGENT_PATHS_NULL, .clock = steady_clock_start() };
        int r = build_agent(&agent, options, reterr);

        if (r < 0)
                return r;
        r = start_agent(&agent, options->kubelet_dir, options->drain, reterr);
        if (r < 0)
                return r;
        return sd_event_loop(agent.event);
}
