/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-transfer.h"

#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        DOWNLOAD_ATTEMPTS_MAX = 20, /* of one file in one run; the next run continues */
        DOCUMENT_TIMEOUT_SEC = 60,  /* and the time that the limit of the rate takes */
};

void source_body_done(SourceBody *body) {
        free(body->data);
        *body = (SourceBody){ 0 };
}

static uint64_t find_document_timeout(const SourceSettings *settings, uint64_t size_max) {
        return DOCUMENT_TIMEOUT_SEC + (settings->rate_max > 0 ? size_max / settings->rate_max : 0);
}

char *source_reference(const char *url, const char *suffix, const char *sibling) {
        size_t n = strcspn(url, "?"), n_kept = n;

        if (sibling)
                while (n_kept > 0 && url[n_kept - 1] != '/')
                        n_kept--;
        return text_format("%.*s%s%s", (int) n_kept, url, sibling ? sibling : suffix, url + n);
}

static int read_source_body(int fd, uint64_t size_max, SourceBody *body) {
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return read_stream(fd, size_max, &body->data, &body->length);
}

/* ---- a stick ---- */

/* The path of "file:///a/b" or "file:/a/b"; NULL: the URL is of HTTP. */
static const char *find_stick_path(const char *url) {
        if (strncmp(url, "file:///", 8) == 0)
                return url + 7;
        return strncmp(url, "file:/", 6) == 0 ? url + 5 : NULL;
}

/* It is opened before privileges are dropped; then nothing else can be. */
static int open_stick(const char *path, int *ret_fd, Error *reterr) {
        cleanup_free char *directory = source_reference(path, NULL, ".");
        int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (!directory)
                return -ENOMEM;
        if (fd < 0)
                return error_setf(reterr, EAGAIN, "%s: %s", directory, strerror(errno));
        *ret_fd = fd;
        return 0;
}

/* The reader is given what is there; it checks what it is. */
static int read_stick_file(SourceTransfer *transfer, const char *suffix, const char *sibling,
                           uint64_t size_max, SourceBody *ret, Error *reterr) {
        const char *name = strrchr(transfer->settings->url, '/') + 1;
        cleanup_free char *path = source_reference(name, suffix, sibling);
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if (!path)
                return -ENOMEM;
        fd = open_beneath(transfer->stick_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return error_setf(reterr, EAGAIN, "%s: %s", path, strerror(-fd));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_setf(reterr, EINVAL, "%s: is not a regular file", path);
        r = read_stream(fd, size_max, &ret->data, &ret->length);
        if (r < 0)
                return error_setf(reterr, r == -EFBIG ? EFBIG : EAGAIN, "%s: %s", path,
                                  strerror(-r));
        transfer->received += ret->length;
        return 0;
}

static int copy_stick_file(SourceTransfer *transfer, const char *sibling, uint64_t size, int fd,
                           Error *reterr) {
        cleanup_with(source_body_done) SourceBody body = { 0 };
        int r = read_stick_file(transfer, NULL, sibling, size, &body, reterr);

        if (r < 0)
                return r;
        if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return write_all(fd, body.data, body.length);
}

/* ---- HTTP ---- */

/* Sets the URL of a request. */
static int make_source_request(const SourceTransfer *transfer, const char *suffix,
                               const char *sibling, SourceRequest *request, Error *reterr) {
        cleanup_free char *url = source_reference(transfer->settings->url, suffix, sibling);

        if (!url)
                return -ENOMEM;
        if (strlen(url) >= sizeof(request->url))
                return error_setf(reterr, ENAMETOOLONG, "the URL is too long");
        (void) snprintf(request->url, sizeof(request->url), "%s", url);
        return 0;
}

static int perform_counted_request(SourceTransfer *transfer, const SourceRequest *request, int fd,
                                   SourceReply *reply, Error *reterr) {
        int r = source_fetcher_get(&transfer->fetcher, request, fd, reply, reterr);

        transfer->n_requests += reply->n_requests;
        transfer->received += reply->received;
        return r >= 0 || r == -EFBIG || r == -EPROTO ? r : -EAGAIN;
}

static int get_source_document(SourceTransfer *transfer, const char *suffix, const json_t *known,
                               uint64_t size_max, SourceBody *ret, Error *reterr) {
        SourceRequest request = { .size_max = size_max,
                                  .timeout_sec =
                                          find_document_timeout(transfer->settings, size_max) };
        cleanup_close int fd = memfd_create("document", MFD_CLOEXEC);
        const char *etag = document_string(known, "etag");
        SourceReply reply = { 0 };
        int r = fd < 0 ? -errno : make_source_request(transfer, suffix, NULL, &request, reterr);

        if (r < 0)
                return r;
        if (etag && streq_ptr(document_string(known, "url"), request.url))
                (void) snprintf(request.etag, sizeof(request.etag), "%s", etag);
        r = perform_counted_request(transfer, &request, fd, &reply, reterr);
        if (r < 0)
                return r;
        if (reply.is_unchanged && !request.etag[0])
                return error_setf(reterr, EPROTO,
                                  "the server answered with status 304, which was not asked for");
        ret->is_unchanged = reply.is_unchanged;
        memcpy(ret->etag, reply.etag, sizeof(ret->etag));
        return ret->is_unchanged ? 0 : read_source_body(fd, size_max, ret);
}

static int continue_download(SourceTransfer *transfer, SourceRequest *request, int fd,
                             Error *reterr) {
        for (unsigned n = 0;; n++) {
                cleanup_error Error error = ERROR_NULL;
                SourceReply reply = { 0 };
                int r = perform_counted_request(transfer, request, fd, &reply, &error);

                request->from += reply.received;
                if (r >= 0)
                        return 0;
                if (!reply.was_interrupted || reply.received == 0 || n == DOWNLOAD_ATTEMPTS_MAX) {
                        error_move(reterr, &error);
                        return r;
                }
        }
}

static int download_file(SourceTransfer *transfer, const char *sibling, uint64_t size, int fd,
                         Error *reterr) {
        SourceRequest request = { .size_max = size };
        struct stat st;
        int r = make_source_request(transfer, NULL, sibling, &request, reterr);

        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        request.from = (uint64_t) st.st_size;
        if (request.from > size && ftruncate(fd, 0) < 0)
                return -errno;
        if (request.from > size)
                request.from = 0;
        return request.from == size ? 0 : continue_download(transfer, &request, fd, reterr);
}

/* ---- the interface ---- */

int source_transfer_start(const SourceSettings *settings, const SourceStore *store,
                          SourceTransfer *ret, Error *reterr) {
        const char *path = find_stick_path(settings->url);

        ret->settings = settings;
        return path ? open_stick(path, &ret->stick_fd, reterr)
                    : source_fetcher_start(settings, (int[]){ store->fd, -EBADF }, &ret->fetcher,
                                           reterr);
}

void source_transfer_done(SourceTransfer *transfer) {
        source_fetcher_done(&transfer->fetcher);
        close_fd(transfer->stick_fd);
}

int source_transfer_get(SourceTransfer *transfer, const char *suffix, const json_t *known,
                        uint64_t size_max, SourceBody *ret, Error *reterr) {
        return transfer->stick_fd >= 0
                       ? read_stick_file(transfer, suffix, NULL, size_max, ret, reterr)
                       : get_source_document(transfer, suffix, known, size_max, ret, reterr);
}

int source_transfer_download(SourceTransfer *transfer, const char *sibling, uint64_t size, int fd,
                             Error *reterr) {
        return transfer->stick_fd >= 0 ? copy_stick_file(transfer, sibling, size, fd, reterr)
                                       : download_file(transfer, sibling, size, fd, reterr);
}
