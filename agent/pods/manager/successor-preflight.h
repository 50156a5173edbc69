/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The preflight of a running pod's successor: its images are pulled and held, and everything that
 * can be checked is checked, so that the running pod is only stopped if the successor will run.
 * Writes nothing. */

#include "agent/pods/pod/pod-context.h"

typedef struct Preflight Preflight;

/* The pod is borrowed and outlives the preflight. 'on_change' is called from the loop when the
 * result of preflight_step() may have changed. */
int preflight_new(PodContext *context, const Pod *pod, void (*on_change)(void *userdata),
                  void *userdata, Preflight **ret);

/* Requests missing images, once. 1: the pod could start; 0: images are being pulled, or host paths
 * are being checked; -errno: it could not, with a message. */
int preflight_step(Preflight *preflight, Error *reterr);

/* Makes the next step repeat requests and checks. */
void preflight_retry(Preflight *preflight);

Preflight *preflight_free(Preflight *preflight);
DEFINE_CLEANUP(Preflight *, preflight_free)
