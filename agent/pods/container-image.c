/* SPDX-License-Identifier: Apache-2.0 */
/* Images for containers: what is shown to the registry, and what is said of a failure. Reasons,
 * sentences and events are the kubelet's; what the registry said stands in them as it is. */

#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "agent/pods/pull-secrets.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* ---- failures ---- */

/* What went wrong, and what the container's state says of it. */
static void record_image_failure(const PodContainer *c, const char *reason, const char *message) {
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
                        record_pod_event(c->pod, c->spec->name, rows[i].kind, rows[i].reason, "%s",
                                         message);
        record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "Failed", "Error: %s", reason);
}

/* The first failure of a row is the error itself; after it the kubelet speaks of its back-off. */
static void on_image_failure(PodContainer *c, int r, const Error *error) {
        const char *image = c->spec->image, *said = error_message(error, r);
        cleanup_free char *message = NULL;
        const char *reason = "ImagePullBackOff";
        int n;

        c->image_failures++;
        if (r == -EINVAL) {
                reason = "InvalidImageName";
                n = asprintf(&message, "Failed to apply default image tag \"%s\": %s", image, said);
        } else if (r == -ENOENT && c->spec->image_pull_policy == PULL_POLICY_NEVER) {
                reason = "ErrImageNeverPull";
                n = asprintf(&message,
                             "Container image \"%s\" is not present with pull policy of Never",
                             image);
        } else if (c->image_failures == 1) {
                reason = "ErrImagePull";
                n = asprintf(&message, "Failed to pull image \"%s\": %s", image, said);
        } else {
                n = asprintf(&message, "Back-off pulling image \"%s\": ErrImagePull: %s", image,
                             said);
        }
        if (n < 0)
                message = NULL;
        record_image_failure(c, reason, strna(message));
        container_machine_on_image_failed(c->machine, reason, strna(message));
}

/* ---- what is shown ---- */

static int find_image_pull_secrets(const PodContainer *c, char ***ret) {
        cleanup_free char *missing = NULL;
        int r = find_pull_secrets(&c->pod->context->bundle->objects, c->pod->pod, ret, &missing);

        if (r >= 0 && missing)
                record_pod_event(
                        c->pod, NULL, POD_EVENT_WARNING, "FailedToRetrieveImagePullSecret",
                        "Unable to retrieve some image pull secrets (%s); attempting to pull "
                        "the image may not succeed.",
                        missing);
        return r;
}

/* ---- success ---- */

static void on_image_present(PodContainer *c) {
        uint64_t took = now_boottime_usec() - c->image_asked_at;

        c->image_failures = 0;
        if (c->is_pulling)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Pulled",
                                 "Successfully pulled image \"%s\" in %" PRIu64 ".%03" PRIu64 "s",
                                 c->spec->image, took / USEC_PER_SEC,
                                 took % USEC_PER_SEC / USEC_PER_MSEC);
        else
                record_pod_event(
                        c->pod, c->spec->name, POD_EVENT_NORMAL, "Pulled",
                        "Container image \"%s\" already present on machine and can be accessed "
                        "by the pod",
                        c->spec->image);
        container_machine_on_image_ready(c->machine);
}

static void on_own_image_result(int r, Image *image, const Error *error, void *userdata) {
        PodContainer *c = userdata;

        c->image_request = NULL;
        if (r < 0) {
                on_image_failure(c, r, error);
                return;
        }
        c->image = image_ref(image);
        on_image_present(c);
}

/* For who watches. */
void pod_container_on_pull_progress(void *userdata) {
        const PodContainer *c = userdata;

        pod_worker_mark_dirty(c->pod);
}

void pod_container_request_own_image(PodContainer *c) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_pull_secrets char **auths = NULL;
        uint64_t done, total;
        Image *image = NULL;
        int r;

        c->image = image_unref(c->image);
        c->image_asked_at = now_boottime_usec();
        r = find_image_pull_secrets(c, &auths);
        if (r >= 0)
                r = image_store_request(
                        c->pod->context->images,
                        &(ImageRequestOptions){ .reference = c->spec->image,
                                                .policy = c->spec->image_pull_policy,
                                                .auths = auths,
                                                .progress = pod_container_on_pull_progress },
                        on_own_image_result, c, &image, &c->image_request, &error);
        c->is_pulling = r == 0 && image_request_progress(c->image_request, &done, &total);
        if (c->is_pulling)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Pulling",
                                 "Pulling image \"%s\"", c->spec->image);
        if (r < 0)
                on_image_failure(c, r, &error);
        else if (r > 0) {
                c->image = image;
                on_image_present(c);
        }
}

void pod_container_cancel_image_request(void *userdata) {
        PodContainer *c = userdata;

        c->image_request = image_request_cancel(c->image_request);
}

/* How it goes, for who asks. */
char *pod_container_pull_progress(const PodContainer *c) {
        uint64_t done, total;
        char *text;
        int n;

        if (!image_request_progress(c->image_request, &done, &total))
                return NULL;
        if (total > 0)
                n = asprintf(&text, "Pulling image: %.1f of %.1f MiB", (double) done / (double) MIB,
                             (double) total / (double) MIB);
        else
                n = asprintf(&text, "Pulling image");
        return n < 0 ? NULL : text;
}
