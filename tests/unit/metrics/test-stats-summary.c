/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's summary, the rates in it, and cAdvisor's metrics. */

#include "tests/test.h"

#include "agent/metrics/cadvisor-metrics.h"
#include "agent/metrics/stats-summary.h"
#include "common/cleanup.h"
#include "common/clock.h"

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
        StorageSample rootfs = { .kind = STORAGE_ROOTFS, .is_measured = true, .used = 3 };
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
        EXPECT(strstr(text, "\"usedBytes\":3"));
}

TEST(summary_of_cpu_and_memory_has_nothing_else)
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

TEST(rates_are_of_the_time_between_two_samples)
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

TEST(rates_of_a_cgroup_that_was_not_seen_start_again)
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

TEST(summary_has_the_pressure_that_the_kernel_knows)
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
