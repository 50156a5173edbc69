/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decodes a tree into an object according to the object's table (model/schema.h). Types, unknown
 * fields and required fields, and the wording of their errors, are handled only here. */

#include "agent/manifest/decode-path.h"
#include "agent/manifest/yaml-tree.h"
#include "agent/model/schema.h"

enum {
        DECODE_WARNINGS_MAX = 32, /* further warnings are only counted */
        DECODE_ERRORS_MAX = 100,  /* likewise */
        DECODE_LIST_MAX = 20000,  /* items of an object list in a file, because rules compare each
                                   * one with all others */
};

typedef enum DecodeMode {
        DECODE_MANIFEST, /* refused fields are errors; unknown keys are warnings, or errors for a
                            caller that collects all errors */
        DECODE_API,      /* from an API server, which may be newer: unknown keys are ignored */
        DECODE_RECORD,   /* the agent's own records: refused fields and unknown keys are errors */
        DECODE_CONFIG,   /* unknown keys are warnings, or errors in a strict schema; refused fields
                            are listed in 'without_effect' */
} DecodeMode;

/* All errors of a file, for a caller that does not stop at the first one. Unknown fields are
 * included but not counted, so that an object that contains one is validated further. */
typedef struct DecodeErrors {
        char **messages; /* the first DECODE_ERRORS_MAX, without duplicates */
        size_t n_more;   /* the number omitted because of that limit */
        size_t n;        /* without unknown fields */
} DecodeErrors;

typedef struct Decoder {
        const char *file;   /* NULL: messages do not contain the place in a file */
        char *const *files; /* indexed by a node's source; NULL: all nodes are from 'file' */
        DecodeMode mode;
        bool hides_values; /* for a Secret or a kubeconfig: messages end before ", not <the value>"
                            */
        char **warnings;
        size_t n_warnings;    /* total number, reported or not */
        char *without_effect; /* DECODE_CONFIG: the refused fields that are set: "a, b" */
        bool has_misplaced;   /* a field that belongs to another object was found */
        DecodeErrors *errors; /* NULL: the first error ends the walk */
        Error *reterr;
} Decoder;

/* DECODE_CONFIG: adds a setting to 'without_effect'. 0 or -ENOMEM. */
int decode_note_without_effect(Decoder *d, const char *setting);

/* 'object' must be zeroed; the caller frees its content with schema_done(), even after a failure.
 * 0, -EINVAL with the place, -ENOMEM. */
int decode_object(Decoder *decoder, const YamlNode *node, const Schema *schema,
                  const DecodePath *path, void *object);

/* Prefixes the message with "web.yaml:7:11: spec.containers[0].name: ", omitting values of a
 * Secret. Returns r. */
int decode_error_at(const Decoder *decoder, const YamlNode *node, const DecodePath *path, int r);

/* Adds the error of a field, an item or a rule to the list, so that the walk can continue: 0, or
 * -ENOMEM. Returns r if there is no list of errors. */
int decode_keep_error(const Decoder *decoder, int r);

/* The number of collected errors. The second function returns r, or -EINVAL if more errors have
 * been collected since that number was returned. */
size_t decode_count_errors(const Decoder *decoder);
int decode_result(const Decoder *decoder, size_t n_errors, int r);

/* Whether any errors were collected, unknown fields included. */
bool decode_has_errors(const Decoder *decoder);

/* Moves the errors out; the last one contains the number of omitted ones. 0 or -ENOMEM. */
int decode_take_errors(const Decoder *decoder, char ***ret);

/* Adds a warning, or counts it. 0 or -ENOMEM. */
int decode_warn(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                const char *sentence);

/* The same for a likely mistake, which is reported as an error to a caller that collects all
 * errors. It does not count as an error of the object, so that the object is validated further. */
int decode_warn_strictly(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                         const char *sentence);

/* A warning about the file as a whole. */
int decode_warn_of_file(Decoder *decoder, const char *sentence);

/* Moves the warnings out; the last one contains the number of omitted ones. 0 or -ENOMEM. */
int decode_take_warnings(Decoder *decoder, char ***ret);
