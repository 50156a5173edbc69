/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source-transfer.h"

#include "common/file.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
        DOCUMENT_TIMEOUT_SEC = 60, /* and the time that the limit of the rate takes */
};

int source_transfer_start(const SourceSettings *settings, const SourceStore *store,
                          SourceTransfer *ret, Error *reterr) {
        ret->settings = settings;
        return source_fetcher_start(settings, (int[]){ store->fd, -EBADF }, &ret->fetcher, reterr);
}

void source_transfer_done(SourceTransfer *transfer) {
        source_fetcher_done(&transfer->fetcher);
}

void source_body_done(SourceBody *body) {
        free(body->data);
        *body = (SourceBody){ 0 };
}

static uint64_t find_document_timeout(const SourceSettings *settings, uint64_t size_max) {
        return DOCUMENT_TIMEOUT_SEC + (settings->rate_max > 0 ? size_max / settings->rate_max : 0);
}

static int read_body(int fd, uint64_t size_max, SourceBody *body) {
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return read_stream(fd, size_max, &body->data, &body->length);
}

int source_transfer_get(SourceTransfer *transfer, const char *url, const json_t *known,
                        uint64_t size_max, SourceBody *ret, Error *reterr) {
        SourceRequest request = { .size_max = size_max,
                                  .timeout_sec =
                                          find_document_timeout(transfer->settings, size_max) };
        cleanup_close int fd = memfd_create("document", MFD_CLOEXEC);
        const char *etag = document_string(known, "etag");
        SourceReply reply = { 0 };
        int r;

        if (fd < 0)
                return -errno;
        if (strlen(url) >= sizeof(request.url))
                return error_setf(reterr, ENAMETOOLONG, "the URL is too long");
        (void) snprintf(request.url, sizeof(request.url), "%s", url);
        if (etag && streq_ptr(document_string(known, "url"), url))
                (void) snprintf(request.etag, sizeof(request.etag), "%s", etag);
        r = source_fetcher_get(&transfer->fetcher, &request, fd, &reply, reterr);
        transfer->n_requests += reply.n_requests;
        transfer->received += reply.received;
        if (r < 0)
                return r == -EFBIG || r == -EPROTO ? r : -EAGAIN;
        ret->is_unchanged = reply.is_unchanged && request.etag[0];
        memcpy(ret->etag, reply.etag, sizeof(ret->etag));
        if (reply.is_unchanged && !ret->is_unchanged)
                return error_setf(reterr, EPROTO,
                                  "the server answered with status 304, which was not asked for");
        return ret->is_unchanged ? 0 : read_body(fd, size_max, ret);
}
