/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/runtime-spec.h"

#include "common/cleanup.h"
#include "tests/test.h"

static const BundleConfig config = { .run_dir = "/run/mainstay",
                                     .state_dir = "/var/lib/mainstay",
                                     .log_dir = "/var/log",
                                     .hostname = "node1",
                                     .cgroup_root = "/" };

static int make_with_directory(char *directory, Error *reterr) {
        char *command[] = { (char[]){ "/bin/sh" }, NULL };
        cleanup_free char *text = NULL;
        const Container container = { .name = (char[]){ "main" }, .working_dir = directory };
        const Image image = { .command = command };
        const Pod pod = { .metadata = { .namespace = (char[]){ "default" },
                                        .name = (char[]){ "web" },
                                        .uid = (char[]){ "u" } } };

        return make_runtime_spec(&(RuntimeSpecInput){ .config = &config,
                                                      .pod = &pod,
                                                      .container = &container,
                                                      .image = &image,
                                                      .id = "0123",
                                                      .sandbox_pid = 42,
                                                      .cgroup_version = 2 },
                                 &text, reterr);
}

TEST(a_working_directory_in_proc_is_refused_however_it_is_spelled)
{
        static char refused[][40] = {
                "/proc",
                "/proc/",
                "/proc/self/fd/7",
                "//proc/self/fd/7",
                "/./proc/self/fd/7",
                "/a/../proc/self/fd/7",
                "/../proc",
                "/.//../a/./b/../../proc/self",
                "/proc/self/fd/7/../../../..",
        };

        for (size_t i = 0; i < N_ELEMENTS(refused); i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = make_with_directory(refused[i], &error);

                if (r != -EINVAL || !strstr(error_message(&error, r), "is in /proc"))
                        test_fail(__FILE__, __LINE__, refused[i], "%s", error_message(&error, r));
        }
}

TEST(working_directories_whose_name_only_resembles_proc_are_accepted)
{
        static char accepted[][16] = {
                "/", "//", "/process", "/pro", "/data/proc", "/a/../b/proc", "/..proc", "/.proc",
        };

        for (size_t i = 0; i < N_ELEMENTS(accepted); i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = make_with_directory(accepted[i], &error);

                if (r < 0)
                        test_fail(__FILE__, __LINE__, accepted[i], "%s", error_message(&error, r));
        }
}

/* ---- the hook that masks before the runtime ---- */

static const char shim[] = "/usr/libexec/mainstay/mainstay-shim";

typedef struct GuardedCase {
        const char *volumes[2];
        const char *working_dir;
        bool is_guarded;
} GuardedCase;

static bool has_guard(const GuardedCase *one, bool is_privileged, const char *shim_path) {
        BundleConfig with_shim = config;
        VolumeMount mounts[N_ELEMENTS(one->volumes)] = { 0 };
        char *command[] = { (char[]){ "/bin/sh" }, NULL };
        cleanup_free char *text = NULL;
        cleanup_error Error error = ERROR_NULL;
        Container container = { .name = (char[]){ "main" },
                                .working_dir = (char *) (uintptr_t) one->working_dir,
                                .security_context.privileged = is_privileged,
                                .volume_mounts = { .items = mounts } };
        const Image image = { .command = command };
        const Pod pod = { .metadata = { .namespace = (char[]){ "default" },
                                        .name = (char[]){ "web" },
                                        .uid = (char[]){ "u" } } };

        for (size_t i = 0; i < N_ELEMENTS(one->volumes) && one->volumes[i]; i++)
                mounts[container.volume_mounts.n++] =
                        (VolumeMount){ .name = (char[]){ "v" },
                                       .mount_path = (char *) (uintptr_t) one->volumes[i] };
        with_shim.shim_path = shim_path;
        REQUIRE(make_runtime_spec(&(RuntimeSpecInput){ .config = &with_shim,
                                                       .pod = &pod,
                                                       .container = &container,
                                                       .image = &image,
                                                       .id = "0123",
                                                       .sandbox_pid = 42,
                                                       .cgroup_version = 2 },
                                  &text, &error) == 0);
        return strstr(text, "createRuntime") != NULL;
}

TEST(a_container_is_guarded_if_the_runtime_would_follow_names_in_its_volumes)
{
        static const GuardedCase cases[] = {
                { { NULL }, NULL, false },
                { { "/data" }, NULL, false },
                { { "/data", "/data2" }, "/data", false },
                { { "/data" }, "/data/below", true },
                { { "/data/" }, "//data/./below", true },
                { { "/data", "/data/below" }, NULL, true },
                { { "/data/below", "/data" }, NULL, true },
                { { "/dev" }, NULL, true },
                { { "//dev/./null" }, NULL, true },
                { { "/data/../dev" }, NULL, true },
                { { "/device" }, NULL, false },
                { { "/sys" }, NULL, true },
                { { "/" }, NULL, true },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                if (has_guard(&cases[i], false, shim) != cases[i].is_guarded)
                        test_fail(__FILE__, __LINE__, strna(cases[i].volumes[0]), "case %zu", i);
}

TEST(privileged_containers_and_bundles_without_a_shim_have_no_guard)
{
        static const GuardedCase devices = { { "/dev" }, NULL, true };

        REQUIRE(!has_guard(&devices, true, shim));
        REQUIRE(!has_guard(&devices, false, NULL));
}
