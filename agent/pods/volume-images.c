/* SPDX-License-Identifier: Apache-2.0 */
/* The images that a container mounts as volumes: got one after another, before its own. They are
 * held for as long as the attempt may run. */

#include "agent/pods/pod-worker-private.h"
#include "agent/pods/pull-secrets.h"
#include "common/cleanup.h"

static void request_next_volume_image(PodContainer *c, size_t from);

static const char *volume_image_reason(int r, const ImageVolumeSource *source) {
        if (r == -EINVAL)
                return "InvalidImageName";
        return r == -ENOENT && source->pull_policy == PULL_POLICY_NEVER ? "ErrImageNeverPull"
                                                                        : "ImagePullBackOff";
}

static void on_volume_image_failure(PodContainer *c, const Volume *volume, int r,
                                    const Error *error) {
        const char *reason = volume_image_reason(r, volume->image);
        cleanup_free char *message = NULL;
        int n;

        if (streq(reason, "ErrImageNeverPull"))
                n = asprintf(&message,
                             "volume \"%s\": Container image \"%s\" is not present with pull "
                             "policy of Never",
                             volume->name, volume->image->reference);
        else
                n = asprintf(&message, "volume \"%s\": Back-off pulling image \"%s\": %s",
                             volume->name, volume->image->reference, error_message(error, r));
        container_machine_on_image_failed(c->machine, reason, n < 0 ? "" : message);
}

static void on_volume_image_result(int r, Image *image, const Error *error, void *userdata) {
        PodContainer *c = userdata;
        size_t i = c->volume_at;

        c->image_request = NULL;
        if (r < 0) {
                on_volume_image_failure(c, &c->pod->pod->spec.volumes.items[i], r, error);
                return;
        }
        c->volume_images[i] = image_ref(image);
        request_next_volume_image(c, i + 1);
}

static bool container_needs_volume_image(const PodContainer *c, const Volume *volume) {
        if (!volume->image)
                return false;
        for (size_t i = 0; i < c->spec->volume_mounts.n; i++)
                if (streq(c->spec->volume_mounts.items[i].name, volume->name))
                        return true;
        return false;
}

/* Those that are here are taken at once; the first that is not is waited for. */
static void request_next_volume_image(PodContainer *c, size_t from) {
        const PodSpec *spec = &c->pod->pod->spec;

        for (size_t i = from; i < spec->volumes.n; i++) {
                cleanup_pull_secrets char **auths = NULL;
                cleanup_free char *missing = NULL;
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (!container_needs_volume_image(c, &spec->volumes.items[i]))
                        continue;
                c->volume_at = i;
                r = find_pull_secrets(&c->pod->context->bundle->objects, c->pod->pod, &auths,
                                      &missing);
                if (r >= 0)
                        r = image_store_request(
                                c->pod->context->images,
                                &(ImageRequestOptions){
                                        .reference = spec->volumes.items[i].image->reference,
                                        .policy = spec->volumes.items[i].image->pull_policy,
                                        .auths = auths,
                                        .progress = pod_container_on_pull_progress },
                                on_volume_image_result, c, &c->volume_images[i], &c->image_request,
                                &error);
                if (r < 0)
                        on_volume_image_failure(c, &spec->volumes.items[i], r, &error);
                if (r <= 0)
                        return;
        }
        pod_container_request_own_image(c);
}

void pod_container_request_images(void *userdata) {
        PodContainer *c = userdata;
        size_t n = c->pod->pod->spec.volumes.n;

        pod_container_release_volume_images(c);
        c->volume_images = calloc(n + 1, sizeof(Image *));
        if (c->volume_images) {
                c->n_volume_images = n;
                request_next_volume_image(c, 0);
                return;
        }
        container_machine_on_image_failed(c->machine, "ErrImagePull", strerror(ENOMEM));
}

void pod_container_release_volume_images(PodContainer *c) {
        for (size_t i = 0; c->volume_images && i < c->n_volume_images; i++)
                image_unref(c->volume_images[i]);
        free(c->volume_images);
        c->volume_images = NULL;
        c->n_volume_images = 0;
}
