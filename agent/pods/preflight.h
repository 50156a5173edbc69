/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The successor of a pod that runs, while it cannot begin yet: its images are fetched and held, and
 * all that can be checked is checked, so that the one that runs is stopped only for one that will
 * run. Writes nothing. */

#include "agent/pods/pod-context.h"

typedef struct Preflight Preflight;

/* The pod is borrowed and outlives the staging. 'on_change' is called from the loop when
 * preflight_step() may say something else. */
int preflight_new(PodContext *context, const Pod *pod, void (*on_change)(void *userdata),
                  void *userdata, Preflight **ret);

/* Asks for what is missing, once. 1: it could begin; 0: it is being fetched; -errno: it could not,
 * and why. */
int preflight_step(Preflight *preflight, Error *reterr);

/* What was missing is asked for again by the next step. */
void preflight_retry(Preflight *preflight);

Preflight *preflight_free(Preflight *preflight);
DEFINE_CLEANUP(Preflight *, preflight_free)
