/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Caches results of reviews by the API server. The keys are hashed, so that no token is stored. The
 * number is limited: a new result replaces an old one. Pure: time is an argument. */

#include "common/macros.h"

#include <stdint.h>

typedef struct ReviewCache ReviewCache;

/* Frees a value. */
typedef void (*review_value_free_t)(void *value);

/* 0 or -ENOMEM. */
int review_cache_new(review_value_free_t free_value, ReviewCache **ret);
ReviewCache *review_cache_free(ReviewCache *cache);
DEFINE_CLEANUP(ReviewCache *, review_cache_free)

/* Removes all results. */
void review_cache_clear(ReviewCache *cache);

/* The value, or NULL. The cache owns it; valid until the next change. */
const void *review_cache_find(const ReviewCache *cache, const char *key, uint64_t now);

/* Stores the value until 'expires', and takes ownership of it. */
void review_cache_put(ReviewCache *cache, const char *key, void *value_consume, uint64_t now,
                      uint64_t expires);
