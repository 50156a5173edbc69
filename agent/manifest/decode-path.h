/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decoder's position in a document, for its messages. */

#include "agent/model/schema.h"

enum {
        DECODE_PATH_SIZE = 512,
};

/* A position in a document: "spec.containers[0].name". Lives on the stack of the walk. */
typedef struct DecodePath DecodePath;
struct DecodePath {
        const DecodePath *parent; /* NULL: the document */
        const Schema *schema;     /* of the object that contains the key; NULL: unknown, or an
                                   * index */
        const char *key;          /* NULL: an index */
        size_t index;
        bool is_map_key; /* a key chosen by the user: "labels[app]" */
};

/* "" for the document itself. Returns the buffer. */
const char *decode_path_format(const DecodePath *path, char buffer[DECODE_PATH_SIZE]);
