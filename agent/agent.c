/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include "agent/agent-private.h"
#include "agent/bundle/bundle.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/seccomp.h"
#include "agent/bundle/swap.h"
#include "agent/config-watch.h"
#include "agent/daemons.h"
#include "agent/facts.h"
#include "agent/figures.h"
#include "agent/image/image.h"
#include "agent/images.h"
#include "agent/inputs.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/node.h"
#include "agent/places.h"
#include "agent/publish/events.h"
#include "agent/publish/journal.h"
#include "agent/publish/publish.h"
#include "agent/sandbox/sandbox.h"
#include "agent/sandbox/units.h"
#include "agent/serve/serve.h"
#include "agent/supervise/shutdown.h"
#include "agent/supervise/supervisor.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

enum {
        DRAIN_LOOK_USEC = 50000, /* while draining */
        SHUTDOWN_MARGIN_USEC = 5000000,
};

/* ---- what people like to know ---- */

static void on_event(const PodEvent *event, void *userdata) {
        Agent *agent = userdata;

        if (events_add(agent->events, event, now_realtime_usec()))
                journal_tell_event(event);
        if (agent->serve)
                serve_event_came(agent->serve);
}

/* ---- manifests say what is wanted ---- */

static void tell(Agent *agent, char ***standing, const char *sentence, bool is_error) {
        if (!strv_contains(agent->told, sentence)) {
                log_mark(MESSAGE_MANIFEST_BROKEN);
                if (is_error)
                        log_error("%s", sentence);
                else
                        log_warning("%s", sentence);
        }
        (void) strv_append(standing, sentence);
}

/* False where a wish may not have been heard. */
static bool want_pods(Agent *agent, const Manifest *manifest) {
        bool heard = true;

        for (size_t i = 0; i < manifest->pods.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = supervisor_want(agent->supervisor, manifest->file, manifest->pods.items[i],
                                        &error);

                if (r < 0)
                        log_error("%s: %s", manifest->file, error_message(&error, r));
                heard = heard && r != -ENOMEM;
        }
        return heard;
}

static bool want_daemonsets(Agent *agent, const Manifest *const *manifests, size_t n,
                            char ***standing) {
        bool heard = true;

        daemons_begin(agent->daemons);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < manifests[i]->daemonsets.n; j++)
                        heard = daemons_want(agent->daemons, manifests[i]->file,
                                             manifests[i]->daemonsets.items[j]) >= 0 &&
                                heard;
        heard = daemons_end(agent->daemons) >= 0 && heard;
        for (char *const *warning = daemons_warnings(agent->daemons); warning && *warning;
             warning++)
                tell(agent, standing, *warning, /* is_error= */ false);
        return heard;
}

static void schedule_publish(Agent *agent) {
        (void) sd_event_source_set_enabled(agent->publish_source, SD_EVENT_ONESHOT);
}

static void tell_objects(Agent *agent) {
        unsigned generation = manifest_source_data_generation(agent->manifests);

        if (generation != agent->data_generation)
                supervisor_objects_changed(agent->supervisor);
        agent->data_generation = generation;
}

void agent_on_manifests_changed(void *userdata) {
        Agent *agent = userdata;
        const Manifest *const *manifests;
        size_t n = manifest_source_list(agent->manifests, &manifests);
        const char *trouble = manifest_source_trouble(agent->manifests);
        cleanup_strv char **standing = NULL;
        bool heard = true;

        supervisor_begin(agent->supervisor);
        for (size_t i = 0; i < n; i++) {
                if (manifests[i]->error) {
                        if (!strv_contains(agent->told, manifests[i]->error))
                                inputs_tell_broken(manifests[i], on_event, agent);
                        tell(agent, &standing, manifests[i]->error, /* is_error= */ true);
                }
                strv_foreach(warning, manifests[i]->warnings)
                        tell(agent, &standing, *warning, /* is_error= */ false);
                heard = want_pods(agent, manifests[i]) && heard;
        }
        if (trouble)
                tell(agent, &standing, trouble, /* is_error= */ true);
        heard = want_daemonsets(agent, manifests, n, &standing) && heard;
        if (heard) /* who could not be named must not be taken for one who was not */
                supervisor_sweep(agent->supervisor);
        tell_objects(agent);
        strv_free(agent->told);
        agent->told = TAKE_PTR(standing);
        agent->has_scanned = true;
        schedule_publish(agent);
}

static const DataObject *find_object(ObjectKind kind, const char *namespace, const char *name,
                                     void *userdata) {
        Agent *agent = userdata;

        return manifest_source_find(agent->manifests, kind, namespace, name);
}

static void on_record(const char *file, const Pod *pod, void *userdata) {
        Agent *agent = userdata;
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r;

        if (streq(file, orphan_file)) {
                (void) daemons_take_orphan(agent->daemons, pod);
                return;
        }
        r = pod_copy(pod, &copy);
        if (r >= 0)
                r = manifest_source_seed_take(agent->manifests, file, copy);
        if (r < 0)
                (void) log_error_errno(r, "Cannot remember what %s said before", file);
        else
                copy = NULL;
}

static void on_daemons_due(void *userdata) {
        Agent *agent = userdata;

        if (agent->has_scanned)
                agent_on_manifests_changed(agent);
}

/* Labels and taints are acted on at once; a configuration that is broken changes nothing. */
static void on_config_changed(void *userdata) {
        Agent *agent = userdata;
        cleanup_with(publish_end_reloadp) Publish *publish = agent->publish;
        cleanup_error Error error = ERROR_NULL;
        int r;

        publish_begin_reload(publish);
        r = facts_reload(agent->config_path, &agent->config, agent->node.hostname, agent->state_dir,
                         &agent->facts, &error);

        if (r < 0) {
                log_mark(MESSAGE_CONFIG_BROKEN);
                log_error("%s, going on with the configuration as it was",
                          error_message(&error, r));
        }
        if (r <= 0)
                return;
        log_info("The node has other labels or taints");
        supervisor_node_changed(agent->supervisor);
        on_daemons_due(agent);
}

static void on_images_changed(void *userdata) {
        Agent *agent = userdata;

        if (agent->supervisor)
                supervisor_images_changed(agent->supervisor);
        if (agent->daemons)
                daemons_images_changed(agent->daemons);
}

/* ---- pods are told on ---- */

static void on_pod(const Pod *pod, bool is_new, bool is_gone, void *userdata) {
        Agent *agent = userdata;
        cleanup_free char *key = NULL, *json = NULL;
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        ServeChange change = is_gone ? SERVE_DELETED : is_new ? SERVE_ADDED : SERVE_MODIFIED;

        schedule_publish(agent);
        if (is_gone)
                image_store_check_space(agent->images);
        daemons_on_pod(agent->daemons, pod, is_new, is_gone);
        if (!agent->serve || !serve_has_watchers(agent->serve))
                return;
        if (supervisor_status(agent->supervisor, pod->metadata.uid, &pod, &status) < 0)
                return;
        key = figures_pod_key(pod);
        json = pod_to_json(pod, &status);
        if (key && json)
                serve_pod_changed(agent->serve, change, key, json);
}

static void on_log_ended(const char *directory, unsigned attempt, void *userdata) {
        Agent *agent = userdata;

        if (agent->serve)
                serve_log_ended(agent->serve, directory, attempt);
}

PublishCounts agent_take_counts(Agent *agent) {
        return figures_count(agent->node.name, agent->supervisor, agent->manifests, agent->images);
}

static int on_publish(sd_event_source *source, void *userdata) {
        Agent *agent = userdata;

        if (!agent->is_ready && agent->has_scanned && supervisor_is_synced(agent->supervisor)) {
                agent->is_ready = true;
                publish_ready(agent->publish);
        }
        if (publish_is_heard(agent->publish)) {
                PublishCounts counts = agent_take_counts(agent);

                publish_status(agent->publish, &counts);
        }
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
        const char *manifest_dir = options->manifest_dir;
        int r;

        agent->config_path = strdup(path);
        r = agent->config_path ? config_load(path, &agent->config, &warnings, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        strv_foreach(warning, warnings)
                log_warning("%s", *warning);
        if (!manifest_dir)
                manifest_dir = agent->config.static_pod_path;
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
                .objects = { .find = find_object, .userdata = agent },
                .seccomp = agent->seccomp,
                .allowed_sysctls = agent->config.allowed_unsafe_sysctls,
                .missing_capabilities = agent->node.missing_capabilities,
                .huge_pages = huge_pages_limitable(HUGE_PAGES_DIRECTORY),
                .has_x32 = agent->node.has_x32,
                .has_app_armor = agent->node.has_app_armor,
                .has_se_linux = agent->node.has_se_linux,
        };
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
                                                       .on_event = on_event };
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
                        .node = &agent->facts,
                },
                &callbacks, agent, &agent->supervisor);
}

static int build_daemons(Agent *agent, Error *reterr) {
        int r = daemons_new(&(DaemonsConfig){ .event = agent->event,
                                              .state_dir = agent->state_dir,
                                              .facts = &agent->facts,
                                              .supervisor = agent->supervisor,
                                              .on_due = on_daemons_due,
                                              .userdata = agent },
                            &agent->daemons);

        if (r >= 0)
                r = daemons_load(agent->daemons, reterr);
        if (r >= 0)
                r = config_watch_new(agent->event, agent->config_path, on_config_changed, agent,
                                     &agent->config_watch);
        return r;
}

static int build_rooms(Agent *agent, Error *reterr) {
        int r;

        agent->events = events_new(agent->node.name);
        if (!agent->events)
                return -ENOMEM;
        r = images_open(agent, agent->event, agent->image_helper_path, agent->state_dir,
                        &agent->config, on_images_changed, &agent->images, reterr);
        if (r >= 0)
                r = build_supervisor(agent);
        if (r >= 0)
                r = build_daemons(agent, reterr);
        if (r >= 0)
                r = manifest_source_new(agent->event, agent->manifest_dir, agent->node.name,
                                        agent_on_manifests_changed, agent, &agent->manifests);
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

static void leave(Agent *agent) {
        log_info("Ending; pods go on");
        (void) sd_event_exit(agent->event, 0);
}

static void on_shut_down(void *userdata) {
        Agent *agent = userdata;

        log_info("Ending; the machine goes down");
        (void) sd_event_exit(agent->event, 0);
}

/* We are stopped before the shims are, and systemd waits for us: that is how pods are stopped in
 * their order, whoever it was that said that the machine goes down. */
static void on_stop_explained(bool is_stopping, void *userdata) {
        Agent *agent = userdata;
        uint64_t usec =
                shutdown_total_usec(agent->config.shutdown_stages, agent->config.n_shutdown_stages);

        if (!is_stopping || agent->config.n_shutdown_stages == 0) {
                leave(agent);
                return;
        }
        publish_stop_takes(agent->publish, usec + SHUTDOWN_MARGIN_USEC);
        log_mark(MESSAGE_NODE_SHUTDOWN);
        log_info("The machine goes down, stopping all pods within %us",
                 (unsigned) (usec / USEC_PER_SEC));
        supervisor_shut_down(agent->supervisor, agent->config.shutdown_stages,
                             agent->config.n_shutdown_stages, on_shut_down, agent);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Agent *agent = userdata;

        if (agent->is_ending)
                return 0;
        agent->is_ending = true;
        publish_stopping(agent->publish);
        if (!agent->units || units_ask_shutdown(agent->units, on_stop_explained, agent, NULL) < 0)
                leave(agent);
        return 0;
}

static int build_loop(Agent *agent) {
        int r = sd_event_default(&agent->event);

        if (r >= 0)
                r = sd_event_add_signal(agent->event, NULL, SIGTERM, on_end, agent);
        if (r >= 0)
                r = sd_event_add_signal(agent->event, NULL, SIGINT, on_end, agent);
        if (r >= 0)
                r = sd_event_add_defer(agent->event, &agent->publish_source, on_publish, agent);
        if (r >= 0)
                r = sd_event_source_set_enabled(agent->publish_source, SD_EVENT_OFF);
        /* Last of all in a turn. */
        if (r >= 0)
                r = sd_event_source_set_priority(agent->publish_source, SD_EVENT_PRIORITY_IDLE);
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

static int build(Agent *agent, const AgentOptions *options, Error *reterr) {
        int r = read_config(agent, options, reterr);

        if (r >= 0)
                r = make_directories(agent, options, reterr);
        if (r >= 0)
                r = take_lock(agent, reterr);
        if (r >= 0)
                r = node_discover(options->node_name, units_are_possible(), &agent->node, reterr);
        if (r >= 0)
                r = facts_load(&agent->config, agent->node.name, agent->node.hostname,
                               agent->state_dir, &agent->facts, reterr);
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
        return r < 0 ? r : build_rooms(agent, reterr);
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
        int r = supervisor_load(agent->supervisor, on_record, reterr);

        if (r >= 0 && drain)
                return start_drain(agent);
        if (r >= 0)
                r = manifest_source_start(agent->manifests, reterr);
        if (r < 0)
                return r;
        schedule_publish(agent);
        log_mark(MESSAGE_AGENT_STARTED);
        log_info("Version %s on node '%s' watches %s", MAINSTAY_VERSION, agent->node.name,
                 agent->manifest_dir);
        return 0;
}

static void agent_done(Agent *agent) {
        serve_free(agent->serve);
        manifest_source_free(agent->manifests);
        config_watch_free(agent->config_watch);
        daemons_free(agent->daemons);
        supervisor_free(agent->supervisor);
        units_free(agent->units);
        image_store_free(agent->images);
        publish_free(agent->publish);
        events_free(agent->events);
        sd_event_source_disable_unref(agent->publish_source);
        sd_event_unref(agent->event);
        config_done(&agent->config);
        node_done(&agent->node);
        node_facts_done(&agent->facts);
        free(agent->config_path);
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
        cleanup_with(agent_done) Agent agent = { .lock_fd = -EBADF };
        int r = build(&agent, options, reterr);

        if (r >= 0)
                r = start(&agent, options->drain, reterr);
        if (r < 0)
                return r;
        return sd_event_loop(agent.event);
}
