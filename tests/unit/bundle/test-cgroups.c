/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/cgroups.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static const BundleConfig slices = { .cgroup_root = "/",
                                     .has_slices = true,
                                     .run_dir = "/nowhere" };

TEST(slices_are_named_and_nested_like_the_kubelets)
{
        static const struct {
                const char *root;
                QosClass qos;
                const char *pod, *class;
        } cases[] = {
                { "/", QOS_GUARANTEED, "/kubepods.slice/kubepods-pod12_ab.slice",
                  "/kubepods.slice" },
                { "/", QOS_BURSTABLE,
                  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice",
                  "/kubepods.slice/kubepods-burstable.slice" },
                { "/x-y", QOS_GUARANTEED,
                  "/x_y.slice/x_y-kubepods.slice/x_y-kubepods-pod12_ab.slice",
                  "/x_y.slice/x_y-kubepods.slice" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                BundleConfig config = slices;
                cleanup_free char *pod = NULL, *class = NULL, *found = NULL;

                config.cgroup_root = cases[i].root;
                pod = cgroup_of_new_pod(&config, cases[i].qos, "12-ab");
                found = cgroup_of_pod(&config, cases[i].qos, "12-ab");
                class = cgroup_of_qos_class(&config, cases[i].qos);
                EXPECT_STREQ(pod, cases[i].pod);
                EXPECT_STREQ(found, cases[i].pod);
                EXPECT_STREQ(class, cases[i].class);
        }
}

TEST(a_recorded_cgroup_is_used_only_if_it_is_that_of_the_pod)
{
        static const struct {
                const char *record;
                bool is_used;
        } cases[] = {
                { "/old/kubepods/burstable/pod12-ab", true },
                { "/pod12-ab", true },
                { "/old.slice/old-kubepods-besteffort-pod12_ab.slice", true },
                { "/kubepods/besteffort", false },
                { "/kubepods/besteffort/", false },
                { "/kubepods/besteffort/pod12", false },
                { "/kubepods/besteffort/pod99", false },
                { "/kubepods/besteffort/pod12-ab/", false },
                { "/kubepods/besteffort/xpod12-ab", false },
                { "/kubepods/../../pod12-ab", false },
                { "/kubepods.slice/kubepods-besteffort.slice", false },
                { "/kubepods.slice/kubepods-besteffort-pod12_a.slice", false },
                { "kubepods/pod12-ab", false },
                { "/", false },
                { "", false },
        };
        const BundleConfig config = { .cgroup_root = "/no-such-group",
                                      .run_dir = test_directory() };
        cleanup_free char *pod_dir = path_join(test_directory(), "pods/12-ab");
        cleanup_close int fd = open_directory_at(AT_FDCWD, pod_dir, 0700);

        REQUIRE(fd >= 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *found = NULL;
                const char *record = cases[i].record;

                REQUIRE(write_file_atomic_at(fd, "cgroup", record, strlen(record), 0600) >= 0);
                found = cgroup_of_pod(&config, QOS_GUARANTEED, "12-ab");
                EXPECT_STREQ(found, cases[i].is_used ? record : "/no-such-group/kubepods/pod12-ab");
        }
}

TEST(a_container_is_a_scope_in_a_slice_and_a_directory_elsewhere)
{
        cleanup_free char *scope = cgroup_of_container("/a.slice/a-b.slice", "7");
        cleanup_free char *words = cgroups_path_for_runtime("/a.slice/a-b.slice", "7");
        cleanup_free char *directory = cgroup_of_container("/a/b", "7");
        cleanup_free char *path = cgroups_path_for_runtime("/a/b", "7");

        EXPECT_STREQ(scope, "/a.slice/a-b.slice/mainstay-7.scope");
        EXPECT_STREQ(words, "a-b.slice:mainstay:7");
        EXPECT_STREQ(directory, "/a/b/7");
        EXPECT_STREQ(path, "/a/b/7");
        EXPECT(!cgroup_is_slice(".slice") && !cgroup_is_slice("/a"));
}

TEST(values_become_systemd_properties)
{
        CgroupValue values[] = {
                { "cpu", "cpu.weight", "17" },     { "cpu", "cpu.max", "23500 100000" },
                { "memory", "memory.max", "max" }, { "hugetlb", "hugetlb.2MB.max", "0" },
                { "pids", "pids.max", "100" },
        };
        SliceProperty properties[SLICE_PROPERTIES_MAX];

        cgroup_round_values(values, N_ELEMENTS(values));
        EXPECT_STREQ(values[1].value, "24000 100000");
        EXPECT_EQ(cgroup_slice_properties(values, N_ELEMENTS(values), properties), 4);
        EXPECT_STREQ(properties[0].name, "CPUWeight");
        EXPECT_EQ(properties[0].value, 17);
        EXPECT_STREQ(properties[1].name, "CPUQuotaPerSecUSec");
        EXPECT_EQ(properties[1].value, 240000);
        EXPECT_EQ(properties[2].value, UINT64_MAX);
        EXPECT_STREQ(properties[3].name, "TasksMax");
}
