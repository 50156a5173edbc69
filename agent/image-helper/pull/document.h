/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON documents of images, parsed with limits and strict types. */

#include "agent/image-helper/pull/digest.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/json-text.h"

#include <stdint.h>

enum {
        MANIFEST_SIZE_MAX = 4 * 1024 * 1024,
        CONFIG_SIZE_MAX = 8 * 1024 * 1024,
        DOCUMENT_STRINGS_MAX = 4096 /* per list */
};

/* Parses a document; a duplicate key in an object is refused, because parsers differ in which one
 * they use. The message quotes no part of the document. 0 or -EBADMSG. */
int document_parse(const char *text, size_t length, json_t **ret, Error *reterr);

/* Appends an array of strings in an object, or null, to 'strv'. 0, -EBADMSG, or -E2BIG. */
int document_strv(const json_t *object, const char *key, char ***strv, Error *reterr);

/* A new JSON array of the strings, empty for NULL; NULL: out of memory. */
json_t *document_string_array(char *const *strv);

/* An OCI descriptor: a reference to a blob. */
typedef struct OciDescriptor {
        const char *media_type; /* borrowed from the document */
        uint64_t size;
        char digest[DIGEST_SIZE];
} OciDescriptor;

int oci_descriptor_parse(const json_t *value, OciDescriptor *ret, Error *reterr);

/* Supported media types. */
bool media_type_is_manifest(const char *media_type);
bool media_type_is_index(const char *media_type);
bool media_type_is_config(const char *media_type);
bool media_type_is_layer(const char *media_type);

/* Layers that only the holder of a key can decrypt: not supported. */
bool media_type_is_encrypted(const char *media_type);

/* Manifests of Docker before version 1.10, which are not supported, and the error for them:
 * -ENOTSUP. */
bool media_type_is_schema_1(const char *media_type);
int document_refuse_schema_1(Error *reterr);

/* Whether a manifest, or the descriptor of one, is an artifact of that type. */
bool artifact_has_type(const json_t *object, const char *type);
