/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/container-images.h"

#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/pod-pull-secrets.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

#include <inttypes.h>

/* ---- the container's own image ---- */

/* The kubelet's event for each waiting reason; 'container' is NULL for the image of a volume. */
static void record_image_failure(const ContainerInstance *c, const char *container,
                                 const char *reason, const char *message) {
        static const struct {
                const char *state, *reason;
                PodEventKind kind;
        } rows[] = {
                { "InvalidImageName", "InspectFailed", POD_EVENT_WARNING },
                { "ErrImageNeverPull", "ErrImageNeverPull", POD_EVENT_WARNING },
                { "ErrImagePull", "Failed", POD_EVENT_WARNING },
                { "ImagePullBackOff", "BackOff", POD_EVENT_NORMAL },
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                if (streq(rows[i].state, reason))
                        record_pod_event(c->pod, container, rows[i].kind, rows[i].reason, "%s",
                                         message);
        record_pod_event(c->pod, container, POD_EVENT_WARNING, "Failed", "Error: %s", reason);
}

/* Whether the image is on this node, so that no pull was necessary. */
static bool is_image_here(const ContainerImages *images, const char *reference) {
        return !images->is_pulling &&
               image_store_find_digest(images->container->pod->context->images, reference);
}

/* The cause, and the Secrets that could not be used for the pull that failed. */
static char *explain_image_failure(const ContainerImages *images, int r, const Error *error,
                                   bool is_here) {
        const char *problems = is_here ? NULL : images->secret_problems;

        return text_format("%s%s%s%s", error_message(error, r),
                           problems ? " (imagePullSecrets: " : "", strna(problems),
                           problems ? ")" : "");
}

/* As in the kubelet, the first failure in a series reports the error itself, and the following ones
 * report the back-off. Returns the reason. */
static const char *describe_image_failure(const ContainerImages *images, const char *reference,
                                          PullPolicy policy, int r, const Error *error,
                                          char **ret_message) {
        bool is_here = is_image_here(images, reference);
        cleanup_free char *cause = explain_image_failure(images, r, error, is_here);

        if (r == -EINVAL) {
                *ret_message = text_format("Failed to apply default image tag \"%s\": %s",
                                           reference, strna(cause));
                return "InvalidImageName";
        }
        if (r == -ENOENT && policy == PULL_POLICY_NEVER) {
                *ret_message = text_format(
                        "Container image \"%s\" is not present with pull policy of Never",
                        reference);
                return "ErrImageNeverPull";
        }
        if (images->n_failures == 1) {
                *ret_message = text_format("Failed to %s image \"%s\": %s",
                                           is_here ? "load" : "pull", reference, strna(cause));
                return "ErrImagePull";
        }
        *ret_message =
                text_format("Back-off %s image \"%s\": %s%s", is_here ? "loading" : "pulling",
                            reference, is_here ? "" : "ErrImagePull: ", strna(cause));
        return "ImagePullBackOff";
}

static void report_image_failure(ContainerImages *images, int r, const Error *error) {
        const ContainerInstance *c = images->container;
        cleanup_free char *message = NULL;
        const char *reason;

        images->n_failures++;
        reason = describe_image_failure(images, c->spec->image, c->spec->image_pull_policy, r,
                                        error, &message);
        record_image_failure(c, c->spec->name, reason, strna(message));
        container_machine_on_image_failed(c->machine, reason, strna(message));
}

static int find_container_pull_secrets(ContainerImages *images, PullSecrets *ret) {
        const ContainerInstance *c = images->container;
        int r = pull_secrets_find(&c->pod->context->bundle->objects, c->pod->pod, ret);

        images->awaits_secrets = r == -EAGAIN;
        if (r < 0)
                return r;
        free(images->secret_problems);
        images->secret_problems = TAKE_PTR(ret->problems);
        if (ret->unusable)
                record_pod_event(
                        c->pod, NULL, POD_EVENT_WARNING, "FailedToRetrieveImagePullSecret",
                        "Unable to retrieve some image pull secrets (%s); attempting to pull "
                        "the image may not succeed.",
                        ret->unusable);
        return 0;
}

/* The kubelet's events about an image; 'container' is NULL for a volume's image. */
static void record_image_requested(ContainerImages *images, const char *container,
                                   const char *reference) {
        uint64_t done, total;

        images->is_pulling = image_request_progress(images->request, &done, &total);
        if (images->is_pulling)
                record_pod_event(images->container->pod, container, POD_EVENT_NORMAL, "Pulling",
                                 "Pulling image \"%s\"", reference);
}

static void record_image_present(const ContainerImages *images, const char *container,
                                 const char *reference) {
        uint64_t took = now_boottime_usec() - images->asked_at;

        if (images->is_pulling)
                record_pod_event(images->container->pod, container, POD_EVENT_NORMAL, "Pulled",
                                 "Successfully pulled image \"%s\" in %" PRIu64 ".%03" PRIu64 "s",
                                 reference, took / USEC_PER_SEC,
                                 took % USEC_PER_SEC / USEC_PER_MSEC);
        else
                record_pod_event(
                        images->container->pod, container, POD_EVENT_NORMAL, "Pulled",
                        "Container image \"%s\" already present on machine and can be accessed "
                        "by the pod",
                        reference);
}

static void report_image_present(ContainerImages *images) {
        const ContainerInstance *c = images->container;

        images->n_failures = 0;
        record_image_present(images, c->spec->name, c->spec->image);
        container_machine_on_image_ready(c->machine);
}

static void on_container_image_result(int r, Image *image, const Error *error, void *userdata) {
        ContainerImages *images = userdata;

        images->request = NULL;
        if (r < 0) {
                report_image_failure(images, r, error);
                return;
        }
        images->image = image_ref(image);
        report_image_present(images);
}

/* The progress is part of the status. */
static void on_container_pull_progress(void *userdata) {
        const ContainerImages *images = userdata;

        pod_instance_mark_dirty(images->container->pod);
}

static bool is_of_api(const ContainerInstance *container) {
        return container->pod->pod->metadata.source == OBJECT_SOURCE_APISERVER;
}

static void request_container_image(ContainerImages *images) {
        const ContainerInstance *c = images->container;
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pull_secrets_done) PullSecrets secrets = { 0 };
        Image *image = NULL;
        int r;

        images->image = image_unref(images->image);
        images->asked_at = now_boottime_usec();
        images->is_pulling = false;
        r = find_container_pull_secrets(images, &secrets);
        if (r == -EAGAIN)
                return;
        if (r >= 0)
                r = image_store_request(
                        c->pod->context->images,
                        &(ImageRequestOptions){ .reference = c->spec->image,
                                                .policy = c->spec->image_pull_policy,
                                                .secrets = &secrets.list,
                                                .source = image_store_source_images(
                                                        c->pod->context->images, c->pod->pod),
                                                .is_of_api = is_of_api(c),
                                                .progress = on_container_pull_progress },
                        on_container_image_result, images, &image, &images->request, &error);
        if (r == 0)
                record_image_requested(images, c->spec->name, c->spec->image);
        if (r < 0)
                report_image_failure(images, r, &error);
        else if (r > 0) {
                images->image = image;
                report_image_present(images);
        }
}

/* ---- images of volumes ---- */

static const char *volume_image_reason(int r, const ImageVolumeSource *source) {
        if (r == -EINVAL)
                return "InvalidImageName";
        return r == -ENOENT && source->pull_policy == PULL_POLICY_NEVER ? "ErrImageNeverPull"
                                                                        : "ImagePullBackOff";
}

static void report_volume_image_failure(ContainerImages *images, const Volume *volume, int r,
                                        const Error *error) {
        const char *reason = volume_image_reason(r, volume->image), *state;
        cleanup_free char *message = NULL, *event = NULL;

        images->n_failures++;
        state = describe_image_failure(images, volume->image->reference, volume->image->pull_policy,
                                       r, error, &event);
        record_image_failure(images->container, NULL, state, strna(event));

        if (streq(reason, "ErrImageNeverPull"))
                message = text_format(
                        "volume \"%s\": Container image \"%s\" is not present with pull policy of "
                        "Never",
                        volume->name, volume->image->reference);
        else
                message = text_format("volume \"%s\": Back-off pulling image \"%s\": %s",
                                      volume->name, volume->image->reference,
                                      error_message(error, r));
        container_machine_on_image_failed(images->container->machine, reason, strna(message));
}

static void request_volume_images_from(ContainerImages *images, size_t from);

static void on_volume_image_result(int r, Image *image, const Error *error, void *userdata) {
        ContainerImages *images = userdata;
        const PodSpec *spec = &images->container->pod->pod->spec;
        size_t i = images->pending_volume;

        images->request = NULL;
        if (r < 0) {
                report_volume_image_failure(images, &spec->volumes.items[i], r, error);
                return;
        }
        images->volumes[i] = image_ref(image);
        record_image_present(images, NULL, spec->volumes.items[i].image->reference);
        request_volume_images_from(images, i + 1);
}

static bool container_needs_volume_image(const Container *container, const Volume *volume) {
        if (!volume->image)
                return false;
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                if (streq(container->volume_mounts.items[i].name, volume->name))
                        return true;
        return false;
}

/* 1: it is present; 0: its result follows; -errno: it failed. */
static int request_volume_image(ContainerImages *images, size_t i, Error *reterr) {
        const ContainerInstance *c = images->container;
        const ImageVolumeSource *source = c->pod->pod->spec.volumes.items[i].image;
        cleanup_with(pull_secrets_done) PullSecrets secrets = { 0 };
        int r;

        images->pending_volume = i;
        images->asked_at = now_boottime_usec();
        images->is_pulling = false;
        r = find_container_pull_secrets(images, &secrets);
        if (r < 0)
                return r;
        r = image_store_request(
                c->pod->context->images,
                &(ImageRequestOptions){
                        .reference = source->reference,
                        .policy = source->pull_policy,
                        .secrets = &secrets.list,
                        .source = image_store_source_images(c->pod->context->images, c->pod->pod),
                        .is_of_api = is_of_api(c),
                        .progress = on_container_pull_progress },
                on_volume_image_result, images, &images->volumes[i], &images->request, reterr);
        if (r == 0)
                record_image_requested(images, NULL, source->reference);
        else if (r > 0)
                record_image_present(images, NULL, source->reference);
        return r;
}

/* Stops at the first image that is not present; the arrival of its result continues the loop. */
static void request_volume_images_from(ContainerImages *images, size_t from) {
        const ContainerInstance *c = images->container;
        const PodSpec *spec = &c->pod->pod->spec;

        for (size_t i = from; i < spec->volumes.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (!container_needs_volume_image(c->spec, &spec->volumes.items[i]))
                        continue;
                r = request_volume_image(images, i, &error);
                if (r < 0 && !images->awaits_secrets)
                        report_volume_image_failure(images, &spec->volumes.items[i], r, &error);
                if (r <= 0)
                        return;
        }
        request_container_image(images);
}

static void release_volume_images(ContainerImages *images) {
        for (size_t i = 0; images->volumes && i < images->n_volumes; i++)
                image_unref(images->volumes[i]);
        free(images->volumes);
        images->volumes = NULL;
        images->n_volumes = 0;
}

/* ---- interface ---- */

void container_images_request(ContainerImages *images) {
        size_t n = images->container->pod->pod->spec.volumes.n;

        release_volume_images(images);
        images->volumes = calloc(n + 1, sizeof(Image *));
        if (images->volumes) {
                images->n_volumes = n;
                request_volume_images_from(images, 0);
                return;
        }
        container_machine_on_image_failed(images->container->machine, "ErrImagePull",
                                          strerror(ENOMEM));
}

void container_images_on_objects_changed(ContainerImages *images) {
        if (images->awaits_secrets)
                container_images_request(images);
}

void container_images_cancel(ContainerImages *images) {
        images->awaits_secrets = false;
        images->request = image_request_cancel(images->request);
}

char *container_images_progress(const ContainerImages *images) {
        uint64_t done, total;

        if (!image_request_progress(images->request, &done, &total))
                return NULL;
        if (total == 0)
                return strdup("Pulling image");
        return text_format("Pulling image: %.1f of %.1f MiB", (double) done / (double) MIB,
                           (double) total / (double) MIB);
}

void container_images_done(ContainerImages *images) {
        container_images_cancel(images);
        free(images->secret_problems);
        images->secret_problems = NULL;
        images->image = image_unref(images->image);
        release_volume_images(images);
}
