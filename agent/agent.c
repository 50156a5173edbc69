/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include "agent/agent-private.h"
#include "agent/bundle/bundle.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/seccomp.h"
#include "agent/bundle/swap.h"
#include "agent/config-watch.h"
#include "agent/daemons.h"
#include "agent/ending.h"
#include "agent/figures.h"
#include "agent/image/image.h"
#include "agent/images.h"
#include "agent/lookups.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/node.h"
#include "agent/origins.h"
#include "agent/places.h"
#include "agent/publish/events.h"
#include "agent/publish/journal.h"
#include "agent/publish/publish.h"
#include "agent/sandbox/sandbox.h"
#include "agent/sandbox/units.h"
#include "agent/serve/serve.h"
#include "agent/supervise/supervisor.h"
#include "agent/wishes.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/message-ids.h"
#include "common/selinux.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum {
        DRAIN_LOOK_USEC = 50000, /* while draining */
        CALM_USEC = 2000000,     /* from what happens to when memory is given back */
};

/* ---- what people like to know ---- */

/* Whatever was added or counted since. */
static void tell_cluster(Agent *agent) {
        while (agent->cluster && cluster_takes_events(agent->cluster)) {
                cleanup_free char *json = NULL;

                if (events_next(agent->events, agent->told_event, &agent->told_event, &json) <= 0)
                        return;
                cluster_tell_event(agent->cluster, json);
        }
}

void agent_on_event(const PodEvent *event, void *userdata) {
        Agent *agent = userdata;

        if (events_add(agent->events, event, now_realtime_usec()))
                journal_tell_event(event);
        tell_cluster(agent);
        if (agent->serve)
                serve_event_came(agent->serve);
}

void agent_schedule_publish(Agent *agent) {
        (void) sd_event_source_set_enabled(agent->publish_source, SD_EVENT_ONESHOT);
}

static void on_daemons_changed(void *userdata) {
        Agent *agent = userdata;

        if (agent->serve)
                serve_daemonsets_changed(agent->serve);
}

static void act_on_facts(Agent *agent) {
        log_info("The node has other labels or taints");
        supervisor_node_changed(agent->supervisor);
        if (agent->cluster)
                cluster_node_changed(agent->cluster);
        wishes_are_due(agent);
}

/* Labels and taints are acted on at once; a configuration that is broken changes nothing. */
static void on_config_changed(void *userdata) {
        Agent *agent = userdata;
        cleanup_with(publish_end_reloadp) Publish *publish = agent->publish;
        cleanup_error Error error = ERROR_NULL;
        int r;

        publish_begin_reload(publish);
        if (agent->cluster)
                cluster_reload(agent->cluster);
        r = facts_reload(&agent->facts, agent->config_path, &agent->config, &error);
        if (r < 0) {
                log_mark(MESSAGE_CONFIG_BROKEN);
                log_error("%s, going on with the configuration as it was",
                          error_message(&error, r));
        }
        if (r > 0)
                act_on_facts(agent);
}

/* Somebody has labelled or tainted this node at the API server. */
static void on_node(const NodeFacts *others, void *userdata) {
        Agent *agent = userdata;
        int r = facts_set_others(&agent->facts, others);

        if (r < 0)
                (void) log_error_errno(r, "Cannot take the labels and taints that others gave");
        if (r > 0)
                act_on_facts(agent);
}

static void on_images_changed(void *userdata) {
        Agent *agent = userdata;

        if (agent->supervisor)
                supervisor_images_changed(agent->supervisor);
        if (agent->daemons)
                daemons_images_changed(agent->daemons);
        if (agent->cluster)
                cluster_node_changed(agent->cluster);
}

/* ---- pods are told on ---- */

static void on_pod(const Pod *pod, bool is_new, bool is_gone, void *userdata) {
        Agent *agent = userdata;
        cleanup_free char *key = NULL, *json = NULL;
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        ServeChange change = is_gone ? SERVE_DELETED : is_new ? SERVE_ADDED : SERVE_MODIFIED;

        agent_schedule_publish(agent);
        pressure_wake(agent->pressure);
        if (is_gone)
                image_store_check_space(agent->images);
        daemons_on_pod(agent->daemons, pod, is_new, is_gone);
        if (agent->cluster)
                cluster_on_pod(agent->cluster, pod, is_gone);
        if (!agent->serve || !serve_has_watchers(agent->serve))
                return;
        if (supervisor_status(agent->supervisor, pod->metadata.uid, &pod, &status) < 0)
                return;
        key = figures_pod_key(pod);
        json = origin_print_pod(agent->supervisor, pod, &status);
        if (key && json)
                serve_pod_changed(agent->serve, change, key, json);
}

static void on_log_ended(const char *directory, unsigned attempt, void *userdata) {
        Agent *agent = userdata;

        if (agent->serve)
                serve_log_ended(agent->serve, directory, attempt);
}

PublishCounts agent_take_counts(Agent *agent) {
        PublishCounts counts =
                figures_count(agent->node.name, agent->supervisor, agent->manifests, agent->images);

        counts.conditions = pressure_conditions(agent->pressure);
        if (agent->cluster)
                counts.api_trouble = cluster_trouble(agent->cluster);
        return counts;
}

static int on_calm(sd_event_source *source, uint64_t usec, void *userdata) {
        memory_give_back();
        return 0;
}

/* In a long burst it happens a few times. */
void agent_expect_calm(Agent *agent) {
        if (sd_event_source_get_enabled(agent->calm_timer, NULL) == 0 &&
            sd_event_source_set_time_relative(agent->calm_timer, CALM_USEC) >= 0)
                (void) sd_event_source_set_enabled(agent->calm_timer, SD_EVENT_ONESHOT);
}

static int on_publish(sd_event_source *source, void *userdata) {
        Agent *agent = userdata;
        SupervisorCounts pods = supervisor_counts(agent->supervisor);

        if (!agent->is_ready && agent->has_scanned && supervisor_is_synced(agent->supervisor)) {
                agent->is_ready = true;
                publish_ready(agent->publish);
                if (agent->cluster)
                        cluster_set_synced(agent->cluster);
        }
        if (publish_is_heard(agent->publish)) {
                PublishCounts counts = agent_take_counts(agent);

                publish_status(agent->publish, &counts);
        }
        if (agent->cluster && agent->has_scanned &&
            (pods.containers_started > 0 || pods.pods_wanted == 0))
                cluster_hasten(agent->cluster);
        if (pods.containers_started != agent->n_started)
                agent_expect_calm(agent);
        agent->n_started = pods.containers_started;
        return 0;
}

/* ---- building ---- */

/* Its mode, where it is there already, such as /var/log, is its owner's. The path is absolute:
 * shims and links know it too. */
static int make_log_directories(Agent *agent, const char *path, Error *reterr) {
        int r = places_make_below(path, "pods", reterr);

        if (r >= 0)
                r = places_make_below(path, "containers", reterr);
        if (r < 0)
                return r;
        agent->log_dir = realpath(path, NULL);
        return agent->log_dir ? 0
                              : error_setf(reterr, errno, "cannot use the directory %s: %s", path,
                                           strerror(errno));
}

static int make_directories(Agent *agent, const AgentOptions *options, Error *reterr) {
        int r;

        r = places_make(options->state_dir ? options->state_dir : "/var/lib/mainstay", 0700,
                        &agent->state_dir, reterr);
        if (r >= 0)
                r = places_make(options->run_dir ? options->run_dir : "/run/mainstay", 0700,
                                &agent->run_dir, reterr);
        if (r < 0)
                return r;
        return make_log_directories(agent, options->log_dir ? options->log_dir : "/var/log",
                                    reterr);
}

/* One agent a run directory: the lock goes with its holder, however that dies. */
static int take_lock(Agent *agent, Error *reterr) {
        cleanup_free char *path = path_join(agent->run_dir, "lock");
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (!path)
                return -ENOMEM;
        agent->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (agent->lock_fd < 0)
                return error_setf(reterr, errno, "cannot open %s: %s", path, strerror(errno));
        /* A lock of the process, not of the open file: a child that is between fork() and exec()
         * when we are killed holds our descriptors a moment longer, and must not hold the lock. */
        if (fcntl(agent->lock_fd, F_SETLK, &lock) < 0)
                return error_setf(reterr, errno == EAGAIN || errno == EACCES ? EBUSY : errno,
                                  "another mainstayd runs with the run directory %s",
                                  agent->run_dir);
        return 0;
}

static int read_config(Agent *agent, const AgentOptions *options, Error *reterr) {
        const char *path =
                options->config_path ? options->config_path : "/etc/mainstay/config.yaml";
        cleanup_strv char **warnings = NULL;
        const char *manifest_dir = options->manifest_dir, *kubeconfig, *bootstrap;
        int r;

        agent->config_path = strdup(path);
        r = agent->config_path ? config_load(path, &agent->config, &warnings, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        strv_foreach(warning, warnings)
                log_warning("%s", *warning);
        kubeconfig = options->kubeconfig ? options->kubeconfig : agent->config.mainstay.kubeconfig;
        bootstrap = options->bootstrap_kubeconfig ? options->bootstrap_kubeconfig
                                                  : agent->config.mainstay.bootstrap_kubeconfig;
        if (bootstrap && !kubeconfig)
                return error_setf(reterr, EINVAL,
                                  "%s: a bootstrap needs a kubeconfig as well, which it writes",
                                  bootstrap);
        if (!manifest_dir)
                manifest_dir = agent->config.static_pod_path;
        if (kubeconfig && !(agent->kubeconfig = strdup(kubeconfig)))
                return -ENOMEM;
        if (bootstrap && !(agent->bootstrap_kubeconfig = strdup(bootstrap)))
                return -ENOMEM;
        agent->manifest_dir = strdup(manifest_dir ? manifest_dir : "/etc/kubernetes/manifests");
        if (!agent->manifest_dir ||
            asprintf(&agent->shim_cgroup, "%s/mainstay",
                     streq(agent->config.cgroup_root, "/") ? "" : agent->config.cgroup_root) < 0)
                return -ENOMEM;
        return 0;
}

/* What RuntimeDefault means: the profile that the configuration names, else the distribution's,
 * else our own. */
static int load_seccomp(Agent *agent, Error *reterr) {
        const char *path = agent->config.mainstay.seccomp_profile;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (path && streq(path, "builtin"))
                return seccomp_profile_builtin(&agent->seccomp);
        if (path)
                return seccomp_profile_load(AT_FDCWD, path, &agent->seccomp, reterr);
        r = seccomp_profile_load(AT_FDCWD, "/usr/share/containers/seccomp.json", &agent->seccomp,
                                 &error);
        if (r < 0 && r != -ENOENT)
                log_warning("%s, using our own", error_message(&error, r));
        return r < 0 ? seccomp_profile_builtin(&agent->seccomp) : 0;
}

static void fill_shared_configs(Agent *agent) {
        agent->bundle_config = (BundleConfig){
                .run_dir = agent->run_dir,
                .state_dir = agent->state_dir,
                .log_dir = agent->log_dir,
                .hostname = agent->node.hostname,
                .cluster_domain = agent->config.cluster_domain,
                .cluster_dns = agent->config.cluster_dns,
                .resolv_conf = agent->config.resolv_conf,
                .cgroup_root = agent->config.cgroup_root,
                .has_slices = agent->has_slices,
                .memory_capacity = agent->node.memory_capacity,
                .swap_capacity = agent->node.swap_capacity,
                .has_limited_swap = agent->config.memory_swap.swap_behavior == SWAP_LIMITED,
                .can_limit_swap = swap_is_limitable(cgroup_version()),
                .storage_capacity = node_storage_capacity(agent->state_dir),
                .pids_limit = agent->config.pod_pids_limit.is_set
                                      ? agent->config.pod_pids_limit.value
                                      : -1,
                .oom_score_adj_min = agent->node.oom_score_adj_min,
                .cpu_capacity_milli = (int64_t) agent->node.n_cpus * 1000,
                .host_ip = agent->node.address,
                .seccomp = agent->seccomp,
                .allowed_sysctls = agent->config.allowed_unsafe_sysctls,
                .missing_capabilities = agent->node.missing_capabilities,
                .huge_pages = huge_pages_limitable(HUGE_PAGES_DIRECTORY),
                .has_x32 = agent->node.has_x32,
                .has_app_armor = agent->node.has_app_armor,
                .app_armor_default = agent->node.app_armor_default,
                .has_se_linux = agent->node.has_se_linux,
                .has_labels = agent->node.has_labels,
                .labels = agent->node.labels.process ? &agent->node.labels : NULL,
                .check_label = selinux_check_label,
                .has_journal = agent->config.mainstay.journal_container_logs,
        };
        lookups_fill(agent, &agent->bundle_config);
        agent->sandbox_config = (SandboxConfig){
                .event = agent->event,
                .shim_path = agent->shim_path,
                .runtime_path = agent->config.mainstay.runtime,
                .run_dir = agent->run_dir,
                .shim_cgroup = agent->shim_cgroup,
                .units = agent->units,
        };
        agent->network_places = (NetworkPlaces){
                .config_dir = agent->config.mainstay.cni_conf_dir,
                .plugin_path = agent->config.mainstay.cni_bin_dir,
        };
}

static int build_supervisor(Agent *agent) {
        static const SupervisorCallbacks callbacks = { .on_pod = on_pod,
                                                       .on_log_ended = on_log_ended,
                                                       .on_event = agent_on_event };
        const Config *config = &agent->config;

        return supervisor_new(
                &(SupervisorConfig){
                        .event = agent->event,
                        .bundle = &agent->bundle_config,
                        .sandbox = &agent->sandbox_config,
                        .network = &agent->network_places,
                        .runtimes = &agent->config.mainstay.runtimes,
                        .images = agent->images,
                        .back_off = { config->back_off_initial_usec, config->back_off_max_usec },
                        .log_max_size = config->log_max_size_bytes,
                        .log_max_files = (unsigned) config->container_log_max_files.value,
                        .creating_max = MAX(2 * agent->node.n_cpus, 4),
                        .host_ip = agent->node.address,
                        .node = &agent->facts.all,
                        .conditions = pressure_conditions(agent->pressure),
                },
                &callbacks, agent, &agent->supervisor);
}

static int build_daemons(Agent *agent) {
        int r = daemons_new(&(DaemonsConfig){ .event = agent->event,
                                              .state_dir = agent->state_dir,
                                              .facts = &agent->facts.all,
                                              .supervisor = agent->supervisor,
                                              .clock = &agent->clock,
                                              .on_known = wishes_on_known_daemonset,
                                              .on_due = wishes_are_due,
                                              .on_changed = on_daemons_changed,
                                              .on_event = agent_on_event,
                                              .userdata = agent },
                            &agent->daemons);

        if (r >= 0)
                r = config_watch_new(agent->event, agent->config_path, on_config_changed, agent,
                                     &agent->config_watch);
        return r;
}

static void on_cluster_state(void *userdata) {
        tell_cluster(userdata);
        agent_schedule_publish(userdata);
}

static int build_cluster(Agent *agent, bool drain) {
        if (!agent->kubeconfig || drain)
                return 0;
        return cluster_new(
                &(ClusterConfig){ .event = agent->event,
                                  .kubeconfig = agent->kubeconfig,
                                  .bootstrap_kubeconfig = agent->bootstrap_kubeconfig,
                                  .node_name = agent->node.name,
                                  .state_dir = agent->state_dir,
                                  .run_dir = agent->run_dir,
                                  .supervisor = agent->supervisor,
                                  .daemonsets_by = agent->config.mainstay.daemonsets_by,
                                  .machine = { .own = &agent->facts.own,
                                               .hostname = agent->node.hostname,
                                               .address = agent->node.address,
                                               .n_cpus = agent->node.n_cpus,
                                               .memory = agent->node.memory_capacity,
                                               .storage = agent->bundle_config.storage_capacity,
                                               .eviction = &agent->config.eviction,
                                               .conditions = pressure_conditions(agent->pressure),
                                               .images = agent->images,
                                               .runtimes = &agent->config.mainstay.runtimes },
                                  .on_due = wishes_are_due,
                                  .on_node = on_node,
                                  .on_state = on_cluster_state,
                                  .userdata = agent },
                &agent->cluster);
}

static int build_rooms(Agent *agent, bool drain, Error *reterr) {
        int r;

        agent->events = events_new(agent->node.name);
        if (!agent->events)
                return -ENOMEM;
        r = images_open(agent, agent->event, agent->image_helper_path, agent->state_dir,
                        &agent->config, on_images_changed, &agent->images, reterr);
        if (r >= 0)
                r = evictions_build(agent);
        if (r >= 0)
                r = build_supervisor(agent);
        if (r >= 0)
                r = build_daemons(agent);
        if (r >= 0)
                r = build_cluster(agent, drain);
        if (r >= 0)
                r = manifest_source_new(agent->event, agent->manifest_dir, agent->node.name,
                                        wishes_make, agent, &agent->manifests);
        if (r >= 0 && asprintf(&agent->socket_path, "%s/mainstay.sock", agent->run_dir) < 0)
                r = -ENOMEM;
        if (r >= 0)
                r = serve_new(&(ServeConfig){ .event = agent->event,
                                              .socket_path = agent->socket_path,
                                              .handlers = &agent_answers,
                                              .userdata = agent },
                              &agent->serve, reterr);
        if (r < 0)
                return r;
        agent->publish = publish_new();
        return agent->publish ? 0 : -ENOMEM;
}

static int build_loop(Agent *agent) {
        int r = sd_event_default(&agent->event);

        if (r >= 0)
                r = ending_watch_signals(agent);
        if (r >= 0)
                r = sd_event_add_defer(agent->event, &agent->publish_source, on_publish, agent);
        if (r >= 0)
                r = sd_event_source_set_enabled(agent->publish_source, SD_EVENT_OFF);
        /* Last of all in a turn. */
        if (r >= 0)
                r = sd_event_source_set_priority(agent->publish_source, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_add_time(agent->event, &agent->calm_timer, CLOCK_BOOTTIME, 0,
                                      USEC_PER_SEC / 2, on_calm, agent);
        if (r >= 0)
                r = sd_event_source_set_enabled(agent->calm_timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_set_watchdog(agent->event, true);
        return r;
}

/* Where systemd is PID 1 it starts the shims, and, on cgroup v2, keeps the groups. */
static int meet_service_manager(Agent *agent, Error *reterr) {
        bool is_there = units_are_possible(), can_keep = is_there && cgroup_version() == 2;
        const char *driver = agent->config.cgroup_driver;

        if (driver && streq(driver, "systemd") && !can_keep)
                return error_setf(reterr, EOPNOTSUPP,
                                  "cgroupDriver: systemd needs systemd as PID 1 and cgroups of "
                                  "version 2");
        agent->has_slices = driver ? streq(driver, "systemd") : can_keep;
        return is_there ? units_new(agent->event, &agent->units) : 0;
}

static int load_facts(Agent *agent) {
        agent->facts = (Facts){ .node_name = agent->node.name,
                                .hostname = agent->node.hostname,
                                .state_dir = agent->state_dir,
                                .clock = &agent->clock };
        return facts_load(&agent->facts, &agent->config, agent->kubeconfig);
}

static int build(Agent *agent, const AgentOptions *options, Error *reterr) {
        int r = read_config(agent, options, reterr);

        if (r >= 0)
                r = make_directories(agent, options, reterr);
        if (r >= 0)
                r = take_lock(agent, reterr);
        if (r >= 0)
                r = node_discover(options->node_name, units_are_possible(), &agent->node, reterr);
        if (r >= 0)
                r = load_facts(agent);
        if (r >= 0)
                r = places_find_program("mainstay-shim", &agent->shim_path);
        if (r >= 0)
                r = places_find_program("mainstay-image", &agent->image_helper_path);
        if (r >= 0)
                r = build_loop(agent);
        if (r >= 0)
                r = load_seccomp(agent, reterr);
        if (r >= 0)
                r = meet_service_manager(agent, reterr);
        if (r < 0)
                return r;
        fill_shared_configs(agent);
        /* A service sees mounts of its own; there a unit before ours has done it for all to see. */
        if (!agent->units || !getenv("INVOCATION_ID"))
                r = sandbox_prepare(&agent->sandbox_config, reterr);
        return r < 0 ? r : build_rooms(agent, options->drain, reterr);
}

static int on_drain_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *agent = userdata;

        if (supervisor_is_empty(agent->supervisor) &&
            (!agent->units || units_are_idle(agent->units)))
                return sd_event_exit(agent->event, 0);
        (void) sd_event_source_set_time_relative(source, DRAIN_LOOK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Nobody is wished for, and we stay until nobody is left. */
static int start_drain(Agent *agent) {
        int r = sd_event_add_time_relative(agent->event, NULL, CLOCK_BOOTTIME, 0, DRAIN_LOOK_USEC,
                                           on_drain_timer, agent);

        if (r < 0)
                return r;
        supervisor_begin(agent->supervisor);
        supervisor_sweep(agent->supervisor);
        log_info("Version %s stops all pods of node '%s'", MAINSTAY_VERSION, agent->node.name);
        return 0;
}

static int start(Agent *agent, bool drain, Error *reterr) {
        int r = daemons_load(agent->daemons, reterr);

        if (r >= 0)
                r = supervisor_load(agent->supervisor, wishes_on_record, reterr);
        evictions_take_up(agent);
        if (r >= 0 && drain)
                return start_drain(agent);
        if (r >= 0)
                r = manifest_source_start(agent->manifests, reterr);
        if (r >= 0 && agent->cluster)
                cluster_start(agent->cluster);
        if (r >= 0)
                r = ending_watch_logind(agent);
        if (r < 0)
                return r;
        agent_schedule_publish(agent);
        log_mark(MESSAGE_AGENT_STARTED);
        log_info("Version %s on node '%s' watches %s", MAINSTAY_VERSION, agent->node.name,
                 agent->manifest_dir);
        return 0;
}

static void agent_done(Agent *agent) {
        serve_free(agent->serve);
        manifest_source_free(agent->manifests);
        config_watch_free(agent->config_watch);
        cluster_free(agent->cluster);
        daemons_free(agent->daemons);
        sd_event_source_disable_unref(agent->wish_source);
        supervisor_free(agent->supervisor);
        pressure_free(agent->pressure);
        free(agent->pods_group);
        inhibitor_free(agent->inhibitor);
        units_free(agent->units);
        image_store_free(agent->images);
        publish_free(agent->publish);
        events_free(agent->events);
        sd_event_source_disable_unref(agent->publish_source);
        sd_event_source_disable_unref(agent->calm_timer);
        sd_event_unref(agent->event);
        config_done(&agent->config);
        node_done(&agent->node);
        facts_done(&agent->facts);
        free(agent->config_path);
        free(agent->kubeconfig);
        free(agent->bootstrap_kubeconfig);
        seccomp_profile_free(agent->seccomp);
        strv_free(agent->told);
        close_fd(agent->lock_fd);
        free(agent->manifest_dir);
        free(agent->state_dir);
        free(agent->run_dir);
        free(agent->log_dir);
        free(agent->shim_path);
        free(agent->image_helper_path);
        free(agent->shim_cgroup);
        free(agent->socket_path);
}

int agent_run(const AgentOptions *options, Error *reterr) {
        cleanup_with(agent_done) Agent agent = { .lock_fd = -EBADF, .clock = steady_clock_start() };
        int r = build(&agent, options, reterr);

        if (r >= 0)
                r = start(&agent, options->drain, reterr);
        if (r < 0)
                return r;
        return sd_event_loop(agent.event);
}
