/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces agent/image/image-store.c: each name is an image of one layer. */

#include "agent/image/image-store.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"
#include "tests/unit/pods/worker/fakes.h"

enum {
        NAMES_MAX = 16
};

struct ImageRequest {
        char *name;
        image_ready_t ready;
        void *userdata;
        ImageRequest *next;
};

static struct {
        char *name;
        FakeImageState state;
} images[NAMES_MAX];

static ImageRequest *requests;

void fake_image_set(const char *name, FakeImageState state) {
        size_t i = 0;

        while (images[i].name && !streq(images[i].name, name))
                i++;
        REQUIRE(i < NAMES_MAX);
        if (!images[i].name)
                images[i].name = strdup(name);
        images[i].state = state;
}

static FakeImageState state_of_image(const char *name) {
        for (size_t i = 0; i < NAMES_MAX && images[i].name; i++)
                if (streq(images[i].name, name))
                        return images[i].state;
        return IMAGE_PRESENT;
}

static Image *make_fake_image(const char *name) {
        Image *image = calloc(1, sizeof(*image));

        REQUIRE(image);
        *image = (Image){ .n_refs = 1,
                          .reference = strdup(name),
                          .digest = text_format("sha256:%064zx", strlen(name)),
                          .groups = calloc(1, sizeof(gid_t)) };
        REQUIRE(strv_append(&image->layers, test_directory()) >= 0);
        REQUIRE(strv_append(&image->entrypoint, "/entrypoint") >= 0);
        return image;
}

int image_store_request(ImageStore *store, const ImageRequestOptions *options, image_ready_t ready,
                        void *userdata, Image **ret_image, ImageRequest **ret_request,
                        Error *reterr) {
        ImageRequest *request;

        switch (state_of_image(options->reference)) {
        case IMAGE_PRESENT:
                *ret_image = make_fake_image(options->reference);
                return 1;
        case IMAGE_MISSING:
                return error_setf(reterr, ENOENT, "no archive has it");
        case IMAGE_INVALID:
                return error_setf(reterr, EINVAL, "invalid reference format");
        case IMAGE_PULLING:
                break;
        }
        fake_request("pull %s", options->reference);
        request = calloc(1, sizeof(*request));
        REQUIRE(request);
        *request = (ImageRequest){ strdup(options->reference), ready, userdata, requests };
        requests = request;
        *ret_request = request;
        return 0;
}

bool image_request_progress(const ImageRequest *request, uint64_t *ret_done, uint64_t *ret_total) {
        *ret_done = MIB;
        *ret_total = 2 * MIB;
        return request != NULL;
}

ImageRequest *image_request_cancel(ImageRequest *request) {
        ImageRequest **link = &requests;

        if (!request)
                return NULL;
        while (*link != request)
                link = &(*link)->next;
        *link = request->next;
        free(request->name);
        free(request);
        return NULL;
}

void fake_pull_ends(const char *name, int r) {
        cleanup_error Error error = ERROR_NULL;
        bool is_found;

        fake_image_set(name, r < 0 ? IMAGE_PULLING : IMAGE_PRESENT);
        if (r < 0)
                (void) error_setf(&error, -r, "the registry refuses it");
        do {
                ImageRequest *request = requests;

                while (request && !streq(request->name, name))
                        request = request->next;
                is_found = request != NULL;
                if (request) {
                        cleanup_with(image_unrefp) Image *image = make_fake_image(name);
                        image_ready_t ready = request->ready;
                        void *userdata = request->userdata;

                        image_request_cancel(request);
                        ready(r, r < 0 ? NULL : image, &error, userdata);
                }
        } while (is_found && r >= 0);
}

const char *image_store_find_digest(const ImageStore *store, const char *name) {
        return state_of_image(name) == IMAGE_PRESENT ? "sha256:1" : NULL;
}

const SourceImages *image_store_source_images(const ImageStore *store, const Pod *pod) {
        return NULL;
}

const char *image_store_path(const ImageStore *store) {
        return test_directory();
}

void image_store_foreach_archive_error(ImageStore *store,
                                       void (*each)(const char *archive, const char *message,
                                                    void *userdata),
                                       void *userdata) {
}
