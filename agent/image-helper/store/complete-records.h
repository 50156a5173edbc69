/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Records that an earlier version has written do not have all that this one needs to run an image.
 * The store has the image's configuration, too. */

#include "agent/image-helper/store/store.h"

/* Adds the volumes that the images declare. Unreadable records are not changed. 0 or -errno. */
int complete_records(Store *store, Error *reterr);
