/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The successor of a pod that runs, while it cannot begin yet: its images are fetched and held, and
 * all that can be checked is checked, so that the one that runs is stopped only for one that will
 * run. Writes nothing. */

#include "agent/supervise/pod.h"

typedef struct Staging Staging;

/* The pod is borrowed and outlives the staging. 'on_news' is called from the loop when
 * staging_step() may say something else. */
int staging_new(PodContext *context, const Pod *pod, void (*on_news)(void *userdata),
                void *userdata, Staging **ret);

/* Asks for what is missing, once. 1: it could begin; 0: it is being fetched; -errno: it could not,
 * and why. */
int staging_step(Staging *staging, Error *reterr);

/* What was missing is asked for again by the next step. */
void staging_retry(Staging *staging);

Staging *staging_free(Staging *staging);
DEFINE_CLEANUP(Staging *, staging_free)
