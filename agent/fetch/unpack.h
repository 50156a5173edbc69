/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings one image of an archive into the store: verifies it, unpacks the layers that are missing,
 * writes its manifest, configuration, record and names. */

#include "agent/fetch/catalog.h"
#include "agent/fetch/store.h"

/* 0, or -errno with the sentence, and then the store has no more than before. */
int unpack_image(const Catalog *catalog, Store *store, const char *digest, char *const *names,
                 Error *reterr);
