/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Completes records from an earlier version that do not contain everything that this version needs
 * to run an image. The missing data is read from the image's configuration in the store. */

#include "agent/image-helper/store/store.h"

/* Adds the volumes that the images declare. Unreadable records are not changed. 0 or -errno. */
int complete_records(Store *store, Error *reterr);
