/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/successor-preflight.h"

#include "agent/bundle/pod-preflight.h"
#include "agent/model/containers.h"
#include "agent/pods/manager/preflight-paths.h"
#include "agent/pods/pod/pod-pull-secrets.h"
#include "common/cleanup.h"

/* The image of a container, or of a volume that it mounts. */
typedef struct PreflightImage {
        Preflight *preflight;
        const char *reference;
        PullPolicy policy;
        ImageRequest *request;
        int result; /* result of the last request, < 0 */
        char *message;
} PreflightImage;

struct Preflight {
        PodContext *context;
        const Pod *pod;
        void (*on_change)(void *userdata);
        void *userdata;
        PreflightImage *requests;
        Image **images; /* NULL: not present yet; those of containers first, in the order of
                           bundle_preflight_pod() */
        size_t n;
        PreflightPaths *paths; /* NULL: not requested since the last retry */
};

static bool is_volume_mounted(const PodSpec *spec, const Volume *volume) {
        const Container *container;

        pod_foreach_container(container, spec)
                for (size_t i = 0; i < container->volume_mounts.n; i++)
                        if (streq(container->volume_mounts.items[i].name, volume->name))
                                return true;
        return false;
}

static void add_preflight_image(Preflight *preflight, const char *reference, PullPolicy policy) {
        preflight->requests[preflight->n++] = (PreflightImage){
                .preflight = preflight,
                .reference = reference,
                .policy = policy,
        };
}

int preflight_new(PodContext *context, const Pod *pod, void (*on_change)(void *userdata),
                  void *userdata, Preflight **ret) {
        cleanup_with(preflight_freep) Preflight *preflight = calloc(1, sizeof(*preflight));
        size_t n = pod_count_containers(&pod->spec) + pod->spec.volumes.n;
        const Container *container;

        if (!preflight)
                return -ENOMEM;
        preflight->context = context;
        preflight->pod = pod;
        preflight->on_change = on_change;
        preflight->userdata = userdata;
        preflight->requests = calloc(n, sizeof(PreflightImage));
        preflight->images = calloc(n, sizeof(Image *));
        if (!preflight->requests || !preflight->images)
                return -ENOMEM;
        pod_foreach_container(container, &pod->spec)
                add_preflight_image(preflight, container->image, container->image_pull_policy);
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (pod->spec.volumes.items[i].image &&
                    is_volume_mounted(&pod->spec, &pod->spec.volumes.items[i]))
                        add_preflight_image(preflight, pod->spec.volumes.items[i].image->reference,
                                            pod->spec.volumes.items[i].image->pull_policy);
        *ret = TAKE_PTR(preflight);
        return 0;
}

Preflight *preflight_free(Preflight *preflight) {
        if (!preflight)
                return NULL;
        for (size_t i = 0; i < preflight->n; i++) {
                image_request_cancel(preflight->requests[i].request);
                free(preflight->requests[i].message);
                image_unref(preflight->images[i]);
        }
        preflight_paths_free(preflight->paths);
        free(preflight->requests);
        free(preflight->images);
        free(preflight);
        return NULL;
}

static void set_image_error(PreflightImage *image, int r, const Error *error) {
        free(image->message);
        image->result = r;
        image->message = strdup(error_message(error, r));
}

static void on_preflight_image(int r, Image *found, const Error *error, void *userdata) {
        PreflightImage *image = userdata;
        Preflight *preflight = image->preflight;

        image->request = NULL;
        if (r < 0)
                set_image_error(image, r, error);
        else
                preflight->images[image - preflight->requests] = image_ref(found);
        preflight->on_change(preflight->userdata);
}

static void request_preflight_image(Preflight *preflight, size_t i) {
        PreflightImage *image = &preflight->requests[i];
        cleanup_with(pull_secrets_done) PullSecrets secrets = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (preflight->images[i] || image->request || image->result < 0)
                return;
        r = pull_secrets_find(&preflight->context->bundle->objects, preflight->pod, &secrets);
        if (r >= 0)
                r = image_store_request(
                        preflight->context->images,
                        &(ImageRequestOptions){ .reference = image->reference,
                                                .policy = image->policy,
                                                .secrets = &secrets.list,
                                                .source = image_store_source_images(
                                                        preflight->context->images, preflight->pod),
                                                .is_of_api = preflight->pod->metadata.source ==
                                                             OBJECT_SOURCE_APISERVER },
                        on_preflight_image, image, &preflight->images[i], &image->request, &error);
        if (r < 0 && r != -EAGAIN) /* a Secret is being decrypted */
                set_image_error(image, r, &error);
}

static int step_preflight_paths(Preflight *preflight, Error *reterr) {
        int r = 0;

        if (!preflight->paths)
                r = preflight_paths_new(preflight->context->event, preflight->pod,
                                        preflight->on_change, preflight->userdata,
                                        &preflight->paths);
        return r < 0 ? r : preflight_paths_result(preflight->paths, reterr);
}

int preflight_step(Preflight *preflight, Error *reterr) {
        const PodContext *context = preflight->context;
        const char *runtime;
        bool has_all_images = true;
        int r;

        if (context->network->not_ready && !preflight->pod->spec.host_network)
                return error_setf(reterr, EAGAIN, "network is not ready: %s",
                                  context->network->not_ready);
        for (size_t i = 0; i < preflight->n; i++) {
                request_preflight_image(preflight, i);
                has_all_images = has_all_images && preflight->images[i];
        }
        for (size_t i = 0; i < preflight->n; i++)
                if (preflight->requests[i].result < 0)
                        return error_setf(reterr, -preflight->requests[i].result,
                                          "image \"%s\": %s", preflight->requests[i].reference,
                                          strna(preflight->requests[i].message));
        r = check_pod_classes(&context->bundle->objects, &context->runtimes, preflight->pod,
                              &runtime, reterr);
        if (r < 0 || !has_all_images)
                return r;
        r = bundle_preflight_pod(context->bundle, preflight->pod, preflight->images, reterr);
        return r < 0 ? r : step_preflight_paths(preflight, reterr);
}

void preflight_retry(Preflight *preflight) {
        for (size_t i = 0; i < preflight->n; i++)
                preflight->requests[i].result = 0;
        preflight->paths = preflight_paths_free(preflight->paths);
}
