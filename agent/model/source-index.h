/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The index of a source of manifests, see mainstay-source(5): JSON that lists all files and the
 * blobs of images, with a detached signature over its bytes; and the rules by which a node accepts
 * a new one. Pure. Signatures are verified before anything is parsed here. */

#include "agent/model/values.h"
#include "common/error.h"
#include "common/hash.h"

#define SOURCE_INDEX_BYTES_MAX       MIB
#define SOURCE_INDEX_TOTAL_BYTES_MAX (16 * MIB)

enum {
        SOURCE_INDEX_FILES_MAX = 1000,
        SOURCE_INDEX_KEYS_MAX = 16,
        SOURCE_INDEX_NAME_MAX = 200,
        SOURCE_INDEX_IMAGES_MAX = 1000,
        SOURCE_INDEX_PLATFORMS_MAX = 32,
        SOURCE_INDEX_BLOBS_MAX = 1024, /* limit for one image, or one delta */
        SOURCE_INDEX_DELTAS_MAX = 32,
        SOURCE_DIGEST_SIZE = sizeof("sha256:") - 1 + SHA256_HEX_SIZE,
        SOURCE_DEADLINE_SECONDS_MAX = 999999999,
        SOURCE_SIGNATURE_BYTES_MAX = 16 * 1024
};

typedef struct SourceIndexFile {
        char *name; /* valid as a file name in the manifest directory; unique */
        uint64_t size;
        char sha256[SHA256_HEX_SIZE];
} SourceIndexFile;

/* A blob in images/blobs/sha256/ next to the index. */
typedef struct SourceIndexBlob {
        char digest[SOURCE_DIGEST_SIZE];
        uint64_t size;
} SourceIndexBlob;

/* An artifact as described in mainstay-images(7), for nodes that have another image. */
typedef struct SourceIndexDelta {
        char base[SOURCE_DIGEST_SIZE]; /* digest of that image's configuration */
        SourceIndexBlob manifest;
        LIST_OF(SourceIndexBlob) blobs;
} SourceIndexDelta;

/* An image for one platform. */
typedef struct SourceIndexPlatform {
        char *name;       /* "linux/amd64", "linux/arm64/v8" */
        char *media_type; /* of the manifest */
        SourceIndexBlob manifest;
        LIST_OF(SourceIndexBlob) blobs; /* the configuration and the layers */
        LIST_OF(SourceIndexDelta) deltas;
} SourceIndexPlatform;

typedef struct SourceIndexImage {
        char *name; /* a normalised reference; unique */
        LIST_OF(SourceIndexPlatform) platforms;
} SourceIndexImage;

typedef struct SourceIndex {
        int64_t number;   /* increases with each index */
        uint64_t expires; /* realtime, microseconds */
        char *fleet;
        LIST_OF(SourceIndexFile) files;
        LIST_OF(SourceIndexImage) images;  /* sorted by name */
        int64_t progress_deadline_seconds; /* time after which the previous index is used again; 0:
                                            * no deadline */
        char **keys; /* one of them must sign the next indexes; NULL: no change */
} SourceIndex;

/* Whether it is a valid name for a fleet: letters, digits, '.', '_' and '-'. */
bool source_name_is_valid(const char *name);

/* The path in "file:///a/b" or "file:/a/b", borrowed from the URL; NULL: an HTTP URL. */
const char *source_stick_path(const char *url);

/* 'file_max' is the limit of a file in bytes. 0, or -EBADMSG with a message. */
int source_index_parse(const char *text, size_t length, uint64_t file_max, SourceIndex *ret,
                       Error *reterr);
void source_index_done(SourceIndex *index);

/* The image with that normalised name; NULL: the index does not list it. */
const SourceIndexImage *source_index_find_image(const SourceIndex *index, const char *name);

/* The total size of the image's blobs in the index, without deltas. */
uint64_t source_index_platform_bytes(const SourceIndexPlatform *platform);

/* The verified index with the highest number. */
typedef struct SourceIndexKnown {
        const char *fleet; /* NULL: there is none */
        int64_t number;
        const char *sha256; /* of the index */
} SourceIndexKnown;

/* Whether an index with these bytes (by SHA-256) may be used: 0, or -EBADMSG with the reason. */
int source_index_check(const SourceIndex *index, const char *sha256, const SourceIndexKnown *known,
                       const char *fleet, uint64_t now_realtime_usec, Error *reterr);

/* Whether one of the keys has signed the bytes, with any of the signatures in a file. 0; -EBADMSG
 * with a message. */
int source_index_verify(const char *text, size_t length, const char *signatures,
                        size_t signatures_length, char *const *keys, Error *reterr);
