/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/http-transport.h"

#include "agent/image-helper/parent-check.h"
#include "common/cleanup.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <netdb.h>

enum {
        CONNECT_TIMEOUT_SEC = 30,  /* as containerd */
        STALL_BYTES_PER_SEC = 256, /* a transfer slower than this … */
        STALL_SEC = 20,            /* … for so long has stalled */
        HEADER_BYTES_MAX = 64 * 1024,
        ADDRESS_SIZE = 64
};

struct HttpTransport {
        CURL *curl;
        const char *proxy_http, *proxy_https, *proxy_none_for;
        unsigned stall_seconds;
        char message[CURL_ERROR_SIZE];
};

/* A request in progress. */
typedef struct TransportExchange {
        const TransportRequest *request;
        TransportResponse *reply;
        HttpTransport *http;
        size_t header_bytes;
        uint64_t position;    /* of the next byte */
        uint64_t range_start; /* of Content-Range; UINT64_MAX: none */
        int r;                /* why we aborted it */
        bool is_connected;    /* and may ask for credentials */
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

static int take_header(TransportExchange *exchange, const char *name, const char *value) {
        TransportResponse *reply = exchange->reply;

        if (strcasecmp(name, "Content-Type") == 0)
                take_media_type(reply, value);
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

static size_t on_transport_header(char *data, size_t size, size_t length, void *userdata) {
        TransportExchange *exchange = userdata;
        cleanup_free char *line = NULL;
        char *colon, *value;

        exchange->header_bytes += length;
        if (exchange->header_bytes > HEADER_BYTES_MAX) {
                exchange->r = -EMSGSIZE;
                return 0;
        }
        line = strndup(data, length);
        if (!line) {
                exchange->r = -ENOMEM;
                return 0;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "HTTP/", 5) == 0) {
                start_transport_response(exchange, line);
                return length;
        }
        colon = strchr(line, ':');
        if (!colon)
                return length;
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " \t");
        exchange->r = take_header(exchange, line, value);
        return exchange->r < 0 ? 0 : length;
}

/* ---- body of the response ---- */

static void keep_error_text(TransportExchange *exchange, const char *data, size_t length) {
        TransportResponse *reply = exchange->reply;
        size_t room = sizeof(reply->error_text) - 1 - exchange->n_words, n = MIN(length, room);

        memcpy(reply->error_text + exchange->n_words, data, n);
        exchange->n_words += n;
        reply->error_text[exchange->n_words] = '\0';
}

/* The position of the first byte of a good response; a server without range support sends the whole
 * object. */
static int start_transport_body(TransportExchange *exchange) {
        uint64_t from = exchange->request->from;

        if (exchange->position != UINT64_MAX)
                return 0;
        exchange->position = exchange->reply->status == 206 ? from : 0;
        if (exchange->reply->status == 206 && exchange->range_start != from) {
                exchange->reply->range_is_wrong = true;
                return -EPROTO;
        }
        return 0;
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
        return r;
}

static size_t on_transport_body(char *data, size_t size, size_t length, void *userdata) {
        TransportExchange *exchange = userdata;
        long status = exchange->reply->status;

        if (status == 200 || status == 206)
                exchange->r = deliver_body_bytes(exchange, data, length);
        else {
                keep_error_text(exchange, data, length);
                /* The rest of an error response is not worth waiting for. */
                exchange->r = exchange->n_words == TRANSPORT_ERROR_TEXT_SIZE - 1 ? -ECANCELED : 0;
        }
        return exchange->r < 0 ? 0 : length;
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

static void set_file(CURL *curl, CURLoption option, int fd, char path[static 32]) {
        if (fd < 0)
                return;
        (void) snprintf(path, 32, "/proc/self/fd/%d", fd);
        (void) curl_easy_setopt(curl, option, path); /* copied */
}

static void set_tls(CURL *curl, const TransportRequest *request) {
        const Endpoint *endpoint = request->endpoint;
        bool verify = !endpoint->is_unverified;
        char path[32];

        (void) curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
        (void) curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
        (void) curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
        set_file(curl, CURLOPT_CAINFO, endpoint->authorities_fd, path);
        if (!request->is_own_host)
                return;
        set_file(curl, CURLOPT_SSLCERT, endpoint->certificate_fd, path);
        set_file(curl, CURLOPT_SSLKEY, endpoint->key_fd, path);
}

static void set_proxy(const HttpTransport *http, const char *url) {
        const char *proxy = strncmp(url, "https:", 6) == 0 ? http->proxy_https : http->proxy_http;

        /* An empty string keeps curl from reading the environment. */
        (void) curl_easy_setopt(http->curl, CURLOPT_PROXY, strna(proxy));
        (void) curl_easy_setopt(http->curl, CURLOPT_NOPROXY, strna(http->proxy_none_for));
}

static void set_limits(const HttpTransport *http) {
        CURL *curl = http->curl;

        (void) curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
        (void) curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
        (void) curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        (void) curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long) CONNECT_TIMEOUT_SEC);
        (void) curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long) STALL_BYTES_PER_SEC);
        (void) curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long) http->stall_seconds);
        (void) curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L * 1024);
        (void) curl_easy_setopt(curl, CURLOPT_USERAGENT, "mainstay/" MAINSTAY_VERSION);
}

static int set_transport_headers(CURL *curl, const TransportRequest *request,
                                 struct curl_slist **ret) {
        cleanup_free char *accept = NULL;
        struct curl_slist *list;

        if (!request->accept)
                return 0;
        if (asprintf(&accept, "Accept: %s", request->accept) < 0) {
                accept = NULL;
                return -ENOMEM;
        }
        list = curl_slist_append(NULL, accept);
        if (!list)
                return -ENOMEM;
        *ret = list;
        (void) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
        return 0;
}

static void set_transport_credentials(CURL *curl, const TransportRequest *request) {
        if (request->bearer) {
                (void) curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long) CURLAUTH_BEARER);
                (void) curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request->bearer);
        } else if (request->user) {
                (void) curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long) CURLAUTH_BASIC);
                (void) curl_easy_setopt(curl, CURLOPT_USERNAME, request->user);
                (void) curl_easy_setopt(curl, CURLOPT_PASSWORD, strna(request->password));
        }
}

static int set_request(TransportExchange *exchange, struct curl_slist **ret_headers) {
        const TransportRequest *request = exchange->request;
        CURL *curl = exchange->http->curl;
        char range[32];

        curl_easy_reset(curl);
        set_limits(exchange->http);
        set_tls(curl, request);
        set_proxy(exchange->http, request->url);
        set_transport_credentials(curl, request);
        (void) curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                                request->endpoint->may_be_plain ? "http,https" : "https");
        (void) curl_easy_setopt(curl, CURLOPT_URL, request->url);
        (void) curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange->http->message);
        (void) curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_transport_header);
        (void) curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_transport_body);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
        (void) curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        (void) curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_transport_progress);
        (void) curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_transport_connected);
        (void) curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange);
        if (request->form)
                (void) curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, request->form);
        if (request->from > 0 && !request->without_range) {
                (void) snprintf(range, sizeof(range), "%llu-", (unsigned long long) request->from);
                (void) curl_easy_setopt(curl, CURLOPT_RANGE, range);
        }
        return set_transport_headers(curl, request, ret_headers);
}

/* ---- explaining failures ---- */

/* clang-format off */
static const struct {
        CURLcode code;
        TransportFault fault;
        const char *message; /* NULL: curl's own */
} faults[] = {
        { CURLE_COULDNT_RESOLVE_HOST,    TRANSPORT_UNREACHABLE, "the name of the registry cannot be resolved: check the name, and the node's DNS" },
        { CURLE_COULDNT_RESOLVE_PROXY,   TRANSPORT_UNREACHABLE, "the name of the proxy cannot be resolved" },
        { CURLE_COULDNT_CONNECT,         TRANSPORT_UNREACHABLE, NULL },
        { CURLE_OPERATION_TIMEDOUT,      TRANSPORT_INTERRUPTED,      NULL },
        { CURLE_PEER_FAILED_VERIFICATION, TRANSPORT_TLS_FAILED,   NULL },
        { CURLE_SSL_CONNECT_ERROR,       TRANSPORT_TLS_FAILED,    NULL },
        { CURLE_SSL_CERTPROBLEM,         TRANSPORT_TLS_FAILED,    NULL },
        { CURLE_SSL_CACERT_BADFILE,      TRANSPORT_TLS_FAILED,    "cannot read the file of certificate authorities" },
        { CURLE_SSL_ISSUER_ERROR,        TRANSPORT_TLS_FAILED,    NULL },
        { CURLE_GOT_NOTHING,             TRANSPORT_INTERRUPTED,      "the server closed the connection without a response" },
        { CURLE_SEND_ERROR,              TRANSPORT_INTERRUPTED,      NULL },
        { CURLE_RECV_ERROR,              TRANSPORT_INTERRUPTED,      NULL },
        { CURLE_PARTIAL_FILE,            TRANSPORT_INTERRUPTED,      "the server closed the connection in the middle of the response" },
        { CURLE_UNSUPPORTED_PROTOCOL,    TRANSPORT_BAD_RESPONSE,       "the response is not HTTP" },
        { CURLE_WEIRD_SERVER_REPLY,      TRANSPORT_BAD_RESPONSE,       "the response is not HTTP" },
        { CURLE_OUT_OF_MEMORY,           TRANSPORT_LOCAL_ERROR,        "not enough memory" },
};
/* clang-format on */

/* Transfers that we aborted. */
static int explain_aborted_transfer(const TransportExchange *exchange, TransportFault *ret_fault,
                                    Error *reterr) {
        *ret_fault = TRANSPORT_BAD_RESPONSE;
        switch (-exchange->r) {
        case EMSGSIZE:
                return error_setf(reterr, EPROTO,
                                  "the header of the response is larger than %d KiB",
                                  HEADER_BYTES_MAX / 1024);
        case EFBIG:
                return error_setf(reterr, EFBIG, "the response is larger than %llu bytes",
                                  (unsigned long long) exchange->request->body_max);
        case EPROTO:
                *ret_fault = TRANSPORT_INTERRUPTED;
                return error_setf(reterr, EPROTO, "the server sent a range that was not requested");
        default:
                *ret_fault = TRANSPORT_LOCAL_ERROR;
                return error_setf(reterr, -exchange->r, "%s", strerror(-exchange->r));
        }
}

static int explain_transport_failure(const TransportExchange *exchange, CURLcode code,
                                     TransportFault *ret_fault, Error *reterr) {
        const char *message = exchange->http->message;

        if (exchange->refused_address[0]) {
                *ret_fault = TRANSPORT_BAD_RESPONSE;
                return error_setf(reterr, EPROTO,
                                  "the request was redirected to %s, which is refused",
                                  exchange->refused_address);
        }
        if (exchange->r < 0)
                return explain_aborted_transfer(exchange, ret_fault, reterr);
        *ret_fault = TRANSPORT_INTERRUPTED;
        for (size_t i = 0; i < N_ELEMENTS(faults); i++) {
                if (faults[i].code != code)
                        continue;
                *ret_fault = faults[i].fault;
                if (faults[i].message)
                        return error_setf(reterr, EIO, "%s", faults[i].message);
        }
        /* A server that drops all packets will not respond a second later either. */
        if (code == CURLE_OPERATION_TIMEDOUT && !exchange->is_connected)
                *ret_fault = TRANSPORT_UNREACHABLE;
        return error_setf(reterr, EIO, "%s", message[0] ? message : curl_easy_strerror(code));
}

int http_transport_perform(HttpTransport *http, const TransportRequest *request,
                           TransportResponse *reply, TransportFault *ret_fault, Error *reterr) {
        TransportExchange exchange = {
                .request = request,
                .reply = reply,
                .http = http,
                .position = UINT64_MAX,
        };
        struct curl_slist *headers = NULL;
        CURLcode code;
        int r;

        *reply = (TransportResponse){ .retry_after_sec = UINT64_MAX };
        *ret_fault = TRANSPORT_OK;
        http->message[0] = '\0';
        r = set_request(&exchange, &headers);
        if (r < 0) {
                *ret_fault = TRANSPORT_LOCAL_ERROR;
                return r;
        }
        code = curl_easy_perform(http->curl);
        curl_slist_free_all(headers);
        if (code == CURLE_OK || exchange.r == -ECANCELED)
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
        http->curl = curl_easy_init();
        if (!http->curl)
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
        if (http->curl)
                curl_easy_cleanup(http->curl);
        free(http);
        return NULL;
}
