/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/image-helper/unpack/layer-verify.h"

#include "agent/image-helper/delta/tree-compare.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/store/stored-image.h"
#include "agent/image-helper/unpack/unpack-private.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ANNOTATION_DIGEST "mainstay.image.digest"

/* ---- one layer ---- */

/* Images may be removed during this verification. */
static bool is_record_present(const Store *store, const char *chain_id, int fd) {
        cleanup_close int now = store_open_layer(store, chain_id);
        struct stat a, b;

        return now >= 0 && fstat(now, &a) >= 0 && fstat(fd, &b) >= 0 && a.st_ino == b.st_ino;
}

static void print_layer_faults(LayerVerification *check, const char *chain_id,
                               const TreeComparison *comparison) {
        strv_foreach(fault, comparison->faults)
                (void) printf("layer %s: %s\n", digest_hex(chain_id), *fault);
        if (comparison->n_faults > COMPARE_FAULTS_MAX)
                (void) printf("layer %s: and %u more\n", digest_hex(chain_id),
                              comparison->n_faults - COMPARE_FAULTS_MAX);
        check->faults += comparison->n_faults;
}

static int compare_layer(LayerVerification *check, const ImageUnpack *unpack, size_t i,
                         Error *reterr) {
        cleanup_close int fd = store_open_layer(unpack->store, unpack->chain_ids[i]);
        cleanup_with(tree_comparison_done)
                TreeComparison comparison = { .repairs = check->repairs };
        int r;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd; /* the record is damaged, which is reported
                                                * elsewhere */
        unpack->made[i] = NULL;
        r = compare_trees(&comparison, unpack->stack[unpack->n - 1 - i], fd);
        if (!is_record_present(unpack->store, unpack->chain_ids[i], fd))
                return 0;
        print_layer_faults(check, unpack->chain_ids[i], &comparison);
        if (r >= 0 && comparison.n_faults > 0 && check->repairs && syncfs(fd) < 0)
                r = -errno;
        return r < 0 ? error_prefixf(reterr, r, "layer %s", unpack->chain_ids[i]) : 0;
}

/* ---- one image ---- */

/* Verified layers are used as lower layers. 1: there is a layer to unpack. */
static int place_layers_to_verify(const LayerVerification *check, ImageUnpack *unpack,
                                  Error *reterr) {
        int something = 0;

        for (size_t i = 0; i < unpack->n; i++) {
                int fd = -ENOENT, r;

                digest_chain(i > 0 ? unpack->chain_ids[i - 1] : NULL,
                             unpack->image->settings->diff_ids[i], unpack->chain_ids[i]);
                if (strv_contains(check->seen, unpack->chain_ids[i]))
                        fd = store_open_layer(unpack->store, unpack->chain_ids[i]);
                if (fd >= 0) {
                        unpack->stack[unpack->n - 1 - i] = fd;
                        continue;
                }
                r = image_unpack_place_layer(unpack, i, reterr);
                if (r < 0)
                        return r;
                something = 1;
        }
        return something;
}

static void remove_unpacked_layers(const ImageUnpack *unpack) {
        int work_fd = store_work_fd(unpack->store, NULL);

        for (size_t i = 0; work_fd >= 0 && i < unpack->n; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "%zu", i);
                (void) remove_tree_at(work_fd, name);
        }
}

/* Missing layers are published; the others are compared. */
static int compare_layers(LayerVerification *check, ImageUnpack *unpack, Error *reterr) {
        int r = 0;

        /* A repair moves the unpacked files. */
        if (check->repairs)
                r = store_sync(unpack->store, unpack->made, unpack->n, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < unpack->n; i++) {
                if (!unpack->made[i])
                        continue;
                r = compare_layer(check, unpack, i, reterr);
                if (r < 0)
                        return r;
                r = strv_append(&check->seen, unpack->chain_ids[i]);
                if (r < 0)
                        return r;
        }
        if (!check->repairs)
                return 0;
        /* These layers are complete, because nothing was moved out of them. */
        return store_publish(unpack->store, unpack->made, unpack->n, reterr);
}

static bool has_record(const Store *store, const CatalogImage *image) {
        char path[96];

        (void) snprintf(path, sizeof(path), "records/%.64s.json", digest_hex(image->digest));
        return faccessat(store_fd(store), path, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

int verify_image_layers(LayerVerification *check, const CatalogImage *image,
                        const ImageProvider *source, Store *store, Error *reterr) {
        cleanup_with(image_unpack_done)
                ImageUnpack unpack = { .source = source, .image = image, .store = store };
        int r;

        /* A delta does not contain all layers. */
        if (image->refusal || image->delta || !has_record(store, image))
                return 0;
        r = image_unpack_init(&unpack);
        if (r >= 0)
                r = place_layers_to_verify(check, &unpack, reterr);
        if (r > 0) {
                r = unpack_missing_layers(&unpack, reterr);
                if (r >= 0)
                        r = compare_layers(check, &unpack, reterr);
        }
        remove_unpacked_layers(&unpack);
        return r < 0 ? error_prefixf(reterr, r, "image %s", image->digest) : 0;
}

/* ---- all images with blobs in the store ---- */

/* A layer that cannot be unpacked is reported, and the next one is checked. */
static int verify_stored_image(LayerVerification *check, Store *store, const json_t *item) {
        const json_t *annotations = json_object_get(item, "annotations");
        const char *digest = json_text(annotations, ANNOTATION_DIGEST);
        cleanup_with(catalog_image_done) CatalogImage image = { 0 };
        cleanup_error Error error = ERROR_NULL;
        StoredImage own = { .store = store, .image = &image, .fd = -EBADF };
        ImageProvider source = stored_image_provider(&own);
        OciDescriptor descriptor = { 0 };
        int r;

        r = oci_descriptor_parse(item, &descriptor, &error);
        if (r >= 0)
                r = image_manifest_read(&source, &descriptor, &image, &error);
        if (r == 0 && digest)
                r = digest_parse(digest, image.digest);
        if (r == 0 && stored_image_has_blobs(&own))
                r = verify_image_layers(check, &image, &source, store, &error);
        close_fd(own.fd);
        if (r < 0 && r != -ENOMEM && r != -ENOSPC) {
                cleanup_free char *message = format_safe_message(&error, r);

                check->faults++;
                (void) printf("%s\n", strna(message));
                r = 0;
        }
        return r;
}

int verify_store_layers(LayerVerification *check, Store *store, Error *reterr) {
        cleanup_json json_t *index = NULL;
        const json_t *item;
        size_t i;
        int r = stored_images_read_index(store, &index, reterr);

        if (r < 0)
                return r;
        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                r = verify_stored_image(check, store, item);
                if (r < 0)
                        return error_prefixf(reterr, r, "image store");
        }
        return 0;
}

void layer_verification_done(LayerVerification *check) {
        check->seen = strv_free(check->seen);
}
