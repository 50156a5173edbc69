/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/http-transport.h"

#include "agent/image-helper/process/parent-check.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/curl-transfer.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <time.h>

enum {
        CONNECT_TIMEOUT_MSEC = 30 * 1000, /* like containerd */
        STALL_BYTES_PER_SEC = 256,        /* a transfer slower than this … */
        STALL_SEC = 20,                   /* … for this long has stalled */
        HEADER_BYTES_MAX = 64 * 1024,
        BUFFER_BYTES = 256 * 1024,
        BUFFER_BYTES_MIN = 1024, /* minimum of libcurl */
        ADDRESS_SIZE = 64
};

struct HttpTransport {
        const CurlLibrary *curl;
        CURL *easy;
        const char *proxy_http, *proxy_https, *proxy_none_for;
        unsigned stall_seconds;
};

/* A request in progress. */
typedef struct TransportExchange {
        const TransportRequest *request;
        TransportResponse *reply;
        HttpTransport *http;
        CurlTransfer transfer;
        uint64_t position;        /* position of the next byte */
        uint64_t body_started_at; /* boot time */
        uint64_t range_start;     /* start in Content-Range; UINT64_MAX: none */
        bool is_connected;        /* and may require credentials */
        char refused_address[ADDRESS_SIZE];
        size_t n_words;
} TransportExchange;

/* ---- head of the response ---- */

static void start_transport_response(TransportExchange *exchange, const char *line) {
        TransportResponse *reply = exchange->reply;
        const char *space = strchr(line, ' ');

        transport_response_done(reply);
        *reply = (TransportResponse){ .retry_after_sec = UINT64_MAX };
        reply->status = space ? strtol(space + 1, NULL, 10) : 0;
        exchange->range_start = UINT64_MAX;
}

static void take_media_type(TransportResponse *reply, const char *value) {
        size_t n = strcspn(value, "; \t");

        if (n < sizeof(reply->media_type))
                (void) snprintf(reply->media_type, sizeof(reply->media_type), "%.*s", (int) n,
                                value);
}

/* 0: not a date according to RFC 9110, 5.6.7. */
static int64_t parse_http_date(const char *value) {
        struct tm tm = { 0 };
        const char *end = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm);

        return end && !*end ? utc_to_seconds(&tm) : 0;
}

static int take_header(TransportExchange *exchange, const char *name, const char *value) {
        TransportResponse *reply = exchange->reply;

        if (strcasecmp(name, "Content-Type") == 0)
                take_media_type(reply, value);
        else if (strcasecmp(name, "Content-Length") == 0 ||
                 strcasecmp(name, "Transfer-Encoding") == 0)
                reply->has_end = true;
        else if (strcasecmp(name, "ETag") == 0 && strlen(value) < sizeof(reply->etag))
                (void) snprintf(reply->etag, sizeof(reply->etag), "%s", value);
        else if (strcasecmp(name, "Date") == 0)
                reply->date = parse_http_date(value);
        else if (strcasecmp(name, "Last-Modified") == 0)
                reply->last_modified = parse_http_date(value);
        else if (strcasecmp(name, "WWW-Authenticate") == 0)
                return challenge_read(&reply->challenge, value);
        else if (strcasecmp(name, "Location") == 0 && !reply->location) {
                reply->location = strdup(value);
                return reply->location ? 0 : -ENOMEM;
        } else if (strcasecmp(name, "Retry-After") == 0 && isdigit((unsigned char) value[0]))
                reply->retry_after_sec = strtoull(value, NULL, 10);
        else if (strcasecmp(name, "Content-Range") == 0 && strncmp(value, "bytes ", 6) == 0 &&
                 isdigit((unsigned char) value[6]))
                exchange->range_start = strtoull(value + 6, NULL, 10);
        return 0;
}

static int on_transport_header(const char *data, size_t length, void *userdata) {
        TransportExchange *exchange = userdata;
        cleanup_free char *line = strndup(data, length);
        char *colon, *value;

        if (!line)
                return -ENOMEM;
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "HTTP/", 5) == 0) {
                start_transport_response(exchange, line);
                return 0;
        }
        colon = strchr(line, ':');
        if (!colon)
                return 0;
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " \t");
        return take_header(exchange, line, value);
}

/* ---- body of the response ---- */

static void keep_error_text(TransportExchange *exchange, const char *data, size_t length) {
        TransportResponse *reply = exchange->reply;
        size_t room = sizeof(reply->error_text) - 1 - exchange->n_words, n = MIN(length, room);

        memcpy(reply->error_text + exchange->n_words, data, n);
        exchange->n_words += n;
        reply->error_text[exchange->n_words] = '\0';
}

/* The position of the first byte of a successful response; a server without range support sends the
 * whole object. */
static int start_transport_body(TransportExchange *exchange) {
        uint64_t from = exchange->request->from;

        if (exchange->position != UINT64_MAX)
                return 0;
        exchange->body_started_at = now_boottime_usec();
        exchange->position = exchange->reply->status == 206 ? from : 0;
        if (exchange->reply->status == 206 && exchange->range_start != from) {
                exchange->reply->range_is_wrong = true;
                return -EPROTO;
        }
        return 0;
}

/* libcurl's own limit does not delay data that has already arrived (7.88). During the wait, TCP
 * makes the server wait. */
static void wait_for_rate(const TransportExchange *exchange) {
        uint64_t rate = exchange->request->rate_max, now = now_boottime_usec(), due;
        struct timespec rest;

        if (rate == 0)
                return;
        due = exchange->body_started_at + exchange->reply->received * USEC_PER_SEC / rate;
        if (due <= now)
                return;
        rest = (struct timespec){ (time_t) ((due - now) / USEC_PER_SEC),
                                  (long) ((due - now) % USEC_PER_SEC * 1000) };
        (void) nanosleep(&rest, NULL);
}

static int deliver_body_bytes(TransportExchange *exchange, const char *data, size_t length) {
        const TransportRequest *request = exchange->request;
        uint64_t skip = 0;
        int r = start_transport_body(exchange);

        if (r < 0)
                return r;
        if (length > request->body_max || exchange->position > request->body_max - length)
                return -EFBIG;
        if (exchange->position < request->from)
                skip = MIN(request->from - exchange->position, (uint64_t) length);
        exchange->position += skip;
        if (skip < length)
                r = request->on_data(data + skip, length - skip, exchange->position,
                                     request->userdata);
        exchange->position += length - skip;
        exchange->reply->received += length - skip;
        wait_for_rate(exchange);
        return r;
}

static int on_transport_body(const char *data, size_t length, void *userdata) {
        TransportExchange *exchange = userdata;
        long status = exchange->reply->status;

        if (status == 200 || status == 206)
                return deliver_body_bytes(exchange, data, length);
        keep_error_text(exchange, data, length);
        /* The rest of an error response is not worth waiting for. */
        return exchange->n_words == TRANSPORT_ERROR_TEXT_SIZE - 1 ? -ECANCELED : 0;
}

/* ---- allowed addresses ---- */

/* Redirects to link-local addresses are refused: metadata services there answer any local client,
 * and their data must not leak. */
static bool is_link_local(const char *address) {
        struct in6_addr six;
        struct in_addr four;

        if (inet_pton(AF_INET, address, &four) == 1)
                return (ntohl(four.s_addr) >> 16) == 0xa9fe;
        if (inet_pton(AF_INET6, address, &six) != 1)
                return false;
        if (IN6_IS_ADDR_V4MAPPED(&six))
                return six.s6_addr[12] == 169 && six.s6_addr[13] == 254;
        return IN6_IS_ADDR_LINKLOCAL(&six);
}

static int on_transport_connected(void *userdata, char *remote, char *local, int remote_port,
                                  int local_port) {
        TransportExchange *exchange = userdata;

        exchange->is_connected = true;
        if (!exchange->request->was_redirected || !is_link_local(remote))
                return CURL_PREREQFUNC_OK;
        (void) snprintf(exchange->refused_address, ADDRESS_SIZE, "%s", remote);
        return CURL_PREREQFUNC_ABORT;
}

/* Called at least about once a second. */
static int on_transport_progress(void *userdata, curl_off_t download_total, curl_off_t downloaded,
                                 curl_off_t upload_total, curl_off_t uploaded) {
        parent_check_exit_if_orphaned();
        return 0;
}

static CurlTls tls_of_request(const TransportRequest *request) {
        const Endpoint *endpoint = request->endpoint;
        bool is_own = request->is_own_host;

        return (CurlTls){ .authority_fd = endpoint->authorities_fd,
                          .certificate_fd = is_own ? endpoint->certificate_fd : -EBADF,
                          .key_fd = is_own ? endpoint->key_fd : -EBADF,
                          .is_unverified = endpoint->is_unverified };
}

/* A limited transfer reads a quarter of a second's bytes at a time. */
static long find_buffer_size(const TransportRequest *request) {
        if (request->rate_max == 0 || request->rate_max / 4 > BUFFER_BYTES)
                return BUFFER_BYTES;
        return (long) MAX(request->rate_max / 4, (uint64_t) BUFFER_BYTES_MIN);
}

static int init_transport_transfer(TransportExchange *exchange) {
        const TransportRequest *request = exchange->request;
        const HttpTransport *http = exchange->http;
        const char *proxy =
                strncmp(request->url, "https:", 6) == 0 ? http->proxy_https : http->proxy_http;

        return curl_transfer_init(
                &exchange->transfer, http->easy,
                &(CurlTransferSpec){ .url = request->url,
                                     .protocols = request->endpoint->may_be_plain ? "http,https"
                                                                                  : "https",
                                     .user_agent = "mainstay/" MAINSTAY_VERSION,
                                     .proxy = request->endpoint->is_loopback ? NULL : proxy,
                                     .no_proxy = http->proxy_none_for,
                                     .body = request->form,
                                     .body_length = strlen(strna(request->form)),
                                     .tls = tls_of_request(request),
                                     .http_version = CURL_HTTP_VERSION_1_1,
                                     .connect_timeout_msec = CONNECT_TIMEOUT_MSEC,
                                     .buffer_size = find_buffer_size(request),
                                     .header_max = HEADER_BYTES_MAX,
                                     .on_header = on_transport_header,
                                     .on_data = on_transport_body,
                                     .userdata = exchange });
}

static int add_transport_header(CurlTransfer *transfer, const char *name, const char *value) {
        cleanup_free char *line = NULL;

        if (!value)
                return 0;
        line = text_format("%s: %s", name, value);
        if (!line)
                return -ENOMEM;
        return curl_transfer_add_header(transfer, line);
}

static int set_transport_headers(CurlTransfer *transfer, const TransportRequest *request) {
        int r = add_transport_header(transfer, "Accept", request->accept);

        if (r < 0)
                return r;
        r = add_transport_header(transfer, "If-None-Match", request->etag);
        for (const char *const *line = request->headers; r >= 0 && line && *line; line++)
                r = curl_transfer_add_header(transfer, *line);
        return r;
}

static void set_transport_credentials(const HttpTransport *http, const TransportRequest *request) {
        const CurlLibrary *curl = http->curl;

        if (request->bearer) {
                curl->easy_setopt(http->easy, CURLOPT_HTTPAUTH, (long) CURLAUTH_BEARER);
                curl->easy_setopt(http->easy, CURLOPT_XOAUTH2_BEARER, request->bearer);
        } else if (request->user) {
                curl->easy_setopt(http->easy, CURLOPT_HTTPAUTH, (long) CURLAUTH_BASIC);
                curl->easy_setopt(http->easy, CURLOPT_USERNAME, request->user);
                curl->easy_setopt(http->easy, CURLOPT_PASSWORD, strna(request->password));
        }
}

static void set_transport_watch(TransportExchange *exchange) {
        const CurlLibrary *curl = exchange->http->curl;
        CURL *easy = exchange->http->easy;

        curl->easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long) STALL_BYTES_PER_SEC);
        curl->easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long) exchange->http->stall_seconds);
        curl->easy_setopt(easy, CURLOPT_TIMEOUT, (long) exchange->request->timeout_sec);
        curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_transport_progress);
        curl->easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_transport_connected);
        curl->easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
}

static int set_transport_request(TransportExchange *exchange) {
        const TransportRequest *request = exchange->request;
        const HttpTransport *http = exchange->http;
        char range[32];
        int r;

        http->curl->easy_reset(http->easy);
        r = init_transport_transfer(exchange);
        if (r < 0)
                return r;
        set_transport_credentials(http, request);
        set_transport_watch(exchange);
        if (request->from > 0 && !request->without_range) {
                (void) snprintf(range, sizeof(range), "%llu-", (unsigned long long) request->from);
                http->curl->easy_setopt(http->easy, CURLOPT_RANGE, range);
        }
        return set_transport_headers(&exchange->transfer, request);
}

/* ---- explaining failures ---- */

/* clang-format off */
static const struct {
        CURLcode code;
        TransportFault fault;
        const char *message; /* NULL: that of common/ */
} faults[] = {
        { CURLE_COULDNT_RESOLVE_HOST,     TRANSPORT_UNREACHABLE,  "the name of the server cannot be resolved: check the name, and the node's DNS" },
        { CURLE_COULDNT_RESOLVE_PROXY,    TRANSPORT_UNREACHABLE,  NULL },
        { CURLE_COULDNT_CONNECT,          TRANSPORT_UNREACHABLE,  NULL },
        { CURLE_PEER_FAILED_VERIFICATION, TRANSPORT_UNTRUSTED,    NULL },
        { CURLE_SSL_CONNECT_ERROR,        TRANSPORT_TLS_FAILED,   NULL },
        { CURLE_SSL_CERTPROBLEM,          TRANSPORT_TLS_FAILED,   NULL },
        { CURLE_SSL_CACERT_BADFILE,       TRANSPORT_TLS_FAILED,   NULL },
        { CURLE_SSL_ISSUER_ERROR,         TRANSPORT_UNTRUSTED,    NULL },
        { CURLE_UNSUPPORTED_PROTOCOL,     TRANSPORT_NOT_HTTP,     NULL },
        { CURLE_WEIRD_SERVER_REPLY,       TRANSPORT_NOT_HTTP,     NULL },
        { CURLE_OUT_OF_MEMORY,            TRANSPORT_LOCAL_ERROR,  NULL },
};
/* clang-format on */

/* Transfers that were aborted here. */
static int explain_aborted_transfer(TransportExchange *exchange, CURLcode code,
                                    TransportFault *ret_fault, Error *reterr) {
        int r = exchange->transfer.result;

        *ret_fault = TRANSPORT_BAD_RESPONSE;
        switch (-r) {
        case EMSGSIZE:
                return error_setf(reterr, EPROTO, "%s",
                                  curl_transfer_explain(&exchange->transfer, code));
        case EFBIG:
                return error_setf(reterr, EFBIG, "the response is larger than %llu bytes",
                                  (unsigned long long) exchange->request->body_max);
        case EPROTO:
                *ret_fault = TRANSPORT_INTERRUPTED;
                return error_setf(reterr, EPROTO, "the server sent a range that was not requested");
        default:
                *ret_fault = TRANSPORT_LOCAL_ERROR;
                return error_setf(reterr, -r, "%s", strerror(-r));
        }
}

static int explain_transport_failure(TransportExchange *exchange, CURLcode code,
                                     TransportFault *ret_fault, Error *reterr) {
        if (exchange->refused_address[0]) {
                *ret_fault = TRANSPORT_BAD_RESPONSE;
                return error_setf(reterr, EPROTO,
                                  "the request was redirected to %s, which is refused",
                                  exchange->refused_address);
        }
        if (exchange->transfer.result < 0)
                return explain_aborted_transfer(exchange, code, ret_fault, reterr);
        *ret_fault = TRANSPORT_INTERRUPTED;
        for (size_t i = 0; i < N_ELEMENTS(faults); i++) {
                if (faults[i].code != code)
                        continue;
                *ret_fault = faults[i].fault;
                if (faults[i].message)
                        return error_setf(reterr, EIO, "%s", faults[i].message);
        }
        if (curl_transfer_failed_for_time(&exchange->transfer, code))
                *ret_fault = TRANSPORT_NOT_IN_TIME;
        /* A server that has not responded within this time drops all packets, and will not respond
         * later either. */
        if (code == CURLE_OPERATION_TIMEDOUT && !exchange->is_connected)
                *ret_fault = TRANSPORT_UNREACHABLE;
        return error_setf(reterr, EIO, "%s", curl_transfer_explain(&exchange->transfer, code));
}

int http_transport_perform(HttpTransport *http, const TransportRequest *request,
                           TransportResponse *reply, TransportFault *ret_fault, Error *reterr) {
        TransportExchange exchange = {
                .request = request,
                .reply = reply,
                .http = http,
                .position = UINT64_MAX,
        };
        CURLcode code;
        int r;

        *reply = (TransportResponse){ .retry_after_sec = UINT64_MAX };
        *ret_fault = TRANSPORT_OK;
        r = set_transport_request(&exchange);
        if (r < 0) {
                curl_transfer_done(&exchange.transfer);
                *ret_fault = TRANSPORT_LOCAL_ERROR;
                return r;
        }
        code = http->curl->easy_perform(http->easy);
        curl_transfer_done(&exchange.transfer);
        if (code == CURLE_OK || exchange.transfer.result == -ECANCELED)
                return 0;
        return explain_transport_failure(&exchange, code, ret_fault, reterr);
}

void transport_response_done(TransportResponse *reply) {
        challenge_done(&reply->challenge);
        free(reply->location);
        reply->location = NULL;
}

int http_transport_new(const Endpoints *proxies, HttpTransport **ret) {
        cleanup_with(http_transport_freep) HttpTransport *http = calloc(1, sizeof(*http));

        if (!http)
                return -ENOMEM;
        http->curl = curl_library(NULL);
        if (!http->curl)
                return -ELIBACC;
        http->easy = http->curl->easy_init();
        if (!http->easy)
                return -ENOMEM;
        http->stall_seconds = proxies->stall_seconds > 0 ? proxies->stall_seconds : STALL_SEC;
        http->proxy_http = proxies->proxy_http;
        http->proxy_https = proxies->proxy_https;
        http->proxy_none_for = proxies->proxy_none_for;
        *ret = TAKE_PTR(http);
        return 0;
}

HttpTransport *http_transport_free(HttpTransport *http) {
        if (!http)
                return NULL;
        if (http->easy)
                http->curl->easy_cleanup(http->easy);
        free(http);
        return NULL;
}
