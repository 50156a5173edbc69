/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http-client.h"

#include "common/cleanup.h"
#include "common/curl-loop.h"
#include "common/socket-proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
        PROXIED_BYTES_MAX = 64 * 1024, /* of the whole connection */
        ADDRESSES_MAX = 8,
        IDLE_HANDLES_MAX = 16, /* kept for later requests */
        TRAILER_MAX = 1024,
        HEADERS_MAX = 256 * 1024,        /* including trailers, which libcurl does not limit */
        CONNECT_TIMEOUT_SEC = 24 * 3600, /* the caller has a deadline of its own */
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
        SocketProxy *proxy; /* between libcurl and a server with HTTP/2 or TLS */
        unsigned n_opened;  /* addresses of the server's name, and the number of unusable ones */
        unsigned n_failed;
        int refusal; /* of the last of those, as -errno */
        struct curl_slist *headers;
        char error[CURL_ERROR_SIZE];
        char *request_body;
        char *body;
        size_t body_length;
        size_t body_max;
        size_t headers_length;
        bool is_connection;
        bool is_cut; /* the response was larger than the limit */
        char *grpc_status;
        char *grpc_message;
        http_client_done_t done;
        void *userdata;
};

/* ---- the loop ---- */

static HttpClientRequest *http_client_request_free(HttpClientRequest *request);

static const char *explain_curl_failure(const HttpClientRequest *request, CURLcode code) {
        int refusal = request->proxy ? socket_proxy_error(request->proxy) : request->refusal;

        if (refusal < 0)
                return strerror(-refusal);
        return request->error[0] ? request->error : request->http->curl->easy_strerror(code);
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
        request->error[0] = '\0';
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
        curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &response.status);
        curl->easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
        response.location = location;
        response.body = strna(request->body);
        response.body_length = request->body_length;
        response.grpc_status = request->grpc_status;
        response.grpc_message = request->grpc_message;
        is_answered = request->is_connection
                              ? code == CURLE_OK
                              : response.status > 0 && (code == CURLE_OK || request->is_cut);
        request->done(is_answered ? &response : NULL, explain_curl_failure(request, code),
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

static size_t on_http_client_body(char *data, size_t size, size_t n, void *userdata) {
        HttpClientRequest *request = userdata;
        size_t length = size * n, room = request->body_max - request->body_length;

        if (!request->body)
                request->body = calloc(1, request->body_max + 1);
        if (!request->body)
                return 0;
        memcpy(request->body + request->body_length, data, MIN(length, room));
        request->body_length += MIN(length, room);
        request->is_cut = length > room;
        return request->is_cut ? 0 : length;
}

/* "<name>: <value>" of a header or a trailer; the value replaces '*ret'. */
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

static size_t on_http_client_header(char *data, size_t size, size_t n, void *userdata) {
        HttpClientRequest *request = userdata;

        request->headers_length += size * n;
        if (request->headers_length > HEADERS_MAX)
                return 0;
        copy_header_value(data, size * n, "grpc-status", &request->grpc_status);
        copy_header_value(data, size * n, "grpc-message", &request->grpc_message);
        return size * n;
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
        http->curl->slist_free_all(request->headers);
        free(request->request_body);
        free(request->body);
        free(request->grpc_status);
        free(request->grpc_message);
        free(request);
        return NULL;
}
DEFINE_CLEANUP(HttpClientRequest *, http_client_request_free)

HttpClientRequest *http_client_cancel(HttpClientRequest *request) {
        return request ? http_client_request_free(request) : NULL;
}

static int set_client_request_headers(HttpClientRequest *request, const char *const *headers) {
        const CurlLibrary *curl = request->http->curl;

        for (size_t i = 0; headers && headers[i]; i++) {
                struct curl_slist *longer = curl->slist_append(request->headers, headers[i]);

                if (!longer)
                        return -ENOMEM;
                request->headers = longer;
        }
        return 0;
}

static int set_client_request_body(HttpClientRequest *request, const HttpClientSpec *spec) {
        const CurlLibrary *curl = request->http->curl;

        if (!spec->body)
                return 0;
        request->request_body = malloc(spec->body_length + 1);
        if (!request->request_body)
                return -ENOMEM;
        memcpy(request->request_body, spec->body, spec->body_length);
        curl->easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE, (long) spec->body_length);
        curl->easy_setopt(request->easy, CURLOPT_POSTFIELDS, request->request_body);
        return 0;
}

/* libcurl does not return while the server sends data, even if that is only empty frames of HTTP/2,
 * or a handshake in pieces of one byte. So it reads through a proxy. */
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

/* Only the first can fail except for lack of memory, which shows when the request is performed. */
static int set_client_request_options(HttpClientRequest *request, const HttpClientSpec *spec) {
        const CurlLibrary *curl = request->http->curl;
        CURL *easy = request->easy;

        if (curl->easy_setopt(easy, CURLOPT_URL, spec->url) != CURLE_OK)
                return -ENOMEM;
        curl->easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
        curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        /* Names are resolved by a thread. Cancelling does not wait for its end. */
        curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
        curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl->easy_setopt(easy, CURLOPT_PROXY, "");
        curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        curl->easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
        curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long) CONNECT_TIMEOUT_SEC);
        curl->easy_setopt(easy, CURLOPT_HTTP_VERSION,
                          (long) (spec->is_http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                                 : CURL_HTTP_VERSION_1_1));
        curl->easy_setopt(easy, CURLOPT_CONNECT_ONLY, (long) spec->is_connection);
        curl->easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
        curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_http_client_body);
        curl->easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_http_client_header);
        curl->easy_setopt(easy, CURLOPT_HEADERDATA, request);
        if (spec->is_http2 || strncasecmp(spec->url, "https:", 6) == 0)
                set_socket_proxy(request);
        return set_client_request_body(request, spec);
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
        r = set_client_request_headers(request, spec->headers);
        if (r >= 0)
                r = set_client_request_options(request, spec);
        if (r < 0)
                return r;
        if (curl_loop_add(http->loop, request->easy) < 0)
                return error_setf(reterr, EIO, "libcurl does not take the request");
        *ret = TAKE_PTR(request);
        return 0;
}

/* The host of a URL: its start and its length. */
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
