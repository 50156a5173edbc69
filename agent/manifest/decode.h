/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fills an object from a tree by the object's table (model/schema.h). It is the one place that
 * knows of types, unknown keys, required fields and the wording of what is wrong with them. */

#include "agent/manifest/yaml-tree.h"
#include "agent/model/schema.h"

enum {
        DECODE_WARNINGS_MAX = 32, /* then they are only counted */
        DECODE_LIST_MAX = 1000,   /* items of a list of objects */
        DECODE_PATH_SIZE = 512,
};

/* Where in a document: "spec.containers[0].name". Lives on the stack of the walk. */
typedef struct DecodePath DecodePath;
struct DecodePath {
        const DecodePath *parent; /* NULL: the document */
        const char *key;          /* NULL: an index */
        size_t index;
        bool is_map_key; /* a key that the user chose: "labels[app]" */
};

typedef enum DecodeMode {
        DECODE_MANIFEST, /* unknown keys are warnings, refused fields are errors */
        DECODE_API,      /* of an API server, which may be newer: unknown keys are nothing */
        DECODE_RECORD,   /* ours: both are errors */
        DECODE_CONFIG,   /* both are warnings */
} DecodeMode;

typedef struct Decoder {
        const char *file;
        DecodeMode mode;
        char **warnings;
        size_t n_warnings; /* all of them */
        Error *reterr;
} Decoder;

/* 'object' is zeroed before; what a failure leaves in it is for schema_done(). 0, -EINVAL with the
 * place, -ENOMEM. */
int decode_object(Decoder *decoder, const YamlNode *node, const Schema *schema,
                  const DecodePath *path, void *object);

/* "web.yaml:7:11: spec.containers[0].name: " before the sentence. Returns r. */
int decode_error_at(const Decoder *decoder, const YamlNode *node, const DecodePath *path, int r);

/* Adds a warning, or counts it. 0 or -ENOMEM. */
int decode_warn(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                const char *sentence);

/* Moves the warnings out, the last of them being how many more there were. 0 or -ENOMEM. */
int decode_take_warnings(Decoder *decoder, char ***ret);

/* "" for the document itself. Returns the buffer. */
const char *decode_path_format(const DecodePath *path, char buffer[DECODE_PATH_SIZE]);
