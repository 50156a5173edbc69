/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* resource.Quantity: "500m", "1.5Gi", "1e3". Read, brought into Kubernetes' canonical form, and
 * worked out as numbers that are rounded up and never overflow. */

#include "agent/model/pod.h"
#include "common/error.h"

enum {
        QUANTITY_LENGTH_MAX = 256
};

/* Replaces nothing: 'ret' is written on success only. -EINVAL with a sentence, or -ENOMEM. */
int quantity_parse(const char *text, Quantity *ret, Error *reterr);

void quantity_done(Quantity *quantity);

static inline bool quantity_is_set(const Quantity *quantity) {
        return quantity->text != NULL;
}
