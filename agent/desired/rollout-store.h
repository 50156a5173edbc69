/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The histories of rollouts on disk. Each is a checksummed file <state>/rollouts/<hash of the pod's
 * name>/record, which a child syncs. Nothing is created if no pod has a progress deadline. */

#include "agent/desired/rollout-history.h"

#include <systemd/sd-event.h>

typedef struct RolloutStore RolloutStore;

/* 'state_dir' is copied. 0 or -errno. */
int rollout_store_new(sd_event *event, const char *state_dir, RolloutStore **ret);
RolloutStore *rollout_store_free(RolloutStore *store);
DEFINE_CLEANUP(RolloutStore *, rollout_store_free)

/* Replaces the history of the pod. A failure is logged. */
void rollout_store_write(RolloutStore *store, const RolloutHistory *history);
void rollout_store_remove(const RolloutStore *store, const RolloutHistory *history);

/* Calls 'each' with every history, of which 'each' takes ownership. A damaged one is set aside and
 * logged. 0 or -ENOMEM. */
int rollout_store_load(const RolloutStore *store,
                       int (*each)(RolloutHistory *history, void *userdata), void *userdata);
