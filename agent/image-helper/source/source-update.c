/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-update.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/source/source-index-update.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <stdio.h>
#include <unistd.h>

void print_source_result(const SourceTransfer *transfer, const char *result) {
        (void) printf("{\"result\":\"%s\",\"requests\":%u,\"bytes\":%llu}\n", result,
                      transfer->n_requests, (unsigned long long) transfer->received);
}

/* ---- staticPodURL ---- */

/* The manifest is not parsed, but an empty body is not a valid response. */
static int check_url_body(const SourceBody *body, Error *reterr) {
        for (size_t i = 0; i < body->length; i++)
                if (!strchr(" \t\r\n", body->data[i]) || body->data[i] == '\0')
                        return 0;
        return error_setf(reterr, EBADMSG, "the answer is empty");
}

static json_t *make_url_state(const SourceSettings *settings, const SourceBody *body) {
        char digest[SHA256_HEX_SIZE], time[RFC3339_SIZE];

        sha256_hex(body->data, body->length, digest);
        return json_pack("{s:s, s:s, s:s, s:s}", "url", settings->url, "etag", body->etag, "sha256",
                         digest, "fetched", format_rfc3339(time, now_realtime_usec()));
}

static bool is_same_content(const json_t *known, const json_t *state) {
        return streq_ptr(json_text(known, "sha256"), json_text(state, "sha256")) &&
               streq_ptr(json_text(known, "url"), json_text(state, "url"));
}

static int offer_url_body(SourceStore *store, const SourceBody *body, const json_t *state,
                          Error *reterr) {
        int r = source_store_begin(store, reterr);

        if (r < 0)
                return r;
        r = source_store_add(store, true, "pods.yaml", body->data, body->length, reterr);
        return r < 0 ? r : source_store_finish(store, state, reterr);
}

/* If a server repeats the known content under a new ETag, the next request does not contain the old
 * ETag. */
static int keep_url_state(const SourceStore *store, const char *which, const json_t *known,
                          const json_t *state) {
        if (streq_ptr(json_text(known, "etag"), json_text(state, "etag")))
                return 0;
        return source_store_write_state(store, which, state);
}

static int update_url_source(SourceTransfer *transfer, const SourceSettings *settings,
                             SourceStore *store, Error *reterr) {
        const char *which = settings->was_refused ? "next" : "current";
        cleanup_json json_t *known = source_store_read_state(store, which), *state = NULL;
        cleanup_with(source_body_done) SourceBody body = { 0 };
        int r = source_transfer_get(transfer, "", known, settings->file_max, &body, reterr);

        if (r < 0)
                return r;
        if (!body.is_unchanged) {
                r = check_url_body(&body, reterr);
                if (r < 0)
                        return r;
                state = make_url_state(settings, &body);
                if (!state)
                        return -ENOMEM;
        }
        if (body.is_unchanged || is_same_content(known, state)) {
                print_source_result(transfer, "unchanged");
                return state ? keep_url_state(store, which, known, state) : 0;
        }
        r = offer_url_body(store, &body, state, reterr);
        if (r >= 0)
                print_source_result(transfer, "new");
        return r;
}

int update_source(const char *directory, const SourceSettings *settings, Error *reterr) {
        cleanup_with(source_store_done) SourceStore store = SOURCE_STORE_NULL;
        cleanup_with(source_transfer_done) SourceTransfer transfer = SOURCE_TRANSFER_NULL;
        int r = source_store_open(directory, &store, reterr);

        if (r < 0)
                return r;
        r = source_transfer_start(settings, (int[]){ store.fd, -EBADF }, &transfer, reterr);
        if (r < 0)
                return r;
        r = confine_source_reader(store.fd, transfer.stick_fd, reterr);
        if (r < 0)
                return r;
        return settings->fleet ? update_index_source(&transfer, settings, &store, reterr)
                               : update_url_source(&transfer, settings, &store, reterr);
}
