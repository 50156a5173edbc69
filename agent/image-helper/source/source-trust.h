/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data that a node has taken from the verified indexes of a fleet: the keys that must sign the
 * next one, and the highest number. It is stored separately from the indexes, in trust/<fleet> in
 * the source's directory, because it must never go back: no rollback, refused manifest, failed
 * download or damaged "current" makes an older key or a lower number valid again. Only changed keys
 * in the configuration replace those of an index. */

#include "agent/image-helper/source/source-settings.h"
#include "agent/image-helper/source/source-store.h"
#include "agent/model/source-index.h"

typedef struct SourceTrust {
        int64_t number;                   /* the highest verified number; 0: none */
        char sha256[SHA256_HEX_SIZE];     /* hash of the index with that number */
        char **keys;                      /* one of them must sign the next index */
        char configured[SHA256_HEX_SIZE]; /* hash of the configuration's keys */
        bool is_recorded;                 /* trust/<fleet> has the same content */
} SourceTrust;

/* Reads the state of the fleet in the settings. 'current' is source.json of the index in use, or
 * NULL; it is used in place of the record, which earlier versions did not write. -EBADMSG with a
 * message if the record is damaged or was lost, in which case no index may be accepted. 0 or
 * -errno. */
int source_trust_load(const SourceStore *store, const SourceSettings *settings,
                      const json_t *current, SourceTrust *ret, Error *reterr);
void source_trust_done(SourceTrust *trust);

/* Adds a verified index, whose bytes have this digest; writes and syncs the record. 0 or -errno.
 */
int source_trust_advance(SourceTrust *trust, const SourceStore *store, const SourceIndex *index,
                         const char *sha256, Error *reterr);
