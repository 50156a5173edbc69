/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the fuzz target on each file of the corpus and on some hundred damaged copies of it:
 * truncated, with a bit flipped, a byte replaced, or a piece repeated. The generator of the damage
 * has the same seed each time, unless MAINSTAY_SEED changes it, so that a failure can be
 * reproduced. */

#include "tests/fuzz/fuzz.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        DAMAGED_COPIES = 300, /* of each file, unless MAINSTAY_FUZZ_COPIES is set */
        FILE_SIZE_MAX = 1024 * 1024
};

static uint64_t random_state, seed = UINT64_C(0x9e3779b97f4a7c15);
static unsigned long n_copies = DAMAGED_COPIES;

/* xorshift64 */
static uint64_t random_number_below(uint64_t limit) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return limit > 0 ? random_state % limit : 0;
}

/* The copy has exactly this size, so that AddressSanitizer detects a read of one byte too many. */
static void run_fuzz_input(const char *data, size_t size) {
        uint8_t *copy = malloc(size > 0 ? size : 1);

        assert(copy);
        memcpy(copy, data, size);
        (void) LLVMFuzzerTestOneInput(copy, size);
        free(copy);
}

static size_t damage_input(char *data, size_t size) {
        static const char interesting[] = "\0\t\n\"'#&*,-:>?@[]`{|}%!\x7f\x80\xc3\xff~0";
        size_t at = random_number_below(size), length;

        switch (random_number_below(4)) {
        case 0:
                return at;
        case 1:
                data[at] = (char) (data[at] ^ (1 << random_number_below(8)));
                return size;
        case 2:
                data[at] = interesting[random_number_below(sizeof(interesting) - 1)];
                return size;
        default:
                length = random_number_below(MIN(size - at, (size_t) 64));
                memmove(data + random_number_below(size - length), data + at, length);
                return size;
        }
}

static void replay_path(int dir_fd, const char *name) {
        cleanup_free char *data = NULL, *copy = NULL;
        size_t size;
        int r = read_file_at(dir_fd, name, FILE_SIZE_MAX, &data, &size);

        assert(r >= 0);
        copy = malloc(size + 1);
        assert(copy);
        run_fuzz_input(data, size);
        random_state = seed;
        for (unsigned long i = 0; size > 0 && i < n_copies; i++) {
                size_t damaged = size;

                memcpy(copy, data, size);
                for (uint64_t n = 1 + random_number_below(4); n > 0 && damaged > 0; n--)
                        damaged = damage_input(copy, damaged);
                run_fuzz_input(copy, damaged);
        }
        printf("ok %s\n", name);
}

/* From the environment, for a longer run. */
static void choose_extent(void) {
        const char *copies = getenv("MAINSTAY_FUZZ_COPIES"), *number = getenv("MAINSTAY_SEED");

        if (copies)
                n_copies = strtoul(copies, NULL, 10);
        if (number)
                seed ^= strtoull(number, NULL, 10) << 1; /* never 0 */
}

/* Each argument is a directory of files. */
int main(int argc, char **argv) {
        unsigned count = 0;

        choose_extent();
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (int i = 1; i < argc; i++) {
                cleanup_closedir DIR *dir = opendir(argv[i]);
                struct dirent *entry;

                assert(dir);
                while ((entry = readdir(dir))) {
                        if (entry->d_type != DT_REG)
                                continue;
                        replay_path(dirfd(dir), entry->d_name);
                        count++;
                }
        }
        printf("%u passed, 0 failed\n", count);
        return count == 0;
}
