/* SPDX-License-Identifier: Apache-2.0 */

/* Lists a collection page by page. An interrupted list is reported as incomplete and starts
 * again. */

#include "agent/kubeclient/reflector-private.h"

#include "common/cleanup.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <errno.h>

static void report_list_begin(KubeReflector *r) {
        if (r->is_list_reported)
                return;
        r->is_list_reported = true;
        if (r->spec.on_list_begin)
                r->spec.on_list_begin(r->spec.userdata);
}

void reflector_report_list_end(KubeReflector *r, bool is_complete) {
        if (!r->is_list_reported || r->is_doomed)
                return;
        r->is_list_reported = false;
        r->is_synced = r->is_synced || is_complete;
        if (r->spec.on_list_end)
                r->spec.on_list_end(is_complete, r->spec.userdata);
}

static int on_listed_object(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;

        r->spec.on_object(KUBE_LISTED, data, length, r->spec.userdata);
        return r->is_doomed || r->phase != REFLECTOR_LISTING ? -ECANCELED : 0;
}

static int on_list_data(const char *data, size_t length, void *userdata) {
        KubeReflector *r = userdata;
        int e;

        reflector_hold(r);
        report_list_begin(r);
        e = r->is_doomed || !r->framer ? -ECANCELED : json_framer_push(r->framer, data, length);
        reflector_release(r);
        return e;
}

/* The end of a page contains the continue token, or the version of the whole list. */
static int read_list_page(KubeReflector *r) {
        const char *rest = NULL;
        JsonView meta;
        int e = json_framer_finish(r->framer, &rest);

        if (e < 0)
                return e;
        meta = json_view_member((JsonView){ rest, strlen(rest) }, "metadata");
        free(r->resource_version);
        free(r->continue_token);
        r->resource_version = json_view_dup(json_view_member(meta, "resourceVersion"));
        r->continue_token = json_view_dup(json_view_member(meta, "continue"));
        return r->resource_version ? 0 : -EBADMSG;
}

static void on_list_page(KubeReflector *r) {
        int e = read_list_page(r);

        reflector_cancel_request(r);
        if (e < 0) {
                reflector_require_relist(r);
                reflector_fail_with(r, "the list of the API server is not valid JSON");
                return;
        }
        if (!r->continue_token) {
                r->allows_cached_list = r->is_unpaged = false;
                r->n_broken = 0;
                report_list_begin(r); /* for an empty list */
                reflector_report_list_end(r, true);
                reflector_report_error(r, NULL, 0);
        }
        if (!r->is_doomed && r->phase == REFLECTOR_LISTING)
                reflector_start_request(r);
}

static void on_list_done(const KubeResponse *response, void *userdata) {
        KubeReflector *r = userdata;

        reflector_hold(r);
        r->request = NULL;
        if (!response->error && response->status == 200) {
                on_list_page(r);
        } else {
                /* 410: the continue token has expired; the list is requested in one piece. */
                r->is_unpaged = response->status == 410;
                r->allows_cached_list = r->allows_cached_list && !r->is_unpaged;
                r->framer = json_framer_free(r->framer);
                reflector_require_relist(r);
                reflector_fail(r, response);
        }
        reflector_release(r);
}

static char *format_list_path(const KubeReflector *r) {
        cleanup_free char *next = r->continue_token ? url_escape(r->continue_token) : NULL;
        const char *ampersand = r->query[0] ? "&" : "";

        if (r->continue_token)
                return next ? text_format("%s?%s%slimit=%u&continue=%s", r->path, r->query,
                                          ampersand, r->spec.page_size, next)
                            : NULL;
        if (r->allows_cached_list)
                return text_format("%s?%s%slimit=%u&resourceVersion=0", r->path, r->query,
                                   ampersand, r->spec.page_size);
        if (r->is_unpaged)
                return text_format("%s%s%s", r->path, r->query[0] ? "?" : "", r->query);
        return text_format("%s?%s%slimit=%u", r->path, r->query, ampersand, r->spec.page_size);
}

int reflector_start_list(KubeReflector *r, Error *reterr) {
        cleanup_free char *path = format_list_path(r);

        r->framer = json_framer_new(true, on_listed_object, r);
        if (!path || !r->framer)
                return -ENOMEM;
        r->phase = REFLECTOR_LISTING;
        return kube_client_start_request(r->spec.client,
                                         &(KubeRequestSpec){ .method = "GET",
                                                             .path = path,
                                                             .on_data = on_list_data,
                                                             .on_done = on_list_done,
                                                             .userdata = r },
                                         &r->request, reterr);
}
