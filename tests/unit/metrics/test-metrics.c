/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text of /metrics, and the status line. */

#include "tests/test.h"

#include "agent/metrics/metrics.h"
#include "common/cleanup.h"

#include <errno.h>

TEST(status_line_has_counts_and_errors)
{
        static const struct {
                AgentMetrics counts;
                const char *status;
        } cases[] = {
                { { .pods = 0 }, "0 pods, 0 running" },
                { { .pods = 1, .pods_running = 1 }, "1 pod, 1 running" },
                { { .pods = 3,
                    .pods_running = 3,
                    .manifests_broken = 1,
                    .manifest_error = "web.yaml:7:11: must be\na label" },
                  "3 pods, 3 running; 1 manifest broken: web.yaml:7:11: must be a label" },
                { { .pods = 3, .manifests_broken = 2, .archives_broken = 1 },
                  "3 pods, 0 running; 2 manifests broken; 1 image archive broken" },
                { { .pods = 2, .manifest_directory_error = "/etc/x: Permission denied" },
                  "2 pods, 0 running; manifests cannot be read: /etc/x: Permission denied" },
                { { .pods = 2, .pods_running = 2, .api_server_error = "is away\nfor now" },
                  "2 pods, 2 running; API server: is away for now" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *status = agent_metrics_format_status(&cases[i].counts);

                EXPECT_STREQ(status, cases[i].status);
        }
}

static double metric(const char *text, const char *name) {
        cleanup_free char *line = NULL;
        const char *found;

        REQUIRE(asprintf(&line, "\n%s ", name) > 0);
        found = strstr(text, line);
        if (!found)
                test_fail(__FILE__, __LINE__, name, "is missing");
        return found ? strtod(found + strlen(line), NULL) : -1;
}

TEST(metrics_have_the_names_of_the_kubelet)
{
        cleanup_free char *text = agent_metrics_format(&(AgentMetrics){ .node_name = "n\"1",
                                                                        .pods_desired = 4,
                                                                        .pods_running = 3,
                                                                        .containers_running = 5,
                                                                        .containers_started = 6,
                                                                        .manifests_broken = 2 });

        REQUIRE(text);
        EXPECT_EQ(metric(text, "kubelet_node_name{node=\"n\\\"1\"}"), 1);
        EXPECT_EQ(metric(text, "kubelet_desired_pods{static=\"true\"}"), 4);
        EXPECT_EQ(metric(text, "kubelet_running_pods"), 3);
        EXPECT_EQ(metric(text, "kubelet_running_containers{container_state=\"running\"}"), 5);
        EXPECT_EQ(metric(text, "kubelet_running_containers{container_state=\"exited\"}"), 0);
        EXPECT_EQ(metric(text, "kubelet_started_containers_total{container_type=\"container\"}"),
                  6);
        EXPECT_EQ(metric(text, "mainstay_manifest_errors"), 2);
        EXPECT(metric(text, "process_resident_memory_bytes") > 100000);
        EXPECT(metric(text, "process_open_fds") >= 3);
        EXPECT(metric(text, "process_start_time_seconds") > 1600000000);
}

TEST(probe_results_are_counted_with_labels)
{
        const ProbeSample sample = { "Liveness", "failed", "web", "shop-n1", "default", "u1", 7 };
        cleanup_free char *text = agent_metrics_format(
                &(AgentMetrics){ .node_name = "n1", .probes = &sample, .n_probes = 1 });

        EXPECT_EQ(metric(text, "prober_probe_total{container=\"web\",namespace=\"default\","
                               "pod=\"shop-n1\",pod_uid=\"u1\",probe_type=\"Liveness\","
                               "result=\"failed\"}"),
                  7);
}

TEST(type_line_precedes_the_first_sample_of_a_metric)
{
        cleanup_free char *text = agent_metrics_format(&(AgentMetrics){ .node_name = "n1" });

        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
                static char current[128];

                if (strncmp(line, "# TYPE ", 7) == 0)
                        (void) snprintf(current, sizeof(current), "%.*s",
                                        (int) strcspn(line + 7, " "), line + 7);
                else if (line[0] != '#' && line[0] != '\0')
                        EXPECT(strncmp(line, current, strlen(current)) == 0);
        }
}
