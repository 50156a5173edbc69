/* SPDX-License-Identifier: Apache-2.0 */

/* Manual pulls, requested at the command line. The last few results are kept, because the client
 * requests them later. */

#include "agent/image/manual-pulls.h"

#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/list.h"

enum {
        MANUAL_PULLS_MAX = 16
};

struct ManualPull {
        char *reference;
        ImageRequest *request; /* NULL: it has ended */
        char *error, *digest;
        ManualPull *next;
};

static ManualPull *manual_pull_free(ManualPull *pull) {
        if (!pull)
                return NULL;
        image_request_cancel(pull->request);
        free(pull->reference);
        free(pull->error);
        free(pull->digest);
        free(pull);
        return NULL;
}

DEFINE_CLEANUP(ManualPull *, manual_pull_free)

static void finish_manual_pull(ManualPull *pull, int r, const Image *image, const Error *error) {
        pull->request = NULL;
        if (r < 0)
                pull->error = strdup(error_message(error, r));
        else
                pull->digest = strdup(image->digest);
}

static void on_manual_pull_done(int r, Image *image, const Error *error, void *userdata) {
        finish_manual_pull(userdata, r, image, error);
}

/* Replaces the previous pull with that name, and drops the oldest finished one if there are too
 * many. */
static void forget_ended_manual_pulls(ManualPulls *pulls, const char *reference) {
        unsigned n = 0;

        for (ManualPull **at = &pulls->first; *at;) {
                ManualPull *pull = *at;

                if (!pull->request &&
                    (streq(pull->reference, reference) || ++n > MANUAL_PULLS_MAX)) {
                        *at = pull->next;
                        manual_pull_free(pull);
                } else {
                        at = &pull->next;
                }
        }
}

int manual_pulls_start(ManualPulls *pulls, ImageStore *store, const char *reference,
                       Error *reterr) {
        cleanup_with(manual_pull_freep) ManualPull *pull = NULL;
        cleanup_with(image_unrefp) Image *image = NULL;
        cleanup_free char *normal = NULL;
        int r;

        r = image_reference_normalise(reference, &normal, reterr);
        if (r < 0)
                return r;
        forget_ended_manual_pulls(pulls, normal);
        list_foreach(other, pulls->first)
                if (streq(other->reference, normal))
                        return 0;
        pull = calloc(1, sizeof(*pull));
        if (!pull)
                return -ENOMEM;
        pull->reference = TAKE_PTR(normal);
        r = image_store_request(
                store,
                &(ImageRequestOptions){ .reference = reference, .policy = PULL_POLICY_ALWAYS },
                on_manual_pull_done, pull, &image, &pull->request, reterr);
        if (r < 0)
                return r;
        if (r > 0)
                finish_manual_pull(pull, 0, image, NULL);
        pull->next = pulls->first;
        pulls->first = TAKE_PTR(pull);
        return 0;
}

void manual_pulls_foreach(const ManualPulls *pulls,
                          void (*each)(const ImagePull *pull, void *userdata), void *userdata) {
        list_foreach(pull, pulls->first) {
                ImagePull one = { .reference = pull->reference,
                                  .is_ended = !pull->request,
                                  .error = pull->error,
                                  .digest = pull->digest };

                (void) image_request_progress(pull->request, &one.done, &one.total);
                each(&one, userdata);
        }
}

void manual_pulls_done(ManualPulls *pulls) {
        while (pulls->first) {
                ManualPull *pull = pulls->first;

                pulls->first = pull->next;
                manual_pull_free(pull);
        }
}
