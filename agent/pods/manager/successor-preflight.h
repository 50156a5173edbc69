/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The preflight of the successor of a running pod: its images are pulled and held, and everything
 * that can be checked is checked, so that the running pod is stopped only for one that will run.
 * Writes nothing. */

#include "agent/pods/pod/pod-context.h"

typedef struct Preflight Preflight;

/* The pod is borrowed and outlives the preflight. 'on_change' is called from the loop when the
 * result of preflight_step() may have changed. */
int preflight_new(PodContext *context, const Pod *pod, void (*on_change)(void *userdata),
                  void *userdata, Preflight **ret);

/* Requests the images that are missing, once. 1: the pod could start; 0: images are being pulled,
 * or paths of the host are checked; -errno: it could not, with a message. */
int preflight_step(Preflight *preflight, Error *reterr);

/* The next step requests and looks again. */
void preflight_retry(Preflight *preflight);

Preflight *preflight_free(Preflight *preflight);
DEFINE_CLEANUP(Preflight *, preflight_free)
