/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay wait`: waits until the bootstrap pods, or the critical ones, are ready. */

#include "agent/cli/cli.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/macros.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* wait --bootstrap, --critical: until all pods with that annotation, or label, are Ready.
 * mainstay-ready.service and mainstay-healthy.service run it, so that systemd can order other units
 * after them. */

#define RETRY_USEC (200 * USEC_PER_MSEC)

typedef struct PodWait {
        const char *socket;
        OwnKey key;
        uint64_t end;     /* boot time; USEC_INFINITY: there is none */
        bool is_critical; /* the agent must have acted on its manifests */
        json_t *missing;  /* the pods that were not ready */
        json_t *done;     /* UIDs of the pods that have been ready, or are gone */
} PodWait;

static bool is_awaited_pod(const PodWait *wait, const json_t *pod) {
        return own_pod_json_is_true(pod, wait->key);
}

/* 1 when every pod has been ready once. */
static int on_awaited_pod_event(const char *type, json_t *pod, void *userdata) {
        const PodWait *wait = userdata;
        bool is_done = streq(type, "DELETED") ||
                       (is_awaited_pod(wait, pod) && pod_json_is_ready_or_done(pod));

        if (is_done && json_object_set_new(wait->done, strna(json_text(pod, "metadata", "uid")),
                                           json_true()) < 0)
                return -ENOMEM;
        return json_object_size(wait->done) == json_array_size(wait->missing);
}

static int check_agent_is_ready(const PodWait *wait, Error *reterr) {
        cleanup_free char *text = NULL;

        return wait->is_critical ? client_get(wait->socket, "/readyz", &text, reterr) : 0;
}

/* The number of pods that are not ready, or -errno. */
static int check_awaited_pods(PodWait *wait, Error *reterr) {
        cleanup_json json_t *pods = NULL;
        json_t *pod;
        size_t i;
        int r = check_agent_is_ready(wait, reterr);

        (void) json_array_clear(wait->missing);
        (void) json_object_clear(wait->done);
        if (r < 0)
                return r;
        r = pods_fetch(wait->socket, &(PodFilter){ 0 }, &pods, reterr);
        if (r < 0)
                return r;
        json_array_foreach(pods, i, pod)
                if (is_awaited_pod(wait, pod) && !pod_json_is_ready_or_done(pod) &&
                    json_array_append(wait->missing, pod) < 0)
                        return -ENOMEM;
        return (int) json_array_size(wait->missing);
}

/* Reports which pods are missing, or the problem of the agent. */
static int fail_timeout(const PodWait *wait, const Error *error, int r) {
        size_t i;
        json_t *pod;

        json_array_foreach(wait->missing, i, pod)
                print_line(stderr, "error: pod %s is not ready",
                           strna(json_text(pod, "metadata", "name")));
        if (r < 0)
                print_line(stderr, "error: %s", error_message(error, r));
        return STATUS_FAILED;
}

static void sleep_a_moment(void) {
        (void) nanosleep(&(struct timespec){ .tv_nsec = RETRY_USEC * 1000 }, NULL);
}

static int wait_for_pods(PodWait *wait) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        /* Pods that were ready first may have ceased to be ready when the last one becomes
         * ready. */
        while ((r = check_awaited_pods(wait, &error)) != 0 && r != -ENOMEM) {
                if (now_boottime_usec() >= wait->end)
                        return fail_timeout(wait, &error, r);
                if (r > 0 && wait->end == USEC_INFINITY)
                        r = watch_pods(wait->socket, wait->missing, on_awaited_pod_event, wait,
                                       &error);
                else
                        r = -EAGAIN;
                /* The agent does not respond because it is restarting; or the time limit has
                 * passed. */
                if (r < 0)
                        sleep_a_moment();
                error_done(&error);
        }
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

int run_wait(const Options *options) {
        cleanup_json json_t *missing = json_array(), *done = json_object();
        PodWait wait = { .socket = options->socket,
                         .key = options->critical ? OWN_KEY_CRITICAL : OWN_KEY_BOOTSTRAP,
                         .end = USEC_INFINITY,
                         .is_critical = options->critical,
                         .missing = missing,
                         .done = done };
        uint64_t timeout;

        if (options->n_words > 0 || options->bootstrap == options->critical)
                return fail_usage("one of --bootstrap and --critical is required");
        if (options->timeout) {
                if (parse_duration(options->timeout, &timeout) < 0)
                        return fail_usage("--timeout must be a duration such as 30s or 5m, not "
                                          "'%s'",
                                          options->timeout);
                wait.end = now_boottime_usec() + timeout;
        }
        return wait_for_pods(&wait);
}
