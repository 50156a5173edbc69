/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/preflight-paths.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <signal.h>

static void on_result(void *userdata) {
        sd_event_exit(userdata, 0);
}

static sd_event *new_loop(void) {
        sd_event *event = NULL;
        sigset_t child;

        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&event) >= 0);
        return event;
}

/* Returns the result for a pod with two such paths after the process has checked them. */
static int look_at_two_paths(HostPathVolumeSource *first, HostPathVolumeSource *second,
                             Error *reterr) {
        Volume volumes[] = { { .name = (char[]){ "one" }, .host_path = first },
                             { .name = (char[]){ "two" }, .host_path = second } };
        const Pod pod = { .spec.volumes = { volumes, N_ELEMENTS(volumes) } };
        PreflightPaths *paths = NULL;
        sd_event *event = new_loop();
        int r;

        REQUIRE(preflight_paths_new(event, &pod, on_result, event, &paths) == 0);
        if (preflight_paths_result(paths, NULL) == 0)
                REQUIRE(sd_event_loop(event) == 0);
        r = preflight_paths_result(paths, reterr);
        preflight_paths_free(paths);
        sd_event_unref(event);
        return r;
}

TEST(paths_of_the_right_type_are_accepted_and_created_ones_are_not_checked)
{
        HostPathVolumeSource directory = { .path = (char[]){ "/" }, .type = HOST_PATH_DIRECTORY };
        HostPathVolumeSource device = { .path = (char[]){ "/dev/null" },
                                        .type = HOST_PATH_CHAR_DEVICE };
        HostPathVolumeSource made = { .path = (char[]){ "/does/not/exist" },
                                      .type = HOST_PATH_DIRECTORY_OR_CREATE };

        EXPECT_EQ(look_at_two_paths(&directory, &device, NULL), 1);
        EXPECT_EQ(look_at_two_paths(&directory, &made, NULL), 1);
        EXPECT_EQ(look_at_two_paths(&made, &made, NULL), 1);
}

TEST(path_that_is_missing_or_of_another_type_is_named)
{
        HostPathVolumeSource directory = { .path = (char[]){ "/" }, .type = HOST_PATH_DIRECTORY };
        HostPathVolumeSource missing = { .path = (char[]){ "/does/not/exist" },
                                         .type = HOST_PATH_SOCKET };
        HostPathVolumeSource mistyped = { .path = (char[]){ "/dev/null" }, .type = HOST_PATH_FILE };
        cleanup_error Error first = ERROR_NULL, second = ERROR_NULL;

        EXPECT_EQ(look_at_two_paths(&directory, &missing, &first), -ENOENT);
        EXPECT_STREQ(first.message, "MountVolume.SetUp failed for volume \"two\" : hostPath type "
                                    "check failed: /does/not/exist is not of type Socket");
        EXPECT_EQ(look_at_two_paths(&mistyped, &missing, &second), -ENOENT);
        EXPECT_STREQ(second.message, "MountVolume.SetUp failed for volume \"one\" : hostPath type "
                                     "check failed: /dev/null is not of type File");
}

TEST(preflight_process_is_not_waited_for_when_its_pod_is_removed)
{
        HostPathVolumeSource directory = { .path = (char[]){ "/" }, .type = HOST_PATH_DIRECTORY };
        Volume volume = { .name = (char[]){ "v" }, .host_path = &directory };
        const Pod pod = { .spec.volumes = { &volume, 1 } };
        PreflightPaths *paths = NULL;
        sd_event *event = new_loop();

        REQUIRE(preflight_paths_new(event, &pod, on_result, event, &paths) == 0);
        EXPECT_EQ(preflight_paths_result(paths, NULL), 0);
        preflight_paths_free(paths);
        sd_event_unref(event);
}
