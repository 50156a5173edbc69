/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/byte-match.h"

#include "common/cleanup.h"

enum {
        BLOCK_MIN = 64,
        BLOCKS_MAX = 128 * 1024 /* limits the table of the old file's blocks */
};

#define FACTOR UINT32_C(0x9E3779B1) /* odd, so that every byte of the block affects the hash */

/* The blocks of the old file by their hash; a slot has the number of a block plus one. */
typedef struct BlockTable {
        uint32_t *slots;
        uint32_t mask;
        size_t block; /* bytes */
        uint32_t out; /* FACTOR to the power of block - 1 */
} BlockTable;

typedef struct Matching {
        const uint8_t *old, *new;
        uint64_t n_old, n_new;
        uint64_t done;   /* bytes of the new file */
        uint64_t behind; /* the position in the old file after the last match */
        bool is_behind;  /* there has been a match */
        byte_match_t each;
        void *userdata;
} Matching;

static uint32_t hash_block(const uint8_t *data, size_t size) {
        uint32_t hash = 0;

        for (size_t i = 0; i < size; i++)
                hash = hash * FACTOR + data[i] + 1;
        return hash;
}

static uint32_t roll_hash(const BlockTable *table, uint32_t hash, uint8_t out, uint8_t in) {
        return (hash - (out + 1U) * table->out) * FACTOR + in + 1U;
}

static uint32_t slot_of(const BlockTable *table, uint32_t hash) {
        return (hash ^ hash >> 15) & table->mask;
}

static int fill_block_table(BlockTable *table, const uint8_t *old, uint64_t n_old) {
        uint32_t n_slots = 2 * BLOCKS_MAX;

        table->block = BLOCK_MIN;
        while (n_old / table->block > BLOCKS_MAX)
                table->block *= 2;
        while (n_slots > 64 && n_slots / 4 > n_old / table->block)
                n_slots /= 2;
        table->mask = n_slots - 1;
        table->out = 1;
        for (size_t i = 1; i < table->block; i++)
                table->out *= FACTOR;
        table->slots = calloc(n_slots, sizeof(*table->slots));
        if (!table->slots)
                return -ENOMEM;
        for (uint64_t i = 0; i < n_old / table->block; i++) {
                uint32_t slot = slot_of(table, hash_block(old + i * table->block, table->block));

                /* The first of several equal blocks: a long run of zeros is copied from its
                 * start. */
                if (table->slots[slot] == 0)
                        table->slots[slot] = (uint32_t) i + 1;
        }
        return 0;
}

static int report_gap(Matching *matching, uint64_t start, uint64_t position) {
        uint64_t size = start - matching->done;
        bool is_similar = matching->is_behind && position >= matching->behind &&
                          position - matching->behind == size;

        if (size == 0)
                return 0;
        return matching->each(is_similar ? BYTE_MATCH_SIMILAR : BYTE_MATCH_NEW, matching->done,
                              size, is_similar ? matching->behind : 0, matching->userdata);
}

/* Extends the match between the blocks at 'start' and at 'position' in both directions. */
static int report_match(Matching *matching, uint64_t start, uint64_t position, uint64_t size) {
        int r;

        while (start > matching->done && position > 0 &&
               matching->new[start - 1] == matching->old[position - 1]) {
                start--;
                position--;
                size++;
        }
        while (start + size < matching->n_new && position + size < matching->n_old &&
               matching->new[start + size] == matching->old[position + size])
                size++;
        r = report_gap(matching, start, position);
        if (r < 0)
                return r;
        matching->done = start + size;
        matching->behind = position + size;
        matching->is_behind = true;
        return matching->each(BYTE_MATCH_SAME, start, size, position, matching->userdata);
}

static bool find_block(const BlockTable *table, const Matching *matching, uint32_t hash,
                       uint64_t start, uint64_t *ret) {
        uint32_t slot = table->slots[slot_of(table, hash)];

        if (slot == 0)
                return false;
        *ret = (uint64_t) (slot - 1) * table->block;
        return memcmp(matching->old + *ret, matching->new + start, table->block) == 0;
}

static int match_all_blocks(const BlockTable *table, Matching *matching) {
        uint64_t at = 0, position;
        uint32_t hash = 0;
        bool is_hashed = false;

        while (matching->n_new - at >= table->block) {
                if (!is_hashed)
                        hash = hash_block(matching->new + at, table->block);
                is_hashed = true;
                if (find_block(table, matching, hash, at, &position)) {
                        int r = report_match(matching, at, position, table->block);

                        if (r < 0)
                                return r;
                        at = matching->done;
                        is_hashed = false;
                        continue;
                }
                if (matching->n_new - at == table->block)
                        break;
                hash = roll_hash(table, hash, matching->new[at], matching->new[at + table->block]);
                at++;
        }
        return 0;
}

/* Files of equal length often differ only in a few places, even if no block is equal. */
static int report_rest(Matching *matching) {
        bool ends_alike = matching->is_behind &&
                          matching->n_old - matching->behind == matching->n_new - matching->done;

        return report_gap(matching, matching->n_new, ends_alike ? matching->n_old : 0);
}

int byte_match(const uint8_t *old, uint64_t n_old, const uint8_t *new, uint64_t n_new,
               byte_match_t each, void *userdata) {
        Matching matching = { .old = old,
                              .new = new,
                              .n_old = n_old,
                              .n_new = n_new,
                              .each = each,
                              .userdata = userdata };
        BlockTable table = { 0 };
        int r;

        r = fill_block_table(&table, old, n_old);
        if (r >= 0)
                r = match_all_blocks(&table, &matching);
        if (r >= 0)
                r = report_rest(&matching);
        free(table.slots);
        return r;
}
