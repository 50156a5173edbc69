/* SPDX-License-Identifier: Apache-2.0 */

/* A watch from the last version that is known; each event, and each bookmark, brings another. */

#include "agent/kube/reflector-private.h"

#include "agent/kube/version.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>

enum {
        WATCH_MIN_SEC = 300, /* chosen anew for each, so that they do not all end together */
        WATCH_MAX_SEC = 600,
        WATCH_SLACK_SEC = 30,    /* that a watch may be longer than it was asked to be */
        WATCH_ANSWER_SEC = 60,   /* until it begins */
        WATCH_APART_MSEC = 1000, /* from the beginning of a watch to that of the next */
        BROKEN_STREAMS_MAX = 3,  /* from one version, before it is not believed any more */
};

/* A version that is older than one that we know is another history. */
static int note_version(KubeReflector *r, JsonText object) {
        JsonText metadata = json_text_member(object, "metadata");
        char *version = json_text_dup(json_text_member(metadata, "resourceVersion"));

        if (!version)
                return 0;
        if (version_compare(version, r->version) < 0) {
                free(version);
                r->ending = ENDING_EXPIRED;
                return -ECANCELED;
        }
        free(r->version);
        r->version = version;
        r->has_progress = true;
        return 0;
}

static int tell_change(KubeReflector *r, KubeChange change, JsonText object) {
        cleanup_free char *json = strndup(object.text, object.length);

        if (!json)
                return -ENOMEM;
        r->spec.on_object(change, json, object.length, r->spec.userdata);
        return r->is_doomed || r->phase != PHASE_WATCHING ? -ECANCELED : 0;
}

static int on_error_event(KubeReflector *r, JsonText status) {
        long code = json_text_number(json_text_member(status, "code"));
        cleanup_free char *message = json_text_sentence(json_text_member(status, "message"));

        r->ending = code == 429 ? ENDING_REFUSED : ENDING_EXPIRED;
        /* To be too old is nobody's trouble. */
        if (code != 410)
                reflector_tell_trouble(
                        r, message ? message : "the server ended the watch with an error",
                        code > 0 ? (unsigned) code : 0);
        return -ECANCELED;
}

static int on_event(const char *data, size_t length, void *userdata) {
        static const char *const types[N_KUBE_CHANGES] = {
                [KUBE_ADDED] = "ADDED",
                [KUBE_MODIFIED] = "MODIFIED",
                [KUBE_DELETED] = "DELETED",
        };
        KubeReflector *r = userdata;
        JsonText event = { data, length }, type = json_text_member(event, "type");
        JsonText object = json_text_member(event, "object");
        int e;

        if (!type.text || !object.text)
                return 0; /* an event that is none is its own trouble */
        if (json_text_is(type, "ERROR"))
                return on_error_event(r, object);
        e = note_version(r, object);
        for (KubeChange change = KUBE_ADDED; change < N_KUBE_CHANGES && e >= 0; change++)
                if (json_text_is(type, types[change]))
                        return tell_change(r, change, object);
        return e;
}

static int on_watch_data(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;
        int e;

        reflector_hold(r);
        e = r->is_doomed || !r->splitter ? -ECANCELED : splitter_push(r->splitter, data, length);
        if (e == -EBADMSG)
                r->ending = ENDING_BROKEN;
        reflector_release(r);
        return e;
}

static void on_watch_open(void *userdata) {
        KubeReflector *r = userdata;

        r->is_open = true;
        reflector_hold(r);
        reflector_tell_trouble(r, NULL, 0);
        reflector_release(r);
}

/* From a watch that ended as it should, or broke off, one goes on where it was; soon, if it did any
 * good, and else later and later. */
static void watch_again(KubeReflector *r) {
        uint64_t now = now_boottime_usec(), lasted = now - r->begun_at;
        uint64_t apart = WATCH_APART_MSEC * USEC_PER_MSEC;

        if (!r->has_progress && lasted < apart) {
                reflector_wait(r, backoff_next(&r->backoff, &backoff_pace, now, 0, chance_now()));
                return;
        }
        backoff_reset(&r->backoff);
        reflector_wait(r, jitter(lasted < apart ? apart - lasted : apart / 10, 25, chance_now()));
}

static bool is_stream_broken(KubeReflector *r, const KubeAnswer *answer) {
        bool is_cut = answer->status == 200 && splitter_finish(r->splitter, NULL) < 0;

        if (r->ending != ENDING_BROKEN && !is_cut)
                return false;
        r->n_broken = r->has_progress ? 1 : r->n_broken + 1;
        return true;
}

/* That it broke off is no trouble before it cannot go on. All nodes hear of it at once, so each
 * waits a while of its own. */
static void resume(KubeReflector *r, const KubeAnswer *answer) {
        if (r->has_progress)
                backoff_reset(&r->backoff);
        reflector_wait_after(r, answer);
}

static void on_watch_end(KubeReflector *r, const KubeAnswer *answer) {
        bool is_broken = is_stream_broken(r, answer);
        bool is_gone = !answer->error && (answer->status == 410 || answer->status == 404);
        bool is_expired = r->ending == ENDING_EXPIRED || (!answer->error && answer->status == 410);

        r->splitter = splitter_free(r->splitter);
        if (is_expired || is_gone || r->n_broken >= BROKEN_STREAMS_MAX)
                reflector_forget_version(r);
        if (is_expired || r->ending == ENDING_REFUSED)
                reflector_wait(r, backoff_next(&r->backoff, &backoff_pace, now_boottime_usec(),
                                               answer->retry_after_usec, chance_now()));
        else if (is_broken)
                reflector_fail_with(r, "what the server's watch says is no JSON");
        else if (!answer->error && answer->status == 200)
                watch_again(r);
        else if (answer->error && r->is_open)
                resume(r, answer);
        else
                reflector_fail(r, answer);
}

static void on_watch_done(const KubeAnswer *answer, void *userdata) {
        KubeReflector *r = userdata;

        reflector_hold(r);
        r->request = NULL;
        on_watch_end(r, answer);
        reflector_release(r);
}

int reflector_watch(KubeReflector *r, Error *reterr) {
        cleanup_free char *path = NULL, *version = url_escape(r->version);
        unsigned seconds = WATCH_MIN_SEC + chance_now() % (WATCH_MAX_SEC - WATCH_MIN_SEC + 1);

        r->splitter = splitter_new(false, on_event, r);
        if (!version || !r->splitter ||
            asprintf(&path,
                     "%s?%s%sallowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%u"
                     "&watch=true",
                     r->path, r->query, r->query[0] ? "&" : "", version, seconds) < 0)
                return -ENOMEM;
        r->phase = PHASE_WATCHING;
        r->begun_at = now_boottime_usec();
        r->has_progress = r->is_open = false;
        r->ending = ENDING_NONE;
        return kube_client_call(
                r->spec.client,
                &(KubeCall){ .method = "GET",
                             .path = path,
                             .deadline_usec = (seconds + WATCH_SLACK_SEC) * USEC_PER_SEC,
                             .answer_usec = WATCH_ANSWER_SEC * USEC_PER_SEC,
                             .is_quiet = true,
                             .on_open = on_watch_open,
                             .on_data = on_watch_data,
                             .on_done = on_watch_done,
                             .userdata = r },
                &r->request, reterr);
}
