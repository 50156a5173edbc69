/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-transfer.h"

#include "agent/model/source-index.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        DOWNLOAD_ATTEMPTS_MAX = 20, /* for one file in one run; the next run continues */
        COPY_BYTES = 256 * 1024,
        DOCUMENT_TIMEOUT_SEC = 60, /* plus the time that the rate limit requires */
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

/* The directory is opened before privileges are dropped, because it cannot be opened afterwards. */
static int open_stick(const char *path, int *ret_fd, Error *reterr) {
        cleanup_free char *directory = source_reference(path, NULL, ".");
        int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (!directory)
                return -ENOMEM;
        if (fd < 0)
                return error_setf(reterr, errno == ENOENT ? ENOMEDIUM : EAGAIN, "%s: %s", directory,
                                  strerror(errno));
        *ret_fd = fd;
        return 0;
}

/* The existing bytes are passed to the reader, which checks them. */
static int open_stick_file(const SourceTransfer *transfer, const char *path, Error *reterr) {
        cleanup_close int fd =
                open_beneath(transfer->stick_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        struct stat st;

        if (fd < 0)
                return error_setf(reterr, fd == -ENOENT ? ENOENT : EAGAIN, "%s: %s", path,
                                  strerror(-fd));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_setf(reterr, EINVAL, "%s: is not a regular file", path);
        return TAKE_FD(fd);
}

static int explain_stick_error(const char *path, int r, Error *reterr) {
        return error_setf(reterr, r == -EFBIG ? EFBIG : EAGAIN, "%s: %s", path, strerror(-r));
}

static int read_stick_file(SourceTransfer *transfer, const char *suffix, uint64_t size_max,
                           SourceBody *ret, Error *reterr) {
        const char *name = strrchr(transfer->settings->url, '/') + 1;
        cleanup_free char *path = source_reference(name, suffix, NULL);
        cleanup_close int fd = -EBADF;
        int r;

        if (!path)
                return -ENOMEM;
        r = fd = open_stick_file(transfer, path, reterr);
        if (r < 0)
                return r != -ENOENT ? r : suffix[0] ? -EAGAIN : -ENOMEDIUM;
        r = read_stream(fd, size_max, &ret->data, &ret->length);
        if (r < 0)
                return explain_stick_error(path, r, reterr);
        transfer->received += ret->length;
        return 0;
}

/* Copies bytes from 'at' on: 0 at the end; -EFBIG if there are more than 'size'; or -errno. */
static int copy_stick_bytes(SourceTransfer *transfer, int from, int to, uint64_t at,
                            uint64_t size) {
        cleanup_free char *buffer = malloc(COPY_BYTES);

        while (buffer) {
                ssize_t n = pread(from, buffer, COPY_BYTES, (off_t) at);
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                if ((uint64_t) n > size - at)
                        return -EFBIG;
                r = pwrite_all(to, buffer, (size_t) n, at);
                if (r < 0)
                        return r;
                at += (uint64_t) n;
                transfer->received += (uint64_t) n;
                if (transfer->fetcher.on_tick)
                        transfer->fetcher.on_tick(transfer->fetcher.userdata);
        }
        return -ENOMEM;
}

static int copy_stick_file(SourceTransfer *transfer, const char *sibling, uint64_t size, int to,
                           Error *reterr) {
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if (fstat(to, &st) < 0 || ((uint64_t) st.st_size > size && ftruncate(to, 0) < 0))
                return -errno;
        r = fd = open_stick_file(transfer, sibling, reterr);
        if (r < 0)
                return r == -ENOENT ? -EAGAIN : r;
        r = copy_stick_bytes(transfer, fd, to,
                             (uint64_t) st.st_size > size ? 0 : (uint64_t) st.st_size, size);
        if (r == -ENOMEM || r == -ENOSPC || r == -EDQUOT)
                return error_prefixf(reterr, r, "%s", sibling);
        return r < 0 ? explain_stick_error(sibling, r, reterr) : 0;
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
        const char *etag = json_text(known, "etag");
        SourceReply reply = { 0 };
        int r = fd < 0 ? -errno : make_source_request(transfer, suffix, NULL, &request, reterr);

        if (r < 0)
                return r;
        if (etag && streq_ptr(json_text(known, "url"), request.url))
                (void) snprintf(request.etag, sizeof(request.etag), "%s", etag);
        r = perform_counted_request(transfer, &request, fd, &reply, reterr);
        if (r < 0)
                return r;
        if (reply.is_unchanged && !request.etag[0])
                return error_setf(reterr, EPROTO,
                                  "the server answered with status 304, which was not requested");
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

int source_transfer_start(const SourceSettings *settings, const int *close_in_fetcher,
                          SourceTransfer *ret, Error *reterr) {
        const char *path = source_stick_path(settings->url);

        ret->settings = settings;
        return path ? open_stick(path, &ret->stick_fd, reterr)
                    : source_fetcher_start(settings, close_in_fetcher, &ret->fetcher, reterr);
}

void source_transfer_on_tick(SourceTransfer *transfer, void (*on_tick)(void *userdata),
                             void *userdata) {
        transfer->fetcher.on_tick = on_tick;
        transfer->fetcher.userdata = userdata;
}

void source_transfer_done(SourceTransfer *transfer) {
        source_fetcher_done(&transfer->fetcher);
        close_fd(transfer->stick_fd);
}

int source_transfer_get(SourceTransfer *transfer, const char *suffix, const json_t *known,
                        uint64_t size_max, SourceBody *ret, Error *reterr) {
        return transfer->stick_fd >= 0
                       ? read_stick_file(transfer, suffix, size_max, ret, reterr)
                       : get_source_document(transfer, suffix, known, size_max, ret, reterr);
}

int source_transfer_download(SourceTransfer *transfer, const char *sibling, uint64_t size, int fd,
                             Error *reterr) {
        return transfer->stick_fd >= 0 ? copy_stick_file(transfer, sibling, size, fd, reterr)
                                       : download_file(transfer, sibling, size, fd, reterr);
}
