/* SPDX-License-Identifier: Apache-2.0 */

/* Watches from the last known version; each event and each bookmark contains a later one. */

#include "agent/kubeclient/reflector-private.h"

#include "agent/kubeclient/resource-version.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <errno.h>

enum {
        /* The timeout that a server chooses without a parameter; random, so that not all watches
         * end together. */
        WATCH_MIN_SEC = 1800,
        WATCH_MAX_SEC = 3600,
        WATCH_SLACK_SEC = 30,    /* how long a watch may exceed its timeout */
        WATCH_ANSWER_SEC = 60,   /* until the response starts */
        WATCH_APART_MSEC = 1000, /* from the start of a watch to the start of the next */
        BROKEN_STREAMS_MAX = 3,  /* from one version, until it is discarded */
};

/* A decreased version shows that the server has another history. */
static int record_resource_version(KubeReflector *r, JsonView object) {
        JsonView metadata = json_view_member(object, "metadata");
        char *version = json_view_dup(json_view_member(metadata, "resourceVersion"));

        if (!version)
                return 0;
        if (resource_version_compare(version, r->resource_version) < 0) {
                free(version);
                r->watch_end = WATCH_END_EXPIRED;
                return -ECANCELED;
        }
        free(r->resource_version);
        r->resource_version = version;
        r->has_progressed = true;
        return 0;
}

static int report_watch_event(KubeReflector *r, KubeWatchEvent event_type, JsonView object) {
        cleanup_free char *json = strndup(object.text, object.length);

        if (!json)
                return -ENOMEM;
        r->spec.on_object(event_type, json, object.length, r->spec.userdata);
        return r->is_doomed || r->phase != REFLECTOR_WATCHING ? -ECANCELED : 0;
}

static int on_watch_error_event(KubeReflector *r, JsonView status) {
        long code = json_view_number(json_view_member(status, "code"));
        cleanup_free char *message = json_view_message(json_view_member(status, "message"));

        r->watch_end = code == 429 ? WATCH_END_REFUSED : WATCH_END_EXPIRED;
        /* An expired version is not an error: a list follows. */
        if (code != 410)
                reflector_report_error(
                        r, message ? message : "the server ended the watch with an error",
                        code > 0 ? (unsigned) code : 0);
        return -ECANCELED;
}

static int on_watch_event(const char *data, size_t length, void *userdata) {
        static const char *const types[N_KUBE_WATCH_EVENTS] = {
                [KUBE_ADDED] = "ADDED",
                [KUBE_MODIFIED] = "MODIFIED",
                [KUBE_DELETED] = "DELETED",
        };
        KubeReflector *r = userdata;
        JsonView event = { data, length }, type = json_view_member(event, "type");
        JsonView object = json_view_member(event, "object");
        int e;

        if (!type.text || !object.text)
                return 0; /* an invalid event does not affect the others */
        if (json_view_equals(type, "ERROR"))
                return on_watch_error_event(r, object);
        e = record_resource_version(r, object);
        for (KubeWatchEvent event_type = KUBE_ADDED; event_type < N_KUBE_WATCH_EVENTS && e >= 0;
             event_type++)
                if (json_view_equals(type, types[event_type]))
                        return report_watch_event(r, event_type, object);
        return e;
}

static int on_watch_data(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;
        int e;

        reflector_hold(r);
        e = r->is_doomed || !r->framer ? -ECANCELED : json_framer_push(r->framer, data, length);
        if (e == -EBADMSG)
                r->watch_end = WATCH_END_BROKEN;
        reflector_release(r);
        return e;
}

static void on_watch_open(void *userdata) {
        KubeReflector *r = userdata;

        r->is_open = true;
        reflector_hold(r);
        reflector_report_error(r, NULL, 0);
        reflector_release(r);
}

/* After a watch has ended normally or was interrupted, the next one continues from its version:
 * soon if it reported anything, otherwise with a back-off. */
static void restart_watch(KubeReflector *r) {
        uint64_t now = now_boottime_usec(), lasted = now - r->started_at;
        uint64_t apart = WATCH_APART_MSEC * USEC_PER_MSEC;

        if (!r->has_progressed && lasted < apart) {
                reflector_schedule(r, kube_back_off_next(&r->back_off, &kube_back_off_default, now,
                                                         0, back_off_random()));
                return;
        }
        kube_back_off_reset(&r->back_off);
        reflector_schedule(r, back_off_add_jitter(lasted < apart ? apart - lasted : apart / 10, 25,
                                                  back_off_random()));
}

static bool is_watch_stream_broken(KubeReflector *r, const KubeResponse *response) {
        bool is_cut = response->status == 200 && json_framer_finish(r->framer, NULL) < 0;

        if (r->watch_end != WATCH_END_BROKEN && !is_cut)
                return false;
        r->n_broken = r->has_progressed ? 1 : r->n_broken + 1;
        return true;
}

/* A broken watch is an error only if it cannot be resumed. All nodes detect the loss of a server at
 * the same moment, so each one waits for a random time. */
static void resume_broken_watch(KubeReflector *r, const KubeResponse *response) {
        if (r->has_progressed)
                kube_back_off_reset(&r->back_off);
        reflector_schedule_retry(r, response);
}

static void on_watch_end(KubeReflector *r, const KubeResponse *response) {
        bool is_broken = is_watch_stream_broken(r, response);
        bool is_gone = !response->error && (response->status == 410 || response->status == 404);
        bool is_expired =
                r->watch_end == WATCH_END_EXPIRED || (!response->error && response->status == 410);

        r->framer = json_framer_free(r->framer);
        if (is_expired || is_gone || r->n_broken >= BROKEN_STREAMS_MAX)
                reflector_require_relist(r);
        if (is_expired || r->watch_end == WATCH_END_REFUSED)
                reflector_schedule(r, kube_back_off_next(&r->back_off, &kube_back_off_default,
                                                         now_boottime_usec(),
                                                         response->retry_after_usec,
                                                         back_off_random()));
        else if (is_broken)
                reflector_fail_with(r, "the watch of the API server is not valid JSON");
        else if (!response->error && response->status == 200)
                restart_watch(r);
        else if (response->error && r->is_open)
                resume_broken_watch(r, response);
        else
                reflector_fail(r, response);
}

static void on_watch_done(const KubeResponse *response, void *userdata) {
        KubeReflector *r = userdata;

        reflector_hold(r);
        r->request = NULL;
        on_watch_end(r, response);
        reflector_release(r);
}

int reflector_start_watch(KubeReflector *r, Error *reterr) {
        cleanup_free char *path = NULL, *version = url_escape(r->resource_version);
        unsigned seconds = WATCH_MIN_SEC + back_off_random() % (WATCH_MAX_SEC - WATCH_MIN_SEC + 1);

        r->framer = json_framer_new(false, on_watch_event, r);
        path = version && r->framer
                       ? text_format("%s?%s%sallowWatchBookmarks=true&resourceVersion=%s&"
                                     "timeoutSeconds=%u"
                                     "&watch=true",
                                     r->path, r->query, r->query[0] ? "&" : "", version, seconds)
                       : NULL;
        if (!path)
                return -ENOMEM;
        r->phase = REFLECTOR_WATCHING;
        r->started_at = now_boottime_usec();
        r->has_progressed = r->is_open = false;
        r->watch_end = WATCH_END_NONE;
        return kube_client_start_request(
                r->spec.client,
                &(KubeRequestSpec){ .method = "GET",
                                    .path = path,
                                    .deadline_usec = (seconds + WATCH_SLACK_SEC) * USEC_PER_SEC,
                                    .response_timeout_usec = WATCH_ANSWER_SEC * USEC_PER_SEC,
                                    .is_mostly_idle = true,
                                    .on_open = on_watch_open,
                                    .on_data = on_watch_data,
                                    .on_done = on_watch_done,
                                    .userdata = r },
                &r->request, reterr);
}
