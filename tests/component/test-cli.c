/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/cli-run.h"

/* The program mainstay against a fake agent. */

/* The response of report(), as the program prints it. */
#define MANIFESTS                                          \
        "warning: web.yaml:9:5: spec.foo: unknown field\n" \
        "error: bad.yaml:1:1: is \"no\" mapping\n"         \
        "error: x.tar: is not an archive\n"

static char long_ago[RFC3339_SIZE], started[RFC3339_SIZE];

static void add_pods(void) {
        cleanup_free char *web = NULL, *db = NULL, *dns = NULL;

        /* Ages that do not change while the test runs. */
        format_rfc3339(long_ago, now_realtime_usec() - (3 * 24 * 60 + 30) * (60 * USEC_PER_SEC));
        format_rfc3339(started, now_realtime_usec() - (51 * 60 + 30) * (60 * USEC_PER_SEC));
        REQUIRE(asprintf(
                        &web,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-n1\","
                        "\"namespace\":\"default\",\"uid\":\"u1\",\"labels\":{\"app\":\"web\"}},"
                        "\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":\"busybox\"}],"
                        "\"nodeName\":\"n1\",\"hostNetwork\":true},"
                        "\"status\":{\"phase\":\"Running\",\"startTime\":\"%s\",\"podIP\":\"10.0.0."
                        "7\","
                        "\"containerStatuses\":[{\"name\":\"app\",\"ready\":true,\"restartCount\":"
                        "2,"
                        "\"state\":{\"running\":{\"startedAt\":\"%s\"}},"
                        "\"lastState\":{\"terminated\":{\"exitCode\":1,\"finishedAt\":\"%s\"}}}]}}",
                        long_ago, started, started) > 0);
        REQUIRE(asprintf(&db, "{\"metadata\":{\"name\":\"db-n1\",\"namespace\":\"default\",\"uid\":"
                              "\"u2\"},"
                              "\"spec\":{\"containers\":[{\"name\":\"one\"},{\"name\":\"two\"}],"
                              "\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Pending\"}}") > 0);
        REQUIRE(asprintf(&dns,
                         "{\"metadata\":{\"name\":\"dns-n1\",\"namespace\":\"kube-system\",\"uid\":"
                         "\"u3\"},\"spec\":{\"containers\":[{\"name\":\"dns\"}],\"nodeName\":"
                         "\"n1\"},"
                         "\"status\":{\"phase\":\"Running\"}}") > 0);
        agent_add("default/web-n1/u1", web);
        agent_add("kube-system/dns-n1/u3", dns);
        agent_add("zz/db-n1/u2", db); /* not added in the order of names */
}

TEST(get_pods_prints_kubectls_table)
{
        start_http_server();
        add_pods();
        expect_run("get pods", 0,
                   "NAME     READY   STATUS    RESTARTS       AGE\n"
                   "db-n1    0/2     Pending   0              <unknown>\n"
                   "web-n1   1/1     Running   2 (2d3h ago)   3d\n",
                   MANIFESTS);
        expect_run("get po -A --no-headers", 0,
                   "default       db-n1    0/2   Pending   0              <unknown>\n"
                   "default       web-n1   1/1   Running   2 (2d3h ago)   3d\n"
                   "kube-system   dns-n1   0/1   Running   0              <unknown>\n",
                   MANIFESTS);
        expect_run(
                "get pod -o wide web", 0,
                "NAME     READY   STATUS    RESTARTS       AGE   IP         NODE   NOMINATED NODE"
                "   READINESS GATES   SOURCE\n"
                "web-n1   1/1     Running   2 (2d3h ago)   3d    10.0.0.7   n1     <none>        "
                "   <none>            <none>\n",
                MANIFESTS);
        expect_run("get pods -l app=web -o name", 0, "pod/web-n1\n", "");
        expect_run("get pods -l app!=web -o name", 0, "pod/db-n1\n", "");
        expect_run("get pod/web-n1 -o name", 0, "pod/web-n1\n", "");
        stop_http_server();
}

TEST(missing_object_is_an_error)
{
        start_http_server();
        add_pods();
        expect_run("get pods -n nowhere", 0, "",
                   "No resources found in nowhere namespace.\n" MANIFESTS);
        expect_run("get pods nope", 1, "", "error: pods \"nope\" not found\n" MANIFESTS);
        expect_run("get pods dns -o name", 1, "",
                   "error: pods \"dns\" not found in namespace default, but in kube-system\n");
        expect_run("describe pod nope", 1, "", "error: pods \"nope\" not found\n");
        expect_run("logs nope", 1, "", "error: pods \"nope\" not found\n");
        stop_http_server();
}

TEST(objects_are_printed_as_json_and_yaml)
{
        start_http_server();
        add_pods();
        expect_run("get pod dns -n kube-system -o json", 0,
                   "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"Pod\",\n    \"metadata\": {\n"
                   "        \"name\": \"dns-n1\",\n        \"namespace\": \"kube-system\",\n"
                   "        \"uid\": \"u3\"\n    },\n    \"spec\": {\n        \"containers\": [\n"
                   "            {\n                \"name\": \"dns\"\n            }\n        ],\n"
                   "        \"nodeName\": \"n1\"\n    },\n    \"status\": {\n"
                   "        \"phase\": \"Running\"\n    }\n}\n",
                   "");
        expect_run("get pods -n kube-system -o yaml", 0,
                   "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n"
                   "    name: dns-n1\n    namespace: kube-system\n    uid: u3\n  spec:\n"
                   "    containers:\n    - name: dns\n    nodeName: n1\n  status:\n"
                   "    phase: Running\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
                   "");
        expect_run("get pods -n nowhere -o yaml", 0,
                   "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
                   "");
        stop_http_server();
}

TEST(watch_prints_changes)
{
        Running running;
        Result result;

        start_http_server();
        add_pods();
        running = spawn_cli("get pods -w --no-headers", NULL);
        EXPECT(wait_for_output(&running, "web-n1   1/1   Running   2 (2d3h ago)   3d\n"));
        while (!http_server_has_pod_watchers(server))
                run_turn(&running);
        for (unsigned i = 0; i < 20; i++)
                run_turn(&running);
        http_server_notify_pod(
                server, HTTP_WATCH_MODIFIED, "zz/db-n1/u2",
                "{\"metadata\":{\"name\":\"db-n1\",\"namespace\":\"default\"},"
                "\"spec\":{\"containers\":[{},{}]},\"status\":{\"phase\":\"Failed\"}}");
        http_server_notify_pod(
                server, HTTP_WATCH_MODIFIED, "kube-system/dns-n1/u3",
                "{\"metadata\":{\"name\":\"dns-n1\",\"namespace\":\"kube-system\"}}");
        EXPECT(wait_for_output(&running, "Failed"));
        EXPECT_EQ(kill(running.pid, SIGINT), 0);
        result = wait_for_result(&running);
        EXPECT_STREQ(result.out, "db-n1    0/2   Pending   0              <unknown>\n"
                                 "web-n1   1/1   Running   2 (2d3h ago)   3d\n"
                                 "db-n1    0/2   Failed    0              <unknown>\n");
        result_done(&result);
        stop_http_server();
}

TEST(watch_reports_the_end_of_the_agent)
{
        Running running;
        Result result;

        start_http_server();
        add_pods();
        running = spawn_cli("get pods -w -o name", NULL);
        EXPECT(wait_for_output(&running, "pod/db-n1\n"));
        stop_http_server();
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 1);
        EXPECT(strstr(result.err, "error: the agent at "));
        result_done(&result);
}

TEST(logs_are_found_by_short_names_and_containers)
{
        start_http_server();
        add_pods();
        append_log("0.log", "2026-01-02T03:04:01Z stdout F before\n");
        append_log("1.log",
                   "2026-01-02T03:04:05Z stdout F one\n2026-01-02T03:04:06Z stderr F two\n");
        expect_run("logs web", 0, "one\ntwo\n", "");
        expect_run("logs web-n1 app --tail 1", 0, "two\n", "");
        expect_run("logs web -c late", 1, "", "error: container \"late\" is waiting to start\n");
        expect_run("logs web -p --timestamps", 0, "2026-01-02T03:04:01Z before\n", "");
        expect_run("logs pod/web --since-time 2026-01-02T03:04:06Z", 0, "two\n", "");
        expect_run("logs web --since 1s", 0, "", "");
        expect_run("logs web --limit-bytes 2", 0, "on", "");
        expect_run("logs web --tail many", 1, "",
                   "error: tailLines must be a whole number of at least 0\n");
        expect_run(
                "logs db", 1, "",
                "Defaulted container \"one\" out of: one, two\nerror: pods \"db-n1\" not found\n");
        stop_http_server();
}

TEST(describe_shows_kubectls_layout_and_the_manifest)
{
        Running running;
        Result result;

        start_http_server();
        add_pods();
        running = spawn_cli("describe pod web", NULL);
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 0);
        EXPECT_STREQ(result.err, "");
        EXPECT(strstr(result.out, "Name:         web-n1\nNamespace:    default\n"));
        EXPECT(strstr(result.out, "\nLabels:       app=web\nAnnotations:  <none>\n"));
        EXPECT(strstr(result.out, "\n    State:          Running\n"));
        EXPECT(strstr(result.out, "\n    Restart Count:  2\n"));
        EXPECT(strstr(result.out, "\nManifest:           web.yaml\n"));
        result_done(&result);
        stop_http_server();
}

TEST(invalid_command_line_gets_a_suggestion_and_status_2)
{
        start_http_server();
        expect_run("gte", 2, "", "error: unknown command 'gte'; did you mean 'get'?\n");
        expect_run("frobnicate", 2, "",
                   "error: unknown command 'frobnicate'; see 'mainstay help'\n");
        expect_run("get", 2, "", "error: a resource is required: 'mainstay get pods'\n");
        expect_run("get pdos", 2, "", "error: unknown resource 'pdos'; did you mean 'pods'?\n");
        expect_run("get pods --watc=1 x", 2, "", "error: option '--watch' takes no value\n");
        expect_run("get pods --wide", 2, "",
                   "error: unknown option '--wide'; see 'mainstay help'\n");
        expect_run("get pods -o yml", 2, "",
                   "error: unknown output format 'yml'; did you mean 'yaml'?\n");
        expect_run("get pods -l a=b=c", 2, "",
                   "error: selector 'a=b=c' must be key=value, key!=value, key or !key\n");
        expect_run("logs", 2, "", "error: a pod is required: 'mainstay logs POD'\n");
        expect_run("logs web --since yesterday", 2, "",
                   "error: --since must be a duration such as 5s, 2m or 1h30m, not 'yesterday'\n");
        stop_http_server();
}

TEST(missing_agent_is_one_error)
{
        cleanup_free char *expected = NULL;

        start_http_server();
        stop_http_server();
        REQUIRE(asprintf(&expected,
                         "error: no agent at %s; start mainstayd, or set its socket with "
                         "--socket\n",
                         socket_path) > 0);
        expect_run("get pods", 1, "", expected);
        expect_run("logs web", 1, "", expected);
        expect_run("version", 0, "Client Version: " MAINSTAY_VERSION "\n", "");
}

TEST(help_names_every_command_and_option)
{
        Running running;
        Result result;

        start_http_server();
        running = spawn_cli("--help", NULL);
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 0);
        EXPECT(strstr(result.out, "\n  get RESOURCE [NAME...] "));
        EXPECT(strstr(result.out, "\n  validate FILE... "));
        result_done(&result);
        running = spawn_cli("logs --help", NULL);
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 0);
        EXPECT(strstr(result.out, "\n  -f, --follow "));
        EXPECT(strstr(result.out, "\n      --socket PATH "));
        result_done(&result);
        stop_http_server();
}

static char *write_manifest(const char *name, const char *text) {
        char *path = path_join(test_directory(), name);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, text, strlen(text)) >= 0);
        return path;
}

#define GOOD                                                         \
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n" \
        "  hostNetwork: true\n  containers:\n  - name: app\n    image: busybox\n"

/* The output contains all errors, not only the first one. */
static void expect_all_errors(void) {
        cleanup_free char *broken = write_manifest(
                "broken.yaml", GOOD "    tty: 1\n---\napiVersion: v1\nkind: Nodes\n");
        cleanup_free char *arguments = NULL, *err = NULL;

        REQUIRE(asprintf(&arguments, "validate %s", broken) > 0);
        REQUIRE(asprintf(&err,
                         "error: %s:10:10: spec.containers[0].tty: must be true or false, not the "
                         "number 1\n"
                         "error: %s:13:7: kind: is Nodes, which a node does not run; it runs Pod, "
                         "DaemonSet, "
                         "ConfigMap, Secret, PriorityClass, RuntimeClass and List\n",
                         broken, broken) > 0);
        expect_run(arguments, 1, "", err);
}

TEST(validate_reports_the_agents_errors)
{
        cleanup_free char *good = write_manifest("good.yaml", GOOD);
        cleanup_free char *twin = write_manifest("twin.yaml", GOOD);
        cleanup_free char *unknown = write_manifest("unknown.yaml", GOOD "    colour: red\n");
        cleanup_free char *arguments = NULL, *out = NULL, *err = NULL;
        Running running;
        Result result;

        REQUIRE(asprintf(&arguments, "validate %s", good) > 0);
        REQUIRE(asprintf(&out, "%s: ok (pod default/web)\n", good) > 0);
        expect_run(arguments, 0, out, "");

        free(arguments);
        REQUIRE(asprintf(&arguments, "validate %s %s", good, twin) > 0);
        REQUIRE(asprintf(&err, "error: %s: pod default/web is already defined in %s\n", twin,
                         good) > 0);
        expect_run(arguments, 1, out, err);

        free(arguments);
        REQUIRE(asprintf(&arguments, "validate %s", unknown) > 0);
        running = spawn_cli(arguments, NULL);
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 1);
        EXPECT_STREQ(result.out, "");
        EXPECT(strstr(result.err, "unknown.yaml:10:5: spec.containers[0].colour: "));
        result_done(&result);

        expect_all_errors();
        running = spawn_cli("validate -", good);
        result = wait_for_result(&running);
        EXPECT_EQ(result.status, 0);
        EXPECT_STREQ(result.out, "stdin: ok (pod default/web)\n");
        result_done(&result);
        expect_run(
                "validate", 2, "",
                "error: files are required: 'mainstay validate FILE...'; '-' is standard input\n");
}

/* Its errors are not read. */
static int status_with_output(char *const *argv, int output) {
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int status;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, output, 1);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        REQUIRE(posix_spawn(&pid, BUILD_DIR "/agent/mainstay", &actions, NULL, argv, environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
        REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* The whole text is written at once, so that nothing is left to write at the end. */
TEST(output_that_cannot_be_written_is_an_error_unless_a_pipe_was_closed)
{
        cleanup_free char *value = path_join(test_directory(), "value"), *word = NULL;
        cleanup_free char *bytes = calloc(1, 20 * KIB);
        cleanup_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        int pipes[2];
        char *encrypt[] = { (char[]){ "mainstay" },
                            (char[]){ "secret" },
                            (char[]){ "encrypt" },
                            (char[]){ "name" },
                            NULL,
                            (char[]){ "--recipient=age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2"
                                      "kg5sfn9aqmcac8p" },
                            NULL };
        char *help[] = { (char[]){ "mainstay" }, (char[]){ "help" }, NULL };

        REQUIRE(asprintf(&word, "key=%s", value) > 0 && full >= 0 && bytes);
        REQUIRE(write_file_atomic_at(AT_FDCWD, value, bytes, 20 * KIB, 0600) >= 0);
        encrypt[4] = word;
        EXPECT_EQ(status_with_output(encrypt, full), 1);
        EXPECT_EQ(status_with_output(help, full), 1);
        REQUIRE(pipe2(pipes, O_CLOEXEC) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
        close_fd(pipes[0]);
        EXPECT_EQ(status_with_output(encrypt, pipes[1]), 0);
        EXPECT_EQ(status_with_output(help, pipes[1]), 0);
        close_fd(pipes[1]);
        (void) signal(SIGPIPE, SIG_DFL);
}
