/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of images in an archive, from its documents: OCI image layouts, archives of "docker
 * save", and archives of both formats. Manifests and configurations are verified here; layers are
 * verified when they are unpacked. */

#include "agent/image-helper/archive/archive-members.h"
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/pull/image-config.h"
#include "agent/image-helper/store/store.h"

enum {
        CATALOG_IMAGES_MAX = 256,
        CATALOG_NAMES_MAX = 64 /* per image */
};

typedef struct CatalogBlob {
        char *member;             /* name in the archive */
        char *media_type;         /* NULL if no manifest names it */
        uint64_t size;            /* as in the archive; verified only together with a digest */
        char digest[DIGEST_SIZE]; /* "" if the archive has none, as in docker archives */
} CatalogBlob;

typedef struct CatalogImage {
        char digest[DIGEST_SIZE];       /* digest of the manifest or, in docker archives, of the
                                           configuration */
        char index_digest[DIGEST_SIZE]; /* digest of the multi-platform index, or "" */
        char **names;                   /* as in the archive: "busybox:latest", "latest" */
        char *refusal; /* why the image cannot be used here; NULL: it can, and all members below are
                        * set */
        CatalogBlob manifest; /* has no member in docker archives */
        CatalogBlob config;
        ImageConfig *settings;
        CatalogBlob *layers; /* lowest first, as many as there are DiffIDs */
        CatalogBlob *delta;  /* one for each layer: its replacement in a delta; no digest: there is
                              * none. NULL: not from a delta (image-delta.h) */
        char base_config[DIGEST_SIZE]; /* for a delta: configuration of the image on which it is
                                        * based
                                        */
} CatalogImage;

typedef struct Catalog {
        const ImageArchive *source; /* borrowed */
        const Store *store;         /* for layers that a delta omits; borrowed */
        int blob_fd;                /* the last such layer that was opened */
        CatalogImage *images;
        size_t n_images;
        const CatalogImage *chosen; /* image whose layers are read; borrowed */
} Catalog;

/* 'store' may be NULL if no layer will be read. */
int catalog_read(const ImageArchive *source, const Store *store, Catalog **ret, Error *reterr);

/* The image with that digest, or NULL. */
const CatalogImage *catalog_find(const Catalog *catalog, const char *digest);

/* Initialises the blob of a descriptor, under its name in an OCI layout. 0 or -ENOMEM; must be
 * freed in any case. */
int catalog_blob_init(CatalogBlob *blob, const OciDescriptor *descriptor);
void catalog_blob_done(CatalogBlob *blob);

/* For the readers of each format: adds an image, or only its names if the image is already in the
 * list. Takes ownership of the image. 0 or -errno. */
int catalog_add_take(Catalog *catalog, CatalogImage *image, Error *reterr);
void catalog_image_done(CatalogImage *image);

/* Reads the configuration that image->config names, and verifies it if it has a digest; otherwise
 * sets the digest. */
int catalog_read_config(const ImageArchive *source, CatalogImage *image, Error *reterr);
int catalog_take_config(CatalogImage *image, const char *text, size_t length, Error *reterr);

int catalog_read_oci(Catalog *catalog, Error *reterr);
int catalog_read_docker(Catalog *catalog, Error *reterr);

/* The name of the image's format in containers-policy.json(5): "oci-archive" or
 * "docker-archive". */
const char *catalog_image_transport(const CatalogImage *image);

/* The blob from which layer 'i' is read: the delta's, or the layer's own. */
const CatalogBlob *catalog_image_blob(const CatalogImage *image, size_t i);

/* Whether that blob is a difference, which needs the base image. */
bool catalog_image_needs_base(const CatalogImage *image, size_t i);

/* Drops the delta, so that all layers are read from their own blobs. */
void catalog_image_drop_delta(CatalogImage *image);

/* Drops the delta blobs that are not smaller than their layers. 'missing' marks the layers that are
 * needed; '*ret_delta' and '*ret_layers' are the bytes to fetch for them with and without the
 * delta. */
void catalog_image_drop_large_delta_blobs(CatalogImage *image, const bool *missing,
                                          uint64_t *ret_delta, uint64_t *ret_layers);

/* The total size of its compressed layers. */
uint64_t catalog_image_size(const CatalogImage *image);

/* Prints the archive's images on standard output as one JSON document. */
int catalog_print(const Catalog *catalog, Error *reterr);

Catalog *catalog_free(Catalog *catalog);
DEFINE_CLEANUP(Catalog *, catalog_free)
