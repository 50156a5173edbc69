/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/document-fetch.h"

#include "agent/image-helper/process/parent-check.h"
#include "common/cleanup.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        FETCHER_POLL_MSEC = 1000
};

void fetched_document_done(FetchedDocument *document) {
        free(document->text);
        *document = (FetchedDocument){ 0 };
}

int fetched_document_check(const FetchedDocument *document, const char *digest, Error *reterr) {
        char actual[DIGEST_SIZE];

        digest_of(document->text, document->length, actual);
        if (!streq(actual, digest))
                return error_setf(reterr, EBADMSG, "'%s' is damaged: its digest is %s", digest,
                                  actual);
        return 0;
}

static int find_ended_fetcher(FetcherPool *fetchers, int options, Error *reterr) {
        for (size_t i = 0; i < fetchers->n; i++) {
                int status;

                if (waitpid(fetchers->pids[i], &status, options) <= 0)
                        continue;
                fetchers->pids[i] = fetchers->pids[--fetchers->n];
                if (parent_check_error_of_status(status) == -ENOMEM)
                        return error_setf(reterr, ENOMEM, "the fetcher process: %s",
                                          strerror(ENOMEM));
                if (WIFSIGNALED(status))
                        return error_setf(reterr, EIO,
                                          "the fetcher process was killed by signal %d",
                                          WTERMSIG(status));
                return error_setf(reterr, EIO, "the fetcher process ended with status %d",
                                  WEXITSTATUS(status));
        }
        return 0;
}

int fetcher_pool_check(FetcherPool *fetchers, Error *reterr) {
        return find_ended_fetcher(fetchers, WNOHANG, reterr);
}

int fetcher_pool_wait(FetcherPool *fetchers, FetchReply *ret, Error *reterr) {
        int r;

        for (;;) {
                struct pollfd fd = { .fd = fetchers->fd, .events = POLLIN };

                if (poll(&fd, 1, FETCHER_POLL_MSEC) > 0)
                        break;
                r = fetcher_pool_check(fetchers, reterr);
                if (r < 0)
                        return r;
        }
        r = fetcher_pool_receive(fetchers, ret);
        if (r != -EPIPE)
                return r;
        r = find_ended_fetcher(fetchers, 0, reterr); /* all are ending */
        return r < 0 ? r : -EPIPE;
}

int fetch_reply_to_error(const FetchReply *reply, Error *reterr) {
        if (!reply->message[0])
                return reply->r;
        return error_setf(reterr, -reply->r, "%s", reply->message);
}

static int read_memory_file(int fd, size_t max_bytes, char **ret, size_t *ret_length) {
        cleanup_free char *text = NULL;
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size < 0 || (size_t) st.st_size > max_bytes)
                return -EFBIG;
        text = calloc(1, (size_t) st.st_size + 1);
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, (size_t) st.st_size, 0);
        if (n != st.st_size)
                return -EIO;
        *ret = TAKE_PTR(text);
        *ret_length = (size_t) n;
        return 0;
}

int document_fetch(FetcherPool *fetchers, RegistryObjectKind kind, const char *name,
                   size_t max_bytes, uint32_t *endpoint, FetchedDocument *ret, Error *reterr) {
        cleanup_close int fd = memfd_create("document", MFD_CLOEXEC);
        FetchRequest request = { .id = fetch_id(++fetchers->n_documents, FETCH_DOCUMENT),
                                 .kind = kind,
                                 .size_max = max_bytes,
                                 .first = *endpoint };
        FetchReply reply;
        int r;

        if (fd < 0)
                return -errno;
        (void) snprintf(request.name, sizeof(request.name), "%s", name);
        r = fetcher_pool_submit(fetchers, &request, fd, -1);
        if (r < 0)
                return r;
        /* The reply may also belong to an earlier document that was given up while its fetcher was
         * busy. */
        do
                r = fetcher_pool_wait(fetchers, &reply, reterr);
        while (r >= 0 && reply.id != request.id && fetch_id_layer(reply.id) == FETCH_DOCUMENT);
        if (r < 0)
                return r;
        if (reply.id != request.id)
                return -EPROTO;
        if (reply.r < 0)
                return fetch_reply_to_error(&reply, reterr);
        *endpoint = reply.endpoint;
        ret->secret = reply.secret;
        memcpy(ret->media_type, reply.media_type, sizeof(reply.media_type));
        return read_memory_file(fd, max_bytes, &ret->text, &ret->length);
}
