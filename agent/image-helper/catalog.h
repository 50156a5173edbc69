/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images that an archive holds, as its documents say: OCI image layouts, what "docker save"
 * writes, and archives that are both. Manifests and configurations are verified here; layers when
 * they are unpacked. */

#include "agent/image-helper/image-archive.h"
#include "agent/image-helper/image-config.h"

enum {
        CATALOG_IMAGES_MAX = 256,
        CATALOG_NAMES_MAX = 64 /* of one image */
};

typedef struct CatalogBlob {
        char *member;             /* its name in the archive */
        char *media_type;         /* NULL where no manifest says */
        uint64_t size;            /* with a digest only */
        char digest[DIGEST_SIZE]; /* "" where the archive does not say, as in docker archives */
} CatalogBlob;

typedef struct CatalogImage {
        char digest[DIGEST_SIZE]; /* of the manifest; of the configuration in docker archives */
        char index_digest[DIGEST_SIZE]; /* of the index that offers it for several platforms, or ""
                                         */
        char **names;                   /* as the archive has them: "busybox:latest", "latest" */
        char *refusal;        /* why it cannot be used here, or NULL; then all below is there */
        CatalogBlob manifest; /* no member in docker archives */
        CatalogBlob config;
        ImageConfig *settings;
        CatalogBlob *layers; /* lowest first, as many as DiffIDs */
} CatalogImage;

typedef struct Catalog {
        const ImageArchive *source; /* borrowed */
        CatalogImage *images;
        size_t n_images;
        const CatalogImage *chosen; /* whose layers are had; borrowed */
} Catalog;

int catalog_read(const ImageArchive *source, Catalog **ret, Error *reterr);

/* The image of that digest, or NULL. */
const CatalogImage *catalog_find(const Catalog *catalog, const char *digest);

/* For the readers of each format: adds an image (or the names, where it is there already), which is
 * taken over. 0 or -errno. */
int catalog_add_take(Catalog *catalog, CatalogImage *image, Error *reterr);
void catalog_image_done(CatalogImage *image);

/* Reads the configuration that image->config names, verifies it where it has a digest, and gives it
 * one where it has none. */
int catalog_read_config(const ImageArchive *source, CatalogImage *image, Error *reterr);
int catalog_take_config(CatalogImage *image, const char *text, size_t length, Error *reterr);

int catalog_read_oci(Catalog *catalog, Error *reterr);
int catalog_read_docker(Catalog *catalog, Error *reterr);

/* The archive's images as one JSON document on standard output. */
int catalog_print(const Catalog *catalog, Error *reterr);

Catalog *catalog_free(Catalog *catalog);
DEFINE_CLEANUP(Catalog *, catalog_free)
