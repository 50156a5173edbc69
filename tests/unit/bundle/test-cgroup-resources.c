/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/cgroup-resources.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(cpu_request_becomes_shares_and_weights)
{
        static const struct {
                int64_t milli_cpu;
                uint64_t shares, group_weight, container_weight;
        } cases[] = {
                { 0, 2, 1, 1 },
                { 1, 2, 1, 1 },
                { 10, 10, 1, 4 },
                { 100, 102, 4, 17 },
                { 250, 256, 10, 35 },
                { 500, 512, 20, 59 },
                { 1000, 1024, 39, 100 },
                { 2000, 2048, 79, 174 },
                { 4000, 4096, 157, 303 },
                { 8000, 8192, 313, 532 },
                { 64000, 65536, 2500, 3023 },
                { 256000, 262144, 10000, 10000 },
                { INT64_MAX, 262144, 10000, 10000 },
                { -5, 2, 1, 1 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                uint64_t shares = cpu_shares(cases[i].milli_cpu);

                EXPECT_EQ(shares, cases[i].shares);
                EXPECT_EQ(cpu_weight_of_group(shares), cases[i].group_weight);
                EXPECT_EQ(cpu_weight_of_container(shares), cases[i].container_weight);
        }
}

TEST(a_cpu_limit_becomes_a_quota_of_at_least_a_millisecond)
{
        static const struct {
                int64_t milli_cpu, quota;
        } cases[] = { { 0, 0 },     { 1, 1000 },    { 5, 1000 },
                      { 10, 1000 }, { 500, 50000 }, { 2000, 200000 } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(cpu_quota_usec(cases[i].milli_cpu), cases[i].quota);
}

/* A pod of up to two containers with the given memory requests and limits; the same for CPU. */
static PodSpec make_spec(Container *containers, const int64_t *request, const int64_t *limit,
                         size_t n) {
        static char text[] = "x";

        for (size_t i = 0; i < n; i++) {
                containers[i] = (Container){ 0 };
                if (request[i] > 0)
                        containers[i].resources.requests = (ResourceList){
                                .cpu = { text, 1, request[i] },
                                .memory = { text, request[i], request[i] * 1000 },
                        };
                if (limit[i] > 0)
                        containers[i].resources.limits = (ResourceList){
                                .cpu = { text, 1, limit[i] },
                                .memory = { text, limit[i], limit[i] * 1000 },
                        };
        }
        return (PodSpec){ .containers = { containers, n } };
}

TEST(oom_score_adj_follows_the_qos_class_and_the_share_of_memory)
{
        static const int64_t gib = INT64_C(1) << 30, mib = INT64_C(1) << 20;
        static const struct {
                int64_t request, limit;
                int adjust;
        } cases[] = {
                { 0, 0, 1000 },      { 64 * mib, 0, 993 }, { 256 * mib, 0, 969 },
                { 1 * gib, 0, 875 }, { 4 * gib, 0, 500 },  { 8 * gib, 0, 3 },
                { 100 * gib, 0, 3 }, { 1, 0, 999 },        { 64 * mib, 64 * mib, -997 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Container containers[2];
                PodSpec spec = make_spec(containers, &cases[i].request, &cases[i].limit, 1);

                EXPECT_EQ(oom_score_adj(&spec, &containers[0], 8 * gib), cases[i].adjust);
        }
}

TEST(cgroups_have_the_kubelets_names_with_both_drivers)
{
        static const struct {
                QosClass qos;
                const char *path, *slice;
        } cases[] = {
                { QOS_GUARANTEED, "/kubepods/pod12-ab", "kubepods-pod12_ab.slice" },
                { QOS_BURSTABLE, "/kubepods/burstable/pod12-ab",
                  "kubepods-burstable-pod12_ab.slice" },
                { QOS_BEST_EFFORT, "/kubepods/besteffort/pod12-ab",
                  "kubepods-besteffort-pod12_ab.slice" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *path = pod_cgroup_path("/", cases[i].qos, "12-ab");
                cleanup_free char *below = pod_cgroup_path("/x", cases[i].qos, "12-ab");
                cleanup_free char *slice = pod_slice_name(cases[i].qos, "12-ab");

                EXPECT_STREQ(path, cases[i].path);
                EXPECT_STREQ(slice, cases[i].slice);
                EXPECT(strncmp(below, "/x", 2) == 0);
                EXPECT_STREQ(below + 2, cases[i].path);
        }
}

static void expect_values(const PodSpec *spec, int version, const char *const *expected) {
        CgroupValue values[CGROUP_VALUES_MAX] = { 0 };
        size_t n = pod_cgroup_values(spec, version, 100, values), i = 0;

        for (; i < n && expected[i]; i++) {
                char text[128];

                (void) snprintf(text, sizeof(text), "%s %s", values[i].file, values[i].value);
                EXPECT_STREQ(text, expected[i]);
        }
        EXPECT_EQ(i, n);
        EXPECT(!expected[i]);
}

TEST(pod_cgroup_is_limited_only_if_every_container_is)
{
        Container containers[2];
        PodSpec one = make_spec(containers, (int64_t[]){ 250, 0 }, (int64_t[]){ 500, 0 }, 2);

        expect_values(&one, 1, (const char *[]){ "cpu.shares 256", "pids.max 100", NULL });
        expect_values(&one, 2, (const char *[]){ "cpu.weight 10", "pids.max 100", NULL });

        one = make_spec(containers, (int64_t[]){ 250, 250 }, (int64_t[]){ 500, 1500 }, 2);
        expect_values(&one, 1,
                      (const char *[]){ "cpu.shares 512", "cpu.cfs_period_us 100000",
                                        "cpu.cfs_quota_us 200000", "memory.limit_in_bytes 2000",
                                        "pids.max 100", NULL });
        expect_values(&one, 2,
                      (const char *[]){ "cpu.weight 20", "cpu.max 200000 100000", "memory.max 2000",
                                        "pids.max 100", NULL });
}

TEST(pod_level_resources_override_the_sum_of_the_containers)
{
        static char text[] = "x";
        static const int64_t none[2] = { 0, 0 }, request[2] = { 0, 64 * MIB };
        Container containers[2];
        PodSpec spec = make_spec(containers, none, none, 2);
        ResourceRequirements resources = { 0 };
        CgroupValue values[CGROUP_VALUES_MAX];

        EXPECT_EQ(pod_qos_class(&spec), QOS_BEST_EFFORT);
        resources.limits = (ResourceList){
                .cpu = { text, 2, 2000 },
                .memory = { text, INT64_C(1) << 30, (INT64_C(1) << 30) * 1000 },
        };
        resources.requests = resources.limits;
        spec.resources = &resources;
        EXPECT_EQ(pod_qos_class(&spec), QOS_GUARANTEED);
        EXPECT_EQ(pod_milli_cpu_request(&spec), 2000);
        EXPECT_EQ(container_milli_cpu_limit(&spec, &containers[0]), 2000);
        EXPECT_EQ(container_milli_cpu_request(&spec, &containers[0]), 2000);
        EXPECT_EQ(container_memory_limit(&spec, &containers[1]), INT64_C(1) << 30);
        EXPECT_EQ(pod_cgroup_values(&spec, 2, -1, values), 3);
        EXPECT_STREQ(values[1].value, "200000 100000");
        EXPECT_STREQ(values[2].value, "1073741824");
        resources.requests.cpu = (Quantity){ text, 1, 500 };
        EXPECT_EQ(pod_qos_class(&spec), QOS_BURSTABLE);
        /* 1 GiB of 8 is split between two containers: 512 MiB is a sixteenth. */
        EXPECT_EQ(oom_score_adj(&spec, &containers[0], INT64_C(8) << 30), 1000 - 62);
        spec = make_spec(containers, request, none, 2);
        resources = (ResourceRequirements){ 0 };
        resources.requests.memory = (Quantity){ text, 128 * MIB, INT64_C(128) * MIB * 1000 };
        spec.resources = &resources;
        /* The pod requests 64 MiB more than the second container: each container gets 32 MiB of
         * it. */
        EXPECT_EQ(oom_score_adj(&spec, &containers[0], INT64_C(1) << 30), 1000 - 31);
        EXPECT_EQ(oom_score_adj(&spec, &containers[1], INT64_C(1) << 30), 1000 - 93);
}
