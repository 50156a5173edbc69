/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Deltas between images, in the format of oci-delta (github.com/containers/oci-delta, README.md,
 * "Delta file format"): an artifact in a registry, or the same as an OCI layout in a tar file. Its
 * manifest has
 *
 *     artifactType   application/vnd.io.github.containers.oci-delta.v1
 *     subject        the new image's manifest, whose referrers in a registry include the artifact
 *     annotations    io.github.containers.delta.target          digest of the new image's manifest
 *                    io.github.containers.delta.source          of the old one's manifest
 *                    io.github.containers.delta.source-config   of the old one's configuration
 *                    io.github.containers.delta.reused, …reused-diff-id   layers that it
 *                    omits, because the old image has them
 *     layers         blobs, each with the annotation io.github.containers.delta.content:
 *                    image-manifest, image-config: of the new image, whole
 *                    image-layer: with io.github.containers.delta.to, the digest of the layer that
 *                    it creates; of the type application/vnd.tar-diff (tar-patch.h), whose source
 *                    is the old image, or the layer itself with any compression
 *                    others, such as cosign-signature, are ignored
 *
 * The old image is found by its configuration: unlike the manifest's digest, the configuration's
 * stays the same when the layers are recompressed. */

#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/registry/registry-client.h"

#define ANNOTATION_DELTA_SOURCE  "io.github.containers.delta.source"
#define ANNOTATION_DELTA_CONFIG  "io.github.containers.delta.source-config"
#define ANNOTATION_DELTA_TARGET  "io.github.containers.delta.target"
#define ANNOTATION_DELTA_REUSED  "io.github.containers.delta.reused"
#define ANNOTATION_DELTA_DIFF_ID "io.github.containers.delta.reused-diff-id"
#define ANNOTATION_DELTA_CONTENT "io.github.containers.delta.content"
#define ANNOTATION_DELTA_TO      "io.github.containers.delta.to"

/* Reads an artifact that the descriptor refers to, and that contains all documents of the new
 * image, into 'image', which the caller frees, also on failure. 1: it is not a delta. */
int image_delta_read(const ImageProvider *source, const OciDescriptor *descriptor,
                     CatalogImage *image, Error *reterr);

/* Adds the blobs of an artifact's manifest to the image, which has already been read. 0; or -errno
 * with a message, after which the image has no delta. */
int image_delta_attach(const json_t *manifest, CatalogImage *image, Error *reterr);

/* The layers of an image in the store to which a delta is applied. */
typedef struct DeltaBase {
        int *layers; /* topmost first */
        size_t n;
} DeltaBase;

/* Opens the layers of the image whose configuration has that digest. 0; -ENOENT with a message if
 * the image or one of its layers is not in the store; or -errno. */
int delta_base_open(const Store *store, const char *config_digest, DeltaBase *ret, Error *reterr);
void delta_base_done(DeltaBase *base);

/* Whether the base can be opened. */
bool delta_base_is_present(const Store *store, const char *config_digest);
