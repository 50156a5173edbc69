/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and hooks: validation and defaults. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

/* Fields of a container: line 7, after four blanks. */
static int parse_container_fields(const char *fields, ManifestObjects *ret, Error *reterr) {
        char yaml[2048];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
                        "  - {name: c, image: i, ports: [{name: web, containerPort: 80}],\n"
                        "    %s}\n  %s\n",
                        fields, strstr(fields, "stopSignal") ? "os: {name: linux}" : "");
        return manifest_parse("f", yaml, strlen(yaml), "node1", ret, reterr);
}

static void expect_verdict(const char *fields, const char *sentence) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = parse_container_fields(fields, &objects, &error);

        printf("%s\n", fields);
        EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", sentence);
        manifest_objects_done(&objects);
}

static const Container *first_container(const ManifestObjects *objects) {
        REQUIRE(objects->pods.n == 1);
        return &objects->pods.items[0]->spec.containers.items[0];
}

TEST(a_probe_has_one_handler)
{
        expect_verdict("livenessProbe: {periodSeconds: 3}",
                       "f:7:20: spec.containers[0].livenessProbe: must specify a handler type");
        expect_verdict("livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}",
                       "f:7:54: spec.containers[0].livenessProbe.tcpSocket: may not specify more "
                       "than 1 handler type");
        expect_verdict("startupProbe: {exec: {}}",
                       "f:7:26: spec.containers[0].startupProbe.exec.command: is required");
        expect_verdict("lifecycle: {postStart: {}}",
                       "f:7:28: spec.containers[0].lifecycle.postStart: must specify a handler "
                       "type");
}

/* Returns the verdict on a hook with an argument that consists of 'n' times 'character'. */
static char *verdict_on_long_hook(const char *character, size_t n) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        size_t length = strlen(character);
        cleanup_free char *argument = calloc(n + 1, length), *yaml = NULL;
        Error error = ERROR_NULL;

        REQUIRE(argument);
        for (size_t i = 0; i < n; i++)
                memcpy(argument + i * length, character, length);
        REQUIRE(asprintf(
                        &yaml,
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
                        "  - {name: c, image: i, lifecycle: {preStop: {exec: {command: [sh, \"%s\"]"
                        "}}}}\n",
                        argument) >= 0);
        (void) manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);
        return error.message;
}

TEST(command_that_the_shim_cannot_get_is_refused)
{
        cleanup_free char *fits = verdict_on_long_hook("x", 60 * KIB - 8);
        cleanup_free char *one_more = verdict_on_long_hook("x", 60 * KIB - 7);
        cleanup_free char *escapes = verdict_on_long_hook("\\x01", 10 * KIB + 1);

        EXPECT_STREQ(fits, NULL);
        EXPECT_STREQ(one_more, "f:6:63: spec.containers[0].lifecycle.preStop.exec.command: must be "
                               "at most 61440 bytes together as JSON, not 61441");
        EXPECT(escapes && strstr(escapes, "not 61454"));
}

TEST(probe_thresholds_and_times_have_kubernetes_ranges)
{
        expect_verdict("livenessProbe: {exec: {command: [a]}, successThreshold: 2}",
                       "f:7:61: spec.containers[0].livenessProbe.successThreshold: must be 1, not "
                       "2");
        expect_verdict("startupProbe: {exec: {command: [a]}, successThreshold: 2}",
                       "f:7:60: spec.containers[0].startupProbe.successThreshold: must be 1, not "
                       "2");
        expect_verdict("readinessProbe: {exec: {command: [a]}, successThreshold: 2}", "");
        expect_verdict("readinessProbe: {exec: {command: [a]}, periodSeconds: -1}",
                       "f:7:59: spec.containers[0].readinessProbe.periodSeconds: must be between 0 "
                       "and 2147483647, not -1");
        expect_verdict("readinessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}",
                       "f:7:75: spec.containers[0].readinessProbe.terminationGracePeriodSeconds: "
                       "must not be set for readinessProbes");
        expect_verdict("livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 0}",
                       "f:7:74: spec.containers[0].livenessProbe.terminationGracePeriodSeconds: "
                       "must be greater than 0, not 0");
}

TEST(probe_ports_are_numbers_in_range_or_existing_names)
{
        expect_verdict("livenessProbe: {httpGet: {port: web}}", "");
        expect_verdict("livenessProbe: {tcpSocket: {port: 65535}}", "");
        expect_verdict("livenessProbe: {httpGet: {path: /}}",
                       "f:7:30: spec.containers[0].livenessProbe.httpGet.port: is required");
        expect_verdict("livenessProbe: {httpGet: {port: 0}}",
                       "f:7:37: spec.containers[0].livenessProbe.httpGet.port: must be between 1 "
                       "and 65535, not 0");
        expect_verdict("livenessProbe: {tcpSocket: {port: db}}",
                       "f:7:39: spec.containers[0].livenessProbe.tcpSocket.port: must name a port "
                       "of this container, not 'db'");
        expect_verdict("livenessProbe: {tcpSocket: {port: \"80\"}}",
                       "f:7:39: spec.containers[0].livenessProbe.tcpSocket.port: must be a number "
                       "or the name of a port, not the string '80'; remove the quotes");
        expect_verdict("livenessProbe: {grpc: {port: 70000}}",
                       "f:7:34: spec.containers[0].livenessProbe.grpc.port: must be between 1 and "
                       "65535, not 70000");
}

TEST(http_requests_of_probes_are_validated)
{
        expect_verdict("livenessProbe: {httpGet: {port: 1, scheme: http}}",
                       "f:7:48: spec.containers[0].livenessProbe.httpGet.scheme: must be HTTP or "
                       "HTTPS, not 'http'");
        expect_verdict("livenessProbe: {httpGet: {port: 1, host: a/b}}",
                       "f:7:46: spec.containers[0].livenessProbe.httpGet.host: must be the name or "
                       "the address of a host, not 'a/b'");
        expect_verdict("livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: a b, value: c}]}}",
                       "f:7:61: spec.containers[0].livenessProbe.httpGet.httpHeaders[0].name: must "
                       "be a valid HTTP header name, not 'a b'");
        expect_verdict(
                "livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: a, value: \"b\\nc: "
                "d\"}]}}",
                "f:7:71: spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value: must be "
                "one line of text, not 'b?c: d'");
        expect_verdict("livenessProbe: {httpGet: {port: 1, path: \"/a\\r\\nb\"}}",
                       "f:7:46: spec.containers[0].livenessProbe.httpGet.path: must be a path of a "
                       "URL, not '/a??b'");
}

TEST(lifecycle_hooks_have_separate_validation_rules)
{
        expect_verdict("lifecycle: {preStop: {sleep: {seconds: 30}}}", "");
        expect_verdict("lifecycle: {preStop: {sleep: {seconds: 31}}}",
                       "f:7:44: spec.containers[0].lifecycle.preStop.sleep.seconds: must be "
                       "non-negative and less than terminationGracePeriodSeconds (30)");
        expect_verdict("lifecycle: {stopSignal: SIGUSR1}", "");
        expect_verdict("lifecycle: {stopSignal: SIGRTMIN+15}", "");
        expect_verdict("lifecycle: {stopSignal: SIGRTMIN+16}",
                       "f:7:29: spec.containers[0].lifecycle.stopSignal: must be the name of a "
                       "signal such as SIGTERM, not 'SIGRTMIN+16'");
        expect_verdict("lifecycle: {stopSignal: TERM}",
                       "f:7:29: spec.containers[0].lifecycle.stopSignal: must be the name of a "
                       "signal such as SIGTERM, not 'TERM'");
}

TEST(stop_signal_requires_the_os)
{
        static const char yaml[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
                                   "  containers: [{name: c, image: i, "
                                   "lifecycle: {stopSignal: SIGINT}}]\n";
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "f:5:60: spec.containers[0].lifecycle.stopSignal: may not be set for "
                     "containers with empty `spec.os.name`");
        manifest_objects_done(&objects);
}

TEST(probe_defaults_are_those_of_kubernetes)
{
        ManifestObjects objects = { 0 };
        const Probe *probe;

        REQUIRE(parse_container_fields("readinessProbe: {httpGet: {port: web}, timeoutSeconds: 0}",
                                       &objects, NULL) >= 0);
        probe = first_container(&objects)->readiness_probe;
        EXPECT_STREQ(probe->handler.http_get->path, "/");
        EXPECT_EQ(probe->handler.http_get->scheme, URI_SCHEME_HTTP);
        EXPECT_STREQ(probe->handler.http_get->port.text, "web");
        EXPECT_EQ(probe->initial_delay_seconds.value, 0);
        EXPECT_EQ(probe->timeout_seconds.value, 1);
        EXPECT_EQ(probe->period_seconds.value, 10);
        EXPECT_EQ(probe->success_threshold.value, 1);
        EXPECT_EQ(probe->failure_threshold.value, 3);
        manifest_objects_done(&objects);
}
