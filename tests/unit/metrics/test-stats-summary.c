/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's summary, the rates in it, and cAdvisor's metrics. */

#include "tests/test.h"

#include "agent/metrics/cadvisor-metrics.h"
#include "agent/metrics/stats-summary.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

static UsageSample example_sample(const char *pod, const char *container) {
        return (UsageSample){ .namespace = pod ? "default" : NULL,
                              .pod = pod,
                              .uid = pod ? "u1" : NULL,
                              .container = container,
                              .container_id = container ? "c1" : NULL,
                              .image = container ? "app:1" : NULL,
                              .cgroup = container ? "/pod/c1"
                                        : pod     ? "/pod"
                                                  : "/",
                              .started_at = 10 * USEC_PER_SEC,
                              .statistics = { .usage = { .taken_at = 20 * USEC_PER_SEC,
                                                         .cpu_nsec = 5000000000,
                                                         .working_set_bytes = 40 },
                                              .memory_bytes = 50,
                                              .memory_limit = 100,
                                              .n_processes = 2 } };
}

static char *format_example_summary(bool has_all, uint64_t started_at) {
        static const NetworkInterfaceUsage eth0 = { .name = "eth0", .rx_bytes = 7 };
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        cleanup_with(stats_summary_freep) StatsSummary *summary =
                stats_summary_new("node1", rates, has_all);
        UsageSample pod = example_sample("web", NULL), app = example_sample("web", "app");
        StorageSample rootfs = {
                .kind = STORAGE_ROOTFS, .is_measured = true, .used = 3, .inodes_used = 2
        };
        FilesystemUsage disk = { .capacity = 9, .available = 8 };

        pod.started_at = started_at;
        pod.interfaces = &eth0;
        pod.n_interfaces = 1;
        stats_summary_add(summary, &pod);
        stats_summary_add(summary, &app);
        stats_summary_add_storage(summary, &rootfs, &disk);
        return stats_summary_format(summary);
}

TEST(summary_has_pods_with_their_containers)
{
        cleanup_free char *text = format_example_summary(true, 10 * USEC_PER_SEC);

        EXPECT(strstr(text, "\"podRef\":{\"name\":\"web\",\"namespace\":\"default\",\"uid\":"
                            "\"u1\"}"));
        EXPECT(strstr(text, "\"usageNanoCores\":500000000,\"usageCoreNanoSeconds\":5000000000"));
        EXPECT(strstr(text, "\"availableBytes\":60,\"usageBytes\":50,\"workingSetBytes\":40"));
        EXPECT(strstr(text, "\"name\":\"eth0\",\"rxBytes\":7"));
        EXPECT(strstr(text, "\"rootfs\":{"));
        EXPECT(strstr(text, "\"usedBytes\":3,\"inodesUsed\":2"));
        EXPECT(strstr(text, "\"process_stats\":{\"process_count\":2}"));
}

TEST(summary_of_cpu_and_memory_has_no_other_statistics)
{
        cleanup_free char *text = format_example_summary(false, 10 * USEC_PER_SEC);

        EXPECT(strstr(text, "\"workingSetBytes\":40"));
        EXPECT(!strstr(text, "rxBytes"));
        EXPECT(!strstr(text, "rootfs"));
        EXPECT(!strstr(text, "process_stats"));
}

TEST(pod_without_a_start_time_is_left_out_with_its_containers)
{
        cleanup_free char *text = format_example_summary(true, 0);

        EXPECT_STREQ(text, "{\"node\":{\"nodeName\":\"node1\"},\"pods\":[]}");
}

static json_t *load_system_summary(bool has_all) {
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        cleanup_with(stats_summary_freep) StatsSummary *summary =
                stats_summary_new("node1", rates, has_all);
        UsageSample node = example_sample(NULL, NULL), kubelet = example_sample(NULL, NULL),
                    pods = example_sample(NULL, NULL);
        cleanup_free char *text = NULL;

        kubelet.system = "kubelet";
        kubelet.cgroup = "/agent";
        kubelet.statistics.memory_limit = 0;
        pods.system = "pods";
        pods.cgroup = "/kubepods";
        stats_summary_add(summary, &node);
        stats_summary_add(summary, &kubelet);
        stats_summary_add(summary, &pods);
        text = stats_summary_format(summary);
        return json_loads(text, 0, NULL);
}

static const json_t *memory_of_system(const json_t *summary, size_t i, const char *name) {
        const json_t *list = json_object_get(json_object_get(summary, "node"), "systemContainers");
        const json_t *container = json_array_get(list, i);

        EXPECT_STREQ(strna(json_string_value(json_object_get(container, "name"))), name);
        EXPECT_STREQ(strna(json_string_value(json_object_get(container, "startTime"))),
                     "1970-01-01T00:00:10Z");
        EXPECT(json_object_get(json_object_get(container, "cpu"), "usageCoreNanoSeconds"));
        EXPECT(json_object_get(container, "swap"));
        return json_object_get(container, "memory");
}

TEST(summary_has_system_containers_of_the_node)
{
        for (unsigned has_all = 0; has_all < 2; has_all++) {
                json_t *summary = load_system_summary(has_all);

                EXPECT(!json_object_get(memory_of_system(summary, 0, "kubelet"), "availableBytes"));
                EXPECT_EQ(json_integer_value(json_object_get(memory_of_system(summary, 1, "pods"),
                                                             "availableBytes")),
                          60);
                EXPECT_EQ(json_array_size(json_object_get(json_object_get(summary, "node"),
                                                          "systemContainers")),
                          2);
                EXPECT_EQ(json_integer_value(json_object_get(
                                  json_object_get(json_object_get(summary, "node"), "memory"),
                                  "availableBytes")),
                          60);
                json_decref(summary);
        }
}

TEST(network_without_eth0_has_only_a_list_of_interfaces)
{
        static const NetworkInterfaceUsage lan = { .name = "ens3", .rx_bytes = 7 };
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        cleanup_with(stats_summary_freep) StatsSummary *summary =
                stats_summary_new("node1", rates, true);
        UsageSample node = example_sample(NULL, NULL);
        cleanup_free char *text = NULL;

        node.interfaces = &lan;
        node.n_interfaces = 1;
        stats_summary_add(summary, &node);
        text = stats_summary_format(summary);
        EXPECT(strstr(text, "\"network\":{\"time\":\"1970-01-01T00:00:20Z\",\"name\":\"\","
                            "\"interfaces\":[{\"name\":\"ens3\",\"rxBytes\":7,"));
}

TEST(cpu_rates_are_computed_between_two_samples)
{
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        CgroupUsage usage = { .taken_at = 20 * USEC_PER_SEC, .cpu_nsec = 1000000000 };

        EXPECT_EQ(cpu_rates_update(rates, "/a", &usage, 10 * USEC_PER_SEC), 100000000);
        usage.taken_at += 2 * USEC_PER_SEC;
        usage.cpu_nsec += 3000000000;
        EXPECT_EQ(cpu_rates_update(rates, "/a", &usage, 10 * USEC_PER_SEC), 1500000000);
        usage.taken_at += USEC_PER_MSEC;
        EXPECT_EQ(cpu_rates_update(rates, "/a", &usage, 10 * USEC_PER_SEC), 1500000000);
}

TEST(cpu_rate_starts_again_after_its_cgroup_was_missing)
{
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        CgroupUsage usage = { .taken_at = 20 * USEC_PER_SEC, .cpu_nsec = 1000000000 };

        (void) cpu_rates_update(rates, "/a", &usage, 10 * USEC_PER_SEC);
        cpu_rates_forget_old(rates);
        cpu_rates_forget_old(rates);
        usage.taken_at = 30 * USEC_PER_SEC;
        EXPECT_EQ(cpu_rates_update(rates, "/a", &usage, 10 * USEC_PER_SEC), 50000000);
}

TEST(cadvisors_metrics_are_grouped_and_labelled)
{
        cleanup_with(cadvisor_metrics_freep) CadvisorMetrics *metrics = cadvisor_metrics_new();
        static const NetworkInterfaceUsage eth0 = { .name = "eth0", .tx_bytes = 7 };
        UsageSample pod = example_sample("web", NULL), app = example_sample("web", "app");
        cleanup_free char *text = NULL;

        pod.interfaces = &eth0;
        pod.n_interfaces = 1;
        EXPECT_EQ(cadvisor_metrics_add(metrics, &pod), 0);
        EXPECT_EQ(cadvisor_metrics_add(metrics, &app), 0);
        text = cadvisor_metrics_format(metrics,
                                       &(CadvisorMachine){ .n_cpus = 4, .memory_bytes = 1024 });
        EXPECT(strstr(text, "# TYPE container_cpu_usage_seconds_total counter\n"
                            "container_cpu_usage_seconds_total{container=\"\",id=\"/pod\",image="
                            "\"\",name=\"\",namespace=\"default\",pod=\"web\",cpu=\"total\"} 5 "
                            "20000\n"
                            "container_cpu_usage_seconds_total{container=\"app\",id=\"/pod/c1\","
                            "image=\"app:1\",name=\"c1\",namespace=\"default\",pod=\"web\",cpu="
                            "\"total\"} 5 20000\n"));
        EXPECT(strstr(text, "container_network_transmit_bytes_total{container=\"\",id=\"/pod\","
                            "image=\"\",name=\"\",namespace=\"default\",pod=\"web\",interface="
                            "\"eth0\"} 7 20000\n"));
        EXPECT(strstr(text, "\nmachine_cpu_cores 4\n"));
}

/* Returns the text of the metrics of a container with these labels. */
#define APP_LABELS                     \
        "container=\"app\",id=\"/pod/" \
        "c1\",image=\"app:1\",name=\"c1\",namespace=\"default\",pod=\"web\""

static char *format_example_details(UsageSample *app, const StorageSample *storage) {
        cleanup_with(cadvisor_metrics_freep) CadvisorMetrics *metrics = cadvisor_metrics_new();
        const FilesystemUsage disk = { .capacity = 9, .used = 8, .inodes = 7 };
        UsageSample node = example_sample(NULL, NULL), system = example_sample(NULL, NULL);

        EXPECT_EQ(cadvisor_metrics_add(metrics, &node), 0);
        system.system = "kubelet";
        system.cgroup = "/agent";
        EXPECT_EQ(cadvisor_metrics_add(metrics, &system), 0);
        system.system = "runtime"; /* in the same cgroup */
        EXPECT_EQ(cadvisor_metrics_add(metrics, &system), 0);
        EXPECT_EQ(cadvisor_metrics_add(metrics, app), 0);
        cadvisor_metrics_add_storage(metrics, storage, &disk);
        return cadvisor_metrics_format(
                metrics, &(CadvisorMachine){ .filesystem = { .capacity = 6, .inodes = 5 } });
}

TEST(cadvisors_metrics_have_limits_and_limit_events)
{
        UsageSample app = example_sample("web", "app");
        const StorageSample storage = { .kind = STORAGE_ROOTFS };
        cleanup_free char *text = NULL;

        app.statistics.cpu_user_nsec = 1500000000;
        app.statistics.own_page_faults = 21;
        app.statistics.major_page_faults = 22;
        app.statistics.n_threads = 23;
        app.details = (CgroupDetails){ .cpu_shares = 2,
                                       .cpu_period_usec = 100000,
                                       .cpu_quota_usec = 5000,
                                       .memory_peak = 31,
                                       .oom_kills = 32,
                                       .threads_max = 33 };
        text = format_example_details(&app, &storage);
        EXPECT(strstr(text, "\ncontainer_cpu_user_seconds_total{" APP_LABELS "} 1.5 20000\n"));
        EXPECT(strstr(text, "\ncontainer_memory_failures_total{" APP_LABELS
                            ",failure_type=\"pgfault\",scope=\"container\"} 21 20000\n"));
        EXPECT(strstr(text, "\ncontainer_memory_failures_total{" APP_LABELS
                            ",failure_type=\"pgmajfault\",scope=\"hierarchy\"} 22 20000\n"));
        EXPECT(strstr(text, "\ncontainer_threads{" APP_LABELS "} 23 20000\n"));
        EXPECT(strstr(text, "\ncontainer_spec_cpu_quota{" APP_LABELS "} 5000 20000\n"));
        EXPECT(!strstr(text, "\ncontainer_spec_cpu_quota{container=\"\""));
        EXPECT(strstr(text, "\ncontainer_memory_max_usage_bytes{" APP_LABELS "} 31 20000\n"));
        EXPECT(strstr(text, "\ncontainer_oom_events_total{" APP_LABELS "} 32 20000\n"));
        EXPECT(strstr(text, "\ncontainer_threads_max{" APP_LABELS "} 33 20000\n"));
        EXPECT(strstr(text, "\ncontainer_last_seen{" APP_LABELS "} "));
}

static size_t count_text(const char *text, const char *part) {
        size_t n = 0;

        for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
                n++;
        return n;
}

TEST(each_cadvisor_metric_has_one_header_and_each_cgroup_one_row)
{
        UsageSample app = example_sample("web", "app");
        const StorageSample storage = { .kind = STORAGE_ROOTFS };
        cleanup_free char *text = format_example_details(&app, &storage);

        EXPECT_EQ(count_text(text, "# TYPE container_memory_failures_total "), 1);
        EXPECT_EQ(count_text(text, "# TYPE container_memory_failcnt "), 1);
        EXPECT_EQ(count_text(text, "\ncontainer_memory_rss{container=\"\",id=\"/agent\",image="
                                   "\"\",name=\"\",namespace=\"\",pod=\"\"} "),
                  1);
}

TEST(a_container_without_disk_usage_starts_at_zero)
{
        UsageSample app = example_sample("web", "app");
        const StorageSample storage = { .kind = STORAGE_ROOTFS };
        cleanup_free char *text = format_example_details(&app, &storage);

        EXPECT(strstr(text, "\ncontainer_fs_reads_total{" APP_LABELS ",device=\"\"} 0 20000\n"));
        EXPECT(strstr(text, "\ncontainer_blkio_device_usage_total{" APP_LABELS
                            ",device=\"\",major=\"0\",minor=\"0\",operation=\"Write\"} 0 "
                            "20000\n"));
        EXPECT(!strstr(text, "\ncontainer_fs_reads_total{container=\"\""));
}

TEST(unknown_values_of_a_container_are_omitted)
{
        UsageSample app = example_sample("web", "app");
        const StorageSample storage = { .kind = STORAGE_ROOTFS };
        cleanup_free char *text = format_example_details(&app, &storage);

        EXPECT(!strstr(text, "\ncontainer_file_descriptors{"));
        EXPECT(!strstr(text, "\ncontainer_sockets{"));
        EXPECT(!strstr(text, "\ncontainer_ulimits_soft{"));
        EXPECT(!strstr(text, "\ncontainer_fs_usage_bytes{container=\"app\""));
}

TEST(container_counts_have_their_own_timestamp)
{
        const StorageSample storage = { .kind = STORAGE_ROOTFS,
                                        .is_measured = true,
                                        .used = 3,
                                        .taken_at = 17 * USEC_PER_SEC };
        ProcessUsage processes = { .n_descriptors = 5, .n_sockets = 4, .open_files_max = 1024 };
        UsageSample app = example_sample("web", "app");
        cleanup_free char *text = NULL, *unlimited = NULL;

        app.processes = &processes;
        app.processes_at = 18 * USEC_PER_SEC;
        text = format_example_details(&app, &storage);
        EXPECT(strstr(text, "\ncontainer_file_descriptors{" APP_LABELS "} 5 18000\n"));
        EXPECT(strstr(text, "\ncontainer_sockets{" APP_LABELS "} 4 18000\n"));
        EXPECT(strstr(text, "\ncontainer_ulimits_soft{" APP_LABELS
                            ",ulimit=\"max_open_files\"} 1024 18000\n"));
        EXPECT(strstr(text, "\ncontainer_fs_usage_bytes{" APP_LABELS ",device=\"\"} 3 17000\n"));
        EXPECT(strstr(text, "\ncontainer_fs_limit_bytes{" APP_LABELS ",device=\"\"} 9 17000\n"));
        EXPECT(!strstr(text, "\ncontainer_fs_inodes_total{container=\"app\""));
        processes.open_files_max = OPEN_FILES_UNLIMITED;
        unlimited = format_example_details(&app, &storage);
        EXPECT(strstr(unlimited, ",ulimit=\"max_open_files\"} -1 18000\n"));
}

/* ---- pressure and disks ---- */

static UsageSample example_loaded_sample(void) {
        UsageSample sample = example_sample("web", NULL);

        sample.statistics.io_pressure =
                (Pressure){ .is_known = true,
                            .some = { .avg10 = 1.5, .avg300 = 0.25, .total_usec = 2500000 },
                            .full = { .total_usec = 1000000 } };
        sample.statistics.cpu_pressure = sample.statistics.io_pressure;
        sample.statistics.disks = (DiskUsages){ .n = 1,
                                                .items = { { .major = 4095,
                                                             .minor = 7,
                                                             .read_bytes = 11,
                                                             .written_bytes = 12,
                                                             .reads = 13,
                                                             .writes = 14 } } };
        return sample;
}

TEST(summary_has_pressure_if_the_kernel_reports_it)
{
        cleanup_with(cpu_rates_freep) CpuRates *rates = cpu_rates_new();
        cleanup_with(stats_summary_freep) StatsSummary *summary =
                stats_summary_new("node1", rates, true);
        const UsageSample sample = example_loaded_sample();
        cleanup_free char *text = NULL;

        stats_summary_add(summary, &sample);
        text = stats_summary_format(summary);
        EXPECT(strstr(text,
                      "\"io\":{\"time\":\"1970-01-01T00:00:20Z\",\"psi\":{\"full\":{\"total\":"
                      "1000000,\"avg10\":0.0,\"avg60\":0.0,\"avg300\":0.0},\"some\":{"
                      "\"total\":2500000,\"avg10\":1.5,\"avg60\":0.0,\"avg300\":0.25}}}"));
        EXPECT(strstr(strstr(text, "\"cpu\":{"), "\"psi\":{") != NULL);
        EXPECT(!strstr(strstr(text, "\"memory\":{"), "\"majorPageFaults\":0,\"psi\""));
}

TEST(cadvisors_metrics_have_disks_and_pressure)
{
        cleanup_with(cadvisor_metrics_freep) CadvisorMetrics *metrics = cadvisor_metrics_new();
        const UsageSample sample = example_loaded_sample();
        cleanup_free char *text = NULL;

        EXPECT_EQ(cadvisor_metrics_add(metrics, &sample), 0);
        text = cadvisor_metrics_format(
                metrics,
                &(CadvisorMachine){
                        .filesystem = { .capacity = 9, .used = 4, .inodes = 3, .inodes_free = 2 },
                        .device = { .major = 4095, .minor = 1 } });
        EXPECT(strstr(text,
                      "\ncontainer_fs_usage_bytes{container=\"\",id=\"/pod\",image=\"\",name=\"\","
                      "namespace=\"default\",pod=\"web\",device=\"\"} 4 20000\n"));
        EXPECT(strstr(text, "device=\"\"} 9 20000\n"));
        EXPECT(strstr(text,
                      "\ncontainer_fs_reads_bytes_total{container=\"\",id=\"/pod\",image=\"\","
                      "name=\"\",namespace=\"default\",pod=\"web\",device=\"\"} 11 20000\n"));
        EXPECT(strstr(text, "device=\"\"} 12 20000\n"));
        EXPECT(strstr(text, "device=\"\"} 13 20000\n"));
        EXPECT(strstr(text, "device=\"\"} 14 20000\n"));
        EXPECT(strstr(text,
                      "\ncontainer_pressure_io_waiting_seconds_total{container=\"\",id=\"/pod\","
                      "image=\"\",name=\"\",namespace=\"default\",pod=\"web\"} 2.5 20000\n"));
        EXPECT(strstr(text,
                      "\ncontainer_pressure_cpu_stalled_seconds_total{container=\"\",id=\"/pod\","
                      "image=\"\",name=\"\",namespace=\"default\",pod=\"web\"} 1 20000\n"));
        EXPECT(!strstr(text, "\ncontainer_pressure_memory_waiting_seconds_total{"));
}
