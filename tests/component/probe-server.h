/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Servers for probes. Each is a child process of the test with its own port, and behaves as the
 * path or the service specifies; most of them misbehave. */

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

typedef struct Server {
        pid_t pid;
        uint16_t port;
} Server;

/* Handles one connection in a child. */
typedef void (*serve_t)(int fd);

static inline int server_listen(uint16_t *ret_port) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *) &address, length) == 0);
        REQUIRE(listen(fd, 64) == 0);
        REQUIRE(getsockname(fd, (struct sockaddr *) &address, &length) == 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static inline Server server_start(serve_t serve) {
        Server server = { 0 };
        int fd = server_listen(&server.port);

        server.pid = fork();
        REQUIRE(server.pid >= 0);
        if (server.pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) signal(SIGCHLD, SIG_IGN);
                for (;;) {
                        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

                        if (connection >= 0 && fork() == 0) {
                                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                                close(fd);
                                serve(connection);
                                _exit(0);
                        }
                        close(connection);
                }
        }
        close(fd);
        return server;
}

static inline void server_stop(Server *server) {
        (void) kill(server->pid, SIGKILL);
        REQUIRE(waitpid(server->pid, NULL, 0) == server->pid);
}

static inline void send_text(int fd, const char *text) {
        (void) write_all(fd, text, strlen(text));
}

/* ---- HTTP ---- */

static inline void send_slowly(int fd, const char *text) {
        for (const char *p = text;; p = p[1] ? p + 1 : text) {
                if (send(fd, p, 1, MSG_NOSIGNAL) < 0)
                        return;
                (void) usleep(20000);
        }
}

static inline void send_endlessly(int fd) {
        char chunk[65536];

        memset(chunk, 'x', sizeof(chunk));
        send_text(fd, "HTTP/1.1 200 OK\r\n\r\n");
        while (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
                ;
}

static inline void flood_with_trailers(int fd) {
        static const char line[] =
                "X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n";

        send_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n");
        while (send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL) > 0)
                ;
}

static inline void answer_request(int fd, const char *request) {
        char path[256] = "";

        (void) sscanf(request, "GET %255s", path);
        if (streq(path, "/hang"))
                (void) pause();
        else if (streq(path, "/garbage"))
                send_text(fd, "\x01\x02 not a known protocol\r\n\r\n");
        else if (streq(path, "/slow-header"))
                send_slowly(fd, "HTTP/1.1 200 OK\r\nX-Y: z\r\n");
        else if (streq(path, "/huge"))
                send_endlessly(fd);
        else if (streq(path, "/trailers"))
                flood_with_trailers(fd);
        else if (streq(path, "/cut"))
                send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        else if (streq(path, "/500"))
                send_text(fd, "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
        else if (streq(path, "/here"))
                send_text(fd, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n");
        else if (streq(path, "/to-500"))
                send_text(fd, "HTTP/1.1 302 Found\r\nLocation: /500\r\nContent-Length: 0\r\n\r\n");
        else if (streq(path, "/loop"))
                send_text(fd, "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
        else if (streq(path, "/away"))
                send_text(fd, "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/500\r\n"
                              "Content-Length: 0\r\n\r\n");
        else if (streq(path, "/echo")) { /* the request, as it was received */
                char head[96];

                (void) snprintf(head, sizeof(head),
                                "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(request));
                send_text(fd, head);
                send_text(fd, request);
        } else if (!streq(path, "/close"))
                send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
}

static inline void serve_http(int fd) {
        char request[4096] = "";
        size_t n = 0;

        while (n < sizeof(request) - 1 && !strstr(request, "\r\n\r\n")) {
                ssize_t got = read(fd, request + n, sizeof(request) - 1 - n);

                if (got <= 0)
                        return;
                n += (size_t) got;
                if (request[0] == 0x16) { /* a TLS handshake */
                        send_text(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
                        return;
                }
        }
        answer_request(fd, request);
}

/* ---- the same over TLS, with a self-signed certificate ---- */

static inline void make_certificate(gnutls_certificate_credentials_t credentials) {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t certificate = NULL;
        unsigned char serial = 1;

        REQUIRE(gnutls_x509_privkey_init(&key) == 0 && gnutls_x509_crt_init(&certificate) == 0);
        REQUIRE(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, 256, 0) == 0);
        REQUIRE(gnutls_x509_crt_set_version(certificate, 3) == 0);
        REQUIRE(gnutls_x509_crt_set_key(certificate, key) == 0);
        REQUIRE(gnutls_x509_crt_set_dn(certificate, "CN=nobody", NULL) == 0);
        REQUIRE(gnutls_x509_crt_set_serial(certificate, &serial, 1) == 0);
        /* The certificate has also expired. */
        REQUIRE(gnutls_x509_crt_set_activation_time(certificate, 1000) == 0);
        REQUIRE(gnutls_x509_crt_set_expiration_time(certificate, 2000) == 0);
        REQUIRE(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0) == 0);
        REQUIRE(gnutls_certificate_set_x509_key(credentials, &certificate, 1, key) == 0);
        gnutls_x509_crt_deinit(certificate);
        gnutls_x509_privkey_deinit(key);
}

static inline void serve_tls(int fd) {
        static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
        gnutls_certificate_credentials_t credentials;
        gnutls_session_t session;
        char request[4096];

        REQUIRE(gnutls_certificate_allocate_credentials(&credentials) == 0);
        make_certificate(credentials);
        REQUIRE(gnutls_init(&session, GNUTLS_SERVER) == 0);
        REQUIRE(gnutls_set_default_priority(session) == 0);
        REQUIRE(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == 0);
        gnutls_transport_set_int(session, fd);
        if (gnutls_handshake(session) == 0 &&
            gnutls_record_recv(session, request, sizeof(request)) > 0) {
                (void) gnutls_record_send(session, reply, strlen(reply));
                (void) gnutls_bye(session, GNUTLS_SHUT_WR);
        }
        gnutls_deinit(session);
        gnutls_certificate_free_credentials(credentials);
}

/* A message of 16 MiB, in pieces of one byte. */
static inline void flood_with_handshake(int fd) {
        static const char beginning[] = { 2, (char) 0xff, (char) 0xff, (char) 0xff };
        unsigned char pieces[6 * 4096];

        for (size_t i = 0; i < sizeof(pieces); i += 6) {
                static const unsigned char piece[] = { 22, 3, 3, 0, 1, 'z' };

                memcpy(pieces + i, piece, sizeof(piece));
                if (i / 6 < sizeof(beginning))
                        pieces[i + 5] = (unsigned char) beginning[i / 6];
        }
        while (send(fd, pieces, sizeof(pieces), MSG_NOSIGNAL) > 0)
                ;
}

/* ---- gRPC: as much of HTTP/2 as one answer takes ---- */

enum {
        FRAME_DATA,
        FRAME_HEADERS,
        FRAME_SETTINGS = 4,
        FLAG_END_STREAM = 1,
        FLAG_ACK = 1,
        FLAG_END_HEADERS = 4,
};

static inline void send_frame(int fd, int type, int flags, int stream, const void *data,
                              size_t length) {
        unsigned char frame[512] = { (unsigned char) (length >> 16),
                                     (unsigned char) (length >> 8),
                                     (unsigned char) length,
                                     (unsigned char) type,
                                     (unsigned char) flags,
                                     0,
                                     0,
                                     0,
                                     (unsigned char) stream };

        REQUIRE(length + 9 <= sizeof(frame));
        memcpy(frame + 9, data, length);
        (void) write_all(fd, frame, length + 9);
}

/* A header field with a literal name and a literal value. */
static inline size_t put_field(unsigned char *at, const char *name, const char *value) {
        size_t n = 0;

        at[n++] = 0;
        at[n++] = (unsigned char) strlen(name);
        memcpy(at + n, name, strlen(name));
        n += strlen(name);
        at[n++] = (unsigned char) strlen(value);
        memcpy(at + n, value, strlen(value));
        return n + strlen(value);
}

static inline void flood_with_nothing(int fd) {
        unsigned char frames[9 * 4096] = { 0 };

        for (size_t i = 8; i < sizeof(frames); i += 9)
                frames[i] = 1; /* an empty DATA frame of the first stream */
        while (send(fd, frames, sizeof(frames), MSG_NOSIGNAL) > 0)
                ;
}

static inline void grpc_answer(int fd, const char *service) {
        unsigned char headers[128] = { 0x88 }, trailers[128];
        unsigned char message[] = { 0, 0, 0, 0, 2, 0x08, 1 };
        const char *status = "0";
        size_t n;

        if (streq(service, "hang"))
                (void) pause();
        if (streq(service, "not"))
                message[6] = 2;
        if (streq(service, "garbage"))
                message[5] = 0x77;
        if (streq(service, "unimplemented"))
                status = "12";
        n = 1 + put_field(headers + 1, "content-type", "application/grpc");
        if (!streq(status, "0"))
                n += put_field(headers + n, "grpc-status", status);
        send_frame(fd, FRAME_HEADERS, FLAG_END_HEADERS | (streq(status, "0") ? 0 : FLAG_END_STREAM),
                   1, headers, n);
        if (!streq(status, "0"))
                return;
        if (streq(service, "nothing"))
                flood_with_nothing(fd);
        send_frame(fd, FRAME_DATA, 0, 1, message, sizeof(message));
        n = put_field(trailers, "grpc-status", streq(service, "code") ? "14" : status);
        n += put_field(trailers + n, "grpc-message", "in words");
        send_frame(fd, FRAME_HEADERS, FLAG_END_HEADERS | FLAG_END_STREAM, 1, trailers, n);
}

static inline bool read_exactly(int fd, void *data, size_t length) {
        for (size_t n = 0; n < length;) {
                ssize_t got = read(fd, (char *) data + n, length - n);

                if (got <= 0)
                        return false;
                n += (size_t) got;
        }
        return true;
}

/* Answers with the text in the DATA frame; ignores all other frames. */
static inline void serve_grpc(int fd) {
        unsigned char head[9], data[16384];
        char preface[24], service[64] = "";

        if (!read_exactly(fd, preface, sizeof(preface)))
                return;
        send_frame(fd, FRAME_SETTINGS, 0, 0, "", 0);
        while (read_exactly(fd, head, sizeof(head))) {
                size_t length = ((size_t) head[0] << 16) | ((size_t) head[1] << 8) | head[2];

                if (length > sizeof(data) || !read_exactly(fd, data, length))
                        return;
                if (head[3] == FRAME_SETTINGS && !(head[4] & FLAG_ACK))
                        send_frame(fd, FRAME_SETTINGS, FLAG_ACK, 0, "", 0);
                if (head[3] != FRAME_DATA || length < 5)
                        continue;
                if (length > 7 && length - 7 < sizeof(service))
                        memcpy(service, data + 7, length - 7);
                grpc_answer(fd, service);
        }
}
