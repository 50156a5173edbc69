/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/byte-match.h"
#include "common/cleanup.h"
#include "tests/test.h"

enum {
        BYTES = 100 * 1000
};

typedef struct Rebuilt {
        const uint8_t *old, *new;
        uint64_t n_old, done, n_new_bytes, n_similar;
} Rebuilt;

static int check_part(ByteMatchKind kind, uint64_t start, uint64_t size, uint64_t position,
                      void *userdata) {
        Rebuilt *rebuilt = userdata;

        EXPECT(start == rebuilt->done && size > 0);
        rebuilt->done += size;
        if (kind == BYTE_MATCH_NEW) {
                rebuilt->n_new_bytes += size;
                return 0;
        }
        EXPECT(position <= rebuilt->n_old && size <= rebuilt->n_old - position);
        if (kind == BYTE_MATCH_SIMILAR)
                rebuilt->n_similar += size;
        else
                EXPECT(memcmp(rebuilt->old + position, rebuilt->new + start, size) == 0);
        return 0;
}

static Rebuilt match_bytes(const uint8_t *old, uint64_t n_old, const uint8_t *new, uint64_t n_new) {
        Rebuilt rebuilt = { .old = old, .new = new, .n_old = n_old };

        EXPECT(byte_match(old, n_old, new, n_new, check_part, &rebuilt) == 0);
        EXPECT(rebuilt.done == n_new);
        return rebuilt;
}

static void fill_with_noise(uint8_t *data, size_t n) {
        uint32_t state = 12345;

        for (size_t i = 0; i < n; i++) {
                state = state * 1664525 + 1013904223;
                data[i] = (uint8_t) (state >> 24);
        }
}

TEST(equal_files_are_one_match)
{
        static uint8_t data[BYTES];

        fill_with_noise(data, BYTES);
        EXPECT(match_bytes(data, BYTES, data, BYTES).n_new_bytes == 0);
}

TEST(only_inserted_and_removed_bytes_are_new)
{
        static uint8_t old[BYTES], new[BYTES + 10];
        Rebuilt rebuilt;

        fill_with_noise(old, BYTES);
        memcpy(new, old, 5000);
        memset(new + 5000, 0xAA, 10);
        memcpy(new + 5010, old + 5000, BYTES - 5000);
        rebuilt = match_bytes(old, BYTES, new, BYTES + 10);
        EXPECT(rebuilt.n_new_bytes <= 12);
        rebuilt = match_bytes(new, BYTES + 10, old, BYTES);
        EXPECT(rebuilt.n_new_bytes == 0);
}

TEST(changed_bytes_in_place_are_similar)
{
        static uint8_t old[BYTES], new[BYTES];
        Rebuilt rebuilt;

        fill_with_noise(old, BYTES);
        memcpy(new, old, BYTES);
        for (size_t i = 1000; i < BYTES; i += 1000)
                new[i] ^= 1;
        rebuilt = match_bytes(old, BYTES, new, BYTES);
        EXPECT(rebuilt.n_new_bytes == 0 && rebuilt.n_similar >= BYTES / 1000 - 1);
        EXPECT(rebuilt.n_similar < BYTES / 10);
}

TEST(small_empty_and_foreign_files_are_new)
{
        static uint8_t old[BYTES], new[BYTES];

        fill_with_noise(old, BYTES);
        memset(new, 0x55, BYTES);
        EXPECT(match_bytes(old, BYTES, new, BYTES).n_new_bytes == BYTES);
        EXPECT(match_bytes(old, 10, new, 10).n_new_bytes == 10);
        EXPECT(match_bytes(old, 0, new, 1).n_new_bytes == 1);
        EXPECT(match_bytes(old, BYTES, new, 0).done == 0);
}

TEST(runs_of_one_byte_match_from_their_start)
{
        static uint8_t old[BYTES], new[BYTES];

        EXPECT(match_bytes(old, BYTES, new, BYTES).n_new_bytes == 0);
        EXPECT(match_bytes(old, 1000, new, BYTES).n_new_bytes == 0);
}
