/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/store/record-writer.h"
#include "agent/image-helper/unpack/unpack-private.h"
#include "common/failpoint.h"
#include "common/image-user.h"

#include <fcntl.h>
#include <sys/stat.h>

int unpack_find_missing(const CatalogImage *image, const Store *store, bool *ret) {
        char chain_id[DIGEST_SIZE];

        for (size_t i = 0; i < image->settings->n_diff_ids; i++) {
                cleanup_close int fd = -EBADF;

                digest_chain(i > 0 ? chain_id : NULL, image->settings->diff_ids[i], chain_id);
                fd = store_open_layer(store, chain_id);
                if (fd < 0 && fd != -ENOENT)
                        return fd;
                ret[i] = fd < 0;
        }
        return 0;
}

int image_unpack_place_layer(ImageUnpack *unpack, size_t i, Error *reterr) {
        int work_fd = store_work_fd(unpack->store, reterr), fd;
        char name[32];

        if (work_fd < 0)
                return work_fd;
        (void) snprintf(name, sizeof(name), "%zu", i);
        FAIL_AT("unpack.layer");
        if (mkdirat(work_fd, name, 0700) < 0)
                return -errno;
        fd = openat(work_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        unpack->stack[unpack->n - 1 - i] = fd;
        unpack->made[i] = unpack->chain_ids[i];
        return 0;
}

/* Opens the layers that are present. 1: some are missing. */
static int find_layers_to_unpack(ImageUnpack *unpack, Error *reterr) {
        const ImageConfig *settings = unpack->image->settings;
        int missing = 0;

        for (size_t i = 0; i < unpack->n; i++) {
                int fd, r;

                digest_chain(i > 0 ? unpack->chain_ids[i - 1] : NULL, settings->diff_ids[i],
                             unpack->chain_ids[i]);
                fd = store_open_layer(unpack->store, unpack->chain_ids[i]);
                if (fd >= 0) {
                        unpack->stack[unpack->n - 1 - i] = fd;
                        continue;
                }
                r = fd == -ENOENT ? image_unpack_place_layer(unpack, i, reterr) : fd;
                if (r < 0)
                        return r;
                missing = 1;
        }
        return missing;
}

static int provide_layers(ImageUnpack *unpack, Error *reterr) {
        int missing = find_layers_to_unpack(unpack, reterr);

        return missing > 0 ? unpack_missing_layers(unpack, reterr) : missing;
}

static int stage_record(const ImageUnpack *unpack, Error *reterr) {
        LayerView view = { .layers = unpack->stack, .n_layers = unpack->n };
        cleanup_error Error user_error = ERROR_NULL;
        cleanup_free char *text = NULL, *message = NULL;
        ImageUser account = { 0 };
        int r;

        /* A pod that sets a user can still run the image, so the error is reported only for a
         * container that needs the image's user. */
        r = image_user_find_in_layers(unpack->image->settings->user, &view, &account, &user_error);
        if (r < 0 && r != -EINVAL && r != -E2BIG)
                return error_setf(reterr, -r, "%s", error_message(&user_error, r));
        if (r < 0 && !(message = format_safe_message(&user_error, r)))
                return -ENOMEM;
        r = image_record_format(unpack->image, unpack->chain_ids, &account, message, &text);
        image_user_done(&account);
        if (r < 0)
                return r;
        return store_stage_record(unpack->store, unpack->image->digest, text, reterr);
}

static int run_image_unpack(ImageUnpack *unpack, char *const *names, Error *reterr) {
        int r;

        r = provide_layers(unpack, reterr);
        if (r < 0)
                return r;
        r = stage_image_documents(unpack, reterr);
        if (r < 0)
                return r;
        r = stage_record(unpack, reterr);
        if (r < 0)
                return r;
        r = store_sync(unpack->store, unpack->made, unpack->n, reterr);
        if (r < 0)
                return r;
        /* Blobs are published before layers, because the blob of a layer that is present is not
         * pulled. */
        if (unpack->feed)
                r = unpack->feed->on_unpacked(unpack->feed->userdata, reterr);
        if (r < 0)
                return r;
        r = store_publish(unpack->store, unpack->made, unpack->n, reterr);
        if (r < 0)
                return r;
        r = tag_unpacked_image(unpack, names, reterr);
        if (r < 0)
                return r;
        return store_publish_record(unpack->store, reterr);
}

int image_unpack_init(ImageUnpack *unpack) {
        unpack->n = unpack->image->settings->n_diff_ids;
        unpack->chain_ids = calloc(unpack->n, sizeof(*unpack->chain_ids));
        unpack->made = calloc(unpack->n, sizeof(*unpack->made));
        unpack->sizes = calloc(unpack->n, sizeof(*unpack->sizes));
        unpack->stack = malloc(unpack->n * sizeof(*unpack->stack));
        for (size_t i = 0; unpack->stack && i < unpack->n; i++)
                unpack->stack[i] = -EBADF;
        return unpack->chain_ids && unpack->made && unpack->sizes && unpack->stack ? 0 : -ENOMEM;
}

void image_unpack_done(ImageUnpack *unpack) {
        for (size_t i = 0; unpack->stack && i < unpack->n; i++)
                close_fd(unpack->stack[i]);
        delta_base_done(&unpack->base);
        free(unpack->stack);
        free(unpack->made);
        free(unpack->sizes);
        free(unpack->chain_ids);
}

int unpack_image(const CatalogImage *image, const ImageProvider *source,
                 const LayerDownloadFeed *feed, Store *store, char *const *names, Error *reterr) {
        cleanup_with(image_unpack_done) ImageUnpack unpack = {
                .source = source, .image = image, .feed = feed, .store = store
        };
        int r = image_unpack_init(&unpack);

        return r < 0 ? r : run_image_unpack(&unpack, names, reterr);
}
