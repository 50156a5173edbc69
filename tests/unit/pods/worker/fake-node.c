/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pods/worker/fake-node.h"

#include "agent/manifest/manifest.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

/* Timers that are due within this interval are called at the same time. */
#define GRID_USEC (50 * USEC_PER_MSEC)

enum {
        TURNS_MAX = 100000
};

static char requests[NODE_TEXT_MAX];

void fake_request(const char *format, ...) {
        size_t length = strlen(requests);
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(requests + length, sizeof(requests) - length, format, ap);
        va_end(ap);
        length = strlen(requests);
        if (length + 1 < sizeof(requests))
                memcpy(requests + length, "\n", 2);
}

const char *fake_requests(void) {
        static char taken[NODE_TEXT_MAX];

        memcpy(taken, requests, sizeof(taken));
        requests[0] = '\0';
        return taken;
}

/* ---- the agent ---- */

static void on_fake_node_pod(const Pod *pod, bool is_new, bool is_gone, void *userdata) {
        FakeNode *node = userdata;

        node->n_reports++;
}

static void on_fake_node_log_ended(const char *directory, unsigned attempt, void *userdata) {
        FakeNode *node = userdata;

        node->n_logs_ended++;
}

static void on_fake_node_event(const PodEvent *event, void *userdata) {
        FakeNode *node = userdata;
        size_t length = strlen(node->pod_events);

        (void) snprintf(node->pod_events + length, sizeof(node->pod_events) - length, "%s%s",
                        length > 0 ? " " : "", event->reason);
        (void) snprintf(node->last_message, sizeof(node->last_message), "%s", event->message);
        if (getenv("MAINSTAY_TEST_EVENTS"))
                printf("  %s: %s\n", event->reason, event->message);
}

const char *fake_node_pod_events(FakeNode *node) {
        static char taken[NODE_TEXT_MAX];

        memcpy(taken, node->pod_events, sizeof(taken));
        node->pod_events[0] = '\0';
        return taken;
}

static void start_fake_agent(FakeNode *node) {
        static const PodManagerCallbacks callbacks = { .on_pod = on_fake_node_pod,
                                                       .on_log_ended = on_fake_node_log_ended,
                                                       .on_event = on_fake_node_event };
        const PodManagerConfig config = {
                .event = node->event,
                .bundle = &node->bundle,
                .sandbox = &node->sandbox,
                .network = &node->network,
                .images = (ImageStore *) (uintptr_t) node,
                .back_off = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC },
                .log_max_size = 1000,
                .log_max_files = 2,
                .start_limit = node->start_limit,
                .host_ips = { "192.0.2.1", NULL },
                .node = &node->labels,
                .conditions = &node->conditions,
                .allocatable = &node->allocatable,
                .devices = node->devices,
        };

        REQUIRE(pod_manager_new(&config, &callbacks, node, &node->manager) >= 0);
}

static char *make_node_directory(const FakeNode *node, const char *name) {
        char *path = path_join(node->directory, name);

        REQUIRE(path && mkdir_parents_at(AT_FDCWD, path, 0755) >= 0);
        return path;
}

static void write_node_file(const char *directory, const char *name, const char *text,
                            mode_t mode) {
        cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0 && write_file_atomic_at(fd, name, text, strlen(text), mode) >= 0);
}

static void make_node_network(FakeNode *node) {
        node->cni_dir = make_node_directory(node, "cni");
        write_node_file(node->cni_dir, "plugin", "", 0755);
        write_node_file(node->cni_dir, "10-net.conflist",
                        "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":"
                        "\"plugin\"}]}",
                        0644);
        node->network = (CniSettings){ .config_dir = node->cni_dir, .plugin_path = node->cni_dir };
}

/* ---- devices ---- */

static void on_node_devices_changed(const char *uid, void *userdata) {
        FakeNode *node = userdata;

        pod_manager_on_devices_changed(node->manager, uid);
}

static void make_node_devices(FakeNode *node) {
        const DeviceManagerConfig config = { .boot_id = "boot",
                                             .on_pod_changed = on_node_devices_changed,
                                             .userdata = node };

        REQUIRE(device_manager_new(&config, &node->devices) >= 0);
}

static int allocate_node_devices(void *provider, uint64_t call, const char *resource,
                                 char *const *ids, DeviceEdits *ret, Error *reterr) {
        return 0;
}

void fake_node_set_devices(FakeNode *node, const char *ids) {
        static const DeviceProviderOps ops = { .allocate = allocate_node_devices };
        const DeviceProvider provider = { .ops = &ops, .userdata = node };
        cleanup_free char *copy = strdup(ids);
        DeviceList list = { 0 };
        char *rest = copy, *id;

        while ((id = strsep(&rest, " "))) {
                Device *device = ARRAY_APPEND(list.items, list.n);

                REQUIRE(device);
                device->is_healthy = true;
                device->id = strdup(id);
        }
        REQUIRE(device_manager_register(node->devices, "example.com/gpu", &provider) >= 0);
        REQUIRE(device_manager_set_devices_take(node->devices, "example.com/gpu", node, &list) >=
                0);
        fake_node_run(node);
}

static const NodeResources fake_resources = {
        .cpu_milli = 4000,
        .memory = 1024 * (int64_t) MIB,
        .ephemeral_storage = 1024 * (int64_t) MIB,
        .huge_pages_1gi = NODE_RESOURCE_NONE,
        .huge_pages_2mi = NODE_RESOURCE_NONE,
        .pods = 10,
};

FakeNode *fake_node_new(void) {
        static unsigned n_nodes;
        FakeNode *node = calloc(1, sizeof(*node));
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        REQUIRE(node && sigprocmask(SIG_BLOCK, &mask, NULL) >= 0);
        REQUIRE(sd_event_new(&node->event) >= 0);
        node->directory = text_format("%s/node-%u", test_directory(), n_nodes++);
        node->run_dir = make_node_directory(node, "run");
        node->state_dir = make_node_directory(node, "state");
        node->log_dir = make_node_directory(node, "log");
        free(make_node_directory(node, "log/containers"));
        make_node_network(node);
        fake_cgroups_init(node->directory);
        node->allocatable = fake_resources;
        node->labels.name = strdup("node1");
        REQUIRE(node_labels_taints_add_well_known(&node->labels, "node1", "amd64") >= 0);
        node->bundle = (BundleConfig){
                .run_dir = node->run_dir,
                .state_dir = node->state_dir,
                .log_dir = node->log_dir,
                .hostname = "node1",
                .cgroup_root = "/",
                .resolv_conf = "",
                .memory_capacity = fake_resources.memory,
                .cpu_capacity_milli = fake_resources.cpu_milli,
                .storage_capacity = fake_resources.ephemeral_storage,
                .allocatable = fake_resources,
                .pod_pids_limit = -1,
                .host_ips = { "192.0.2.1", NULL },
                .node = &node->labels,
        };
        node->sandbox = (SandboxConfig){ .event = node->event,
                                         .shim_path = "/usr/libexec/mainstay-shim",
                                         .runtime_path = "runc",
                                         .run_dir = node->run_dir };
        node->start_limit.max = 2;
        make_node_devices(node);
        start_fake_agent(node);
        return node;
}

static void restore_behaviours(void) {
        fake_shims = (FakeShimBehaviour){ 0 };
        fake_children = (FakeChildBehaviour){ 0 };
        fake_http = (FakeHttpAnswer){ .status = 200 };
        fake_disk_hangs = fake_systemd_is_stopping = false;
        fake_cgroup_refused_file = NULL;
        (void) fake_requests();
}

FakeNode *fake_node_free(FakeNode *node) {
        if (!node)
                return NULL;
        EXPECT_EQ(fake_count_doubles(), 0);
        pod_manager_free(node->manager);
        device_manager_free(node->devices);
        fake_shims_forget();
        sd_event_unref(node->event);
        node_labels_taints_done(&node->labels);
        free(node->run_dir);
        free(node->state_dir);
        free(node->log_dir);
        free(node->cni_dir);
        free(node->directory);
        free(node);
        restore_behaviours();
        return NULL;
}

static int on_restored_pod(const PodSource *source, const Pod *pod, void *userdata) {
        return 0;
}

void fake_node_restart_agent(FakeNode *node) {
        pod_manager_free(node->manager);
        start_fake_agent(node);
        REQUIRE(pod_manager_load_records(node->manager, on_restored_pod, node,
                                         /* must_be_all= */ true, NULL) >= 0);
}

/* ---- time ---- */

void fake_node_run(FakeNode *node) {
        unsigned n = 0;

        while (sd_event_run(node->event, 0) > 0)
                REQUIRE(++n < TURNS_MAX); /* otherwise the loop never becomes idle */
}

void fake_node_pass(FakeNode *node, uint64_t usec) {
        fake_node_run(node);
        while (usec > 0) {
                uint64_t quiet = fake_clock_quiet_usec() / GRID_USEC * GRID_USEC;
                uint64_t step = MIN(usec, MAX(GRID_USEC, quiet));

                fake_clock_pass(step);
                fake_node_run(node);
                usec -= step;
        }
}

/* ---- manifests ---- */

void fake_node_apply(FakeNode *node, const char *yaml) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        PodSource source = pod_source_of_file("web.yaml");
        int r = manifest_parse("web.yaml", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is not valid: %s", error_message(&error, r));
        for (size_t i = 0; i < objects.pods.n; i++)
                REQUIRE(pod_manager_start_or_edit(node->manager, &source, objects.pods.items[i]) >=
                        0);
        fake_node_run(node);
}

void fake_node_bind(FakeNode *node, const char *json) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        PodSource source = { .kind = POD_SOURCE_APISERVER };
        int r = manifest_parse_api("pod", "Pod", json, strlen(json), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, json, "is not valid: %s", error_message(&error, r));
        for (size_t i = 0; i < objects.pods.n; i++)
                REQUIRE(pod_manager_start_or_edit(node->manager, &source, objects.pods.items[i]) >=
                        0);
        fake_node_run(node);
}

/* ---- status ---- */

static bool is_pod_named(const Pod *pod, const char *name) {
        size_t length = strlen(name);

        return strncmp(pod->metadata.name, name, length) == 0 &&
               (pod->metadata.name[length] == '\0' || streq(pod->metadata.name + length, "-node1"));
}

static const Pod *find_pod_of_node(FakeNode *node, const char *name) {
        cleanup_with(actual_pods_done) ActualPods pods = { 0 };

        REQUIRE(pod_manager_list(node->manager, &pods) >= 0);
        for (size_t i = 0; i < pods.n; i++) {
                const Pod *pod = pods.items[i].pod ? pods.items[i].pod : pods.items[i].successor;

                if (is_pod_named(pod, name))
                        return pod;
        }
        return NULL;
}

char *fake_node_uid(FakeNode *node, const char *name) {
        const Pod *pod = find_pod_of_node(node, name);

        return pod ? strdup(pod->metadata.uid) : NULL;
}

static void print_container(FILE *out, const ContainerStatus *status) {
        (void) fprintf(out, " %s", status->name);
        if (status->state.kind == STATE_RUNNING)
                (void) fprintf(out, " running%s%s", status->started ? "" : " starting",
                               status->ready ? " ready" : "");
        else if (status->state.kind == STATE_WAITING)
                (void) fprintf(out, " waiting %s", strna(status->state.reason));
        else
                (void) fprintf(out, " ended %s %d", strna(status->state.reason),
                               status->state.exit_code);
        if (status->restart_count > 0)
                (void) fprintf(out, " (%u)", status->restart_count);
        if (status->last_state.kind == STATE_TERMINATED)
                (void) fprintf(out, " after %d", status->last_state.exit_code);
}

static void print_pod(FILE *out, const PodStatus *status) {
        const ContainerStatusList *lists[] = { &status->init_containers, &status->containers,
                                               &status->ephemeral_containers };
        const char *separator = " |";

        (void) fprintf(out, "%s%s%s", pod_phase_names[status->phase], status->reason ? " " : "",
                       strna(status->reason));
        if (status->is_syncing)
                (void) fprintf(out, " syncing");
        if (status->deletion_time > 0)
                (void) fprintf(out, " deleted");
        if (status->conditions[CONDITION_READY].is_true)
                (void) fprintf(out, " Ready");
        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++) {
                        (void) fprintf(out, "%s", separator);
                        print_container(out, &lists[l]->items[i]);
                        separator = ",";
                }
}

const char *fake_node_status(FakeNode *node, const char *name) {
        static char text[NODE_TEXT_MAX];
        const Pod *pod = find_pod_of_node(node, name);
        const PodStatus *status =
                pod ? pod_manager_pod_status(node->manager, pod->metadata.uid) : NULL;
        FILE *out;

        if (!pod)
                return "gone";
        if (!status)
                return "not started";
        out = fmemopen(text, sizeof(text), "w");
        REQUIRE(out);
        print_pod(out, status);
        (void) fclose(out);
        return text;
}

/* ---- tables ---- */

static const ObjectMeta *metadata_of(FakeNode *node, const char *name) {
        const Pod *pod = find_pod_of_node(node, name);

        REQUIRE(pod);
        return &pod->metadata;
}

static int number_of(const char *text) {
        return (int) strtol(text, NULL, 10);
}

static void end_exec(const char *container, const char *how) {
        if (streq(how, "timeout"))
                fake_exec_ends(container, &(ShimEvent){ .timed_out = true });
        else
                fake_exec_ends(container,
                               &(ShimEvent){ .exit_code = number_of(how), .output = "why" });
}

static void reboot_machine(FakeNode *node) {
        pod_manager_free(node->manager);
        node->manager = NULL;
        fake_shims_forget();
        REQUIRE(remove_tree_at(AT_FDCWD, node->run_dir) >= 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, node->run_dir, 0755) >= 0);
        fake_node_restart_agent(node);
}

static void evict_from_node(FakeNode *node, const char *name) {
        uint64_t grace_usec;

        EXPECT(pod_manager_evict_pod(node->manager, metadata_of(node, name)->uid,
                                     NODE_MEMORY_PRESSURE, "the node is short of memory", 1,
                                     &grace_usec));
}

static void play_event(FakeNode *node, const NodeStep *step) {
        char words[3][64] = { "", "", "" };
        const char *what = words[0], *name = words[1], *how = words[2];

        (void) sscanf(step->event, "%63s %63s %63s", words[0], words[1], words[2]);
        if (streq(what, "apply"))
                fake_node_apply(node, step->text);
        else if (streq(what, "bind"))
                fake_node_bind(node, step->text);
        else if (streq(what, "exit"))
                fake_container_exit(name, number_of(how));
        else if (streq(what, "exec"))
                end_exec(name, how);
        else if (streq(what, "stop"))
                pod_manager_stop_pod(node->manager, metadata_of(node, name), "its file is gone");
        else if (streq(what, "delete"))
                EXPECT_EQ(pod_manager_delete_pod(node->manager, "default",
                                                 metadata_of(node, name)->name, number_of(how),
                                                 "test", NULL),
                          0);
        else if (streq(what, "evict"))
                evict_from_node(node, name);
        else if (streq(what, "shims"))
                fake_shims_die();
        else if (streq(what, "connections"))
                fake_connections_break();
        else if (streq(what, "agent"))
                fake_node_restart_agent(node);
        else if (streq(what, "machine"))
                reboot_machine(node);
        else if (streq(what, "pulled"))
                fake_pull_ends(name, 0);
        else if (streq(what, "not"))
                fake_pull_ends(how, -EIO);
        else
                REQUIRE(streq(what, ""));
}

void fake_node_play(FakeNode *node, const char *file, int line, const NodeStep *steps, size_t n) {
        for (size_t i = 0; i < n; i++) {
                cleanup_free char *title =
                        text_format("step %zu (%u s: %s)", i, steps[i].seconds, steps[i].event);
                const char *made;

                fake_node_pass(node, steps[i].seconds * USEC_PER_SEC);
                play_event(node, &steps[i]);
                fake_node_run(node);
                made = fake_requests();
                if (steps[i].requests)
                        test_expect_string(file, line, title, made, steps[i].requests);
                if (steps[i].status)
                        test_expect_string(file, line, title, fake_node_status(node, "web"),
                                           steps[i].status);
        }
}
