/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int test_directory_fd(void) {
        int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0);
        return fd;
}

static void put_test_file(int dir_fd, const char *name, const char *text) {
        cleanup_close int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, text, strlen(text)) == 0);
}

static mode_t mode_of_test_file(int dir_fd, const char *name) {
        struct stat st;

        REQUIRE(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0);
        return st.st_mode & 07777;
}

static bool test_file_exists(int dir_fd, const char *name) {
        return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

static void expect_test_file_content(int dir_fd, const char *name, const char *expected) {
        cleanup_free char *data = NULL;

        EXPECT_EQ(read_file_at(dir_fd, name, 4096, &data, NULL), 0);
        EXPECT_STREQ(data, expected);
}

TEST(a_file_is_read_completely_with_an_additional_nul)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_free char *data = NULL;
        size_t length = 0;

        put_test_file(dir, "f", "hello");
        EXPECT_EQ(read_file_at(dir, "f", 5, &data, &length), 0);
        EXPECT_EQ(length, 5);
        EXPECT_STREQ(data, "hello");
}

TEST(an_empty_file_is_an_empty_string)
{
        cleanup_close int dir = test_directory_fd();

        put_test_file(dir, "f", "");
        expect_test_file_content(dir, "f", "");
}

TEST(a_file_longer_than_the_limit_is_refused_and_nothing_is_returned)
{
        cleanup_close int dir = test_directory_fd();
        char *data = NULL;

        put_test_file(dir, "f", "hello");
        EXPECT_EQ(read_file_at(dir, "f", 4, &data, NULL), -EFBIG);
        EXPECT(!data);
}

TEST(a_file_that_is_not_regular_is_refused_without_waiting)
{
        cleanup_close int dir = test_directory_fd();
        char *data = NULL;

        REQUIRE(mkfifoat(dir, "fifo", 0600) >= 0);
        REQUIRE(mkdirat(dir, "directory", 0700) >= 0);
        REQUIRE(symlinkat("nowhere", dir, "dangling") >= 0);
        EXPECT_EQ(read_file_at(dir, "fifo", 4096, &data, NULL), -EINVAL);
        EXPECT_EQ(read_file_at(dir, "directory", 4096, &data, NULL), -EISDIR);
        EXPECT_EQ(read_file_at(dir, "dangling", 4096, &data, NULL), -ENOENT);
        EXPECT_EQ(read_file_at(AT_FDCWD, "/dev/zero", 4096, &data, NULL), -EINVAL);
        EXPECT(!data);
}

TEST(an_endless_stream_is_truncated_at_the_limit)
{
        cleanup_close int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        char *data = NULL;

        REQUIRE(fd >= 0);
        EXPECT_EQ(read_stream(fd, MIB, &data, NULL), -EFBIG);
        EXPECT(!data);
}

TEST(a_stream_of_the_kernel_is_read_to_its_end)
{
        cleanup_close int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        cleanup_free char *data = NULL;
        size_t length = 0;

        REQUIRE(fd >= 0);
        EXPECT_EQ(read_stream(fd, MIB, &data, &length), 0);
        EXPECT(length > 0 && strlen(data) == length);
        EXPECT(strstr(data, "nonvoluntary_ctxt_switches"));
}

TEST(writing_atomically_replaces_the_file_and_leaves_no_other_file)
{
        cleanup_close int dir = test_directory_fd();

        put_test_file(dir, "f", "old and longer");
        EXPECT_EQ(write_file_atomic_at(dir, "f", "new", 3, 0640), 0);
        expect_test_file_content(dir, "f", "new");
        EXPECT_EQ(mode_of_test_file(dir, "f"), 0640);
        EXPECT(!test_file_exists(dir, "f.tmp"));
}

TEST(the_mode_of_a_written_file_does_not_depend_on_the_umask)
{
        cleanup_close int dir = test_directory_fd();
        mode_t saved = umask(0077);

        EXPECT_EQ(write_file_atomic_at(dir, "f", "x", 1, 0644), 0);
        umask(saved);
        EXPECT_EQ(mode_of_test_file(dir, "f"), 0644);
}

TEST(writing_over_a_file_of_a_dead_writer_does_not_follow_a_link)
{
        cleanup_close int dir = test_directory_fd();

        put_test_file(dir, "victim", "untouched");
        REQUIRE(symlinkat("victim", dir, "f.tmp") >= 0);
        EXPECT_EQ(write_file_atomic_at(dir, "f", "new", 3, 0600), -ELOOP);
        expect_test_file_content(dir, "victim", "untouched");
}

TEST(a_failed_rename_leaves_no_file)
{
        cleanup_close int dir = test_directory_fd();

        REQUIRE(mkdirat(dir, "f", 0700) >= 0);
        EXPECT_EQ(write_file_atomic_at(dir, "f", "new", 3, 0600), -EISDIR);
        EXPECT(!test_file_exists(dir, "f.tmp"));
}

TEST(a_value_is_written_into_an_existing_file_and_creates_none)
{
        cleanup_close int dir = test_directory_fd();

        put_test_file(dir, "value", "");
        EXPECT_EQ(write_value_at(dir, "value", "42"), 0);
        expect_test_file_content(dir, "value", "42");
        EXPECT_EQ(write_value_at(dir, "missing", "42"), -ENOENT);
        EXPECT(!test_file_exists(dir, "missing"));
}

TEST(parents_are_created_with_exactly_the_mode)
{
        cleanup_close int dir = test_directory_fd();
        mode_t saved = umask(0077);

        EXPECT_EQ(mkdir_parents_at(dir, "a/b/c", 0755), 0);
        umask(saved);
        EXPECT_EQ(mode_of_test_file(dir, "a"), 0755);
        EXPECT_EQ(mode_of_test_file(dir, "a/b/c"), 0755);
}

/* A container can replace a new directory of a volume with a link, so the directory must be created
 * with the right mode. */
TEST(the_mode_of_a_new_directory_does_not_depend_on_its_parents)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        char events[4096];
        mode_t saved;

        REQUIRE(watch >= 0 && inotify_add_watch(watch, test_directory(), IN_ATTRIB) >= 0);
        saved = umask(0077);
        EXPECT_EQ(mkdir_parents_at(dir, "a", 0755), 0);
        umask(saved);
        EXPECT_EQ(mode_of_test_file(dir, "a"), 0755);
        EXPECT(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN);
}

TEST(existing_directories_are_unchanged)
{
        cleanup_close int dir = test_directory_fd();

        REQUIRE(mkdirat(dir, "a", 0700) >= 0);
        EXPECT_EQ(mkdir_parents_at(dir, "a/b", 0755), 0);
        EXPECT_EQ(mkdir_parents_at(dir, "a/b", 0711), 0);
        EXPECT_EQ(mode_of_test_file(dir, "a"), 0700);
        EXPECT_EQ(mode_of_test_file(dir, "a/b"), 0755);
}

TEST(a_file_in_the_path_of_a_directory_is_an_error)
{
        cleanup_close int dir = test_directory_fd();

        put_test_file(dir, "a", "");
        EXPECT_EQ(mkdir_parents_at(dir, "a/b", 0755), -ENOTDIR);
        EXPECT_EQ(open_directory_at(dir, "a", 0755), -ENOTDIR);
}

TEST(a_created_directory_is_opened_for_reading)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int fd = open_directory_at(dir, "a/b", 0755);

        EXPECT(fd >= 0);
        put_test_file(fd, "f", "x");
        expect_test_file_content(dir, "a/b/f", "x");
        EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(no_path_leads_out_of_a_confined_open)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int root = open_directory_at(dir, "root", 0755);
        static const struct {
                const char *path;
                int error;
        } cases[] = {
                { "../secret", -EXDEV }, { "/etc/passwd", -EXDEV },      { "absolute", -EXDEV },
                { "up", -EXDEV },        { "sub/../../secret", -EXDEV }, { "loop", -ELOOP },
                { "missing", -ENOENT },
        };

        REQUIRE(root >= 0);
        put_test_file(dir, "secret", "secret");
        REQUIRE(mkdirat(root, "sub", 0755) >= 0);
        REQUIRE(symlinkat("/etc/passwd", root, "absolute") >= 0);
        REQUIRE(symlinkat("../secret", root, "up") >= 0);
        REQUIRE(symlinkat("loop", root, "loop") >= 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                int fd = open_beneath(root, cases[i].path, O_RDONLY, 0);

                EXPECT_EQ(fd, cases[i].error);
                close_fd(fd);
        }
}

TEST(magic_links_are_not_followed)
{
        cleanup_close int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(proc >= 0);
        EXPECT_EQ(open_beneath(proc, "root/etc/passwd", O_RDONLY, 0), -ELOOP);
        EXPECT_EQ(open_beneath(proc, "exe", O_RDONLY, 0), -ELOOP);
}

TEST(a_confined_open_follows_links_that_stay_inside)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int fd = -EBADF;

        REQUIRE(mkdir_parents_at(dir, "a/b", 0755) == 0);
        put_test_file(dir, "a/f", "inside");
        REQUIRE(symlinkat("../f", dir, "a/b/link") >= 0);
        fd = open_beneath(dir, "a/b/link", O_RDONLY, 0);
        EXPECT(fd >= 0);
        EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST(a_confined_open_creates_with_the_mode)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int fd = open_beneath(dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0600);

        EXPECT(fd >= 0);
        EXPECT_EQ(mode_of_test_file(dir, "new"), 0600);
}

TEST(a_tree_is_removed_with_all_kinds_of_entries)
{
        cleanup_close int dir = test_directory_fd();

        REQUIRE(mkdir_parents_at(dir, "tree/a/b/c", 0755) == 0);
        put_test_file(dir, "tree/a/file", "x");
        REQUIRE(mkfifoat(dir, "tree/a/b/fifo", 0600) >= 0);
        REQUIRE(fchmodat(dir, "tree/a/b", 0000, 0) >= 0);
        EXPECT_EQ(remove_tree_at(dir, "tree"), 0);
        EXPECT(!test_file_exists(dir, "tree"));
}

TEST(targets_of_links_are_not_removed)
{
        cleanup_close int dir = test_directory_fd();

        REQUIRE(mkdir_parents_at(dir, "tree", 0755) == 0);
        REQUIRE(mkdir_parents_at(dir, "other", 0755) == 0);
        put_test_file(dir, "other/file", "kept");
        REQUIRE(symlinkat("../other", dir, "tree/link") >= 0);
        REQUIRE(symlinkat("other", dir, "top") >= 0);
        EXPECT_EQ(remove_tree_at(dir, "tree"), 0);
        EXPECT_EQ(remove_tree_at(dir, "top"), 0);
        EXPECT(!test_file_exists(dir, "top"));
        expect_test_file_content(dir, "other/file", "kept");
}

TEST(a_missing_path_counts_as_removed)
{
        cleanup_close int dir = test_directory_fd();

        EXPECT_EQ(remove_tree_at(dir, "missing"), 0);
        put_test_file(dir, "file", "");
        EXPECT_EQ(remove_tree_at(dir, "file"), 0);
        EXPECT(!test_file_exists(dir, "file"));
}

TEST(a_tree_may_be_given_by_its_absolute_path)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_free char *path = path_join(test_directory(), "a/tree");
        cleanup_free char *link = path_join(test_directory(), "a/link");

        REQUIRE(mkdir_parents_at(dir, "a/tree/b", 0755) == 0);
        REQUIRE(symlinkat("tree", dir, "a/link") >= 0);
        put_test_file(dir, "a/tree/b/file", "x");
        EXPECT_EQ(remove_tree_at(AT_FDCWD, link), 0);
        EXPECT(test_file_exists(dir, "a/tree/b/file"));
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
        EXPECT(!test_file_exists(dir, "a/tree"));
        EXPECT(test_file_exists(dir, "a"));
        EXPECT_EQ(remove_tree_at(AT_FDCWD, "/no/such/tree"), 0);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, "/"), -EINVAL);
}

TEST(a_tree_behind_a_link_is_not_removed)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_free char *path = path_join(test_directory(), "link/tree");

        REQUIRE(mkdir_parents_at(dir, "victim/tree", 0755) == 0);
        REQUIRE(symlinkat("victim", dir, "link") >= 0);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), -ELOOP);
        EXPECT_EQ(remove_tree_at(dir, "link/tree"), -ELOOP);
        EXPECT(test_file_exists(dir, "victim/tree"));
}

TEST(no_link_in_the_path_of_a_file_is_followed)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_free char *direct = path_join(test_directory(), "a/b/file");
        cleanup_free char *linked = path_join(test_directory(), "link/b/file");
        cleanup_free char *last = path_join(test_directory(), "a/b/last");
        cleanup_close int fd = -EBADF;
        const char *name = NULL;

        REQUIRE(mkdir_parents_at(dir, "a/b", 0755) == 0);
        put_test_file(dir, "a/b/file", "x");
        REQUIRE(symlinkat("a", dir, "link") >= 0 && symlinkat("file", dir, "a/b/last") >= 0);
        fd = open_no_symlinks(AT_FDCWD, direct, O_RDONLY, 0);
        EXPECT(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
        EXPECT_EQ(open_no_symlinks(AT_FDCWD, linked, O_RDONLY, 0), -ELOOP);
        EXPECT_EQ(open_no_symlinks(AT_FDCWD, last, O_RDONLY, 0), -ELOOP);
        EXPECT_EQ(open_no_symlinks(dir, "link/b/file", O_RDONLY, 0), -ELOOP);
        EXPECT_EQ(open_no_symlinks(dir, "../x", O_RDONLY, 0), -EXDEV);
        EXPECT_EQ(open_no_symlinks(dir, direct, O_RDONLY, 0), -EXDEV);
        EXPECT_EQ(open_parent_no_symlinks(linked, &name), -ELOOP);
        close_fd(fd);
        fd = open_parent_no_symlinks(direct, &name);
        EXPECT(fd >= 0 && test_file_exists(fd, "file"));
        EXPECT_STREQ(name, "file");
        EXPECT(!opendir_no_symlinks(linked) && errno == ELOOP);
}

TEST(no_directory_is_created_behind_a_link)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_free char *direct = path_join(test_directory(), "a/b/c");
        cleanup_free char *linked = path_join(test_directory(), "link/b");
        mode_t saved = umask(0077);

        EXPECT_EQ(make_directory_no_symlinks(direct, 0755), 0);
        EXPECT_EQ(make_directory_no_symlinks(direct, 0700), 0);
        umask(saved);
        EXPECT_EQ(mode_of_test_file(dir, "a/b/c"), 0755);
        REQUIRE(mkdirat(dir, "victim", 0700) >= 0 && symlinkat("victim", dir, "link") >= 0);
        EXPECT_EQ(make_directory_no_symlinks(linked, 0755), -ELOOP);
        EXPECT(!test_file_exists(dir, "victim/b"));
        REQUIRE(symlinkat("victim", dir, "a/link") >= 0);
        free(linked);
        linked = path_join(test_directory(), "a/link");
        EXPECT_EQ(make_directory_no_symlinks(linked, 0755), -ELOOP);
}

/* Any container can create such a tree in its emptyDir, and the pod must still be removable. */
TEST(a_tree_deeper_than_the_limit_of_descriptors_is_removed)
{
        cleanup_close int dir = test_directory_fd();
        cleanup_close int fd = open_directory_at(dir, "deep", 0755);
        cleanup_close int taken = open_directory_at(fd, "..0", 0755);
        struct rlimit limit, few;

        REQUIRE(taken >= 0);
        for (unsigned i = 0; i < 3000; i++) {
                int next;

                REQUIRE(mkdirat(fd, "d", 0755) == 0 && mkdirat(fd, "beside", 0755) == 0);
                next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                REQUIRE(next >= 0);
                close_fd(fd);
                fd = next;
        }
        REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        few = (struct rlimit){ .rlim_cur = MIN(limit.rlim_cur, 512), .rlim_max = limit.rlim_max };
        REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
        EXPECT_EQ(remove_tree_at(dir, "deep"), 0);
        EXPECT(!test_file_exists(dir, "deep"));
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

TEST(directory_entries_do_not_include_dot_and_dot_dot)
{
        cleanup_close int fd = test_directory_fd();
        cleanup_closedir DIR *dir = opendir(test_directory());
        const struct dirent *entry = NULL;

        put_test_file(fd, ".f", "");
        REQUIRE(dir);
        EXPECT_EQ(read_directory_entry(dir, &entry), 1);
        EXPECT_STREQ(entry->d_name, ".f");
        errno = EIO; /* the previous mode */
        EXPECT_EQ(read_directory_entry(dir, &entry), 0);
}

TEST(a_failed_listing_is_an_error_and_not_the_end_of_the_directory)
{
        cleanup_close int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        cleanup_closedir DIR *dir = opendir(test_directory());
        const struct dirent *entry = NULL;

        REQUIRE(dir && file >= 0 && dup2(file, dirfd(dir)) >= 0);
        EXPECT_EQ(read_directory_entry(dir, &entry), -ENOTDIR);
}

TEST(a_temporary_error_is_not_treated_as_damage)
{
        static const int damage[] = { EBADMSG, EFBIG, EINVAL, EISDIR, ELOOP, ENXIO };
        static const int passing[] = {
                ENOMEM, EMFILE, ENFILE, EIO, EACCES, EPERM, ENOENT, ENOTDIR
        };

        for (size_t i = 0; i < N_ELEMENTS(damage); i++)
                EXPECT(is_file_damage(-damage[i]));
        for (size_t i = 0; i < N_ELEMENTS(passing); i++)
                EXPECT(!is_file_damage(-passing[i]));
        EXPECT(!is_file_damage(0) && !is_file_damage(1));
}

TEST(paths_are_joined_with_one_slash)
{
        cleanup_free char *path = path_join("/a", "b");

        EXPECT_STREQ(path, "/a/b");
}

TEST(cleaned_paths_are_absolute_and_normalized)
{
        static const struct {
                const char *path, *clean;
        } cases[] = {
                { "", "/" },
                { "/", "/" },
                { "a", "/a" },
                { "//a//b/", "/a/b" },
                { "/a/./b/.", "/a/b" },
                { "/a/b/../c", "/a/c" },
                { "../../x", "/x" },
                { "/a/..", "/" },
                { "/a/...", "/a/..." },
                { "/..a/.b", "/..a/.b" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *clean = path_clean(cases[i].path);

                EXPECT_STREQ(clean, cases[i].clean);
        }
}

TEST(opening_in_a_root_never_leaves_that_root)
{
        cleanup_close int root = open(test_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int by_link = -EBADF, above = -EBADF;
        struct stat expected, seen;

        REQUIRE(mkdirat(root, "etc", 0755) >= 0 && symlinkat("/etc", root, "absolute") >= 0);
        REQUIRE(fstatat(root, "etc", &expected, 0) >= 0);
        by_link = open_in_root(root, "/absolute", O_RDONLY | O_DIRECTORY);
        EXPECT(by_link >= 0 && fstat(by_link, &seen) >= 0 && seen.st_ino == expected.st_ino);
        above = open_in_root(root, "../../../etc", O_RDONLY | O_DIRECTORY);
        EXPECT(above >= 0 && fstat(above, &seen) >= 0 && seen.st_ino == expected.st_ino);
        EXPECT_EQ(open_in_root(root, "/proc", O_PATH), -ENOENT);
}
