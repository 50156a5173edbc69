/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay wait`: waits until the bootstrap pods are ready. */

#include "agent/cli/cli.h"

#include "agent/cli/client.h"
#include "agent/cli/pods.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/macros.h"

#include <errno.h>
#include <time.h>

/* wait --bootstrap: until all pods with the bootstrap annotation are Ready. mainstay-ready.service
 * runs it, so that systemd can order other units after them. */

typedef struct BootstrapWait {
        const char *socket;
        json_t *missing; /* UIDs of pods that are not ready yet */
} BootstrapWait;

static bool is_bootstrap_pod(const json_t *pod) {
        return streq_ptr(json_text(pod, "metadata", "annotations", "mainstay.dev/bootstrap"),
                         "true");
}

/* A pod that has completed never becomes Ready again. */
static bool is_pod_ready_or_done(const json_t *pod) {
        json_t *conditions = json_at(pod, "status", "conditions"), *condition;
        size_t i;

        json_array_foreach(conditions, i, condition)
                if (streq_ptr(json_text(condition, "type"), "Ready") &&
                    streq_ptr(json_text(condition, "status"), "True"))
                        return true;
        return streq_ptr(json_text(pod, "status", "phase"), "Succeeded");
}

/* 1 when all have been seen ready. */
static int on_bootstrap_pod_event(const char *type, json_t *pod, void *userdata) {
        BootstrapWait *wait = userdata;

        if (streq(type, "DELETED") || (is_bootstrap_pod(pod) && is_pod_ready_or_done(pod)))
                (void) json_object_del(wait->missing, strna(json_text(pod, "metadata", "uid")));
        return json_object_size(wait->missing) == 0;
}

/* The number of pods that are not ready, or -errno. */
static int check_bootstrap_pods(BootstrapWait *wait, Error *reterr) {
        cleanup_json json_t *pods = NULL;
        json_t *pod;
        size_t i;
        int r = pods_fetch(wait->socket, &(PodFilter){ 0 }, &pods, reterr);

        if (r < 0)
                return r;
        (void) json_object_clear(wait->missing);
        json_array_foreach(pods, i, pod)
                if (is_bootstrap_pod(pod) && !is_pod_ready_or_done(pod))
                        (void) json_object_set_new(wait->missing,
                                                   strna(json_text(pod, "metadata", "uid")),
                                                   json_true());
        return (int) json_object_size(wait->missing);
}

int run_wait(const Options *options) {
        cleanup_json json_t *missing = json_object();
        BootstrapWait wait = { .socket = options->socket, .missing = missing };
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (options->n_words > 0 || !options->bootstrap)
                return fail_usage("the only form is 'mainstay wait --bootstrap'");
        /* Pods that were ready may have stopped being ready by the time the last one is. */
        while ((r = check_bootstrap_pods(&wait, &error)) != 0 && r != -ENOMEM) {
                if (r > 0)
                        r = watch_objects(wait.socket, "/pods?watch=1", on_bootstrap_pod_event,
                                          &wait, &error);
                /* The agent does not respond; it may be restarting. */
                if (r < 0)
                        (void) nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
                error_done(&error);
        }
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
