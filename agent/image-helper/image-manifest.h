/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The documents of an OCI or Docker image, wherever they come from: an index over several
 * platforms, one deep; a manifest; a configuration. Each is verified by the digest that led to it.
 */

#include "agent/image-helper/catalog.h"
#include "agent/image-helper/document.h"

enum {
        DESCRIPTORS_MAX = 1024
};

/* Where documents and layers are had. */
typedef struct ImageProvider {
        /* A small blob, verified, in memory that the caller frees. 0, -ENOENT, or another -errno
         * with the sentence. */
        int (*read)(void *userdata, const CatalogBlob *blob, size_t max_bytes, char **ret,
                    size_t *ret_length, Error *reterr);
        /* Whether a layer can be had; with the sentence. NULL: all can. */
        int (*check_layer)(void *userdata, const CatalogBlob *blob, Error *reterr);
        /* The bytes of layer 'i', hashed. May be called in a child. */
        int (*open_layer)(void *userdata, size_t i, ByteStream **ret, Error *reterr);
        void *userdata;
} ImageProvider;

/* catalog-source.c: that of an archive; its layers are those of 'catalog->chosen'. */
ImageProvider catalog_image_provider(Catalog *catalog);

/* Parses a document that must be of 'media_type', where that is not NULL. What can be read in two
 * ways is refused. */
int image_manifest_parse(const char *text, size_t length, const char *media_type, json_t **ret,
                         Error *reterr);

/* Reads the manifest that the descriptor means, and all it leads to but the layers, into 'image',
 * which is the caller's to end also on failure. 1: it is something else than an image. */
int image_manifest_read(const ImageProvider *source, const OciDescriptor *descriptor,
                        CatalogImage *image, Error *reterr);

/* The same for an index, of which the manifest for this machine is taken; its digest becomes the
 * image's. */
int image_manifest_read_index(const ImageProvider *source, const OciDescriptor *descriptor,
                              CatalogImage *image, Error *reterr);

/* Attestations and such ride along with the images they are about. */
bool oci_descriptor_is_attestation(const json_t *descriptor);
