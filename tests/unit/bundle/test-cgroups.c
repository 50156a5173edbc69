/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/cgroups.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <regex.h>

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

        EXPECT_STREQ(scope, "/a.slice/a-b.slice/cri-containerd-7.scope");
        EXPECT_STREQ(words, "a-b.slice:cri-containerd:7");
        EXPECT_STREQ(directory, "/a/b/7");
        EXPECT_STREQ(path, "/a/b/7");
        EXPECT(!cgroup_is_slice(".slice") && !cgroup_is_slice("/a"));
}

#define HEX_ID "[0-9a-f]{64}"

/* POSIX patterns that are equivalent to those by which published daemons find the container of a
 * process in its cgroup path. With any runtime, some do not recognize a Guaranteed pod without
 * slices. */
static const struct {
        const char *tool, *pattern;
        bool fails_for_guaranteed_directory;
} recognizers[] = {
        { "Kepler", "[:/]cri-containerd[-:]" HEX_ID "|/kubepods/[^/]+/pod[0-9a-f-]+/" HEX_ID,
          true },
        { "Falco", "/(cri-containerd-)?" HEX_ID "(\\.scope)?$", false },
        { "Tracee", "/(docker-|crio-|cri-containerd-|libpod-)?" HEX_ID "(\\.scope)?(/|$)", false },
        { "Datadog agent", HEX_ID "[^/]*$", false },
        { "cAdvisor", "[a-z0-9]{64}[^/]*$", false },
        { "Pixie",
          "kubepods[-/.].*pod[0-9a-f]{8}[-_]([0-9a-f]{4}[-_]){3}[0-9a-f]{12}(\\.slice/"
          "cri-containerd-|/)" HEX_ID,
          false },
        { "OpenTelemetry eBPF", "/.*-[0-9a-f]+\\.scope|/kubepods.*" HEX_ID, false },
        { "OpenTelemetry", "/([^/]*-)?" HEX_ID "(\\.[^/]*)?$", false },
};

static bool path_matches(const char *pattern, const char *path) {
        regex_t regex;
        bool matches;

        REQUIRE(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0);
        matches = regexec(&regex, path, 0, NULL, 0) == 0;
        regfree(&regex);
        return matches;
}

TEST(cgroup_paths_of_both_drivers_are_recognizable_by_other_daemons)
{
        static const char uid[] = "8dbc5577-d0e2-4706-8787-57d52c03ddf2";
        static const char id[] = "14011c7d92a9e513dfd69211da0413dbf319a5e45a02b354ba6e98e10272542d";

        for (unsigned has_slices = 0; has_slices < 2; has_slices++)
                for (unsigned qos = 0; qos < N_QOS_CLASSES; qos++) {
                        BundleConfig config = slices;
                        cleanup_free char *pod = NULL, *path = NULL;

                        config.has_slices = has_slices;
                        pod = cgroup_of_new_pod(&config, (QosClass) qos, uid);
                        path = cgroup_of_container(pod, id);
                        for (size_t i = 0; i < N_ELEMENTS(recognizers); i++) {
                                bool fails = recognizers[i].fails_for_guaranteed_directory &&
                                             !has_slices && qos == QOS_GUARANTEED;

                                if (path_matches(recognizers[i].pattern, path) == fails)
                                        test_fail(__FILE__, __LINE__, recognizers[i].tool, "%s",
                                                  path);
                        }
                }
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
