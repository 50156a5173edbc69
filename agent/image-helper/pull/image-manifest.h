/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Documents of an OCI or Docker image, from an archive or a registry: a multi-platform index, which
 * may contain other indexes; a manifest; a configuration. Each is verified by the digest that
 * refers to it. */

#include "agent/image-helper/archive/catalog.h"
#include "agent/image-helper/pull/document.h"

enum {
        DESCRIPTORS_MAX = 1024,
        INDEX_DEPTH_MAX = 4,     /* nesting of indexes */
        INDEX_DOCUMENTS_MAX = 16 /* entries that are read to find the image */
};

/* A provider of documents and layers. */
typedef struct ImageProvider {
        /* Reads and verifies a small blob, which the caller frees. 0, -ENOENT, or another -errno
         * with a message. */
        int (*read)(void *userdata, const CatalogBlob *blob, size_t max_bytes, char **ret,
                    size_t *ret_length, Error *reterr);
        /* Whether a layer is available; if not, with a message. NULL: all layers are. */
        int (*check_layer)(void *userdata, const CatalogBlob *blob, Error *reterr);
        /* Opens layer 'i' as a hashed stream. May be called in a child. */
        int (*open_layer)(void *userdata, size_t i, ByteStream **ret, Error *reterr);
        void *userdata;
} ImageProvider;

/* catalog-source.c: the provider of an archive; its layers are those of 'catalog->chosen'. */
ImageProvider catalog_image_provider(Catalog *catalog);

/* Parses a document, whose type must be 'media_type' unless that is NULL. Ambiguous documents are
 * refused. */
int image_manifest_parse(const char *text, size_t length, const char *media_type, json_t **ret,
                         Error *reterr);

/* Reads such a document and verifies its size. */
int image_manifest_provide(const ImageProvider *source, const CatalogBlob *blob, json_t **ret,
                           Error *reterr);

/* Reads the manifest to which the descriptor refers, and everything below it except the layers,
 * into 'image', which the caller frees, also on failure. 1: it is not an image. */
int image_manifest_read(const ImageProvider *source, const OciDescriptor *descriptor,
                        CatalogImage *image, Error *reterr);

/* The same for an index, from which the manifest for this machine is chosen; the image gets the
 * manifest's digest. The best-matching platform is preferred; for an entry without a platform, its
 * configuration decides. 1: the chosen document is not an image. */
int image_manifest_read_index(const ImageProvider *source, const OciDescriptor *descriptor,
                              CatalogImage *image, Error *reterr);

/* Whether the entry is an attestation or similar, listed next to the images that it describes. */
bool oci_descriptor_is_attestation(const json_t *descriptor);
