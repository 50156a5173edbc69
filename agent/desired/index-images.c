/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/index-images.h"

#include "agent/desired/index-objects.h"
#include "agent/model/match.h"
#include "agent/pods/manager/pod-images.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/text.h"

struct IndexImages {
        IndexImagesConfig config;
        const SourceImages *named; /* images named by the index; NULL: nothing is being fetched */
        ImageSet wanted;           /* the images that this node needs */
        size_t n_here;             /* number of wanted images that are present; these are the first
                                    * ones */
        ImageRequest *request;     /* for the next one */
        sd_event_source *stop;     /* ends the operation if it must not continue */
        uint64_t bytes_here, since;
};

/* ---- the wanted images ---- */

typedef struct WantedImages {
        const NodeLabelsTaints *node;
        ImageSet set;
} WantedImages;

/* Taints are ignored: one image too many does less harm than a missing one. */
static void want_images_of_pod(const Pod *pod, void *userdata) {
        WantedImages *wanted = userdata;

        if (pod_matches_node(&pod->spec, wanted->node))
                pod_list_images(pod, &wanted->set);
}

/* Images that the index does not name are pulled when a pod needs them. */
static int choose_wanted_images(IndexImages *images, int manifests_fd, Error *reterr) {
        cleanup_with(index_objects_done) IndexObjects objects = { 0 };
        WantedImages wanted = { .node = images->config.node };
        int r = index_objects_read(manifests_fd, images->config.node->name, &objects);

        if (r < 0)
                return error_prefixf(reterr, r, "the manifests");
        index_objects_foreach_pod(&objects, want_images_of_pod, &wanted);
        for (size_t i = 0; i < wanted.set.n; i++)
                if (source_images_find(images->named, wanted.set.names[i]))
                        image_set_add(&images->wanted, wanted.set.names[i]);
        r = wanted.set.is_everything || images->wanted.is_everything ? -ENOMEM : 0;
        image_set_done(&wanted.set);
        return r;
}

/* ---- fetching ---- */

static void end_index_images(IndexImages *images) {
        images->request = image_request_cancel(images->request);
        (void) sd_event_source_set_enabled(images->stop, SD_EVENT_OFF);
        image_set_done(&images->wanted);
        images->wanted = IMAGE_SET_NULL;
        images->named = NULL;
}

static uint64_t wanted_image_bytes(const IndexImages *images, size_t i) {
        const SourceImage *image = source_images_find(images->named, images->wanted.names[i]);

        return image ? image->bytes : 0;
}

static int explain_wanted_image(const IndexImages *images, int r, const Error *error,
                                Error *reterr) {
        return error_setf(reterr, r == -ENOMEM ? ENOMEM : EAGAIN,
                          "image %s: %s; %zu of the %zu images that this node needs are present",
                          images->wanted.names[images->n_here], error_message(error, r),
                          images->n_here, images->wanted.n);
}

static int request_wanted_images(IndexImages *images, Error *reterr);

static void finish_index_images(IndexImages *images, int r, const Error *error) {
        end_index_images(images);
        images->config.on_done(r, error, images->config.userdata);
}

static void on_wanted_image(int r, Image *image, const Error *error, void *userdata) {
        IndexImages *images = userdata;
        cleanup_error Error own = ERROR_NULL;

        images->request = NULL;
        if (r < 0) {
                r = explain_wanted_image(images, r, error, &own);
        } else {
                images->bytes_here += wanted_image_bytes(images, images->n_here++);
                r = request_wanted_images(images, &own);
        }
        if (r != 0)
                finish_index_images(images, MIN(r, 0), &own);
}

/* A request must not be cancelled here. */
static void on_wanted_image_progress(void *userdata) {
        const IndexImages *images = userdata;

        if (!images->config.may_continue(NULL, images->config.userdata))
                (void) sd_event_source_set_enabled(images->stop, SD_EVENT_ONESHOT);
}

static int on_stop_due(sd_event_source *source, void *userdata) {
        IndexImages *images = userdata;
        cleanup_error Error error = ERROR_NULL;

        if (images->named && !images->config.may_continue(&error, images->config.userdata))
                finish_index_images(images, -ECANCELED, &error);
        return 0;
}

/* 1: all images are present; 0: one is being fetched; -errno. */
static int request_wanted_images(IndexImages *images, Error *reterr) {
        for (; images->n_here < images->wanted.n; images->n_here++) {
                cleanup_with(image_unrefp) Image *image = NULL;
                cleanup_error Error error = ERROR_NULL;
                int r = image_store_request(
                        images->config.store,
                        &(ImageRequestOptions){ .reference = images->wanted.names[images->n_here],
                                                .progress = on_wanted_image_progress,
                                                .source = images->named },
                        on_wanted_image, images, &image, &images->request, &error);

                if (r < 0)
                        return explain_wanted_image(images, r, &error, reterr);
                if (r == 0)
                        return 0;
                images->bytes_here += wanted_image_bytes(images, images->n_here);
        }
        return 1;
}

int index_images_begin(IndexImages *images, int manifests_fd, const SourceImages *named,
                       Error *reterr) {
        int r;

        end_index_images(images);
        images->named = named;
        images->n_here = 0;
        images->bytes_here = 0;
        images->since = now_boottime_usec();
        r = choose_wanted_images(images, manifests_fd, reterr);
        if (r >= 0)
                r = request_wanted_images(images, reterr);
        if (r != 0)
                end_index_images(images);
        return r;
}

char *index_images_progress(const IndexImages *images) {
        uint64_t total = 0, here = images->bytes_here, arriving = 0, whole, usec;

        if (!images->named || !images->request)
                return NULL;
        for (size_t i = 0; i < images->wanted.n; i++)
                total += wanted_image_bytes(images, i);
        usec = now_boottime_usec() - images->since;
        (void) image_request_progress(images->request, &arriving, &whole);
        return text_format("%zu of %zu images are here, %.1f of at most %.1f MiB, %.2f MiB/s",
                           images->n_here, images->wanted.n,
                           (double) (here + arriving) / (double) MIB, (double) total / (double) MIB,
                           (double) arriving / (double) MIB /
                                   ((double) MAX(usec, (uint64_t) 1) / (double) USEC_PER_SEC));
}

/* ---- construction ---- */

int index_images_new(const IndexImagesConfig *config, IndexImages **ret) {
        cleanup_with(index_images_freep) IndexImages *images = calloc(1, sizeof(*images));
        int r;

        if (!images)
                return -ENOMEM;
        images->config = *config;
        r = event_add_disabled_defer(config->event, &images->stop, SD_EVENT_PRIORITY_NORMAL,
                                     on_stop_due, images);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(images);
        return 0;
}

IndexImages *index_images_free(IndexImages *images) {
        if (!images)
                return NULL;
        end_index_images(images);
        sd_event_source_disable_unref(images->stop);
        free(images);
        return NULL;
}
