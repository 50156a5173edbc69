/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Growable and sorted arrays: a pointer to the items, of any type, and their number. There is no
 * field for the capacity, because malloc_usable_size() returns it. Any array allocated by malloc()
 * can grow, and has room for at most a quarter more items than it contains. An empty array may be
 * NULL. Arrays are freed with free().
 *
 * Each macro checks types and calls one function; its arguments must be variables or members
 * without side effects. */

#include "common/macros.h"

/* Makes room for 'more' items beyond the 'n' existing ones, and updates 'items'. False if memory is
 * exhausted or the size overflows, in which case 'items' is unchanged. */
#define ARRAY_RESERVE(items, n, more)                                         \
        ({                                                                    \
                __typeof__(items) reserved_ =                                 \
                        array_reserve((items), (n), (more), sizeof *(items)); \
                if (reserved_)                                                \
                        (items) = reserved_;                                  \
                reserved_ != NULL;                                            \
        })

/* Inserts a zeroed item before the one at 'at', or at the end if 'at' is 'n'; increments 'n'.
 * Returns a pointer to it, valid until the array changes; NULL: out of memory, and nothing has
 * changed. */
#define ARRAY_INSERT(items, n, at)                                                  \
        ({                                                                          \
                __typeof__(items) gap_ = NULL;                                      \
                if (ARRAY_RESERVE((items), (n), 1)) {                               \
                        gap_ = array_open_gap((items), (n), (at), sizeof *(items)); \
                        (n)++;                                                      \
                }                                                                   \
                gap_;                                                               \
        })

/* The same at the end. */
#define ARRAY_APPEND(items, n) ARRAY_INSERT(items, n, n)

/* Removes the item at 'at', whose content the caller has freed; decrements 'n'. */
#define ARRAY_REMOVE(items, n, at)                                    \
        ({                                                            \
                array_close_gap((items), (n), (at), sizeof *(items)); \
                (n)--;                                                \
        })

/* The index of the first item of a sorted array that does not come before 'key': the position of
 * 'key', or where it would be inserted; 'n' if there is none. compare(key, &items[i]), a function
 * or a macro, is negative, 0 or positive, like strcmp(). */
#define ARRAY_FIND_PLACE(key, items, n, compare)                    \
        ({                                                          \
                size_t low_ = 0, high_ = (n);                       \
                while (low_ < high_) {                              \
                        size_t middle_ = low_ + (high_ - low_) / 2; \
                        if (compare((key), &(items)[middle_]) > 0)  \
                                low_ = middle_ + 1;                 \
                        else                                        \
                                high_ = middle_;                    \
                }                                                   \
                low_;                                               \
        })

/* The first item of a sorted array that is equal to 'key'; NULL: none. */
#define ARRAY_FIND(key, items, n, compare)                                                       \
        ({                                                                                       \
                size_t place_ = ARRAY_FIND_PLACE(key, items, n, compare);                        \
                place_ < (n) && compare((key), &(items)[place_]) == 0 ? &(items)[place_] : NULL; \
        })

/* Used by the macros. Returns the items, possibly moved, with room for n + more items of 'size'
 * bytes; NULL: out of memory or overflow. */
void *array_reserve(void *items, size_t n, size_t more, size_t size);

/* Moves the items from 'at' on up by one, for which there must be room; the gap is zeroed. Returns
 * it. */
void *array_open_gap(void *items, size_t n, size_t at, size_t size);

/* Moves the items after 'at' down by one. */
void array_close_gap(void *items, size_t n, size_t at, size_t size);
