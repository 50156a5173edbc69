/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http-client.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/curl-loop.h"
#include "common/curl-transfer.h"
#include "common/socket-proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
        PROXIED_BYTES_MAX = 64 * 1024, /* for the whole connection */
        ADDRESSES_MAX = 8,
        IDLE_HANDLES_MAX = 16, /* kept for later requests */
        TRAILER_MAX = 1024,
        HEADERS_MAX = 256 * 1024,
        CONNECT_TIMEOUT_MSEC = 24 * 3600 * 1000, /* the caller has its own deadline */
};

struct HttpClient {
        const CurlLibrary *curl;
        sd_event *event;
        CurlLoop *loop;
        CURL *idle[IDLE_HANDLES_MAX];
        size_t n_idle;
};

struct HttpClientRequest {
        HttpClient *http;
        CURL *easy;
        CurlTransfer transfer;
        SocketProxy *proxy; /* between libcurl and a server with HTTP/2 or TLS */
        unsigned n_opened;  /* number of addresses of the server's name, and number of unusable ones
                             */
        unsigned n_failed;
        int refusal; /* error of the last unusable one, as -errno */
        Buffer body;
        size_t body_max;
        bool is_connection;
        bool is_cut; /* the response exceeded the limit */
        char *grpc_status;
        char *grpc_message;
        http_client_done_t done;
        void *userdata;
};

/* ---- the loop ---- */

static HttpClientRequest *http_client_request_free(HttpClientRequest *request);

static const char *explain_request_failure(HttpClientRequest *request, CURLcode code) {
        int refusal = request->proxy ? socket_proxy_error(request->proxy) : request->refusal;

        if (refusal < 0)
                return strerror(-refusal);
        return curl_transfer_explain(&request->transfer, code);
}

/* The proxy accepts libcurl's connection in any case, so libcurl does not try the next address
 * itself. */
static bool tries_next_address(HttpClientRequest *request) {
        CurlLoop *loop = request->http->loop;

        if (!request->proxy || socket_proxy_error(request->proxy) >= 0 ||
            request->n_failed >= ADDRESSES_MAX)
                return false;
        request->refusal = socket_proxy_error(request->proxy);
        request->n_failed++;
        request->n_opened = 0;
        request->transfer.error[0] = '\0';
        curl_loop_remove(loop, request->easy);
        return curl_loop_add(loop, request->easy) >= 0;
}

static void finish_http_client_request(CURL *easy, CURLcode code, void *userdata) {
        HttpClient *http = userdata;
        const CurlLibrary *curl = http->curl;
        HttpClientRequest *request = NULL;
        HttpClientResponse response = { 0 };
        char *location = NULL;
        bool is_answered;

        curl->easy_getinfo(easy, CURLINFO_PRIVATE, &request);
        if (tries_next_address(request))
                return;
        response.status = curl_transfer_status(&request->transfer);
        curl->easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
        response.location = location;
        response.body = strna(request->body.data);
        response.body_length = request->body.length;
        response.grpc_status = request->grpc_status;
        response.grpc_message = request->grpc_message;
        is_answered = request->is_connection
                              ? code == CURLE_OK
                              : response.status > 0 && (code == CURLE_OK || request->is_cut);
        request->done(is_answered ? &response : NULL, explain_request_failure(request, code),
                      request->userdata);
        http_client_request_free(request);
}

int http_client_new(sd_event *event, HttpClient **ret, Error *reterr) {
        cleanup_with(http_client_freep) HttpClient *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return -ENOMEM;
        http->event = event;
        r = curl_loop_new(&(CurlLoopSpec){ .event = event,
                                           .description = "http",
                                           .on_done = finish_http_client_request,
                                           .userdata = http },
                          &http->loop, reterr);
        if (r < 0)
                return r;
        http->curl = curl_library(NULL);
        *ret = TAKE_PTR(http);
        return 0;
}

HttpClient *http_client_free(HttpClient *http) {
        if (!http)
                return NULL;
        while (http->n_idle > 0)
                http->curl->easy_cleanup(http->idle[--http->n_idle]);
        curl_loop_free(http->loop);
        free(http);
        return NULL;
}

/* ---- a request ---- */

static int on_http_client_body(const char *data, size_t length, void *userdata) {
        HttpClientRequest *request = userdata;
        size_t room = request->body_max - request->body.length;
        int r = buffer_append(&request->body, data, MIN(length, room), request->body_max);

        request->is_cut = length > room;
        return r >= 0 && request->is_cut ? -ECANCELED : r;
}

/* "<name>: <value>" from a header or a trailer; the value replaces '*ret'. */
static void copy_header_value(const char *line, size_t length, const char *name, char **ret) {
        size_t n = strlen(name);

        if (length <= n || length > TRAILER_MAX || strncasecmp(line, name, n) != 0 ||
            line[n] != ':')
                return;
        line += n + 1;
        length -= n + 1;
        while (length > 0 && *line == ' ') {
                line++;
                length--;
        }
        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n'))
                length--;
        free(*ret);
        *ret = strndup(line, length);
}

static int on_http_client_header(const char *line, size_t length, void *userdata) {
        HttpClientRequest *request = userdata;

        copy_header_value(line, length, "grpc-status", &request->grpc_status);
        copy_header_value(line, length, "grpc-message", &request->grpc_message);
        return 0;
}

static void release_curl_handle(HttpClient *http, CURL *easy) {
        if (http->n_idle == IDLE_HANDLES_MAX) {
                http->curl->easy_cleanup(easy);
                return;
        }
        http->curl->easy_reset(easy);
        http->idle[http->n_idle++] = easy;
}

static HttpClientRequest *http_client_request_free(HttpClientRequest *request) {
        HttpClient *http = request->http;

        if (request->easy) {
                curl_loop_remove(http->loop, request->easy);
                release_curl_handle(http, request->easy);
        }
        socket_proxy_free(request->proxy);
        curl_transfer_done(&request->transfer);
        buffer_done(&request->body);
        free(request->grpc_status);
        free(request->grpc_message);
        free(request);
        return NULL;
}
DEFINE_CLEANUP(HttpClientRequest *, http_client_request_free)

HttpClientRequest *http_client_cancel(HttpClientRequest *request) {
        return request ? http_client_request_free(request) : NULL;
}

/* libcurl does not return while the server sends data, even if that consists only of empty HTTP/2
 * frames, or of a handshake in single bytes. Therefore it reads through a proxy. The proxy listens,
 * because libcurl 7.88 connects the socket even if CURLOPT_SOCKOPTFUNCTION returns that it is
 * connected. */
static curl_socket_t open_proxied_socket(void *userdata, curlsocktype purpose,
                                         struct curl_sockaddr *address) {
        HttpClientRequest *request = userdata;
        int fd = -EBADF;

        request->proxy = socket_proxy_free(request->proxy);
        if (request->n_opened++ < request->n_failed)
                return CURL_SOCKET_BAD;
        if (socket_proxy_new(request->http->event, &address->addr, address->addrlen,
                             PROXIED_BYTES_MAX, &request->proxy) >= 0 &&
            socket_proxy_address(request->proxy, &address->addr, &address->addrlen) >= 0)
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static void set_socket_proxy(HttpClientRequest *request) {
        const CurlLibrary *curl = request->http->curl;

        curl->easy_setopt(request->easy, CURLOPT_OPENSOCKETFUNCTION, open_proxied_socket);
        curl->easy_setopt(request->easy, CURLOPT_OPENSOCKETDATA, request);
}

static int begin_client_request(HttpClientRequest *request, const HttpClientSpec *spec) {
        const CurlLibrary *curl = request->http->curl;
        CURL *easy = request->easy;
        int r = curl_transfer_init(
                &request->transfer, easy,
                &(CurlTransferSpec){ .url = spec->url,
                                     .protocols = "http,https",
                                     .body = spec->body,
                                     .body_length = spec->body_length,
                                     .tls = { -EBADF, -EBADF, -EBADF, .is_unverified = true },
                                     .http_version = spec->is_http2
                                                             ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                                             : CURL_HTTP_VERSION_1_1,
                                     .connect_timeout_msec = CONNECT_TIMEOUT_MSEC,
                                     .header_max = HEADERS_MAX,
                                     .on_header = on_http_client_header,
                                     .on_data = on_http_client_body,
                                     .userdata = request });

        for (size_t i = 0; r >= 0 && spec->headers && spec->headers[i]; i++)
                r = curl_transfer_add_header(&request->transfer, spec->headers[i]);
        if (r < 0)
                return r;
        curl->easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        curl->easy_setopt(easy, CURLOPT_CONNECT_ONLY, (long) spec->is_connection);
        if (spec->is_http2 || strncasecmp(spec->url, "https:", 6) == 0)
                set_socket_proxy(request);
        return 0;
}

int http_client_start(HttpClient *http, const HttpClientSpec *spec, http_client_done_t done,
                      void *userdata, HttpClientRequest **ret, Error *reterr) {
        cleanup_with(http_client_request_freep) HttpClientRequest *request =
                calloc(1, sizeof(*request));
        int r;

        if (!request)
                return -ENOMEM;
        request->http = http;
        request->done = done;
        request->userdata = userdata;
        request->is_connection = spec->is_connection;
        request->body_max = spec->response_max;
        request->easy = http->n_idle > 0 ? http->idle[--http->n_idle] : http->curl->easy_init();
        if (!request->easy)
                return -ENOMEM;
        r = begin_client_request(request, spec);
        if (r < 0)
                return r;
        if (curl_loop_add(http->loop, request->easy) < 0)
                return error_setf(reterr, EIO, "libcurl does not accept the request");
        *ret = TAKE_PTR(request);
        return 0;
}

/* A URL's host: its start and its length. */
static const char *url_host_of(const char *url, size_t *ret_length) {
        const char *host = strstr(url, "://"), *at;
        size_t length;

        host = host ? host + 3 : url;
        length = strcspn(host, "/?#");
        at = memrchr(host, '@', length);
        if (at) {
                length -= (size_t) (at + 1 - host);
                host = at + 1;
        }
        *ret_length = host[0] == '[' ? MIN(strcspn(host, "]") + 1, length)
                                     : MIN(strcspn(host, ":"), length);
        return host;
}

bool http_client_same_host(const char *url, const char *other) {
        size_t length, other_length;
        const char *host = url_host_of(url, &length),
                   *other_host = url_host_of(other, &other_length);

        return length == other_length && strncasecmp(host, other_host, length) == 0;
}
