/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The knowledge of a node from the verified indexes of a fleet: the keys that must sign the next
 * one, and the highest number. It is kept apart from the indexes, in trust/<fleet> of the source's
 * directory, because it only grows: no rollback, refused manifest, failed download or damaged
 * "current" makes an older key or a lower number good again. Only the keys of the configuration,
 * once they are changed, replace those of an index. */

#include "agent/image-helper/source/source-settings.h"
#include "agent/image-helper/source/source-store.h"
#include "agent/model/source-index.h"

typedef struct SourceTrust {
        int64_t number;                   /* the highest that was verified; 0: none was */
        char sha256[SHA256_HEX_SIZE];     /* of the index with that number */
        char **keys;                      /* one of them must sign the next index */
        char configured[SHA256_HEX_SIZE]; /* of the keys of the configuration */
        bool is_recorded;                 /* trust/<fleet> contains the same */
} SourceTrust;

/* Reads the state of the fleet in the settings. 'current' is source.json of the index in use, or
 * NULL: it replaces a record that earlier versions did not write. -EBADMSG with a message if the
 * record is damaged or has gone: nothing may be accepted then. 0 or -errno. */
int source_trust_load(const SourceStore *store, const SourceSettings *settings,
                      const json_t *current, SourceTrust *ret, Error *reterr);
void source_trust_done(SourceTrust *trust);

/* Adds a verified index, whose bytes have this digest, and writes the record, synced. 0 or -errno.
 */
int source_trust_advance(SourceTrust *trust, const SourceStore *store, const SourceIndex *index,
                         const char *sha256, Error *reterr);
