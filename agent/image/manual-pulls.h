/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Manual pulls (`mainstay images pull`): requests of the image store for which no pod waits, and
 * the results of the last few. */

#include "agent/image/image-store.h"

typedef struct ManualPull ManualPull;

typedef struct ManualPulls {
        ManualPull *first; /* newest first */
} ManualPulls;

/* Pulls an image even if it is present. 0, or -EINVAL with a message. The store must outlive the
 * pull.
 */
int manual_pulls_start(ManualPulls *pulls, ImageStore *store, const char *reference, Error *reterr);

/* Visits all of them, including the last few that have ended. */
void manual_pulls_foreach(const ManualPulls *pulls,
                          void (*each)(const ImagePull *pull, void *userdata), void *userdata);

/* Cancels the pulls that have not ended yet, and frees all of them. */
void manual_pulls_done(ManualPulls *pulls);
