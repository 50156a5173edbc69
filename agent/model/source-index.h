/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The index of a source of manifests, mainstay-source(5): JSON that names all files, with a
 * detached signature over its bytes; and the rules by which a node takes a new one. Pure.
 * Signatures are verified before anything is parsed here. */

#include "agent/model/values.h"
#include "common/error.h"
#include "common/hash.h"

#define SOURCE_INDEX_BYTES_MAX       MIB
#define SOURCE_INDEX_TOTAL_BYTES_MAX (16 * MIB)

enum {
        SOURCE_INDEX_FILES_MAX = 1000,
        SOURCE_INDEX_KEYS_MAX = 16,
        SOURCE_INDEX_NAME_MAX = 200,
        SOURCE_DEADLINE_SECONDS_MAX = 999999999,
        SOURCE_SIGNATURE_BYTES_MAX = 16 * 1024
};

typedef struct SourceIndexFile {
        char *name; /* as a file of the manifest directory may be called; unique */
        uint64_t size;
        char sha256[SHA256_HEX_SIZE];
} SourceIndexFile;

typedef struct SourceIndex {
        int64_t number;   /* increases with each index */
        uint64_t expires; /* realtime, microseconds */
        char *fleet;
        LIST_OF(SourceIndexFile) files;
        int64_t progress_deadline_seconds; /* else the one before is used again; 0: none */
        char **keys; /* one of them must have signed the next ones; NULL: as before */
} SourceIndex;

/* The name of a fleet: letters, digits, '.', '_' and '-'. */
bool source_name_is_valid(const char *name);

/* 'file_max' is the limit of a file in bytes. 0, or -EBADMSG with a message. */
int source_index_parse(const char *text, size_t length, uint64_t file_max, SourceIndex *ret,
                       Error *reterr);
void source_index_done(SourceIndex *index);

/* The index with the highest number that was verified. */
typedef struct SourceIndexKnown {
        const char *fleet; /* NULL: there is none */
        int64_t number;
        const char *sha256; /* of the index */
} SourceIndexKnown;

/* Whether an index of these bytes (by their SHA-256) may be taken: 0, or -EBADMSG with why not. */
int source_index_check(const SourceIndex *index, const char *sha256, const SourceIndexKnown *known,
                       const char *fleet, uint64_t now_realtime_usec, Error *reterr);

/* Whether one of the keys has signed the bytes, by one of the signatures in a file. 0; -EBADMSG
 * with a message. */
int source_index_verify(const char *text, size_t length, const char *signatures,
                        size_t signatures_length, char *const *keys, Error *reterr);
