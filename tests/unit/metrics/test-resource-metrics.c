/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text of /metrics/resource. */

#include "tests/test.h"

#include "agent/metrics/resource-metrics.h"
#include "common/cleanup.h"

TEST(samples_are_grouped_by_metric)
{
        cleanup_with(resource_metrics_freep) ResourceMetrics *usage = resource_metrics_new();
        cleanup_free char *text = NULL;
        CgroupUsage used = { .taken_at = 1500000, .cpu_nsec = 2500000000, .working_set_bytes = 42 };

        resource_metrics_add(usage, "default", "web-n1", NULL, 0, &used);
        resource_metrics_add(usage, "default", "web-n1", "app", 3000000, &used);
        text = resource_metrics_format(usage);
        EXPECT_STREQ(
                text,
                "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by "
                "the container in core-seconds\n"
                "# TYPE container_cpu_usage_seconds_total counter\n"
                "container_cpu_usage_seconds_total{container=\"app\",namespace=\"default\",pod="
                "\"web-n1\"} 2.500000000 1500\n"
                "# HELP container_memory_working_set_bytes [STABLE] Current working set of the "
                "container in bytes\n"
                "# TYPE container_memory_working_set_bytes gauge\n"
                "container_memory_working_set_bytes{container=\"app\",namespace=\"default\",pod="
                "\"web-n1\"} 42 1500\n"
                "# HELP container_start_time_seconds [STABLE] Start time of the container since "
                "unix epoch in seconds\n"
                "# TYPE container_start_time_seconds gauge\n"
                "container_start_time_seconds{container=\"app\",namespace=\"default\",pod="
                "\"web-n1\"} 3.000\n"
                "# HELP pod_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the "
                "pod in core-seconds\n"
                "# TYPE pod_cpu_usage_seconds_total counter\n"
                "pod_cpu_usage_seconds_total{namespace=\"default\",pod=\"web-n1\"} 2.500000000 "
                "1500\n"
                "# HELP pod_memory_working_set_bytes [STABLE] Current working set of the pod in "
                "bytes\n"
                "# TYPE pod_memory_working_set_bytes gauge\n"
                "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web-n1\"} 42 1500\n"
                "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting "
                "container metrics, 0 otherwise\n"
                "# TYPE resource_scrape_error gauge\n"
                "resource_scrape_error 0\n");
}

TEST(unreadable_cgroup_is_a_scrape_error)
{
        cleanup_with(resource_metrics_freep) ResourceMetrics *usage = resource_metrics_new();
        cleanup_free char *text = NULL;

        resource_metrics_set_scrape_error(usage);
        text = resource_metrics_format(usage);
        REQUIRE(text);
        EXPECT(strstr(text, "\nresource_scrape_error 1\n"));
}
