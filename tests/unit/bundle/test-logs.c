/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/log-paths.h"

#include "agent/bundle/pod-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

static char root[] = "/tmp/mainstay-logs-XXXXXX";
static char namespace[] = "default", name[] = "web-node1", uid[] = "u1";
static const Pod pod = { .metadata = { .namespace = namespace, .name = name, .uid = uid } };
static const BundleConfig config = { .log_dir = root };

static void create_log(const char *file) {
        cleanup_free char *log_dir = pod_log_dir(&config, &pod), *path = NULL;
        cleanup_close int fd = -EBADF;

        REQUIRE(asprintf(&path, "%s/main", log_dir) > 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, path, 0755) >= 0);
        fd = open(path, O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0 && write_file_atomic_at(fd, file, "x", 1, 0600) >= 0);
}

static char *link_of(unsigned attempt) {
        char id[65];

        container_id(uid, "main", attempt, id);
        return container_log_link(&config, &pod, "main", id);
}

static bool is_there(const char *file) {
        cleanup_free char *log_dir = pod_log_dir(&config, &pod), *path = NULL;
        struct stat st;

        REQUIRE(asprintf(&path, "%s/main/%s", log_dir, file) > 0);
        return lstat(path, &st) >= 0;
}

TEST(only_logs_before_an_attempt_are_removed)
{
        static const char *const gone[] = { "0.log", "0.log.20260101-000000.gz", "9.log" };
        static const char *const kept[] = { "10.log", "10.log.20260101-000000", "110.log", "9.txt",
                                            "x.log" };
        cleanup_free char *links = NULL, *old = NULL, *present = NULL;
        struct stat st;

        REQUIRE(mkdtemp(root) && asprintf(&links, "%s/containers", root) > 0);
        REQUIRE(mkdir(links, 0700) >= 0);
        old = link_of(9);
        present = link_of(10);
        REQUIRE(symlink("nowhere", old) >= 0 && symlink("nowhere", present) >= 0);
        for (size_t i = 0; i < N_ELEMENTS(gone); i++)
                create_log(gone[i]);
        for (size_t i = 0; i < N_ELEMENTS(kept); i++)
                create_log(kept[i]);
        EXPECT_EQ(bundle_last_logged_attempt(&config, &pod, "main"), 110);
        bundle_remove_logs_before(&config, &pod, "main", 10);
        for (size_t i = 0; i < N_ELEMENTS(gone); i++)
                EXPECT(!is_there(gone[i]));
        for (size_t i = 0; i < N_ELEMENTS(kept); i++)
                EXPECT(is_there(kept[i]));
        EXPECT(lstat(old, &st) < 0);
        EXPECT(lstat(present, &st) >= 0);
        EXPECT_EQ(bundle_last_logged_attempt(&config, &pod, "other"), -1);
        bundle_remove_logs_before(&config, &pod, "other", 1);
        EXPECT(remove_tree_at(AT_FDCWD, root) >= 0);
}

/* Replaces a directory, like a container into which the log directory is mounted. */
static void replace_by_link(const char *directory, const char *target) {
        REQUIRE(remove_tree_at(AT_FDCWD, directory) >= 0);
        REQUIRE(symlink(target, directory) >= 0);
}

TEST(logs_behind_a_link_are_neither_read_nor_removed)
{
        cleanup_free char *log_dir = NULL, *victim = NULL, *links = NULL, *container = NULL;
        cleanup_free char *link = NULL, *pods = NULL, *found = NULL;
        cleanup_close int fd = -EBADF;

        memcpy(root + strlen(root) - 6, "XXXXXX", 6);
        REQUIRE(mkdtemp(root) && (log_dir = pod_log_dir(&config, &pod)));
        REQUIRE(asprintf(&victim, "%s/victim", root) > 0);
        REQUIRE(asprintf(&container, "%s/main", victim) > 0);
        REQUIRE(asprintf(&links, "%s/containers", root) > 0);
        REQUIRE(asprintf(&pods, "%s/pods", root) > 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, container, 0700) >= 0);
        fd = open(container, O_DIRECTORY | O_CLOEXEC);
        REQUIRE(write_file_atomic_at(fd, "3.log", "x", 1, 0600) >= 0);
        link = link_of(3);
        REQUIRE(symlinkat(log_dir, fd, strrchr(link, '/') + 1) >= 0);
        create_log("0.log");

        replace_by_link(log_dir, victim);
        replace_by_link(links, container);
        EXPECT_EQ(bundle_last_logged_attempt(&config, &pod, "main"), -1);
        bundle_remove_logs_before(&config, &pod, "main", 10);
        bundle_remove_log_links(&config, log_dir);
        EXPECT(faccessat(fd, "3.log", F_OK, 0) >= 0);
        EXPECT(faccessat(fd, strrchr(link, '/') + 1, F_OK, AT_SYMLINK_NOFOLLOW) >= 0);
        replace_by_link(pods, victim);
        REQUIRE(renameat(fd, "3.log", fd, "a_b_u1") >= 0);
        EXPECT(!(found = bundle_find_log_dir(&config, uid)));
        EXPECT(remove_tree_at(AT_FDCWD, root) >= 0);
}
