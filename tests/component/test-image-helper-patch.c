/* SPDX-License-Identifier: Apache-2.0 */

/* The files of a base that a delta opens: the contents of the layers determine which file is
 * opened. */

#include "agent/image-helper/delta/tar-patch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum {
        LAYERS = 3,
        TEXT_MAX = 32
};

/* The layers of a base, topmost first. */
typedef struct Base {
        int fds[LAYERS];
        _Atomic int64_t lookups;
        LayerView view;
} Base;

static void base_init(Base *base) {
        for (size_t i = 0; i < LAYERS; i++) {
                cleanup_free char *path = NULL;

                REQUIRE(asprintf(&path, "%s/layer%zu", test_directory(), i) > 0);
                base->fds[i] = open_directory_at(AT_FDCWD, path, 0700);
                REQUIRE(base->fds[i] >= 0);
        }
        atomic_init(&base->lookups, 1000);
        base->view =
                (LayerView){ .layers = base->fds, .n_layers = LAYERS, .lookups = &base->lookups };
}

static void base_done(Base *base) {
        for (size_t i = 0; i < LAYERS; i++)
                close_fd(base->fds[i]);
}

static void lay_directory(const Base *base, size_t layer, const char *path) {
        REQUIRE(mkdir_parents_at(base->fds[layer], path, 0755) >= 0);
}

static void lay_file(const Base *base, size_t layer, const char *path, const char *text) {
        REQUIRE(write_file_atomic_at(base->fds[layer], path, text, strlen(text), 0644) >= 0);
}

static void lay_link(const Base *base, size_t layer, const char *path, const char *target) {
        REQUIRE(symlinkat(target, base->fds[layer], path) >= 0);
}

static void lay_whiteout(const Base *base, size_t layer, const char *path) {
        REQUIRE(mknodat(base->fds[layer], path, S_IFCHR, 0) >= 0);
}

static void make_opaque(const Base *base, size_t layer, const char *path) {
        cleanup_close int fd = openat(base->fds[layer], path, O_RDONLY | O_CLOEXEC);

        REQUIRE(fd >= 0 && fsetxattr(fd, XATTR_OPAQUE, "y", 1, 0) >= 0);
}

/* Open, and Copy of this number of bytes. */
typedef struct Operations {
        char data[TEXT_MAX + 5];
        size_t length;
} Operations;

static ssize_t give_operations(void *userdata, const void **ret, Error *reterr) {
        Operations *operations = userdata;
        size_t length = operations->length;

        (void) reterr;
        operations->length = 0;
        *ret = operations->data;
        return (ssize_t) length;
}

/* The first four bytes of the file that a delta opens by this path. */
static int read_base_file(const Base *base, const char *path, char ret[static 5]) {
        Operations operations = { .length = strlen(path) + 4 };
        cleanup_with(tar_patch_freep) TarPatch *patch =
                tar_patch_new(&base->view, give_operations, &operations);
        cleanup_error Error error = ERROR_NULL;
        ssize_t n;

        REQUIRE(patch && strlen(path) <= TEXT_MAX);
        (void) snprintf(operations.data, sizeof(operations.data), "%c%c%.*s%c%c", TAR_PATCH_OPEN,
                        (char) strlen(path), TEXT_MAX, path, TAR_PATCH_COPY, 4);
        n = tar_patch_read(patch, ret, 5, &error);
        ret[MAX(n, 0)] = '\0';
        return (int) n;
}

static void expect_base_file(const Base *base, const char *path, const char *text) {
        char got[5];

        EXPECT_EQ(read_base_file(base, path, got), (int) strlen(text));
        EXPECT_STREQ(got, text);
}

TEST(a_source_is_the_visible_file_of_the_topmost_layer)
{
        Base base;

        base_init(&base);
        for (size_t i = 0; i < LAYERS; i++)
                lay_directory(&base, i, "a/b");
        lay_file(&base, 2, "a/b/low", "low2");
        lay_file(&base, 2, "a/b/both", "both");
        lay_file(&base, 1, "a/b/both", "mid1");
        lay_file(&base, 0, "a/top", "top0");
        expect_base_file(&base, "a/b/low", "low2");
        expect_base_file(&base, "a/b/both", "mid1");
        expect_base_file(&base, "a/top", "top0");
        base_done(&base);
}

TEST(a_source_that_a_layer_hides_is_found)
{
        Base base;

        base_init(&base);
        lay_directory(&base, 2, "opaque");
        lay_file(&base, 2, "opaque/file", "low2");
        lay_directory(&base, 1, "opaque");
        make_opaque(&base, 1, "opaque");
        lay_file(&base, 2, "gone", "gone");
        lay_whiteout(&base, 1, "gone");
        lay_directory(&base, 2, "dir");
        lay_file(&base, 2, "dir/file", "inof");
        lay_whiteout(&base, 0, "dir");
        lay_file(&base, 2, "replaced", "repl");
        lay_directory(&base, 1, "replaced");
        expect_base_file(&base, "opaque/file", "low2");
        expect_base_file(&base, "gone", "gone");
        expect_base_file(&base, "dir/file", "inof");
        expect_base_file(&base, "replaced", "repl");
        base_done(&base);
}

TEST(a_source_behind_a_link_comes_before_the_hidden_one_of_the_same_path)
{
        Base base;

        base_init(&base);
        lay_directory(&base, 2, "lib");
        lay_file(&base, 2, "lib/file", "hide");
        lay_directory(&base, 1, "usr");
        lay_link(&base, 1, "lib", "usr");
        lay_file(&base, 1, "usr/file", "show");
        lay_link(&base, 2, "way", "usr");
        lay_directory(&base, 0, "way");
        expect_base_file(&base, "lib/file", "show");
        expect_base_file(&base, "usr/file", "show");
        base_done(&base);
}

TEST(a_source_must_be_a_regular_file)
{
        char got[5];
        Base base;

        base_init(&base);
        lay_directory(&base, 1, "dir");
        lay_link(&base, 1, "link", "dir/file");
        lay_file(&base, 1, "dir/file", "text");
        REQUIRE(mkfifoat(base.fds[0], "fifo", 0600) >= 0);
        EXPECT_EQ(read_base_file(&base, "dir", got), -ENOENT);
        EXPECT_EQ(read_base_file(&base, "link", got), -ENOENT);
        EXPECT_EQ(read_base_file(&base, "fifo", got), -ENOENT);
        EXPECT_EQ(read_base_file(&base, "dir/file/x", got), -ENOENT);
        base_done(&base);
}

TEST(a_source_lookup_is_limited_to_one_per_layer_and_to_the_budget)
{
        char got[5];
        Base base;

        base_init(&base);
        lay_directory(&base, 2, "a/b/c/d/e");
        lay_file(&base, 2, "a/b/c/d/e/file", "text");
        expect_base_file(&base, "a/b/c/d/e/file", "text");
        EXPECT_EQ(atomic_load(&base.lookups), 1000 - LAYERS);
        atomic_store(&base.lookups, LAYERS - 1);
        EXPECT_EQ(read_base_file(&base, "a/b/c/d/e/file", got), -ELOOP);
        base_done(&base);
}
