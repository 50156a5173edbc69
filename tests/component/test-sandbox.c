/* SPDX-License-Identifier: Apache-2.0 */
/* Containers in a real shim with a real runtime. */
#include "tests/component/pod-world.h"

TEST(a_container_runs_and_its_exit_is_reported)
{
        static const struct {
                const char *name, *script;
                int exit_code;
        } cases[] = {
                { "zero", "exit 0", 0 },
                { "one", "exit 1", 1 },
                { "killed", "exit 137", 137 },
                { "all", "exit 255", 255 },
        };
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "exits");
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                TestContainer spec = { .name = cases[i].name, .script = cases[i].script };
                cleanup_free char *id = pod_run(&pod, &spec);
                const ShimEvent *event = pod_expect(&pod, SHIM_EVENT_STARTED, id);
                uint64_t started_at = event->started_at;

                EXPECT(event->pid > 1);
                event = pod_expect(&pod, SHIM_EVENT_EXITED, id);
                EXPECT_EQ(event->exit_code, cases[i].exit_code);
                EXPECT_EQ(event->signal, 0);
                EXPECT(!event->oom_killed);
                EXPECT_EQ(event->started_at, started_at);
                EXPECT(event->finished_at >= started_at);
                EXPECT_STREQ(event->name, cases[i].name);
        }
        pod_down(&pod);
        world_done(&world);
}

TEST(a_container_that_runs_for_a_millisecond_is_not_missed)
{
        enum {
                ATTEMPTS = 30,
                AT_ONCE = 5
        };
        char *ids[ATTEMPTS];
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "short");
        for (unsigned i = 0; i < ATTEMPTS; i++) {
                TestContainer spec = { .name = "true", .attempt = i, .program = "/bin/true" };

                ids[i] = pod_run(&pod, &spec);
                if (i % AT_ONCE == AT_ONCE - 1)
                        for (unsigned j = i + 1 - AT_ONCE; j <= i; j++) {
                                pod.cursor = 0;
                                (void) pod_expect(&pod, SHIM_EVENT_STARTED, ids[j]);
                                EXPECT_EQ(pod_expect(&pod, SHIM_EVENT_EXITED, ids[j])->exit_code,
                                          0);
                        }
        }
        for (unsigned i = 0; i < ATTEMPTS; i++)
                free(ids[i]);
        pod_down(&pod);
        world_done(&world);
}

TEST(output_is_in_the_log_before_the_exit_is_reported)
{
        TestContainer spec = { .name = "talker",
                               .script = "echo out; echo err >&2; seq 1 5000; printf end" };
        cleanup_free char *id = NULL, *log = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "logs");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        log = pod_log(&pod, &spec);
        EXPECT(strstr(log, "stderr F err\n"));
        EXPECT(strstr(log, "stdout F out\n"));
        EXPECT(strstr(log, "stdout F 4999\nstdout F 5000\n"));
        EXPECT(strstr(log, "stdout P end\n"));
        pod_down(&pod);
        world_done(&world);
}

/* The container counts as started before its script has set its traps. */
static void pod_wait_file(TestPod *pod, const char *name) {
        cleanup_free char *path = path_join(pod->directory, name);

        for (unsigned i = 0; i < 100 * DEADLINE_SEC && access(path, F_OK) < 0; i++)
                (void) sd_event_run(pod->world->event, USEC_PER_SEC / 100);
        REQUIRE(access(path, F_OK) == 0);
}

TEST(a_stop_is_a_signal_and_then_sigkill)
{
        TestContainer polite = { .name = "polite",
                                 .script = "trap 'exit 7' TERM; echo >/data/polite; "
                                           "while true; do sleep 0.01; done" };
        TestContainer deaf = { .name = "deaf",
                               .script = "trap '' TERM; echo >/data/deaf; "
                                         "while true; do sleep 0.01; done" };
        cleanup_free char *polite_id = NULL, *deaf_id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "stops");
        polite_id = pod_run(&pod, &polite);
        deaf_id = pod_run(&pod, &deaf);
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, polite_id);
        pod.cursor = 0;
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, deaf_id);
        pod_wait_file(&pod, "polite");
        pod_wait_file(&pod, "deaf");
        /* The first call would wait for an hour; a second call can only shorten the wait. */
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, polite_id, SIGTERM, 3600 * USEC_PER_SEC), 0);
        event = pod_expect(&pod, SHIM_EVENT_EXITED, polite_id);
        EXPECT_EQ(event->exit_code, 7);
        EXPECT_EQ(event->signal, 0);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, deaf_id, SIGTERM, 3600 * USEC_PER_SEC), 0);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, deaf_id, SIGTERM, 100 * USEC_PER_MSEC), 0);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, deaf_id, SIGTERM, 3600 * USEC_PER_SEC), 0);
        event = pod_expect(&pod, SHIM_EVENT_EXITED, deaf_id);
        EXPECT_EQ(event->exit_code, 137);
        EXPECT_EQ(event->signal, SIGKILL);
        EXPECT(!event->oom_killed);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, "unknown", SIGTERM, 0), 0);
        pod_down(&pod);
        world_done(&world);
}

TEST(an_agent_that_reconnects_gets_the_complete_state)
{
        TestContainer runs = { .name = "runs", .script = "sleep 3600", .note = "a note" };
        TestContainer failed = { .name = "failed", .program = "/no/such/program" };
        TestContainer ended = { .name = "ended", .script = "exit 3" };
        TestContainer ends = { .name = "ends",
                               .script = "while [ ! -e /data/go ]; do sleep 0.01; done; exit 42" };
        cleanup_free char *go = NULL;
        char *ids[4] = { NULL };
        const ShimEvent *event;
        uint64_t before;
        pid_t shim, pid, ending;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "returns");
        shim = sandbox_pid(pod.sandbox);
        ids[0] = pod_run(&pod, &runs);
        pid = pod_expect(&pod, SHIM_EVENT_STARTED, ids[0])->pid;
        ids[1] = pod_run(&pod, &failed);
        (void) pod_expect(&pod, SHIM_EVENT_START_FAILED, ids[1]);
        ids[2] = pod_run(&pod, &ended);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, ids[2]);
        pod_delete(&pod, &ended, ids[2]);
        (void) pod_expect(&pod, SHIM_EVENT_DELETED, ids[2]);
        ids[3] = pod_run(&pod, &ends);
        ending = pod_expect(&pod, SHIM_EVENT_STARTED, ids[3])->pid;
        pod_disconnect(&pod);

        /* The container ends while no agent is connected. */
        before = now_realtime_usec();
        go = path_join(pod.directory, "go");
        write_text(go, "");
        for (unsigned i = 0; i < 100 * DEADLINE_SEC && kill(ending, 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill(ending, 0) < 0);

        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SHIM_EVENT_SYNCED, NULL)->ready);
        EXPECT_EQ(sandbox_pid(pod.sandbox), shim);
        EXPECT_EQ(pod.n_records, 5);
        event = &pod.records[0].event;
        EXPECT_EQ(event->type, SHIM_EVENT_STARTED);
        EXPECT_STREQ(event->id, ids[0]);
        EXPECT_STREQ(event->note, "a note");
        EXPECT_EQ(event->pid, pid);
        EXPECT(event->replayed);
        event = &pod.records[1].event;
        EXPECT_EQ(event->type, SHIM_EVENT_START_FAILED);
        EXPECT(event->runtime_failed);
        EXPECT(strstr(event->message, "/no/such/program"));
        event = &pod.records[2].event;
        EXPECT_EQ(event->type, SHIM_EVENT_EXITED);
        EXPECT_EQ(event->exit_code, 3);
        EXPECT(event->deleted);
        event = &pod.records[3].event;
        EXPECT_EQ(event->type, SHIM_EVENT_EXITED);
        EXPECT_EQ(event->exit_code, 42);
        EXPECT(!event->deleted);
        EXPECT(event->finished_at >= before);
        EXPECT(event->finished_at <= now_realtime_usec());
        for (size_t i = 0; i < N_ELEMENTS(ids); i++)
                free(ids[i]);
        pod_down(&pod);
        world_done(&world);
}

TEST(a_stop_continues_without_an_agent)
{
        TestContainer spec = { .name = "deaf",
                               .script = "trap '' TERM; echo >/data/deaf; "
                                         "while true; do sleep 0.01; done" };
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "orphan");
        id = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_STARTED, id);
        pod_wait_file(&pod, "deaf");
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, id, SIGTERM, 200 * USEC_PER_MSEC), 0);
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        EXPECT_EQ(pod_expect(&pod, SHIM_EVENT_EXITED, id)->signal, SIGKILL);
        pod_down(&pod);
        world_done(&world);
}

TEST(requests_are_processed_after_their_agent_has_died)
{
        TestContainer spec = { .name = "late", .script = "exit 9" };
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "late");
        id = pod_run(&pod, &spec);
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        EXPECT_EQ(pod_expect(&pod, SHIM_EVENT_EXITED, id)->exit_code, 9);
        /* The container was reported once, in the state that it had when the agent connected. */
        EXPECT(!pod_find(&pod, SHIM_EVENT_STARTING, id) || pod_find(&pod, SHIM_EVENT_STARTED, id));
        pod_down(&pod);
        world_done(&world);
}

TEST(an_id_runs_only_once)
{
        TestContainer spec = { .name = "once", .script = "echo ran >>/data/ran" };
        cleanup_free char *first = NULL, *second = NULL, *third = NULL, *path = NULL, *text = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "once");
        first = pod_run(&pod, &spec);
        second = pod_run(&pod, &spec);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, first);
        pod_delete(&pod, &spec, first);
        (void) pod_expect(&pod, SHIM_EVENT_DELETED, first);
        third = pod_run(&pod, &spec);
        pod_delete(&pod, &spec, first); /* the shim deletes it again, after the third run */
        (void) pod_expect(&pod, SHIM_EVENT_DELETED, first);
        path = path_join(pod.directory, "ran");
        text = read_text(path);
        EXPECT_STREQ(text, "ran\n");
        pod_down(&pod);
        world_done(&world);
}

TEST(only_the_last_attempts_are_reported_to_a_new_agent)
{
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "memory");
        for (unsigned i = 0; i < 6; i++) {
                TestContainer spec = { .name = "c", .attempt = i, .script = "exit 5" };
                cleanup_free char *id = pod_run(&pod, &spec);

                (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
                pod_delete(&pod, &spec, id);
                (void) pod_expect(&pod, SHIM_EVENT_DELETED, id);
        }
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        (void) pod_expect(&pod, SHIM_EVENT_SYNCED, NULL);
        EXPECT_EQ(pod.n_records, 4);
        EXPECT_EQ(pod.records[0].event.attempt, 3);
        EXPECT_EQ(pod.records[2].event.attempt, 5);
        pod_down(&pod);
        world_done(&world);
}

TEST(two_pods_are_isolated_from_each_other)
{
        TestContainer spec = { .name = "same", .script = "echo >/data/mine; exit 4" };
        char *ids[2] = { NULL }, *files[2] = { NULL };
        TestPod pods[2];
        PodWorld world;

        world_init(&world);
        pod_up(&pods[0], &world, "first");
        pod_up(&pods[1], &world, "second");
        EXPECT(sandbox_pid(pods[0].sandbox) != sandbox_pid(pods[1].sandbox));
        for (size_t i = 0; i < 2; i++) {
                files[i] = path_join(pods[i].directory, "mine");
                ids[i] = pod_run(&pods[i], &spec);
        }
        (void) pod_expect(&pods[0], SHIM_EVENT_EXITED, ids[0]);
        pod_down(&pods[0]);
        EXPECT_EQ(pod_expect(&pods[1], SHIM_EVENT_EXITED, ids[1])->exit_code, 4);
        EXPECT(exists(files[0]) && exists(files[1]));
        EXPECT(!pod_find(&pods[1], SHIM_EVENT_STARTED, ids[0]));
        for (size_t i = 0; i < 2; i++) {
                free(ids[i]);
                free(files[i]);
        }
        pod_down(&pods[1]);
        world_done(&world);
}

TEST(a_pod_has_one_shim)
{
        cleanup_with(sandbox_freep) Sandbox *other = NULL;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "single");
        EXPECT_EQ(sandbox_start(pod.sandbox, &(SandboxStartOptions){ .host_network = true }, NULL),
                  -EEXIST);
        REQUIRE(sandbox_new(&world.config, "single", on_pod_event, &pod, &other) >= 0);
        EXPECT_EQ(sandbox_start(other, &(SandboxStartOptions){ .host_network = true }, NULL),
                  -EEXIST);
        pod_disconnect(&pod);
        pod_reconnect(&pod);
        EXPECT(pod_expect(&pod, SHIM_EVENT_SYNCED, NULL)->ready);
        pod_down(&pod);
        EXPECT_EQ(sandbox_connect(other, NULL), 0);
        world_done(&world);
}

TEST(a_container_in_the_hosts_pid_namespace_is_killed_with_all_processes)
{
        TestContainer spec = { .name = "family",
                               .host_pids = true,
                               .script = "sleep 3600 & sleep 3600 & echo $! >/data/child; exit 6" };
        cleanup_free char *id = NULL, *path = NULL, *text = NULL;
        PodWorld world;
        TestPod pod;
        pid_t child;

        world_init(&world);
        pod_up(&pod, &world, "family");
        id = pod_run(&pod, &spec);
        EXPECT_EQ(pod_expect(&pod, SHIM_EVENT_EXITED, id)->exit_code, 6);
        path = path_join(pod.directory, "child");
        text = read_text(path);
        child = (pid_t) strtol(text, NULL, 10);
        REQUIRE(child > 1);
        for (unsigned i = 0; i < 100 * DEADLINE_SEC && kill(child, 0) >= 0; i++)
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        EXPECT(kill(child, 0) < 0 && errno == ESRCH);
        pod_down(&pod);
        world_done(&world);
}

TEST(an_oom_kill_is_reported)
{
        TestContainer spec = { .name = "hungry",
                               .memory_bytes = 16L * 1024 * 1024,
                               .script = "x=$(yes | head -c 60000000); exit 1" };
        TestContainer modest = { .name = "modest",
                                 .memory_bytes = 64L * 1024 * 1024,
                                 .script = "kill -9 $$; exit 1" };
        cleanup_free char *id = NULL, *modest_id = NULL;
        const ShimEvent *event;
        PodWorld world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "memory");
        id = pod_run(&pod, &spec);
        event = pod_expect(&pod, SHIM_EVENT_EXITED, id);
        EXPECT(event->oom_killed);
        EXPECT(event->exit_code != 0);
        modest_id = pod_run(&pod, &modest);
        event = pod_expect(&pod, SHIM_EVENT_EXITED, modest_id);
        EXPECT(!event->oom_killed);
        pod_down(&pod);
        world_done(&world);
}

static unsigned count_words(const char *text) {
        unsigned n = 0;

        for (; *text; text++)
                n += *text == ' ';
        return n;
}

TEST(orphans_of_a_container_are_reaped)
{
        TestContainer spec = { .name = "parents",
                               .host_pids = true,
                               .script = "for i in $(seq 1 300); do (sleep 0.01 &); done; "
                                         "echo >/data/done; sleep 3600" };
        cleanup_free char *id = NULL, *path = NULL;
        PodWorld world;
        TestPod pod;
        pid_t pid;
        bool alone = false;

        world_init(&world);
        pod_up(&pod, &world, "zombies");
        id = pod_run(&pod, &spec);
        pid = pod_expect(&pod, SHIM_EVENT_STARTED, id)->pid;
        path = print_text("/proc/%d/task/%d/children", sandbox_pid(pod.sandbox),
                          sandbox_pid(pod.sandbox));
        pod_wait_file(&pod, "done");
        /* The log copier is included. */
        for (unsigned i = 0; i < 100 * DEADLINE_SEC && !alone; i++) {
                cleanup_free char *children = read_text(path), *one = print_text("%d ", pid);

                alone = strstr(children, one) && count_words(children) == 2;
                (void) sd_event_run(world.event, USEC_PER_SEC / 100);
        }
        EXPECT(alone);
        pod_down(&pod);
        world_done(&world);
}

static uint64_t count_descriptors(pid_t pid) {
        cleanup_free char *path = print_text("/proc/%d/fd", (int) pid);
        cleanup_closedir DIR *dir = opendir(path);
        struct dirent *entry;
        uint64_t n = 0;

        while (dir && (entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        return n;
}

TEST(open_descriptors_of_containers_are_counted_on_request)
{
        const TestContainer spec = { .name = "files", .script = "exec 7</bin/sh; exec sleep 1000" };
        uint64_t deadline = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC, taken_at = 0;
        uint64_t n_seen = 0;
        const ProcessUsage *usage = NULL;
        cleanup_free char *id = NULL;
        PodWorld world;
        TestPod pod;
        pid_t pid;

        world_init(&world);
        pod_up(&pod, &world, "usage");
        id = pod_run(&pod, &spec);
        pid = pod_expect(&pod, SHIM_EVENT_STARTED, id)->pid;
        EXPECT(!sandbox_container_usage(pod.sandbox, id, &taken_at));
        while (now_boottime_usec() < deadline) {
                EXPECT_EQ(sandbox_request_usage(pod.sandbox), 0);
                (void) sd_event_run(world.event, USEC_PER_SEC / 10);
                usage = sandbox_container_usage(pod.sandbox, id, &taken_at);
                n_seen = count_descriptors(pid);
                /* The runtime runs in this process before the script does, and has sockets open. */
                if (usage && usage->n_descriptors >= 4 && usage->n_descriptors == n_seen &&
                    usage->n_sockets == 0)
                        break;
        }
        REQUIRE(usage);
        EXPECT_EQ(usage->n_descriptors, n_seen);
        EXPECT_EQ(usage->n_sockets, 0);
        EXPECT(usage->open_files_max > 0);
        EXPECT(taken_at > 0);
        EXPECT_EQ(sandbox_stop_container(pod.sandbox, id, SIGKILL, 0), 0);
        (void) pod_expect(&pod, SHIM_EVENT_EXITED, id);
        EXPECT(!sandbox_container_usage(pod.sandbox, id, &taken_at));
        pod_down(&pod);
        world_done(&world);
}
