/* SPDX-License-Identifier: Apache-2.0 */

/* A table of small sets: the first digits of a key's hash select the set, in which the entry that
 * expires first is replaced. */

#include "agent/model/review-cache.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

enum {
        N_SETS = 256, /* two digits */
        N_WAYS = 8,
};

typedef struct ReviewEntry {
        char key[SHA256_HEX_SIZE];
        void *value; /* NULL: the entry is free */
        uint64_t expires;
} ReviewEntry;

struct ReviewCache {
        review_value_free_t free_value;
        ReviewEntry sets[N_SETS][N_WAYS];
};

int review_cache_new(review_value_free_t free_value, ReviewCache **ret) {
        ReviewCache *cache = calloc(1, sizeof(*cache));

        if (!cache)
                return -ENOMEM;
        cache->free_value = free_value;
        *ret = cache;
        return 0;
}

static void clear_review_entry(const ReviewCache *cache, ReviewEntry *entry) {
        if (!entry->value)
                return;
        cache->free_value(entry->value);
        *entry = (ReviewEntry){ 0 };
}

void review_cache_clear(ReviewCache *cache) {
        for (size_t i = 0; i < N_SETS; i++)
                for (size_t j = 0; j < N_WAYS; j++)
                        clear_review_entry(cache, &cache->sets[i][j]);
}

ReviewCache *review_cache_free(ReviewCache *cache) {
        if (!cache)
                return NULL;
        review_cache_clear(cache);
        free(cache);
        return NULL;
}

static size_t set_of_hash(const char hash[SHA256_HEX_SIZE]) {
        const char digits[] = { hash[0], hash[1], '\0' };

        return strtoul(digits, NULL, 16) % N_SETS;
}

const void *review_cache_find(const ReviewCache *cache, const char *key, uint64_t now) {
        char hash[SHA256_HEX_SIZE];
        const ReviewEntry *set;

        sha256_hex(key, strlen(key), hash);
        set = cache->sets[set_of_hash(hash)];
        for (size_t i = 0; i < N_WAYS; i++)
                if (set[i].value && streq(set[i].key, hash))
                        return set[i].expires > now ? set[i].value : NULL;
        return NULL;
}

static ReviewEntry *choose_review_entry(ReviewEntry *set, const char *hash) {
        ReviewEntry *chosen = set;

        for (size_t i = 0; i < N_WAYS; i++) {
                if (set[i].value && streq(set[i].key, hash))
                        return &set[i];
                /* A free entry counts as one that expired long ago. */
                if (set[i].expires < chosen->expires)
                        chosen = &set[i];
        }
        return chosen;
}

void review_cache_put(ReviewCache *cache, const char *key, void *value_consume, uint64_t now,
                      uint64_t expires) {
        char hash[SHA256_HEX_SIZE];
        ReviewEntry *entry;

        if (expires <= now) {
                cache->free_value(value_consume);
                return;
        }
        sha256_hex(key, strlen(key), hash);
        entry = choose_review_entry(cache->sets[set_of_hash(hash)], hash);
        clear_review_entry(cache, entry);
        memcpy(entry->key, hash, sizeof(hash));
        entry->value = value_consume;
        entry->expires = expires;
}
