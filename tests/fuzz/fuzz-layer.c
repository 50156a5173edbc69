/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of an image is unpacked twice, the second time on top of the first: regardless of the
 * contents of the tar, nothing outside of its directory changes. */

#include "tests/fuzz/canary.h"

#include "agent/image-helper/unpack/layer-unpack.h"

enum {
        FUZZ_BYTES_MAX = 1 << 20,
        FUZZ_ENTRIES_MAX = 1000,
        FUZZ_LOOKUPS_MAX = 100000,
};

static void unpack_fuzzed_layer(const uint8_t *data, size_t size, int fd, const LayerView *below) {
        cleanup_with(unpack_budget_freep) UnpackBudget *budget = unpack_budget_new();
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        cleanup_close int input = open_fuzz_file(data, size);
        cleanup_error Error error = ERROR_NULL;
        ByteStream *plain;

        assert(budget);
        atomic_store(&budget->bytes, FUZZ_BYTES_MAX);
        atomic_store(&budget->entries, FUZZ_ENTRIES_MAX);
        atomic_store(&budget->lookups, FUZZ_LOOKUPS_MAX);
        assert(byte_stream_new_file(input, 0, &plain) >= 0);
        if (byte_stream_new_unpacked_take(plain, &tar, &error) >= 0)
                (void) unpack_layer_tar(tar, fd, below, budget, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *first = path_join(lay_canary(), "first");
        cleanup_free char *second = path_join(lay_canary(), "second");
        cleanup_close int first_fd = open_directory_at(AT_FDCWD, first, 0700);
        cleanup_close int second_fd = open_directory_at(AT_FDCWD, second, 0700);
        LayerView below = { .layers = &first_fd, .n_layers = 1 };

        assert(first_fd >= 0 && second_fd >= 0);
        unpack_fuzzed_layer(data, size, first_fd, &(LayerView){ 0 });
        unpack_fuzzed_layer(data, size, second_fd, &below);
        expect_canary("first", "second");
        assert(remove_tree_at(AT_FDCWD, first) >= 0 && remove_tree_at(AT_FDCWD, second) >= 0);
        return 0;
}
