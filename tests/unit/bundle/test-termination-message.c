/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/bundle.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/volume-mounts.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static Container container = { .name = (char[]){ "main" },
                               .termination_message_policy = TERMINATION_MESSAGE_FALLBACK_TO_LOGS };
static const Pod pod = { .metadata = { .namespace = (char[]){ "default" },
                                       .name = (char[]){ "web" },
                                       .uid = (char[]){ "u1" } },
                         .spec.containers = { &container, 1 } };

/* Writes "<path>", with its directories. */
static void put_file(const char *path, const char *data, size_t length) {
        cleanup_free char *directory = strndup(path, (size_t) (strrchr(path, '/') - path));
        cleanup_close int fd = open_directory_at(AT_FDCWD, directory, 0755);

        REQUIRE(fd >= 0);
        REQUIRE(write_file_atomic_at(fd, strrchr(path, '/') + 1, data, length, 0600) >= 0);
}

TEST(a_nul_byte_does_not_truncate_a_termination_message)
{
        static const char log[] = "2026-01-01T00:00:00Z stdout F one\n"
                                  "2026-01-01T00:00:00Z stdout F t\0wo\n"
                                  "2026-01-01T00:00:00Z stderr F three\n";
        static const char own[] = "disk\0full";
        const BundleConfig config = { .run_dir = test_directory(),
                                      .state_dir = test_directory(),
                                      .log_dir = test_directory(),
                                      .cgroup_root = "/" };
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        cleanup_free char *of_log = NULL, *of_file = NULL, *path = NULL;

        REQUIRE(bundle_attempt_paths(&config, &pod, "main", 0, &bundle) >= 0);
        put_file(bundle.log, log, sizeof(log) - 1);
        of_log = bundle_termination_message(&config, &pod, &container, 0, true);
        EXPECT_STREQ(of_log, "one\nt?wo\nthree\n");
        path = termination_log_path(&config, "u1", "main", 0);
        put_file(path, own, sizeof(own) - 1);
        of_file = bundle_termination_message(&config, &pod, &container, 0, true);
        EXPECT_STREQ(of_file, "disk?full");
}
