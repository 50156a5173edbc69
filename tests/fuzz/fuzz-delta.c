/* SPDX-License-Identifier: Apache-2.0 */
/* A delta of a layer, compressed or not, is applied to a base of two layers. Regardless of its
 * contents, only files of the base are read, nothing is written, and the output stays within its
 * limits. */

#include "tests/fuzz/canary.h"

#include "agent/image-helper/archive/byte-stream.h"
#include "agent/image-helper/delta/tar-patch.h"

enum {
        LAYERS = 2,
        OUTPUT_MAX = 1 << 20,
        FUZZ_LOOKUPS_MAX = 100000
};

typedef struct FuzzedOperations {
        const uint8_t *data;
        size_t size;
        bool is_over;
} FuzzedOperations;

static ssize_t give_operations(void *userdata, const void **ret, Error *reterr) {
        FuzzedOperations *operations = userdata;

        *ret = operations->data;
        if (operations->is_over)
                return 0;
        operations->is_over = true;
        return (ssize_t) operations->size;
}

/* The canary is the file that a link out of the base would reach. */
static void fill_layer(int fd) {
        static const char text[] = "what the old version of this file has to say, say, say";

        assert(mkdirat(fd, "dir", 0700) >= 0);
        assert(write_file_atomic_at(fd, "file", text, strlen(text), 0600) >= 0);
        assert(symlinkat("../canary", fd, "out") >= 0 && symlinkat("dir", fd, "way") >= 0);
        assert(symlinkat("way", fd, "dir/way") >= 0 && mkfifoat(fd, "fifo", 0600) >= 0);
        assert(mknodat(fd, "dir/null", S_IFIFO | 0600, 0) >= 0);
        assert(write_file_atomic_at(fd, "dir/x", text, 10, 0600) >= 0);
}

static int open_layer(size_t i) {
        char name[] = { 'a', '\0' };
        cleanup_free char *path = NULL;
        int fd;

        name[0] = (char) (name[0] + i);
        path = path_join(lay_canary(), name);
        assert(path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        fd = open_directory_at(AT_FDCWD, path, 0700);
        assert(fd >= 0);
        fill_layer(fd);
        return fd;
}

/* Without checksums, the output contains the text of the canary only if the input contains it or if
 * the canary was read. */
static bool may_have_words(const uint8_t *data, size_t size) {
        return size > 0 && (memchr(data, 'u', size) || memchr(data, TAR_PATCH_ADD_DATA, size));
}

static void apply_operations(const uint8_t *data, size_t size, const LayerView *base) {
        FuzzedOperations operations = { .data = data, .size = size };
        cleanup_with(tar_patch_freep) TarPatch *patch =
                tar_patch_new(base, give_operations, &operations);
        cleanup_error Error error = ERROR_NULL;
        static char block[4096];
        uint64_t length = 0;
        ssize_t n;

        assert(patch);
        while ((n = tar_patch_read(patch, block, sizeof(block), &error)) > 0 &&
               length < OUTPUT_MAX) {
                assert((size_t) n <= sizeof(block));
                assert(may_have_words(data, size) || !memmem(block, (size_t) n, "untouched", 9));
                length += (uint64_t) n;
        }
        assert(n >= 0 || error.message);
}

static void apply_packed(const uint8_t *data, size_t size, const LayerView *base) {
        cleanup_close int input = open_fuzz_file(data, size);
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        cleanup_error Error error = ERROR_NULL;
        ByteStream *packed;

        assert(byte_stream_new_file(input, 0, &packed) >= 0);
        if (byte_stream_new_patched_take(packed, base, &tar, &error) < 0)
                return;
        byte_stream_limit(tar, OUTPUT_MAX);
        (void) byte_stream_drain(tar, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int layers[LAYERS] = { open_layer(0), open_layer(1) };
        _Atomic int64_t lookups = FUZZ_LOOKUPS_MAX;
        LayerView base = { .layers = layers, .n_layers = LAYERS, .lookups = &lookups };

        apply_operations(data, size, &base);
        apply_packed(data, size, &base);
        expect_canary("a", "b");
        for (size_t i = 0; i < LAYERS; i++)
                close_fd(layers[i]);
        return 0;
}
