/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel rings when memory becomes scarce: by pressure stall information, when tasks or the
 * kernel itself wait for memory for a tenth of two seconds; and, on control groups of version 1 and
 * where that is asked for, when the memory in use has grown by so much. What it rings for may be
 * nothing; whoever hears it looks. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct Doorbell Doorbell;

typedef void (*doorbell_rings_t)(void *userdata);

/* 'has_memcg' asks for the second. A kernel without either is no error; see doorbell_is_there(). 0
 * or -errno. */
int doorbell_new(sd_event *event, bool has_memcg, doorbell_rings_t rings, void *userdata,
                 Doorbell **ret);
Doorbell *doorbell_free(Doorbell *doorbell);

/* Whether anybody rings. */
bool doorbell_is_there(const Doorbell *doorbell);

/* Rings when the memory in use has grown by 'bytes' from now; what was said before is forgotten. */
void doorbell_set_distance(Doorbell *doorbell, int64_t bytes);
