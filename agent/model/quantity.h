/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* resource.Quantity: "500m", "1.5Gi", "1e3". Parsed, converted to Kubernetes' canonical form, and
 * used in computations as numbers that are rounded up and never overflow. */

#include "common/error.h"

#include <stdint.h>

/* Unset if text is NULL. Values are rounded up and saturate at INT64_MAX. */
typedef struct Quantity {
        char *text;    /* canonical: "500m", "1536Mi" */
        int64_t value; /* in units: bytes, CPUs */
        int64_t milli; /* in thousandths */
} Quantity;

enum {
        QUANTITY_LENGTH_MAX = 256
};

/* Writes 'ret' only on success, without freeing its previous content. -EINVAL with a message, or
 * -ENOMEM.
 */
int quantity_parse(const char *text, Quantity *ret, Error *reterr);

void quantity_done(Quantity *quantity);

enum {
        QUANTITY_SIZE = 32
};

/* Formats a number in its largest whole unit, as Kubernetes does for sums: bytes as "100Mi", counts
 * as "32k". Returns the buffer. */
char *quantity_print_bytes(char buffer[QUANTITY_SIZE], int64_t bytes);
char *quantity_print_count(char buffer[QUANTITY_SIZE], int64_t count);

static inline bool quantity_is_set(const Quantity *quantity) {
        return quantity->text != NULL;
}
