/* SPDX-License-Identifier: Apache-2.0 */

/* Three states: waiting for a time, listing, watching. All that is remembered from one watch to the
 * next is the last resourceVersion; none means that a list is due. Whatever ends a request decides
 * two things: whether that version is still good, and how long to wait. */

#include "agent/kube/reflector-private.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>

enum {
        CHUNK = 500,
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

void reflector_hold(KubeReflector *r) {
        r->held++;
}

void reflector_release(KubeReflector *r) {
        if (--r->held == 0 && r->is_doomed)
                kube_reflector_free(r);
}

/* ---- what is told ---- */

void reflector_tell_trouble(KubeReflector *r, const char *error, unsigned status) {
        if (r->is_doomed || (streq_ptr(error, r->trouble) && status == r->trouble_status))
                return;
        free(r->trouble);
        r->trouble = error ? strdup(error) : NULL;
        r->trouble_status = status;
        if (r->spec.on_trouble)
                r->spec.on_trouble(error, status, r->spec.userdata);
}

/* ---- waiting ---- */

void reflector_end_request(KubeReflector *r) {
        r->request = kube_request_cancel(r->request);
        r->splitter = splitter_free(r->splitter);
}

void reflector_wait(KubeReflector *r, uint64_t usec) {
        r->phase = PHASE_WAITING;
        if (r->is_doomed)
                return;
        if (sd_event_source_set_time_relative(r->timer, usec) < 0 ||
            sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT) < 0)
                reflector_tell_trouble(r, "cannot set a timer", 0);
}

/* What was refused, or is not there, will not be otherwise in a second. */
static const BackoffPace *pace_for(unsigned status) {
        bool is_refused = status >= 400 && status < 500 && status != 401 && status != 408 &&
                          status != 410 && status != 429;

        return is_refused ? &backoff_slow_pace : &backoff_pace;
}

void reflector_wait_after(KubeReflector *r, const KubeAnswer *answer) {
        const BackoffPace *pace = pace_for(answer->error ? 0 : answer->status);

        r->waits_for_server = answer->error != NULL;
        reflector_wait(r, backoff_next(&r->backoff, pace, now_boottime_usec(),
                                       answer->retry_after_usec, chance_now()));
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeReflector *r = userdata;
        uint64_t wait_usec = kube_client_take_turn(r->spec.client);

        r->waits_for_server = wait_usec > 0;
        if (wait_usec > 0)
                reflector_wait(r, wait_usec);
        else
                reflector_begin(r);
        return 0;
}

/* Those who wait for no other reason come back in a second or two. */
static void on_reached(void *userdata) {
        KubeReflector *r = userdata;

        if (r->phase != PHASE_WAITING || !r->waits_for_server)
                return;
        r->waits_for_server = false;
        reflector_wait(r, chance_now() % (2 * USEC_PER_SEC));
}

/* ---- the end of a request ---- */

void reflector_fail(KubeReflector *r, const KubeAnswer *answer) {
        cleanup_free char *sentence = kube_answer_explain(answer);

        reflector_tell_list_end(r, false);
        free(r->next);
        r->next = NULL;
        reflector_tell_trouble(r, sentence ? sentence : "no memory", answer->status);
        reflector_wait_after(r, answer);
}

void reflector_fail_with(KubeReflector *r, const char *why) {
        reflector_fail(r, &(KubeAnswer){ .error = why, .body = "" });
        r->waits_for_server = false;
}

void reflector_forget_version(KubeReflector *r) {
        free(r->version);
        r->version = NULL;
        r->n_broken = 0;
}

/* ---- life ---- */

void reflector_begin(KubeReflector *r) {
        cleanup_error Error error = ERROR_NULL;
        int e;

        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        r->waits_for_server = false;
        reflector_hold(r);
        e = r->version && !r->next ? reflector_watch(r, &error) : reflector_list(r, &error);
        if (e < 0) {
                reflector_end_request(r);
                reflector_fail_with(r, error_message(&error, e));
        }
        reflector_release(r);
}

static int on_relist(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeReflector *r = userdata;

        if (r->phase == PHASE_LISTING)
                return 0; /* it is just what was asked for */
        reflector_hold(r);
        reflector_end_request(r);
        reflector_forget_version(r);
        reflector_begin(r);
        reflector_release(r);
        return 0;
}

void kube_reflector_relist(KubeReflector *r, uint64_t after_usec) {
        r->is_any_good = false;
        if (sd_event_source_set_time_relative(r->relist_timer, after_usec) < 0 ||
            sd_event_source_set_enabled(r->relist_timer, SD_EVENT_ONESHOT) < 0)
                reflector_tell_trouble(r, "cannot set a timer", 0);
}

bool kube_reflector_is_synced(const KubeReflector *r) {
        return r->is_synced;
}

static int add_timer(KubeReflector *r, sd_event_source **source, sd_event_time_handler_t handler,
                     int enabled) {
        int e = sd_event_add_time_relative(r->event, source, CLOCK_BOOTTIME, 0, 10 * USEC_PER_MSEC,
                                           handler, r);

        if (e >= 0)
                e = sd_event_source_set_enabled(*source, enabled);
        if (e >= 0)
                e = sd_event_source_set_priority(*source, TIMER_PRIORITY);
        return e;
}

int kube_reflector_new(sd_event *event, const KubeReflectorSpec *spec, KubeReflector **ret) {
        cleanup_with(kube_reflector_freep) KubeReflector *r = calloc(1, sizeof(*r));
        int e;

        if (!r)
                return -ENOMEM;
        r->event = event;
        r->spec = *spec;
        r->spec.chunk = spec->chunk > 0 ? spec->chunk : CHUNK;
        r->is_any_good = true;
        r->listener = (KubeListener){ .on_reached = on_reached, .userdata = r };
        kube_client_listen(spec->client, &r->listener);
        r->path = strdup(spec->path);
        r->query = strdup(strna(spec->query));
        if (!r->path || !r->query)
                return -ENOMEM;
        e = add_timer(r, &r->timer, on_timer, SD_EVENT_ONESHOT);
        if (e >= 0)
                e = add_timer(r, &r->relist_timer, on_relist, SD_EVENT_OFF);
        if (e < 0)
                return e;
        *ret = TAKE_PTR(r);
        return 0;
}

KubeReflector *kube_reflector_free(KubeReflector *r) {
        if (!r)
                return NULL;
        if (!r->is_doomed) {
                r->request = kube_request_cancel(r->request);
                r->timer = sd_event_source_disable_unref(r->timer);
                r->relist_timer = sd_event_source_disable_unref(r->relist_timer);
                kube_client_ignore(r->spec.client, &r->listener);
        }
        r->is_doomed = true;
        if (r->held > 0)
                return NULL;
        splitter_free(r->splitter);
        free(r->path);
        free(r->query);
        free(r->version);
        free(r->next);
        free(r->trouble);
        free(r);
        return NULL;
}
