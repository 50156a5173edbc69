/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients about pods: sessions, logs, usage, metrics, dumps, volumes that follow
 * objects. */

#include "tests/unit/pods/worker/fake-node.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/pod-paths.h"
#include "agent/pods/stats/metrics-collect.h"
#include "agent/pods/stats/stats-provider.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static char *session_argv[] = { (char[]){ "sh" }, NULL };

TEST(sessions_are_opened_in_containers_that_run)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        const SandboxSession session = { .argv = session_argv };
        const SandboxAttach attach = { .has_input = true };

        fake_node_apply(node, POD("  restartPolicy: Never\n" APP));
        (void) fake_requests();
        EXPECT_EQ(pod_manager_open_session(node->manager, "default", "web-node1", "app", &session,
                                           STDIN_FILENO, NULL),
                  0);
        EXPECT_EQ(pod_manager_attach(node->manager, "default", "web-node1", "app", &attach,
                                     STDIN_FILENO, NULL),
                  0);
        EXPECT_STREQ(fake_requests(), "session: sh\nattach\n");
        EXPECT_EQ(pod_manager_open_session(node->manager, "default", "web-node1", "none", &session,
                                           STDIN_FILENO, NULL),
                  -ENOENT);
        EXPECT_EQ(pod_manager_attach(node->manager, "default", "web-node1", "none", &attach,
                                     STDIN_FILENO, NULL),
                  -ENOENT);
        EXPECT_EQ(pod_manager_attach(node->manager, "default", "none", "app", &attach, STDIN_FILENO,
                                     NULL),
                  -ENOENT);
        fake_shims.has_old_shims = true;
        EXPECT_EQ(pod_manager_attach(node->manager, "default", "web-node1", "app", &attach, -EBADF,
                                     NULL),
                  -ENOTSUP);
        fake_shims.has_old_shims = false;
        fake_container_exit("app", 0);
        fake_node_run(node);
        EXPECT_EQ(pod_manager_open_session(node->manager, "default", "web-node1", "app", &session,
                                           -EBADF, NULL),
                  -EAGAIN);
}

TEST(logs_are_found_by_attempt)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *directory = NULL, *previous = NULL;
        cleanup_error Error error = ERROR_NULL;
        unsigned attempt;
        bool is_live;

        fake_image_set("busybox", IMAGE_PULLING);
        fake_node_apply(node, POD(APP));
        EXPECT_EQ(pod_manager_find_log(node->manager, "default", "web-node1", "app", false,
                                       &directory, &attempt, &is_live, &error),
                  -EAGAIN);
        EXPECT(strstr(error.message, "is waiting to start"));
        fake_pull_ends("busybox", 0);
        fake_node_run(node);
        EXPECT_EQ(pod_manager_find_log(node->manager, "default", "web-node1", "app", true,
                                       &directory, &attempt, &is_live, NULL),
                  -ENOENT);
        fake_container_exit("app", 1);
        fake_node_run(node);
        EXPECT_EQ(pod_manager_find_log(node->manager, "default", "web-node1", "app", false,
                                       &directory, &attempt, &is_live, NULL),
                  0);
        EXPECT_EQ(attempt, 1);
        EXPECT(is_live);
        EXPECT_EQ(pod_manager_find_log(node->manager, "default", "web-node1", "app", true,
                                       &previous, &attempt, &is_live, NULL),
                  0);
        EXPECT_EQ(attempt, 0);
        EXPECT(!is_live);
        EXPECT_EQ(node->n_logs_ended, 1);
        EXPECT_EQ(pod_manager_find_log(node->manager, "default", "web-node1", "none", true,
                                       &previous, &attempt, &is_live, NULL),
                  -ENOENT);
}

TEST(an_ended_attempt_is_deleted_once)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL, POD(APP) },
                { 1, "exit app 1", "run app/1\ndelete app/0\n", NULL },
                { 1, "exit app 1", "delete app/1\n", NULL },
                { 10, "", "run app/2\n", NULL },
        };

        fake_shims.records_deletions = true;
        PLAY(node, steps);
}

TEST(connections_to_ports_need_a_sandbox)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *uid = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_close int fd = -EBADF;

        fake_node_apply(node, POD(APP));
        uid = fake_node_uid(node, "web");
        EXPECT_EQ(pod_manager_check_pod(node->manager, "default", "web-node1", uid, NULL), 0);
        EXPECT_EQ(pod_manager_check_pod(node->manager, "default", "web-node1", "other", NULL),
                  -ENOENT);
        EXPECT_EQ(pod_manager_check_pod(node->manager, "default", "none", NULL, NULL), -ENOENT);
        fd = pod_manager_connect_to_port(node->manager, "default", "web-node1", uid, 1, false,
                                         &error);
        EXPECT(fd >= 0 || strstr(strna(error.message), "localhost:1"));
        fake_shims.start_error = "no";
        fake_shims_die();
        fake_node_run(node);
        EXPECT_EQ(pod_manager_check_pod(node->manager, "default", "web-node1", uid, NULL), -ENXIO);
}

/* ---- volumes ---- */

static DataObject *config_map;

static const DataObject *find_config_map(const ObjectKey *key, void *userdata) {
        return key->kind == OBJECT_CONFIG_MAP ? config_map : NULL;
}

static DataObject *parse_config_map(const char *value) {
        cleanup_free char *yaml = text_format("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
                                              "c}\ndata: {key: %s}\n",
                                              value);
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse("c.yaml", yaml, strlen(yaml), "node1", &objects, NULL) >= 0);
        return TAKE_PTR(objects.data.items[0]);
}

static char *read_volume(FakeNode *node) {
        cleanup_free char *uid = fake_node_uid(node, "web");
        cleanup_free char *path = text_format("%s/pods/%s/volumes/kubernetes.io~configmap/v/key",
                                              node->state_dir, uid);
        char *text = NULL;

        (void) read_file_at(AT_FDCWD, path, 100, &text, NULL);
        return text;
}

TEST(volumes_follow_their_objects)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *before = NULL, *after = NULL;

        node->bundle.objects = (ObjectLookup){ .find = find_config_map };
        fake_node_apply(
                node,
                POD(APP_WITH(
                        "volumeMounts: [{name: v, mountPath: /v}]") "  volumes: [{name: v, "
                                                                    "configMap: {name: c}}]\n"));
        EXPECT_STREQ(fake_node_pod_events(node), "FailedMount");
        config_map = parse_config_map("one");
        pod_manager_on_objects_changed(node->manager, NULL, NULL);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "start\nsetup\nrun app/0\n");
        before = read_volume(node);
        EXPECT_STREQ(before, "one");
        data_object_free(config_map);
        config_map = parse_config_map("two");
        pod_manager_on_objects_changed(node->manager, NULL, NULL);
        after = read_volume(node);
        EXPECT_STREQ(after, "two");
        config_map = data_object_free(config_map);
}

/* An encrypted Secret, with the values that it has after decryption. */
static struct {
        DataObject *object;
        int result; /* result of its decryption */
} sealed;

static const DataObject *find_sealed(const ObjectKey *key, void *userdata) {
        return key->kind == OBJECT_SECRET ? sealed.object : NULL;
}

static int open_sealed(const DataObject *object, const DataObject **ret, Error *reterr,
                       void *userdata) {
        *ret = object;
        return sealed.result == 0 ? 0 : error_setf(reterr, -sealed.result, "is sealed");
}

static FakeNode *start_pod_with_sealed_secret(void) {
        static const char yaml[] =
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: one}\n";
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        FakeNode *node = fake_node_new();

        REQUIRE(manifest_parse("s.yaml", yaml, strlen(yaml), "node1", &objects, NULL) >= 0);
        sealed.object = TAKE_PTR(objects.data.items[0]);
        sealed.object->sealed_digest = strdup("digest");
        sealed.result = -EAGAIN;
        node->bundle.objects = (ObjectLookup){ .find = find_sealed, .open = open_sealed };
        fake_node_apply(
                node,
                POD(APP_WITH("volumeMounts: [{name: v, mountPath: /v}]") "  volumes: "
                                                                         "[{name: v, secret: "
                                                                         "{secretName: s}}]\n"));
        return node;
}

static void end_opening(FakeNode *node, int result) {
        sealed.result = result;
        pod_manager_on_objects_changed(node->manager, NULL, NULL);
        fake_node_run(node);
}

TEST(a_shim_starts_while_the_secret_of_a_volume_is_decrypted)
{
        cleanup_with(fake_node_freep) FakeNode *node = start_pod_with_sealed_secret();

        EXPECT_STREQ(fake_requests(), "start\n");
        EXPECT_STREQ(fake_node_pod_events(node), "");
        EXPECT_STREQ(fake_node_status(node, "web"), "Pending | app waiting ContainerCreating");
        end_opening(node, 0);
        EXPECT_STREQ(fake_requests(), "setup\nrun app/0\n");
        EXPECT_STREQ(fake_node_status(node, "web"), "Running Ready | app running ready");
        sealed.object = data_object_free(sealed.object);
}

TEST(a_pod_whose_secret_cannot_be_decrypted_waits_with_the_reason)
{
        cleanup_with(fake_node_freep) FakeNode *node = start_pod_with_sealed_secret();

        (void) fake_requests();
        end_opening(node, -EKEYREJECTED);
        EXPECT_STREQ(fake_requests(), "");
        EXPECT_STREQ(fake_node_pod_events(node), "FailedMount");
        EXPECT(strstr(node->last_message, "secret \"s\": is sealed") != NULL);
        fake_node_pass(node, 60 * USEC_PER_SEC);
        EXPECT_STREQ(fake_requests(), "");
        end_opening(node, 0);
        EXPECT_STREQ(fake_requests(), "setup\nrun app/0\n");
        sealed.object = data_object_free(sealed.object);
}

TEST(a_new_agent_prepares_the_volumes_of_a_shim_that_waits_for_a_secret)
{
        cleanup_with(fake_node_freep) FakeNode *node = start_pod_with_sealed_secret();

        (void) fake_requests();
        fake_node_restart_agent(node);
        fake_node_run(node);
        EXPECT_STREQ(fake_requests(), "connect\n");
        end_opening(node, 0);
        EXPECT_STREQ(fake_requests(), "setup\nrun app/0\n");
        sealed.object = data_object_free(sealed.object);
}

TEST(a_pod_that_waits_for_a_secret_is_stopped)
{
        cleanup_with(fake_node_freep) FakeNode *node = start_pod_with_sealed_secret();
        static const NodeStep steps[] = { { 0, "stop web", "teardown\ncleanup of everything\n",
                                            "gone" } };

        (void) fake_requests();
        PLAY(node, steps);
        EXPECT_EQ(fake_count_shims(), 0);
        sealed.object = data_object_free(sealed.object);
}

TEST(a_container_whose_environment_needs_an_object_waits_for_it)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();

        node->bundle.objects = (ObjectLookup){ .find = find_config_map };
        fake_node_apply(node, POD(APP_WITH("envFrom: [{configMapRef: {name: c}}]")));
        EXPECT_STREQ(fake_node_status(node, "web"),
                     "Pending | app waiting CreateContainerConfigError");
        config_map = parse_config_map("one");
        pod_manager_on_objects_changed(node->manager, NULL, NULL);
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), "Running Ready | app running ready");
        config_map = data_object_free(config_map);
}

/* ---- what is counted ---- */

static void write_usage(FakeNode *node) {
        cleanup_free char *uid = fake_node_uid(node, "web");
        cleanup_free char *pod = cgroup_of_pod(&node->bundle, QOS_BEST_EFFORT, uid);
        cleanup_free char *container = NULL;
        const char *groups[3] = { "/", pod, NULL };
        char id[65];

        container_id(uid, "app", 0, id);
        container = cgroup_of_container(pod, id);
        groups[2] = container;
        for (size_t i = 0; i < N_ELEMENTS(groups); i++) {
                REQUIRE(cgroup_create(groups[i], NULL) >= 0);
                (void) cgroup_write(groups[i], "cpu", "cpu.stat", "usage_usec 1000000\n", NULL);
                (void) cgroup_write(groups[i], "memory", "memory.current", "4096\n", NULL);
                (void) cgroup_write(groups[i], "memory", "memory.stat",
                                    "inactive_file 0\nanon 4096\npgfault 1\npgmajfault 1\n", NULL);
        }
}

TEST(usage_and_probe_metrics_are_collected)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        StatsProvider stats = { .event = node->event,
                                .pods = node->manager,
                                .bundle = &node->bundle,
                                .sandbox = &node->sandbox,
                                .node_name = "node1",
                                .started_at = 1 };
        cleanup_free char *resources = NULL, *probes = NULL, *summary = NULL, *cadvisor = NULL,
                          *running = NULL, *again = NULL;
        PodManagerCounts counts;

        fake_node_apply(node,
                        POD_HEAD APP_WITH(
                                "readinessProbe: {exec: {command: ['true']}}, "
                                "volumeMounts: [{name: v, mountPath: /v}]") "  volumes: [{name: v, "
                                                                            "emptyDir: {}}]\n");
        write_usage(node);
        resources = collect_resource_usage(node->manager, &node->bundle);
        EXPECT(resources && strstr(resources, "container_cpu_usage_seconds_total{"));
        probes = collect_probe_metrics(node->manager);
        EXPECT(probes && strstr(probes, "probe_type=\"Readiness\""));
        fake_children.output = "1 1\n2 2\n3 3\n4 4\n5 5\n";
        cadvisor = stats_provider_cadvisor_metrics(&stats);
        EXPECT(cadvisor && strstr(cadvisor, "container=\"app\""));
        summary = stats_provider_summary(&stats, &(NodeStats){ 0 });
        EXPECT(summary && strstr(summary, "\"web-node1\""));
        fake_node_pass(node, 70 * USEC_PER_SEC);
        again = stats_provider_summary(&stats, &(NodeStats){ 0 });
        EXPECT(again);
        running = stats_provider_running_pods(&stats);
        EXPECT(running && strstr(running, "\"web-node1\""));
        stats_provider_done(&stats);
        counts = pod_manager_counts(node->manager);
        EXPECT_EQ(counts.pods, 1);
        EXPECT_EQ(counts.pods_desired, 1);
        EXPECT_EQ(counts.containers_started, 1);
}

/* A query changes nothing, regardless of the client. */
TEST(queries_change_no_state)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        cleanup_free char *first = NULL;
        unsigned n_reports;

        fake_node_apply(node, POD(APP));
        n_reports = node->n_reports;
        first = strdup(fake_node_status(node, "web"));
        for (unsigned i = 0; i < 3; i++) {
                cleanup_free char *metrics = collect_resource_usage(node->manager, &node->bundle);

                EXPECT(metrics);
                EXPECT_STREQ(fake_node_status(node, "web"), first);
        }
        fake_node_run(node);
        EXPECT_EQ(node->n_reports, n_reports);
}

TEST(a_dump_has_every_state)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const char *const expected[] = {
                "state ready, desired", "sandbox: connected", "probe: readiness, running",
                "network check",        "start slot",         "hook: preStop runs",
                "containers are being", "deletion request",   "last error: network",
        };
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        fake_shims.keeps_execs = true;
        fake_node_apply(node,
                        POD_HEAD "  activeDeadlineSeconds: 1000\n" APP_WITH(
                                "readinessProbe: {exec: {command: [look]}}, lifecycle: {preStop: "
                                "{exec: {command: [end]}}}"));
        pod_manager_dump(node->manager, out);
        fake_node_restart_agent(node);
        fake_node_run(node);
        pod_manager_dump(node->manager, out);
        EXPECT_EQ(pod_manager_delete_pod(node->manager, "default", "web-node1", 20, "test", NULL),
                  0);
        fake_node_run(node);
        pod_manager_dump(node->manager, out);
        fake_node_pass(node, 60 * USEC_PER_SEC);
        fake_container("app")->run = RUN_HANGS;
        fake_node_apply(node, POD(APP));
        pod_manager_dump(node->manager, out);
        fake_container("app")->run = RUN_STARTS;
        node->network.not_ready = "no network";
        fake_node_apply(node, "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n" APP);
        pod_manager_dump(node->manager, out);
        (void) fclose(out);
        for (size_t i = 0; i < N_ELEMENTS(expected); i++)
                if (!strstr(text, expected[i]))
                        test_fail(__FILE__, __LINE__, expected[i], "is missing in:\n%s", text);
        node->network.not_ready = NULL;
}

TEST(pods_are_listed_for_eviction_with_their_usage)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        EvictionCandidate *candidates;
        size_t n;

        fake_node_apply(node, POD(APP_WITH("resources: {requests: {memory: 1Mi, "
                                           "ephemeral-storage: 2Mi}}")));
        EXPECT(pod_manager_has_active_pods(node->manager));
        REQUIRE(pod_manager_list_eviction_candidates(node->manager, &candidates, &n) >= 0);
        EXPECT_EQ(n, 1);
        EXPECT_EQ(candidates[0].memory_request, (int64_t) MIB);
        EXPECT_EQ(candidates[0].n_containers, 1);
        EXPECT_STREQ(candidates[0].containers[0].memory_request_text, "1Mi");
        eviction_candidate_done(&candidates[0]);
        free(candidates);
}

TEST(images_of_pods_are_listed)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        ImageSet images = { 0 };

        fake_node_apply(node, POD(APP));
        pod_manager_list_images(node->manager, &images);
        EXPECT(image_set_contains(&images, "docker.io/library/busybox:latest"));
        EXPECT_EQ(images.n, 2); /* its name and its digest */
        image_set_done(&images);
}
