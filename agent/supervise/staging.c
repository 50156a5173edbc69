/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/staging.h"

#include "agent/bundle/check.h"
#include "agent/model/containers.h"
#include "agent/supervise/pull-secrets.h"
#include "common/cleanup.h"

/* The image of one container, or of a volume that one mounts. */
typedef struct StagedImage {
        Staging *staging;
        const char *reference;
        PullPolicy policy;
        ImageRequest *request;
        int result; /* of the last request, < 0 */
        char *sentence;
} StagedImage;

struct Staging {
        PodContext *context;
        const Pod *pod;
        void (*on_news)(void *userdata);
        void *userdata;
        StagedImage *staged;
        Image **images; /* NULL: not here yet; those of containers first, as bundle_check() has them
                         */
        size_t n;
};

static bool is_mounted(const PodSpec *spec, const Volume *volume) {
        const Container *container;

        pod_foreach_container(container, spec)
                for (size_t i = 0; i < container->volume_mounts.n; i++)
                        if (streq(container->volume_mounts.items[i].name, volume->name))
                                return true;
        return false;
}

static void add(Staging *staging, const char *reference, PullPolicy policy) {
        staging->staged[staging->n++] = (StagedImage){
                .staging = staging,
                .reference = reference,
                .policy = policy,
        };
}

int staging_new(PodContext *context, const Pod *pod, void (*on_news)(void *userdata),
                void *userdata, Staging **ret) {
        cleanup_with(staging_freep) Staging *staging = calloc(1, sizeof(*staging));
        size_t n = pod_count_containers(&pod->spec) + pod->spec.volumes.n;
        const Container *container;

        if (!staging)
                return -ENOMEM;
        staging->context = context;
        staging->pod = pod;
        staging->on_news = on_news;
        staging->userdata = userdata;
        staging->staged = calloc(n, sizeof(StagedImage));
        staging->images = calloc(n, sizeof(Image *));
        if (!staging->staged || !staging->images)
                return -ENOMEM;
        pod_foreach_container(container, &pod->spec)
                add(staging, container->image, container->image_pull_policy);
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (pod->spec.volumes.items[i].image &&
                    is_mounted(&pod->spec, &pod->spec.volumes.items[i]))
                        add(staging, pod->spec.volumes.items[i].image->reference,
                            pod->spec.volumes.items[i].image->pull_policy);
        *ret = TAKE_PTR(staging);
        return 0;
}

Staging *staging_free(Staging *staging) {
        if (!staging)
                return NULL;
        for (size_t i = 0; i < staging->n; i++) {
                image_request_cancel(staging->staged[i].request);
                free(staging->staged[i].sentence);
                image_unref(staging->images[i]);
        }
        free(staging->staged);
        free(staging->images);
        free(staging);
        return NULL;
}

static void set_failure(StagedImage *image, int r, const Error *error) {
        free(image->sentence);
        image->result = r;
        image->sentence = strdup(error_message(error, r));
}

static void on_image(int r, Image *found, const Error *error, void *userdata) {
        StagedImage *image = userdata;
        Staging *staging = image->staging;

        image->request = NULL;
        if (r < 0)
                set_failure(image, r, error);
        else
                staging->images[image - staging->staged] = image_ref(found);
        staging->on_news(staging->userdata);
}

static void ask(Staging *staging, size_t i) {
        StagedImage *image = &staging->staged[i];
        cleanup_pull_secrets char **auths = NULL;
        cleanup_free char *missing = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (staging->images[i] || image->request || image->result < 0)
                return;
        r = pull_secrets_find(&staging->context->bundle->objects, staging->pod, &auths, &missing);
        if (r >= 0)
                r = image_store_request(staging->context->images,
                                        &(ImageWish){ .reference = image->reference,
                                                      .policy = image->policy,
                                                      .auths = auths },
                                        on_image, image, &staging->images[i], &image->request,
                                        &error);
        if (r < 0)
                set_failure(image, r, &error);
}

int staging_step(Staging *staging, Error *reterr) {
        const PodContext *context = staging->context;
        const char *runtime;
        bool is_whole = true;
        int r;

        for (size_t i = 0; i < staging->n; i++) {
                ask(staging, i);
                is_whole = is_whole && staging->images[i];
        }
        for (size_t i = 0; i < staging->n; i++)
                if (staging->staged[i].result < 0)
                        return error_setf(reterr, -staging->staged[i].result, "image \"%s\": %s",
                                          staging->staged[i].reference,
                                          strna(staging->staged[i].sentence));
        r = classes_check(&context->bundle->objects, &context->runtimes, staging->pod, &runtime,
                          reterr);
        if (r < 0 || !is_whole)
                return r;
        r = bundle_check(context->bundle, staging->pod, staging->images, reterr);
        return r < 0 ? r : 1;
}

void staging_retry(Staging *staging) {
        for (size_t i = 0; i < staging->n; i++)
                staging->staged[i].result = 0;
}
