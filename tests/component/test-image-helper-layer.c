/* SPDX-License-Identifier: Apache-2.0 */

/* Malicious layers, unpacked into a real directory next to a canary. */

#include "agent/image-helper/unpack/layer-unpack.h"
#include "common/file-copy.h"
#include "tests/component/image-world.h"

#include <dirent.h>
#include <locale.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum {
        LAYERS_MAX = 4
};

/* Layers of one image, topmost first; everything else in the test directory is a canary. */
typedef struct Stack {
        int fds[LAYERS_MAX];
        size_t n;
        UnpackBudget *budget; /* shared by all; NULL: each has its own */
} Stack;

static void stack_done(Stack *stack) {
        for (size_t i = 0; i < stack->n; i++)
                close_fd(stack->fds[i]);
        stack->n = 0;
}

/* Unpacks a layer on top of the existing ones. After a failure, the stack does not contain it. */
static int unpack_tar(Stack *stack, const Tar *tar, Error *reterr) {
        LayerView below = { stack->fds, stack->n };
        cleanup_with(unpack_budget_freep) UnpackBudget *own =
                stack->budget ? NULL : unpack_budget_new();
        cleanup_with(byte_stream_freep) ByteStream *packed = NULL;
        cleanup_close int tar_fd = -EBADF, fd = -EBADF;
        cleanup_free char *path = in_test_directory("layer.tar"), *directory = NULL;
        ByteStream *plain;
        int r;

        write_file(path, tar->data, tar->length);
        REQUIRE(asprintf(&directory, "%s/layer%zu", test_directory(), stack->n) > 0);
        REQUIRE(remove_tree_at(AT_FDCWD, directory) >= 0);
        fd = open_directory_at(AT_FDCWD, directory, 0700);
        tar_fd = open(path, O_RDONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && tar_fd >= 0);
        REQUIRE(byte_stream_new_file(tar_fd, 0, &plain) >= 0);
        r = byte_stream_new_unpacked_take(plain, &packed, reterr);
        if (r >= 0)
                r = unpack_layer_tar(packed, fd, &below, own ? own : stack->budget, reterr);
        (void) unlink(path);
        if (r < 0)
                return r;
        memmove(stack->fds + 1, stack->fds, stack->n * sizeof(int));
        stack->fds[0] = TAKE_FD(fd);
        stack->n++;
        return r;
}

static int unpack_test_layer(Stack *stack, const TarEntry *entries, Error *reterr) {
        Tar tar = tar_of(entries);
        int r = unpack_tar(stack, &tar, reterr);

        tar_done(&tar);
        return r;
}

/* The type and contents of a name in the topmost layer: "dir 0755", "file 0644 text", "link
 * target", "whiteout", "opaque 0755", "fifo", "nothing". */
static const char *describe_unpacked_path(const Stack *stack, const char *path) {
        static char text[512];
        struct stat st;
        int fd = stack->fds[0];
        char data[256] = "";

        if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return "nothing";
        if (S_ISLNK(st.st_mode)) {
                ssize_t n = readlinkat(fd, path, data, sizeof(data) - 1);

                (void) snprintf(text, sizeof(text), "link %.*s", (int) MAX(n, 0), data);
        } else if (S_ISDIR(st.st_mode)) {
                cleanup_close int dir = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                (void) snprintf(text, sizeof(text), "%s %04o",
                                directory_is_opaque(dir) ? "opaque" : "dir", st.st_mode & 07777);
        } else if (S_ISREG(st.st_mode)) {
                cleanup_close int file = openat(fd, path, O_RDONLY | O_CLOEXEC);
                ssize_t n = read(file, data, sizeof(data) - 1);

                (void) snprintf(text, sizeof(text), "file %04o %.*s", st.st_mode & 07777,
                                (int) MAX(n, 0), data);
        } else {
                (void) snprintf(text, sizeof(text), "%s",
                                stat_is_whiteout(&st)  ? "whiteout"
                                : S_ISFIFO(st.st_mode) ? "fifo"
                                                       : "device");
        }
        return text;
}

/* A directory outside that must not change. */
static void lay_canary(void) {
        cleanup_free char *directory = in_test_directory("canary"), *file = NULL;
        struct timespec times[2] = { { .tv_sec = 12345 }, { .tv_sec = 12345 } };

        REQUIRE(mkdir(directory, 0711) >= 0);
        file = path_join(directory, "file");
        write_file(file, "untouched", 9);
        REQUIRE(chmod(file, 0640) >= 0);
        REQUIRE(utimensat(AT_FDCWD, file, times, 0) >= 0);
        REQUIRE(utimensat(AT_FDCWD, directory, times, 0) >= 0);
}

static unsigned count_directory_entries(const char *path) {
        cleanup_closedir DIR *dir = opendir(path);
        unsigned n = 0;

        REQUIRE(dir);
        while (readdir(dir))
                n++;
        return n;
}

static void expect_canary(void) {
        cleanup_free char *directory = in_test_directory("canary");
        cleanup_free char *file = path_join(directory, "file"), *text = NULL;
        struct stat st;

        REQUIRE(stat(directory, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0711);
        EXPECT_EQ(st.st_mtim.tv_sec, 12345);
        EXPECT_EQ(st.st_uid, 0);
        EXPECT_EQ(count_directory_entries(directory), 3);
        REQUIRE(stat(file, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0640);
        EXPECT_EQ(st.st_mtim.tv_sec, 12345);
        EXPECT_EQ(st.st_nlink, 1);
        EXPECT_EQ(st.st_uid, 0);
        REQUIRE(read_file_at(AT_FDCWD, file, KIB, &text, NULL) >= 0);
        EXPECT_STREQ(text, "untouched");
        /* ".", "..", the canary, the layers. */
        EXPECT(count_directory_entries(test_directory()) <= 3 + LAYERS_MAX);
}

TEST(a_layer_may_contain_files_with_times_after_2038)
{
        Stack stack = { 0 };
        struct stat st;

        EXPECT_EQ(unpack_test_layer(
                          &stack,
                          (TarEntry[]){ { .name = "a", .data = "a", .mtime = 2524608000 },
                                        { .name = "b", .data = "b", .pax = "mtime=4102444800.25" },
                                        { 0 } },
                          NULL),
                  0);
        REQUIRE(stack.n == 1);
        REQUIRE(fstatat(stack.fds[0], "a", &st, 0) >= 0);
        EXPECT_EQ(st.st_mtim.tv_sec, INT64_C(2524608000)); /* 2050 */
        REQUIRE(fstatat(stack.fds[0], "b", &st, 0) >= 0);
        EXPECT_EQ(st.st_mtim.tv_sec, INT64_C(4102444800)); /* 2100 */
        EXPECT_EQ(st.st_mtim.tv_nsec, 250000000);
        stack_done(&stack);
}

TEST(a_layer_is_unpacked_with_types_modes_owners_and_times)
{
        Stack stack = { 0 };
        struct stat st, other;
        char value[64];
        Tar tar = { 0 };

        EXPECT_EQ(unpack_test_layer(
                          &stack,
                          (TarEntry[]){
                                  { .name = "./", .type = '5', .mode = 0751, .mtime = 77 },
                                  { .name = "bin/", .type = '5', .mode = 0755, .mtime = 1234 },
                                  { .name = "bin/su", .mode = 04755, .data = "su", .mtime = 99 },
                                  { .name = "bin/own", .uid = 1000, .gid = 1001, .data = "" },
                                  { .name = "bin/ln", .type = '1', .link = "bin/su" },
                                  { .name = "bin/sym", .type = '2', .link = "/bin/su", .uid = 5 },
                                  { .name = "tmp", .type = '5', .mode = 01777 },
                                  { .name = "pipe", .type = '6', .mode = 0600 },
                                  { .name = "x", .data = "x", .pax = "SCHILY.xattr.user.a=b" },
                                  { .name = "y",
                                    .data = "y",
                                    .pax = "SCHILY.xattr.trusted.overlay.opaque=y" },
                                  { .name = "z",
                                    .type = '5',
                                    .pax = "SCHILY.xattr.trusted.overlay.opaque=y" },
                                  { 0 } },
                          NULL),
                  0);
        REQUIRE(stack.n == 1);
        EXPECT_STREQ(describe_unpacked_path(&stack, "bin/su"), "file 4755 su");
        EXPECT_STREQ(describe_unpacked_path(&stack, "bin/sym"), "link /bin/su");
        EXPECT_STREQ(describe_unpacked_path(&stack, "tmp"), "dir 1777");
        EXPECT_STREQ(describe_unpacked_path(&stack, "pipe"), "fifo");
        EXPECT_STREQ(describe_unpacked_path(&stack, "."), "dir 0751");
        EXPECT_STREQ(describe_unpacked_path(&stack, "z"), "dir 0755");
        REQUIRE(fstatat(stack.fds[0], "bin/su", &st, 0) >= 0);
        EXPECT_EQ(st.st_mtim.tv_sec, 99);
        REQUIRE(fstatat(stack.fds[0], "bin/ln", &other, 0) >= 0);
        EXPECT_EQ(st.st_ino, other.st_ino);
        /* Entries that are added to a directory later do not change its time. */
        REQUIRE(fstatat(stack.fds[0], "bin", &st, 0) >= 0);
        EXPECT_EQ(st.st_mtim.tv_sec, 1234);
        REQUIRE(fstatat(stack.fds[0], ".", &st, 0) >= 0);
        EXPECT_EQ(st.st_mtim.tv_sec, 77);
        REQUIRE(fstatat(stack.fds[0], "bin/own", &st, 0) >= 0);
        EXPECT_EQ(st.st_uid, 1000);
        EXPECT_EQ(st.st_gid, 1001);
        REQUIRE(fstatat(stack.fds[0], "bin/sym", &st, AT_SYMLINK_NOFOLLOW) >= 0);
        EXPECT_EQ(st.st_uid, 5);
        {
                cleanup_close int x = openat(stack.fds[0], "x", O_RDONLY | O_CLOEXEC);
                cleanup_close int y = openat(stack.fds[0], "y", O_RDONLY | O_CLOEXEC);

                EXPECT_EQ(fgetxattr(x, "user.a", value, sizeof(value)), 1);
                EXPECT(fgetxattr(y, "trusted.overlay.opaque", value, sizeof(value)) < 0);
        }
        tar_done(&tar);
        stack_done(&stack);
}

/* Each of these would write, link or change something outside if it could. */
static const struct {
        const char *what;
        const char *refused; /* part of the message; NULL: the entry stays inside */
        const char *inside;  /* its position in that case */
        TarEntry entries[5];
} hostile[] = {
        { "a name that goes up",
          "leaves the top by '..'",
          NULL,
          { { .name = "../canary/file", .data = "x" } } },
        { "a name that goes up in the middle",
          "leaves the top by '..'",
          NULL,
          { { .name = "a/../../canary/file", .data = "x" } } },
        { "a whiteout that goes up",
          "leaves the top by '..'",
          NULL,
          { { .name = "../canary/.wh.file", .data = "" } } },
        { "a whiteout of the directory above",
          "whiteout without a name",
          NULL,
          { { .name = ".wh..." } } },
        { "a whiteout of the directory itself",
          "whiteout without a name",
          NULL,
          { { .name = ".wh.." } } },
        { "a whiteout of nothing", "whiteout without a name", NULL, { { .name = ".wh." } } },
        { "something below a whiteout", "below a whiteout", NULL, { { .name = ".wh.x/y" } } },
        { "the top as a link or a file, which is skipped",
          NULL,
          "etc/x",
          { { .name = "./", .type = '2', .link = "../canary" },
            { .name = ".", .data = "x" },
            { .name = "etc/x", .data = "x" } } },
        { "a name and a hard link that go up and stay inside",
          NULL,
          "etc/y",
          { { .name = "a/b/../../etc/x", .data = "x" },
            { .name = "etc/y", .type = '1', .link = "a/../etc/x" } } },
        { "an absolute name", NULL, "etc/x", { { .name = "/etc/x", .data = "x" } } },
        { "a link to the root, and through it",
          NULL,
          "etc/x",
          { { .name = "d", .type = '2', .link = "/" }, { .name = "d/etc/x", .data = "x" } } },
        { "a link up, and through it",
          NULL,
          "canary/file",
          { { .name = "d", .type = '2', .link = "../../../.." },
            { .name = "d/canary/file", .data = "x" } } },
        { "a link to a missing file, and through it",
          NULL,
          "not/there/x",
          { { .name = "d", .type = '2', .link = "not/there" }, { .name = "d/x", .data = "x" } } },
        { "a link to itself, and through it",
          "d/x",
          NULL,
          { { .name = "d", .type = '2', .link = "d" }, { .name = "d/x", .data = "x" } } },
        { "two links to each other",
          "a/x",
          NULL,
          { { .name = "a", .type = '2', .link = "b" },
            { .name = "b", .type = '2', .link = "a" },
            { .name = "a/x", .data = "x" } } },
        { "a file below a file",
          "is below 'f', which is not a directory",
          NULL,
          { { .name = "f", .data = "x" }, { .name = "f/x", .data = "x" } } },
        { "a hard link to outside",
          "leaves the top by '..'",
          NULL,
          { { .name = "h", .type = '1', .link = "../canary/file" } } },
        { "a hard link to an absolute name outside",
          "does not exist",
          NULL,
          { { .name = "h", .type = '1', .link = "/etc/passwd" } } },
        { "a hard link through a link to outside",
          "does not exist",
          NULL,
          { { .name = "d", .type = '2', .link = "../canary" },
            { .name = "h", .type = '1', .link = "d/file" } } },
        { "a hard link to itself",
          "hard link to itself",
          NULL,
          { { .name = "h", .type = '1', .link = "h" } } },
        { "a hard link to a directory",
          "which is not a file",
          NULL,
          { { .name = "d", .type = '5' }, { .name = "h", .type = '1', .link = "d" } } },
        { "a hard link to a later entry",
          "does not exist",
          NULL,
          { { .name = "h", .type = '1', .link = "later" }, { .name = "later", .data = "x" } } },
        { "a hard link to a device",
          "does not exist",
          NULL,
          { { .name = "null", .type = '3', .major = 1, .minor = 3 },
            { .name = "h", .type = '1', .link = "null" } } },
        { "a hard link with contents",
          "contents of its own",
          NULL,
          { { .name = "f", .data = "x" },
            { .name = "h", .type = '1', .link = "f", .data = "more", .pax = "comment=x" } } },
        { "a link that becomes a file",
          NULL,
          "l",
          { { .name = "l", .type = '2', .link = "../canary/file" },
            { .name = "l", .data = "x" } } },
        { "a link that becomes a directory",
          NULL,
          "l",
          { { .name = "l", .type = '2', .link = "../canary" },
            { .name = "l", .type = '5', .mode = 0777, .uid = 7 } } },
        { "a file that becomes a link, and then changes its mode",
          NULL,
          "f",
          { { .name = "f", .data = "x" },
            { .name = "f", .type = '2', .link = "../canary/file" },
            { .name = "f", .type = '2', .link = "../canary/file", .mode = 0777, .uid = 7 } } },
        { "a directory that becomes a link, and then is written to",
          NULL,
          "canary/file",
          { { .name = "d", .type = '5' },
            { .name = "d/file", .data = "y" },
            { .name = "d", .type = '2', .link = "/canary" },
            { .name = "d/file", .data = "x" } } },
        { "a whiteout through a link",
          NULL,
          NULL,
          { { .name = "d", .type = '2', .link = "../canary" }, { .name = "d/.wh.file" } } },
        { "an opaque directory through a link",
          NULL,
          NULL,
          { { .name = "d", .type = '2', .link = "../canary" }, { .name = "d/.wh..wh..opq" } } },
        { "an owner that is none",
          "owner is out of range",
          NULL,
          { { .name = "f", .pax = "uid=-1" } } },
        { "an owner that is too large",
          "owner is out of range",
          NULL,
          { { .name = "f", .pax = "uid=4294967295" } } },
        { "a link to nothing", "without a target", NULL, { { .name = "l", .type = '2' } } },
};

TEST(no_name_or_link_changes_anything_outside_of_the_layer)
{
        lay_canary();
        for (size_t i = 0; i < N_ELEMENTS(hostile); i++) {
                cleanup_error Error error = ERROR_NULL;
                Stack stack = { 0 };
                int r = unpack_test_layer(&stack, hostile[i].entries, &error);

                if (hostile[i].refused ? r >= 0 || !strstr(strna(error.message), hostile[i].refused)
                                       : r < 0)
                        test_fail(__FILE__, __LINE__, hostile[i].what, "gives %d: %s", r,
                                  strna(error.message));
                if (hostile[i].inside && r >= 0)
                        EXPECT(!streq(describe_unpacked_path(&stack, hostile[i].inside),
                                      "nothing"));
                stack_done(&stack);
                expect_canary();
        }
}

TEST(wrong_sizes_are_refused)
{
        cleanup_error Error error = ERROR_NULL, huge_error = ERROR_NULL;
        Stack stack = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "f", .data = "short", .lie = 100000 });
        EXPECT(unpack_tar(&stack, &tar, &error) < 0);
        EXPECT(error.message);
        tar_done(&tar);
        /* A sparse file of 1 TiB with one byte in it. */
        EXPECT(unpack_test_layer(
                       &stack,
                       (TarEntry[]){ { .name = "s",
                                       .data = "x",
                                       .pax = "GNU.sparse.size=1099511627776\nGNU.sparse.map=0,1" },
                                     { 0 } },
                       &huge_error) < 0);
        EXPECT(strstr(strna(huge_error.message), "the image has files of more than"));
        stack_done(&stack);
}

TEST(the_size_of_a_layer_is_subtracted_from_the_common_budget)
{
        cleanup_with(unpack_budget_freep) UnpackBudget *budget = unpack_budget_new();
        cleanup_error Error entries_error = ERROR_NULL, bytes_error = ERROR_NULL;
        const TarEntry two[] = { { .name = "a", .data = "123" },
                                 { .name = "b", .data = "45" },
                                 { 0 } };
        Stack stack = { .budget = budget };

        REQUIRE(budget);
        atomic_store(&budget->entries, 3);
        EXPECT(unpack_test_layer(&stack, two, NULL) >= 0);
        EXPECT_EQ(atomic_load(&budget->entries), 1);
        EXPECT_EQ(atomic_load(&budget->bytes), IMAGE_BYTES_MAX - 5);
        EXPECT_EQ(unpack_test_layer(&stack, two, &entries_error), -E2BIG);
        EXPECT_STREQ(entries_error.message, "the image has more than 2000000 entries");
        atomic_store(&budget->entries, 3);
        atomic_store(&budget->bytes, 4);
        EXPECT_EQ(unpack_test_layer(&stack, two, &bytes_error), -EFBIG);
        EXPECT_STREQ(bytes_error.message,
                     "'b': the image has files of more than 137438953472 bytes");
        stack_done(&stack);
}

/* The directory 'a' and the links l00 to l37. Each link leads to the next one through 400 times
 * "a/../", the last link to 'a'. */
static Tar tar_of_detours(void) {
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "a", .type = '5' });
        for (unsigned i = 0; i < 38; i++) {
                char name[8], pax[2048] = "linkpath=";

                (void) snprintf(name, sizeof(name), "l%02u", i);
                for (unsigned n = 0; n < 400; n++)
                        memcpy(pax + strlen("linkpath=") + (size_t) n * 5, "a/../", 5);
                (void) snprintf(pax + strlen(pax), 8, i < 37 ? "l%02u" : "a", i + 1);
                tar_add(&tar, &(TarEntry){ .name = name, .type = '2', .link = "x", .pax = pax });
        }
        return tar;
}

TEST(resolving_the_paths_of_an_image_has_a_budget)
{
        cleanup_with(unpack_budget_freep) UnpackBudget *budget = unpack_budget_new();
        static const TarEntry detour[] = { { .name = "l00/file", .data = "x" },
                                           { .name = "b/c/d/file", .data = "x" },
                                           { .name = "l00/other", .data = "x" },
                                           { 0 } };
        cleanup_error Error error = ERROR_NULL;
        Stack stack = { .budget = budget };
        Tar links = tar_of_detours();

        REQUIRE(budget);
        EXPECT(unpack_tar(&stack, &links, NULL) >= 0);
        tar_done(&links);
        EXPECT(unpack_test_layer(&stack, detour, NULL) >= 0);
        EXPECT_STREQ(describe_unpacked_path(&stack, "a/file"), "file 0644 x");
        EXPECT(atomic_load(&budget->lookups) < IMAGE_LOOKUPS_MAX - 40000);
        atomic_store(&budget->lookups, 40000); /* the first entry uses most of them */
        EXPECT_EQ(unpack_test_layer(&stack, detour, &error), -ELOOP);
        EXPECT_STREQ(error.message,
                     "'l00/other': the paths of the image take too many steps to resolve");
        stack_done(&stack);
}

TEST(layer_without_links_takes_few_lookups)
{
        cleanup_with(unpack_budget_freep) UnpackBudget *budget = unpack_budget_new();
        static const TarEntry plain[] = { { .name = "a/b/c", .data = "x" },
                                          { .name = "a/b/d", .data = "x" },
                                          { .name = "a/b/e/f", .data = "x" },
                                          { 0 } };
        Stack stack = { .budget = budget };

        REQUIRE(budget);
        for (unsigned i = 0; i < LAYERS_MAX; i++)
                EXPECT(unpack_test_layer(&stack, plain, NULL) >= 0);
        EXPECT(atomic_load(&budget->lookups) > IMAGE_LOOKUPS_MAX - 200);
        stack_done(&stack);
}

TEST(a_tar_may_end_without_padding_after_its_last_file)
{
        cleanup_error Error error = ERROR_NULL;
        Stack stack = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "a", .data = "12345" });
        tar_add(&tar, &(TarEntry){ .name = "b", .data = "12345" });
        tar.length -= 512 - 5;
        EXPECT(unpack_tar(&stack, &tar, &error) >= 0);
        EXPECT_STREQ(strna(error.message), "");
        EXPECT(!streq(describe_unpacked_path(&stack, "b"), "nothing"));
        tar.length--;
        EXPECT(unpack_tar(&stack, &tar, &error) < 0);
        tar_done(&tar);
        stack_done(&stack);
}

TEST(names_that_are_too_deep_are_refused)
{
        cleanup_error Error error = ERROR_NULL;
        Stack stack = { 0 };
        char pax[5200] = "path=";

        memset(pax + 5, 'a', sizeof(pax) - 6);
        for (size_t i = 105; i < sizeof(pax) - 1; i += 100)
                pax[i] = '/';
        EXPECT(unpack_test_layer(&stack, (TarEntry[]){ { .name = "f", .pax = pax }, { 0 } },
                                 &error) < 0);
        EXPECT(strstr(strna(error.message), "more than"));
        stack_done(&stack);
}

TEST(links_cannot_create_deeper_paths_than_names)
{
        cleanup_with(stack_done) Stack stack = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char path[600] = "", pax[3][700];
        TarEntry entries[4] = { 0 };

        for (size_t i = 0; i < 200; i++)
                memcpy(path + strlen(path), i > 0 ? "/a" : "a", i > 0 ? 3 : 2);
        (void) snprintf(pax[0], sizeof(pax[0]), "path=%s", path);
        (void) snprintf(pax[1], sizeof(pax[1]), "linkpath=%s", path);
        (void) snprintf(pax[2], sizeof(pax[2]), "path=link/%s", path);
        entries[0] = (TarEntry){ .name = "a", .type = '5', .pax = pax[0] };
        entries[1] = (TarEntry){ .name = "link", .type = '2', .link = "a", .pax = pax[1] };
        entries[2] = (TarEntry){ .name = "link", .type = '5', .pax = pax[2] };
        EXPECT_EQ(unpack_test_layer(&stack, entries, &error), -ENAMETOOLONG);
        EXPECT(error.message && strstr(error.message, "is below more than 256 directories"));
}

TEST(bytes_of_names_are_kept_unchanged)
{
        Stack stack = { 0 };

        /* Sets the locale like the program does when it starts. */
        REQUIRE(setlocale(LC_CTYPE, "C.UTF-8"));
        EXPECT_EQ(unpack_test_layer(
                          &stack,
                          (TarEntry[]){ { .name = "\xff\xfe", .data = "1" },
                                        { .name = "\xc3\xa9", .data = "2" },
                                        { .name = "x", .data = "3", .pax = "path=\xc3\xbc" },
                                        { .name = "new\nline", .data = "4" },
                                        { 0 } },
                          NULL),
                  0);
        REQUIRE(stack.n == 1);
        EXPECT_STREQ(describe_unpacked_path(&stack, "\xff\xfe"), "file 0644 1");
        EXPECT_STREQ(describe_unpacked_path(&stack, "\xc3\xa9"), "file 0644 2");
        EXPECT_STREQ(describe_unpacked_path(&stack, "\xc3\xbc"), "file 0644 3");
        EXPECT_STREQ(describe_unpacked_path(&stack, "new\nline"), "file 0644 4");
        stack_done(&stack);
}

TEST(devices_are_left_out_and_cannot_imitate_whiteouts)
{
        Stack stack = { 0 };

        EXPECT_EQ(unpack_test_layer(&stack, (TarEntry[]){ { .name = "f", .data = "x" }, { 0 } },
                                    NULL),
                  0);
        EXPECT_EQ(unpack_test_layer(
                          &stack,
                          (TarEntry[]){ { .name = "f", .type = '3', .major = 0, .minor = 0 },
                                        { .name = "null", .type = '3', .major = 1, .minor = 3 },
                                        { .name = "sda", .type = '4', .major = 8, .minor = 0 },
                                        { 0 } },
                          NULL),
                  0);
        REQUIRE(stack.n == 2);
        EXPECT_STREQ(describe_unpacked_path(&stack, "f"), "nothing");
        EXPECT_STREQ(describe_unpacked_path(&stack, "null"), "nothing");
        EXPECT_STREQ(describe_unpacked_path(&stack, "sda"), "nothing");
        stack_done(&stack);
}

static const TarEntry base_layer[] = {
        { .name = "a", .type = '5', .mode = 0750, .uid = 10, .gid = 20, .mtime = 500 },
        { .name = "a/b", .type = '5', .mode = 0700, .uid = 11, .gid = 21, .mtime = 501 },
        { .name = "a/b/x", .data = "x", .mode = 0640, .uid = 12, .mtime = 502 },
        { .name = "a/b/y", .data = "y" },
        { .name = "f", .data = "f", .pax = "SCHILY.xattr.user.k=v" },
        { .name = "l", .type = '2', .link = "a/b" },
        { .name = "s", .type = '2', .link = "f" },
        { 0 },
};

TEST(whiteouts_have_the_same_effect_in_any_order)
{
        static const struct {
                TarEntry entries[4];
                const char *path, *seen;
        } cases[] = {
                { { { .name = ".wh.f" } }, "f", "whiteout" },
                { { { .name = ".wh.none" } }, "none", "nothing" },
                { { { .name = "a/b/.wh.x" } }, "a/b/x", "whiteout" },
                { { { .name = "l/.wh.x" } }, "a/b/x", "whiteout" },
                { { { .name = ".wh.f" }, { .name = "f", .data = "new" } }, "f", "file 0644 new" },
                { { { .name = "f", .data = "new" }, { .name = ".wh.f" } }, "f", "file 0644 new" },
                { { { .name = ".wh.a" }, { .name = "a", .type = '5' } }, "a", "opaque 0755" },
                { { { .name = "a", .type = '5' }, { .name = ".wh.a" } }, "a", "opaque 0755" },
                { { { .name = ".wh.a" }, { .name = "a/new", .data = "n" } }, "a", "opaque 0755" },
                { { { .name = "a/new", .data = "n" }, { .name = ".wh.a" } },
                  "a/new",
                  "file 0644 n" },
                { { { .name = "a/.wh..wh..opq" } }, "a", "opaque 0750" },
                { { { .name = "a/.wh..wh..opq" }, { .name = "a/n", .data = "n" } },
                  "a/n",
                  "file 0644 n" },
                { { { .name = "a/n", .data = "n" }, { .name = "a/.wh..wh..opq" } },
                  "a/n",
                  "file 0644 n" },
                /* An opaque directory already hides everything below it. */
                { { { .name = "a/b/.wh.x" }, { .name = "a/.wh..wh..opq" } }, "a/b/x", "nothing" },
                { { { .name = "a/.wh..wh..opq" }, { .name = "a/b/.wh.x" } }, "a/b/x", "nothing" },
                /* The file that is replaced by a directory had hidden the directory in the layer
                 * below. */
                { { { .name = "a", .data = "x" }, { .name = "a", .type = '5' } },
                  "a",
                  "opaque 0755" },
                { { { .name = "f", .type = '5' } }, "f", "dir 0755" },
                { { { .name = ".wh..wh.plnk", .data = "x" } }, ".wh..wh.plnk", "nothing" },
                { { { .name = ".wh..wh..opq" } }, "a", "whiteout" },
                { { { .name = ".wh..wh..opq" }, { .name = "a/n", .data = "n" } },
                  "a",
                  "opaque 0755" },
                { { { .name = "a/n", .data = "n" }, { .name = ".wh..wh..opq" } },
                  "a",
                  "opaque 0750" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                Stack stack = { 0 };

                REQUIRE(unpack_test_layer(&stack, base_layer, NULL) >= 0);
                EXPECT_EQ(unpack_test_layer(&stack, cases[i].entries, &error), 0);
                EXPECT_STREQ(error.message, NULL);
                if (stack.n == 2 &&
                    !streq(describe_unpacked_path(&stack, cases[i].path), cases[i].seen))
                        test_fail(__FILE__, __LINE__, cases[i].path,
                                  "of case %zu is '%s', not '%s'", i,
                                  describe_unpacked_path(&stack, cases[i].path), cases[i].seen);
                stack_done(&stack);
        }
}

TEST(missing_parents_inherit_their_attributes_from_lower_layers)
{
        Stack stack = { 0 };
        struct stat st;

        REQUIRE(unpack_test_layer(&stack, base_layer, NULL) >= 0);
        REQUIRE(unpack_test_layer(&stack,
                                  (TarEntry[]){ { .name = "a/b/new", .data = "n" },
                                                { .name = "not/there", .data = "n" },
                                                { 0 } },
                                  NULL) >= 0);
        REQUIRE(fstatat(stack.fds[0], "a", &st, 0) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0750);
        EXPECT_EQ(st.st_uid, 10);
        EXPECT_EQ(st.st_gid, 20);
        EXPECT_EQ(st.st_mtim.tv_sec, 500);
        REQUIRE(fstatat(stack.fds[0], "a/b", &st, 0) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0700);
        EXPECT_EQ(st.st_uid, 11);
        EXPECT_EQ(st.st_mtim.tv_sec, 501);
        EXPECT_STREQ(describe_unpacked_path(&stack, "not"), "dir 0755");
        EXPECT_STREQ(describe_unpacked_path(&stack, "a/b/x"), "nothing");
        stack_done(&stack);
}

TEST(parents_that_are_links_in_lower_layers_are_followed_as_in_the_container)
{
        Stack stack = { 0 };

        REQUIRE(unpack_test_layer(&stack, base_layer, NULL) >= 0);
        REQUIRE(unpack_test_layer(&stack, (TarEntry[]){ { .name = "l/new", .data = "n" }, { 0 } },
                                  NULL) >= 0);
        EXPECT_STREQ(describe_unpacked_path(&stack, "l"), "nothing");
        EXPECT_STREQ(describe_unpacked_path(&stack, "a/b/new"), "file 0644 n");
        stack_done(&stack);
}

TEST(a_hard_link_to_a_file_of_a_lower_layer_copies_it)
{
        Stack stack = { 0 };
        struct stat st;
        char value[8];

        REQUIRE(unpack_test_layer(&stack, base_layer, NULL) >= 0);
        REQUIRE(unpack_test_layer(&stack,
                                  (TarEntry[]){ { .name = "h", .type = '1', .link = "a/b/x" },
                                                { .name = "h2", .type = '1', .link = "l/x" },
                                                { .name = "h3", .type = '1', .link = "f" },
                                                { .name = "h4", .type = '1', .link = "s" },
                                                { 0 } },
                                  NULL) >= 0);
        EXPECT_STREQ(describe_unpacked_path(&stack, "h"), "file 0640 x");
        EXPECT_STREQ(describe_unpacked_path(&stack, "h4"), "link f");
        EXPECT_STREQ(describe_unpacked_path(&stack, "h2"), "file 0640 x");
        /* The layer has the new names only. */
        EXPECT_STREQ(describe_unpacked_path(&stack, "a"), "nothing");
        REQUIRE(fstatat(stack.fds[0], "h", &st, 0) >= 0);
        EXPECT_EQ(st.st_uid, 12);
        EXPECT_EQ(st.st_mtim.tv_sec, 502);
        {
                cleanup_close int fd = openat(stack.fds[0], "h3", O_RDONLY | O_CLOEXEC);

                EXPECT_EQ(fgetxattr(fd, "user.k", value, sizeof(value)), 1);
        }
        stack_done(&stack);
}

TEST(a_copied_file_keeps_its_holes)
{
        static const char *const places[] = { "here", "there" };
        cleanup_with(stack_done) Stack stack = { 0 };
        const off_t size = (off_t) 64 << 30;
        cleanup_close int fd = -EBADF;

        EXPECT_EQ(unpack_test_layer(
                          &stack, (TarEntry[]){ { .name = "here", .data = "start" }, { 0 } }, NULL),
                  0);
        fd = openat(stack.fds[0], "here", O_RDWR | O_CLOEXEC);
        REQUIRE(fd >= 0);
        REQUIRE(ftruncate(fd, size) >= 0);
        REQUIRE(pwrite(fd, "end", 3, size - 3) == 3);
        EXPECT_EQ(unpack_test_layer(
                          &stack,
                          (TarEntry[]){ { .name = "there", .type = '1', .link = "here" }, { 0 } },
                          NULL),
                  0);
        for (size_t i = 0; i < N_ELEMENTS(places); i++) {
                struct stat st;
                char text[6] = "";
                int file = openat(stack.fds[1 - i], places[i], O_RDONLY | O_CLOEXEC);

                REQUIRE(file >= 0);
                REQUIRE(fstat(file, &st) >= 0);
                EXPECT_EQ(st.st_size, size);
                EXPECT(st.st_blocks <= 256);
                EXPECT_EQ(pread(file, text, 5, 0), 5);
                EXPECT_STREQ(text, "start");
                EXPECT_EQ(pread(file, text, 5, size - 5), 5);
                EXPECT(memcmp(text, "\0\0end", 5) == 0);
                close_fd(file);
        }
}

TEST(a_hard_link_to_a_hidden_file_is_refused)
{
        cleanup_error Error error = ERROR_NULL;
        Stack stack = { 0 };

        REQUIRE(unpack_test_layer(&stack, base_layer, NULL) >= 0);
        EXPECT(unpack_test_layer(&stack,
                                 (TarEntry[]){ { .name = ".wh.f" },
                                               { .name = "h", .type = '1', .link = "f" },
                                               { 0 } },
                                 &error) < 0);
        EXPECT_STREQ(error.message, "'h': is a hard link to 'f', which does not exist");
        stack_done(&stack);
}

TEST(the_top_directory_inherits_its_attributes_from_the_lower_layer)
{
        Stack stack = { 0 };
        struct stat st;

        REQUIRE(unpack_test_layer(
                        &stack,
                        (TarEntry[]){ { .name = "./", .type = '5', .mode = 0711, .uid = 3 },
                                      { 0 } },
                        NULL) >= 0);
        REQUIRE(unpack_test_layer(&stack, (TarEntry[]){ { .name = "f", .data = "f" }, { 0 } },
                                  NULL) >= 0);
        REQUIRE(fstat(stack.fds[0], &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0711);
        EXPECT_EQ(st.st_uid, 3);
        stack_done(&stack);
}
