/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/tls/tls-stream.h"

#include "agent/node-api/http/byte-queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define HANDSHAKE_USEC (10 * USEC_PER_SEC)
#define LINGER_USEC    (60 * USEC_PER_SEC) /* for a client to read some of the last bytes */

enum {
        RECORD_MAX = 16 * 1024,       /* the maximum in TLS: GnuTLS keeps no rest of a record */
        PLAIN_MAX = 4 * RECORD_MAX,   /* from the internal socket, encrypted and sent at once */
        BATCH_MAX = PLAIN_MAX + 4096, /* with the overhead of encryption */
        UNSENT_MAX = 256 * 1024,      /* a batch, and TLS's own messages */
        ROUNDS_MAX = 8,               /* in one turn of the loop */
};

/* From the client: a record. */
typedef struct TlsInward {
        char bytes[RECORD_MAX];
        size_t length, sent;
        bool has_ended;  /* no more is read */
        bool is_refused; /* the receiver is gone, so data that is read is dropped */
} TlsInward;

/* To the client. */
typedef struct TlsOutward {
        ByteQueue unsent;         /* encrypted data; while there is some, no more is read */
        size_t n_sending;         /* from tls_stream_send(): encrypted, but not completely sent */
        size_t n_before_boundary; /* from the internal socket, see tls_stream_end_record(); 0:
                                   * none */
        bool has_ended;           /* no more is read */
        bool is_refused;          /* the client is gone */
} TlsOutward;

struct TlsStream {
        const TlsStreamHandlers *handlers;
        void *userdata;
        gnutls_session_t session;
        char *ticket; /* for the client's certificate; NULL: none */
        bool has_refused_certificate;
        int client_fd;
        int plain_fd; /* this end of the socket pair; -EBADF until the handshake is complete, and
                       * after the stream was taken over */
        sd_event *event;
        sd_event_source *client_source, *plain_source;
        sd_event_source *deadline; /* for the handshake, and for the end */
        TlsInward inward;
        TlsOutward outward;
        bool is_inward_shut; /* the end of the client's data was passed on */
        bool is_closed;
};

/* GnuTLS's output during one step of a stream: one send() for several records. The buffer is empty
 * between two steps, so all streams share it. */
static struct {
        char bytes[BATCH_MAX];
        size_t length;
} batch;

static void set_io_interest(sd_event_source *source, uint32_t events) {
        if (!source)
                return;
        /* Disabled if no event is awaited, because an error or hang-up would be reported
         * continuously. */
        (void) sd_event_source_set_io_events(source, events);
        (void) sd_event_source_set_enabled(source, events ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void close_tls_stream(TlsStream *stream) {
        if (stream->is_closed)
                return;
        stream->is_closed = true;
        stream->client_source = sd_event_source_disable_unref(stream->client_source);
        stream->plain_source = sd_event_source_disable_unref(stream->plain_source);
        stream->deadline = sd_event_source_disable_unref(stream->deadline);
        stream->plain_fd = close_fd(stream->plain_fd);
        stream->client_fd = close_fd(stream->client_fd);
        stream->handlers->on_closed(stream, stream->userdata);
}

static int on_tls_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        close_tls_stream(userdata);
        return 0;
}

static int set_tls_deadline(TlsStream *stream, uint64_t usec) {
        return sd_event_add_time_relative(stream->event, &stream->deadline, CLOCK_MONOTONIC, usec,
                                          0, on_tls_deadline, stream);
}

/* ---- encryption ---- */

static int push_piece(TlsStream *stream, const void *data, size_t length) {
        ByteQueue *unsent = &stream->outward.unsent;
        int r;

        if (byte_queue_length(unsent) == 0 && length <= sizeof(batch.bytes) - batch.length) {
                memcpy(batch.bytes + batch.length, data, length);
                batch.length += length;
                return 0;
        }
        r = byte_queue_append(unsent, UNSENT_MAX, batch.bytes, batch.length);
        batch.length = 0;
        return r < 0 ? r : byte_queue_append(unsent, UNSENT_MAX, data, length);
}

/* A vec_push function of GnuTLS. */
static ssize_t push_records(gnutls_transport_ptr_t userdata, const giovec_t *pieces, int n) {
        TlsStream *stream = userdata;
        ssize_t total = 0;

        for (int i = 0; i < n; i++) {
                if (push_piece(stream, pieces[i].iov_base, pieces[i].iov_len) < 0) {
                        gnutls_transport_set_errno(stream->session, ENOMEM);
                        return -1;
                }
                total += (ssize_t) pieces[i].iov_len;
        }
        return total;
}

/* The bytes that the socket has accepted; none follow after an error. */
static size_t send_encrypted(TlsStream *stream, const char *bytes, size_t length) {
        ssize_t n = length > 0 && !stream->outward.is_refused
                            ? send(stream->client_fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : 0;

        if (n < 0 && errno != EAGAIN && errno != EINTR)
                stream->outward.is_refused = true;
        if (n > 0 && stream->deadline && stream->outward.has_ended)
                (void) sd_event_source_set_time_relative(stream->deadline, LINGER_USEC);
        return n > 0 ? (size_t) n : 0;
}

/* Called after each call of GnuTLS. True if data was sent to the client. */
static bool flush_to_client(TlsStream *stream) {
        ByteQueue *unsent = &stream->outward.unsent;
        size_t n;

        if (byte_queue_length(unsent) > 0) {
                n = send_encrypted(stream, byte_queue_bytes(unsent), byte_queue_length(unsent));
                byte_queue_consume(unsent, n);
                return n > 0;
        }
        n = send_encrypted(stream, batch.bytes, batch.length);
        if (byte_queue_append(unsent, UNSENT_MAX, batch.bytes + n, batch.length - n) < 0)
                stream->outward.is_refused = true;
        batch.length = 0;
        return n > 0;
}

/* ---- after the handshake ---- */

/* Each function returns true if it made progress. */
static bool read_from_client(TlsStream *stream) {
        TlsInward *inward = &stream->inward;
        ssize_t n;

        if (inward->has_ended || inward->length > 0)
                return false;
        n = gnutls_record_recv(stream->session, inward->bytes, sizeof(inward->bytes));
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
                return false;
        /* Any other error ends the stream like an orderly end: HTTP and its successors can detect
         * whether they have received everything. */
        if (n <= 0)
                inward->has_ended = true;
        else
                inward->length = (size_t) n;
        return true;
}

static bool write_to_plain(TlsStream *stream) {
        TlsInward *inward = &stream->inward;
        ssize_t n;

        if (inward->length == 0) {
                if (!inward->has_ended || stream->is_inward_shut)
                        return false;
                stream->is_inward_shut = true;
                (void) shutdown(stream->plain_fd, SHUT_WR);
                return true;
        }
        n = inward->is_refused ? (ssize_t) (inward->length - inward->sent)
                               : send(stream->plain_fd, inward->bytes + inward->sent,
                                      inward->length - inward->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n < 0)
                inward->is_refused = true;
        else
                inward->sent += (size_t) n;
        if (inward->sent == inward->length)
                inward->length = inward->sent = 0;
        return true;
}

static bool encrypt_for_client(TlsStream *stream, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = gnutls_record_send(stream->session, bytes,
                                               MIN(length, (size_t) RECORD_MAX));

                if (n <= 0)
                        return false;
                bytes += n;
                length -= (size_t) n;
        }
        return true;
}

static size_t plain_read_size(const TlsOutward *outward) {
        size_t n = outward->n_before_boundary;

        return n > 0 ? MIN(n, (size_t) PLAIN_MAX) : (size_t) PLAIN_MAX;
}

void tls_stream_end_record(TlsStream *stream) {
        int n = 0;

        if (stream->plain_fd >= 0 && ioctl(stream->plain_fd, FIONREAD, &n) >= 0)
                stream->outward.n_before_boundary = (size_t) n;
}

static bool read_from_plain(TlsStream *stream) {
        static char plain[PLAIN_MAX];
        TlsOutward *outward = &stream->outward;
        ssize_t n;

        if (outward->has_ended || byte_queue_length(&outward->unsent) > 0)
                return false;
        n = recv(stream->plain_fd, plain, plain_read_size(outward), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n > 0 && outward->n_before_boundary > 0)
                outward->n_before_boundary -= (size_t) n;
        if (n <= 0)
                outward->has_ended = true; /* even if it was closed with unread data */
        else if (!encrypt_for_client(stream, plain, (size_t) n))
                outward->is_refused = true;
        return true;
}

static void set_stream_interests(TlsStream *stream) {
        const TlsInward *inward = &stream->inward;
        bool has_unsent = byte_queue_length(&stream->outward.unsent) > 0;
        bool can_read_client = !inward->has_ended && inward->length == 0;
        bool can_read_plain = !stream->outward.has_ended && !has_unsent;

        set_io_interest(stream->client_source,
                        (can_read_client ? EPOLLIN : 0U) | (has_unsent ? EPOLLOUT : 0U));
        set_io_interest(stream->plain_source,
                        (can_read_plain ? EPOLLIN : 0U) | (inward->length > 0 ? EPOLLOUT : 0U));
}

static bool is_stream_over(const TlsStream *stream) {
        const TlsOutward *outward = &stream->outward;

        return outward->is_refused ||
               (outward->has_ended && byte_queue_length(&outward->unsent) == 0);
}

static void step_tls_stream(TlsStream *stream) {
        bool goes_on = true;

        for (unsigned i = 0; i < ROUNDS_MAX && goes_on; i++) {
                bool has_read = read_from_client(stream);
                bool has_passed = write_to_plain(stream);
                bool has_answer = read_from_plain(stream);

                goes_on = flush_to_client(stream) || has_read || has_passed || has_answer;
        }
        if (is_stream_over(stream)) {
                (void) gnutls_bye(stream->session, GNUTLS_SHUT_WR);
                (void) flush_to_client(stream);
                close_tls_stream(stream);
                return;
        }
        if (stream->outward.has_ended && !stream->deadline)
                (void) set_tls_deadline(stream, LINGER_USEC);
        set_stream_interests(stream);
}

/* ---- taken over ---- */

/* Decrypted data that the socket pair's other end has not read. */
static int take_unread_bytes(const TlsInward *inward, int fd, ByteQueue *early) {
        char bytes[RECORD_MAX];
        ssize_t n;

        while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
                int r = byte_queue_append(early, SIZE_MAX, bytes, (size_t) n);

                if (r < 0)
                        return r;
        }
        return byte_queue_append(early, SIZE_MAX, inward->bytes + inward->sent,
                                 inward->length - inward->sent);
}

int tls_stream_take_over(TlsStream *stream, int fd, ByteQueue *early) {
        const TlsOutward *outward = &stream->outward;
        int r = take_unread_bytes(&stream->inward, fd, early);

        if (r < 0)
                return r;
        while (read_from_plain(stream))
                (void) flush_to_client(stream);
        if (stream->inward.has_ended || outward->has_ended || outward->is_refused ||
            byte_queue_length(&outward->unsent) > 0)
                return -ENOTCONN;
        stream->client_source = sd_event_source_disable_unref(stream->client_source);
        stream->plain_source = sd_event_source_disable_unref(stream->plain_source);
        stream->plain_fd = close_fd(stream->plain_fd);
        return stream->client_fd;
}

ssize_t tls_stream_receive(TlsStream *stream, void *buffer, size_t size) {
        bool *has_ended = &stream->inward.has_ended;
        size_t length = 0;
        ssize_t n = 0;

        while (!*has_ended && size - length >= RECORD_MAX) {
                n = gnutls_record_recv(stream->session, (char *) buffer + length, size - length);
                if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
                        break;
                if (n <= 0)
                        *has_ended = true;
                else
                        length += (size_t) n;
        }
        /* If data precedes the end, the next call reports the end. TLS may end before the
         * connection, which must nevertheless become readable for that call. */
        if (*has_ended && length > 0)
                (void) shutdown(stream->client_fd, SHUT_RD);
        (void) flush_to_client(stream); /* TLS's own messages */
        return length > 0 || *has_ended ? (ssize_t) length : -EAGAIN;
}

ssize_t tls_stream_send(TlsStream *stream, const void *data, size_t length) {
        TlsOutward *outward = &stream->outward;

        if (outward->n_sending == 0) {
                outward->n_sending = MIN(length, (size_t) PLAIN_MAX);
                if (!encrypt_for_client(stream, data, outward->n_sending))
                        outward->is_refused = true;
        }
        (void) flush_to_client(stream);
        if (outward->is_refused)
                return -EPIPE;
        if (byte_queue_length(&outward->unsent) > 0)
                return -EAGAIN;
        length = outward->n_sending;
        outward->n_sending = 0;
        return (ssize_t) length;
}

void tls_stream_shut(TlsStream *stream) {
        (void) gnutls_bye(stream->session, GNUTLS_SHUT_WR);
        (void) flush_to_client(stream);
        if (byte_queue_length(&stream->outward.unsent) == 0)
                (void) shutdown(stream->client_fd, SHUT_WR);
}

static int on_tls_rest(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        step_tls_stream(userdata);
        return 0;
}

void tls_stream_end(TlsStream *stream) {
        stream->inward.has_ended = stream->is_inward_shut = stream->outward.has_ended = true;
        if (sd_event_add_io(stream->event, &stream->client_source, stream->client_fd, EPOLLOUT,
                            on_tls_rest, stream) < 0)
                close_tls_stream(stream);
        else
                step_tls_stream(stream);
}

/* ---- the handshake ---- */

static int on_tls_plain(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        step_tls_stream(userdata);
        return 0;
}

static void prove_client_of_stream(TlsStream *stream) {
        cleanup_error Error error = ERROR_NULL;
        int r = tls_session_prove_client(stream->session, &stream->ticket, &error);

        stream->has_refused_certificate = r < 0;
        if (r < 0)
                log_debug("A client was refused: %s", error_message(&error, r));
}

static void finish_handshake(TlsStream *stream) {
        int fds[2];

        stream->deadline = sd_event_source_disable_unref(stream->deadline);
        prove_client_of_stream(stream);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
                close_tls_stream(stream);
                return;
        }
        stream->plain_fd = fds[0];
        if (sd_event_add_io(stream->event, &stream->plain_source, fds[0], EPOLLIN, on_tls_plain,
                            stream) < 0) {
                close_fd(fds[1]);
                close_tls_stream(stream);
                return;
        }
        set_stream_interests(stream);
        stream->handlers->on_open(stream, fds[1], stream->userdata);
}

static void continue_handshake(TlsStream *stream) {
        int code = tls_session_handshake(stream->session);

        (void) flush_to_client(stream);
        if (stream->outward.is_refused || (code < 0 && gnutls_error_is_fatal(code)))
                close_tls_stream(stream);
        else if (code == GNUTLS_E_SUCCESS)
                finish_handshake(stream);
        else
                set_io_interest(stream->client_source,
                                EPOLLIN | (byte_queue_length(&stream->outward.unsent) > 0
                                                   ? (uint32_t) EPOLLOUT
                                                   : 0U));
}

static int on_tls_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        TlsStream *stream = userdata;

        if (stream->plain_fd < 0)
                continue_handshake(stream);
        else
                step_tls_stream(stream);
        return 0;
}

int tls_stream_new(sd_event *event, int fd_consume, TlsCredentials *credentials,
                   const TlsStreamHandlers *handlers, void *userdata, TlsStream **ret) {
        cleanup_with(tls_stream_freep) TlsStream *stream = calloc(1, sizeof(*stream));
        int r;

        if (!stream) {
                close_fd(fd_consume);
                return -ENOMEM;
        }
        stream->client_fd = fd_consume;
        stream->plain_fd = -EBADF;
        stream->event = sd_event_ref(event);
        stream->handlers = handlers;
        stream->userdata = userdata;
        r = tls_credentials_start_session(credentials, &stream->session);
        if (r < 0)
                return r;
        gnutls_transport_set_ptr2(stream->session, (gnutls_transport_ptr_t) (intptr_t) fd_consume,
                                  stream);
        gnutls_transport_set_vec_push_function(stream->session, push_records);
        r = sd_event_add_io(event, &stream->client_source, stream->client_fd, EPOLLIN,
                            on_tls_client, stream);
        if (r < 0)
                return r;
        r = set_tls_deadline(stream, HANDSHAKE_USEC);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(stream);
        return 0;
}

TlsStream *tls_stream_free(TlsStream *stream) {
        if (!stream)
                return NULL;
        sd_event_source_disable_unref(stream->client_source);
        sd_event_source_disable_unref(stream->plain_source);
        sd_event_source_disable_unref(stream->deadline);
        sd_event_unref(stream->event);
        close_fd(stream->plain_fd);
        close_fd(stream->client_fd);
        if (stream->session)
                tls_session_end(stream->session);
        byte_queue_done(&stream->outward.unsent);
        free(stream->ticket);
        free(stream);
        return NULL;
}

const char *tls_stream_ticket(const TlsStream *stream) {
        return stream->ticket;
}

bool tls_stream_has_refused_certificate(const TlsStream *stream) {
        return stream->has_refused_certificate;
}
