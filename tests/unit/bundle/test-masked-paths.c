/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/masked-paths.h"

#include "agent/bundle/runtime-spec.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <fcntl.h>

static void make_directory(const char *path) {
        cleanup_free char *full = path_join(test_directory(), path);

        REQUIRE(full && mkdir_parents_at(AT_FDCWD, full, 0755) == 0);
}

TEST(counters_of_each_cpu_that_has_them_are_found)
{
        cleanup_free char *second = path_join(test_directory(), "cpu2/thermal_throttle");
        cleanup_free char *tenth = path_join(test_directory(), "cpu10/thermal_throttle");
        cleanup_strv char **paths = NULL;

        make_directory("cpu10/thermal_throttle");
        make_directory("cpu2/thermal_throttle");
        make_directory("cpu3/topology");
        make_directory("cpufreq/thermal_throttle");
        REQUIRE(find_thermal_throttles(test_directory(), &paths) == 0);
        REQUIRE(strv_length(paths) == 2);
        EXPECT_STREQ(paths[0], second);
        EXPECT_STREQ(paths[1], tenth);
}

TEST(machine_without_counters_has_none)
{
        cleanup_strv char **paths = NULL;

        EXPECT_EQ(find_thermal_throttles(test_directory(), &paths), 0);
        EXPECT(!paths);
        EXPECT_EQ(find_thermal_throttles("/does/not/exist", &paths), 0);
        EXPECT(!paths);
}

/* The array of config.json, or NULL. */
static json_t *masked_paths_of(const SecurityContext *context) {
        char *throttles[] = { (char[]){ "/sys/devices/system/cpu/cpu0/thermal_throttle" }, NULL };
        char *command[] = { (char[]){ "/bin/sh" }, NULL };
        const BundleConfig config = { .run_dir = "/run/mainstay",
                                      .state_dir = "/var/lib/mainstay",
                                      .log_dir = "/var/log",
                                      .hostname = "node1",
                                      .cgroup_root = "/",
                                      .thermal_throttles = throttles };
        const Container container = { .name = (char[]){ "main" }, .security_context = *context };
        const Image image = { .command = command };
        const Pod pod = { .metadata = { .namespace = (char[]){ "default" },
                                        .name = (char[]){ "web" },
                                        .uid = (char[]){ "u" } } };
        cleanup_free char *text = NULL;
        json_t *document, *paths;

        REQUIRE(make_runtime_spec(&(RuntimeSpecInput){ .config = &config,
                                                       .pod = &pod,
                                                       .container = &container,
                                                       .image = &image,
                                                       .id = "0123",
                                                       .sandbox_pid = 42,
                                                       .cgroup_version = 2 },
                                  &text, NULL) >= 0);
        document = json_loads(text, 0, NULL);
        REQUIRE(document);
        paths = json_incref(json_object_get(json_object_get(document, "linux"), "maskedPaths"));
        json_decref(document);
        return paths;
}

static bool is_throttle_in(const json_t *paths) {
        const json_t *path;
        size_t i;

        json_array_foreach(paths, i, path)
                if (strstr(json_string_value(path), "thermal_throttle"))
                        return true;
        return false;
}

TEST(container_does_not_see_the_counters_unless_it_is_privileged)
{
        json_t *plain = masked_paths_of(&(SecurityContext){ 0 });
        json_t *privileged = masked_paths_of(&(SecurityContext){ .privileged = true });

        EXPECT(is_throttle_in(plain));
        EXPECT(!privileged);
        json_decref(plain);
        json_decref(privileged);
}
