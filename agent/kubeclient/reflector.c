/* SPDX-License-Identifier: Apache-2.0 */

/* A reflector has three states: waiting, listing, watching. Only the last resourceVersion is kept
 * from one watch to the next; without one, a list is due. The result of a request determines
 * whether that version is still valid, and how long to wait. */

#include "agent/kubeclient/reflector-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <errno.h>

enum {
        LIST_PAGE_SIZE = 500,
        TIMER_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

void reflector_hold(KubeReflector *r) {
        r->held++;
}

void reflector_release(KubeReflector *r) {
        if (--r->held == 0 && r->is_doomed)
                kube_reflector_free(r);
}

/* ---- errors ---- */

void reflector_report_error(KubeReflector *r, const char *error, unsigned status) {
        if (r->is_doomed || (streq_ptr(error, r->last_error) && status == r->last_error_status))
                return;
        (void) text_replace(&r->last_error, error);
        r->last_error_status = status;
        if (r->spec.on_error)
                r->spec.on_error(error, status, r->spec.userdata);
}

/* ---- waiting ---- */

void reflector_cancel_request(KubeReflector *r) {
        r->request = kube_request_cancel(r->request);
        r->framer = json_framer_free(r->framer);
}

void reflector_schedule(KubeReflector *r, uint64_t usec) {
        r->phase = REFLECTOR_WAITING;
        if (r->is_doomed)
                return;
        if (event_timer_arm(r->timer, usec) < 0)
                reflector_report_error(r, "cannot set a timer", 0);
}

void reflector_schedule_retry(KubeReflector *r, const KubeResponse *response) {
        bool is_slow = !response->error && !r->spec.may_soon_be_allowed;
        const BackOffLimits *limits =
                kube_back_off_limits_for_status(is_slow ? response->status : 0);

        r->waits_for_server = response->error != NULL;
        reflector_schedule(r, kube_back_off_next(&r->back_off, limits, now_boottime_usec(),
                                                 response->retry_after_usec, back_off_random()));
}

static int on_reflector_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeReflector *r = userdata;
        uint64_t wait_usec = kube_client_claim_retry(r->spec.client);

        r->waits_for_server = wait_usec > 0;
        if (wait_usec > 0)
                reflector_schedule(r, wait_usec);
        else
                reflector_start_request(r);
        return 0;
}

/* Reflectors that only wait for the server continue within two seconds. A server with an older
 * state would send no events until its versions have exceeded the known one, so only a list shows
 * its state. */
static void on_reflector_reconnect(bool was_down, void *userdata) {
        KubeReflector *r = userdata;
        uint64_t usec = back_off_random() % (2 * USEC_PER_SEC);

        if (was_down && r->phase == REFLECTOR_WATCHING) {
                kube_reflector_relist(r, usec);
                return;
        }
        if (r->phase != REFLECTOR_WAITING)
                return;
        if (was_down) {
                reflector_require_relist(r);
                r->allows_cached_list = false;
        }
        if (!r->waits_for_server)
                return;
        r->waits_for_server = false;
        reflector_schedule(r, usec);
}

/* ---- the end of a request ---- */

void reflector_fail(KubeReflector *r, const KubeResponse *response) {
        cleanup_free char *message = kube_response_describe_error(response);

        reflector_report_list_end(r, false);
        free(r->continue_token);
        r->continue_token = NULL;
        reflector_report_error(r, message ? message : "no memory", response->status);
        reflector_schedule_retry(r, response);
}

void reflector_fail_with(KubeReflector *r, const char *why) {
        reflector_fail(r, &(KubeResponse){ .error = why, .body = "" });
        r->waits_for_server = false;
}

void reflector_require_relist(KubeReflector *r) {
        free(r->resource_version);
        r->resource_version = NULL;
        r->n_broken = 0;
}

/* ---- construction ---- */

void reflector_start_request(KubeReflector *r) {
        cleanup_error Error error = ERROR_NULL;
        int e;

        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        r->waits_for_server = false;
        reflector_hold(r);
        e = r->resource_version && !r->continue_token ? reflector_start_watch(r, &error)
                                                      : reflector_start_list(r, &error);
        if (e < 0) {
                reflector_cancel_request(r);
                reflector_fail_with(r, error_message(&error, e));
        }
        reflector_release(r);
}

static int on_relist(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeReflector *r = userdata;

        if (r->phase == REFLECTOR_LISTING)
                return 0; /* a list is already being read */
        reflector_hold(r);
        reflector_cancel_request(r);
        reflector_require_relist(r);
        reflector_start_request(r);
        reflector_release(r);
        return 0;
}

void kube_reflector_relist(KubeReflector *r, uint64_t after_usec) {
        r->allows_cached_list = false;
        if (event_timer_arm(r->relist_timer, after_usec) < 0)
                reflector_report_error(r, "cannot set a timer", 0);
}

bool kube_reflector_is_synced(const KubeReflector *r) {
        return r->is_synced;
}

static int add_reflector_timer(KubeReflector *r, sd_event_source **source,
                               sd_event_time_handler_t handler, int enabled) {
        int e = sd_event_add_time_relative(r->event, source, CLOCK_BOOTTIME, 0, 10 * USEC_PER_MSEC,
                                           handler, r);

        if (e < 0)
                return e;
        e = sd_event_source_set_enabled(*source, enabled);
        if (e < 0)
                return e;
        e = sd_event_source_set_priority(*source, TIMER_PRIORITY);
        return e;
}

/* Characters that separate terms are escaped with a backslash. NULL: out of memory. */
static char *format_selector(const KubeFieldSelector *selector) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        fprintf(out, "%s%s", selector->field, selector->is_negated ? "!=" : "=");
        for (const char *p = selector->value; *p; p++)
                fprintf(out, strchr("\\,=", *p) ? "\\%c" : "%c", *p);
        return memstream_finish(out, &text);
}

static char *format_selector_query(const KubeFieldSelector *selector) {
        cleanup_free char *text = NULL, *escaped = NULL;

        if (!selector->field)
                return strdup("");
        text = format_selector(selector);
        escaped = text ? url_escape(text) : NULL;
        return escaped ? text_format("fieldSelector=%s", escaped) : NULL;
}

int kube_reflector_new(sd_event *event, const KubeReflectorSpec *spec, KubeReflector **ret) {
        cleanup_with(kube_reflector_freep) KubeReflector *r = calloc(1, sizeof(*r));
        int e;

        if (!r)
                return -ENOMEM;
        r->event = event;
        r->spec = *spec;
        r->spec.page_size = spec->page_size > 0 ? spec->page_size : LIST_PAGE_SIZE;
        r->allows_cached_list = true;
        r->listener =
                (KubeReconnectListener){ .on_reached = on_reflector_reconnect, .userdata = r };
        kube_client_add_listener(spec->client, &r->listener);
        r->path = strdup(spec->path);
        r->query = format_selector_query(&spec->field_selector);
        if (!r->path || !r->query)
                return -ENOMEM;
        e = add_reflector_timer(r, &r->timer, on_reflector_timer, SD_EVENT_ONESHOT);
        if (e < 0)
                return e;
        e = add_reflector_timer(r, &r->relist_timer, on_relist, SD_EVENT_OFF);
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
                kube_client_remove_listener(r->spec.client, &r->listener);
        }
        r->is_doomed = true;
        if (r->held > 0)
                return NULL;
        json_framer_free(r->framer);
        free(r->path);
        free(r->query);
        free(r->resource_version);
        free(r->continue_token);
        free(r->last_error);
        free(r);
        return NULL;
}
