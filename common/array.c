/* SPDX-License-Identifier: Apache-2.0 */
#include "common/array.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

/* The next of four steps between two powers of two. An array that grows by single items is moved
 * only at these steps, so that each item is copied a constant number of times on average. */
static size_t round_up_capacity(size_t n) {
        size_t step = 1;

        while (n / step > 8)
                step *= 2;
        return (n + step - 1) / step * step;
}

void *array_reserve(void *items, size_t n, size_t more, size_t size) {
        size_t wanted;

        if (__builtin_add_overflow(n, more, &wanted) || wanted > PTRDIFF_MAX / size)
                return NULL;
        if (items && wanted * size <= malloc_usable_size(items))
                return items;
        return reallocarray(items, round_up_capacity(wanted), size);
}

void *array_open_gap(void *items, size_t n, size_t at, size_t size) {
        char *gap = (char *) items + at * size;

        memmove(gap + size, gap, (n - at) * size);
        return memset(gap, 0, size);
}

void array_close_gap(void *items, size_t n, size_t at, size_t size) {
        char *gap = (char *) items + at * size;

        memmove(gap, gap + size, (n - at - 1) * size);
}
