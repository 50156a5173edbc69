/* SPDX-License-Identifier: Apache-2.0 */

/* A list, page by page. What breaks off on the way is told as broken and begins anew. */

#include "agent/kube/reflector-private.h"

#include "agent/kube/version.h"
#include "common/cleanup.h"

#include <errno.h>

static void tell_list_begin(KubeReflector *r) {
        if (r->is_told)
                return;
        r->is_told = true;
        if (r->spec.on_list_begin)
                r->spec.on_list_begin(r->spec.userdata);
}

void reflector_tell_list_end(KubeReflector *r, bool is_complete) {
        if (!r->is_told || r->is_doomed)
                return;
        r->is_told = false;
        r->is_synced = r->is_synced || is_complete;
        if (r->spec.on_list_end)
                r->spec.on_list_end(is_complete, r->spec.userdata);
}

static int on_list_item(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;

        r->spec.on_object(KUBE_LISTED, data, length, r->spec.userdata);
        return r->is_doomed || r->phase != PHASE_LISTING ? -ECANCELED : 0;
}

static int on_list_data(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;
        int e;

        reflector_hold(r);
        tell_list_begin(r);
        e = r->is_doomed || !r->splitter ? -ECANCELED : splitter_push(r->splitter, data, length);
        reflector_release(r);
        return e;
}

/* The page says where the next one is, or what the version of the whole is. */
static int take_page(KubeReflector *r) {
        const char *rest = NULL;
        JsonText meta;
        int e = splitter_finish(r->splitter, &rest);

        if (e < 0)
                return e;
        meta = json_text_member((JsonText){ rest, strlen(rest) }, "metadata");
        free(r->version);
        free(r->next);
        r->version = json_text_dup(json_text_member(meta, "resourceVersion"));
        r->next = json_text_dup(json_text_member(meta, "continue"));
        return r->version ? 0 : -EBADMSG;
}

static void on_page(KubeReflector *r) {
        int e = take_page(r);

        reflector_end_request(r);
        if (e < 0) {
                reflector_forget_version(r);
                reflector_fail_with(r, "the server's list cannot be understood");
                return;
        }
        if (!r->next) {
                r->is_any_good = r->is_unchunked = false;
                r->n_broken = 0;
                tell_list_begin(r); /* of an answer that is nothing but headers */
                reflector_tell_list_end(r, true);
                reflector_tell_trouble(r, NULL, 0);
        }
        if (!r->is_doomed && r->phase == PHASE_LISTING)
                reflector_begin(r);
}

static void on_list_done(const KubeAnswer *answer, void *userdata) {
        KubeReflector *r = userdata;

        reflector_hold(r);
        r->request = NULL;
        if (!answer->error && answer->status == 200) {
                on_page(r);
        } else {
                /* The pieces were too old before all were there: the whole at once, then. */
                r->is_unchunked = answer->status == 410;
                r->is_any_good = r->is_any_good && !r->is_unchunked;
                r->splitter = splitter_free(r->splitter);
                reflector_forget_version(r);
                reflector_fail(r, answer);
        }
        reflector_release(r);
}

static char *list_path(const KubeReflector *r) {
        char *path = NULL;
        cleanup_free char *next = r->next ? url_escape(r->next) : NULL;
        const char *ampersand = r->query[0] ? "&" : "";
        int n;

        if (r->next && !next)
                return NULL;
        if (next)
                n = asprintf(&path, "%s?%s%slimit=%u&continue=%s", r->path, r->query, ampersand,
                             r->spec.chunk, next);
        else if (r->is_any_good)
                n = asprintf(&path, "%s?%s%slimit=%u&resourceVersion=0", r->path, r->query,
                             ampersand, r->spec.chunk);
        else if (r->is_unchunked)
                n = asprintf(&path, "%s%s%s", r->path, r->query[0] ? "?" : "", r->query);
        else
                n = asprintf(&path, "%s?%s%slimit=%u", r->path, r->query, ampersand, r->spec.chunk);
        return n < 0 ? NULL : path;
}

int reflector_list(KubeReflector *r, Error *reterr) {
        cleanup_free char *path = list_path(r);

        r->splitter = splitter_new(true, on_list_item, r);
        if (!path || !r->splitter)
                return -ENOMEM;
        r->phase = PHASE_LISTING;
        return kube_client_call(r->spec.client,
                                &(KubeCall){ .method = "GET",
                                             .path = path,
                                             .on_data = on_list_data,
                                             .on_done = on_list_done,
                                             .userdata = r },
                                &r->request, reterr);
}
