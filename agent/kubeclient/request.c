/* SPDX-License-Identifier: Apache-2.0 */
/* One request: credentials, timeouts, streams, and the meaning of its errors for the client. */

#include "agent/kubeclient/kube-client-private.h"

#include "common/architecture.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/text.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>

enum {
        CONNECT_TIMEOUT_MSEC = 10 * 1000,
        DAY_SEC = 24 * 3600,     /* the upper limit of all timeouts */
        KEEPALIVE_IDLE_SEC = 10, /* idle time after which the kernel sends probes */
        KEEPALIVE_INTERVAL_SEC = 5,
        USER_TIMEOUT_MSEC = 25 * 1000, /* time without an acknowledgement after which the connection
                                        * is closed */
        HEADERS_MAX = 256 * 1024,
        QUIET_BUFFER = 1024, /* libcurl's minimum; one per watch */
        BUFFER = 16 * 1024,
        UPLOAD_BUFFER = 16 * 1024,    /* libcurl's minimum; one per request over HTTP/1.1 */
        STREAM_ERROR_MAX = 64 * 1024, /* limit for the body of an error response */
};

static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

/* ---- the response ---- */

static unsigned get_response_status(const KubeRequest *request) {
        return (unsigned) curl_transfer_status(&request->transfer);
}

static void note_request_received(KubeRequest *request) {
        request->received_at = request->connections->received_at = now_boottime_usec();
}

static int on_response_header(const char *line, size_t length, void *userdata) {
        KubeRequest *request = userdata;

        if (request->is_cancelled)
                return -ECANCELED;
        note_request_received(request);
        if (!request->has_response && get_response_status(request) >= 200) {
                request->has_response = true;
                if (request->spec.idle_timeout_usec == 0)
                        request->idle_timer = sd_event_source_disable_unref(request->idle_timer);
                kube_connections_note_response(request->connections, request->easy);
                kube_client_mark_reachable(request->connections->client);
        }
        /* An empty line ends the headers. */
        if (length <= 2 && request->spec.on_open && get_response_status(request) == 200)
                request->spec.on_open(request->spec.userdata);
        return 0;
}

static int on_response_body(const char *data, size_t length, void *userdata) {
        KubeRequest *request = userdata;

        if (request->is_cancelled)
                return -ECANCELED;
        note_request_received(request);
        if (request->connections->is_multiplexed)
                curl_loop_drain(request->connections->loop);
        if (request->spec.on_data && get_response_status(request) == 200)
                return request->spec.on_data(data, length, request->spec.userdata);
        return buffer_append(&request->body, data, length,
                             request->spec.on_data ? STREAM_ERROR_MAX : KUBE_RESPONSE_MAX);
}

/* After GOAWAY libcurl would send further requests on that connection, which are never answered. It
 * reports GOAWAY only to its debug callback. */
static int on_curl_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *userdata) {
        static const char goodbye[] = "GOAWAY";
        KubeRequest *request = userdata;

        if (type == CURLINFO_TEXT && memmem(data, size, goodbye, strlen(goodbye)))
                request->connections->has_goaway = true;
        return 0;
}

/* ---- errors and the end of a request ---- */

static uint64_t get_retry_after(const KubeRequest *request) {
        curl_off_t seconds = 0;

        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &seconds);
        return seconds > 0 ? (uint64_t) MIN(seconds, (curl_off_t) DAY_SEC) * USEC_PER_SEC : 0;
}

static char *describe_request_error(KubeRequest *request, CURLcode code) {
        const char *why = request->abort_reason;

        if (!why && code == CURLE_OPERATION_TIMEDOUT)
                why = request->has_response ? "the response was not complete in time"
                                            : "no response in time";
        if (!why)
                why = curl_transfer_explain(&request->transfer, code);
        return text_format("%s: %s", request->connections->client->server, why);
}

/* A proxy in front of the server may accept a connection and close it before the TLS handshake. */
static bool is_server_down(const KubeRequest *request, CURLcode code) {
        long error_number = 0;

        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &error_number);
        return code == CURLE_SSL_CONNECT_ERROR ||
               (code == CURLE_COULDNT_CONNECT && error_number == ECONNREFUSED);
}

static void record_request_end(KubeRequest *request, CURLcode code, const char *error) {
        KubeConnections *connections = request->connections;
        KubeClient *client = connections->client;

        if (get_response_status(request) == 401)
                kube_client_refresh_token(client, true);
        if ((code != CURLE_OK && !request->abort_reason) ||
            (request->spec.is_mostly_idle && !connections->is_multiplexed))
                kube_gate_close(client);
        if (code == CURLE_OK || request->has_response || request->is_premature ||
            connections->is_failing)
                return;
        if (code == CURLE_OPERATION_TIMEDOUT && connections->received_at >= request->started_at)
                return; /* other responses arrive, so the server is slow, but its connection is
                         * alive */
        kube_client_mark_unreachable(client, error);
        if (is_server_down(request, code))
                kube_client_mark_down(client);
        /* A connection that does not respond is not used again; the next request gets a new one. */
        if (code != CURLE_OPERATION_TIMEDOUT)
                return;
        if (connections == client->connections)
                kube_client_renew_connections(client);
        kube_connections_fail_requests(connections);
}

KubeRequestName kube_request_name(const KubeRequest *request) {
        const KubeClient *client = request->connections->client;
        size_t base = client ? strlen(client->address.base) : 0;
        char *method = NULL, *url = NULL;

        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_EFFECTIVE_METHOD, &method);
        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &url);
        /* libcurl has the URL as soon as the request is sent. */
        return (KubeRequestName){ .method = method ? method : "-",
                                  .path = url && strlen(url) > base ? url + base : "-" };
}

static void log_request_end(const KubeRequest *request, const KubeResponse *response) {
        uint64_t msec = (now_boottime_usec() - request->started_at) / USEC_PER_MSEC;
        KubeRequestName name;

        if (!log_is_debug())
                return;
        name = kube_request_name(request);
        if (response->error)
                log_debug("API server request %s %s: no response after %llu ms: %s", name.method,
                          name.path, (unsigned long long) msec, response->error);
        else
                log_debug("API server request %s %s: status %u after %llu ms", name.method,
                          name.path, response->status, (unsigned long long) msec);
}

void kube_request_refuse(KubeRequest *request, const KubeResponse *response) {
        request->is_finishing = request->is_cancelled = true;
        log_request_end(request, response);
        if (request->spec.on_done)
                request->spec.on_done(response, request->spec.userdata);
        kube_request_free(request);
}

void kube_request_finish(KubeRequest *request, CURLcode code) {
        cleanup_free char *error = NULL;
        KubeResponse response = { .body = "" };

        if (request->is_cancelled) {
                kube_request_free(request);
                return;
        }
        request->is_finishing = true;
        if (code != CURLE_OK) {
                error = describe_request_error(request, code);
                response.error = error ? error : "no memory";
        } else {
                response.status = get_response_status(request);
                response.retry_after_usec = get_retry_after(request);
        }
        if (code == CURLE_OK && request->body.data) {
                response.body = request->body.data;
                response.length = request->body.length;
        }
        log_request_end(request, &response);
        record_request_end(request, code, response.error);
        /* Requests that failed with this one may have cancelled it; cancelling it in its own
         * callback has no effect. */
        if (!request->is_cancelled && request->spec.on_done) {
                request->is_cancelled = true;
                request->spec.on_done(&response, request->spec.userdata);
        }
        kube_request_free(request);
}

static void unlink_kube_request(KubeRequest *request) {
        KubeRequest **at = &request->connections->requests;

        while (*at && *at != request)
                at = &(*at)->next;
        if (!*at)
                return;
        *at = request->next;
        request->connections->n_requests--;
        kube_connections_limit_idle(request->connections);
}

static void link_kube_request(KubeRequest *request, KubeConnections *connections) {
        request->connections = connections;
        request->next = connections->requests;
        connections->requests = request;
        connections->n_requests++;
        kube_connections_limit_idle(connections);
}

/* libcurl stops reading from a connection when a stream's buffer is full. If that stream is
 * removed, it does not process data that it has already read for the others until more arrives. */
static void remove_from_connection(const KubeRequest *request) {
        const KubeConnections *connections = request->connections;

        curl_loop_remove(connections->loop, request->easy);
        if (!request->is_complete && connections->is_multiplexed)
                curl_loop_drain(connections->loop);
}

void kube_request_free(KubeRequest *request) {
        unlink_kube_request(request);
        if (request->easy) {
                if (request->is_started)
                        remove_from_connection(request);
                curl_library(NULL)->easy_cleanup(request->easy);
        }
        curl_transfer_done(&request->transfer);
        sd_event_source_disable_unref(request->idle_timer);
        buffer_done(&request->body);
        free(request);
}

KubeRequest *kube_request_cancel(KubeRequest *request) {
        KubeConnections *connections;

        if (!request || request->is_cancelled)
                return NULL;
        connections = request->connections;
        request->is_cancelled = true;
        if (kube_connections_are_held(connections))
                return NULL;
        kube_request_free(request);
        kube_connections_free_if_drained(connections);
        return NULL;
}

/* ---- idle timeout ---- */

static int on_idle_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeRequest *request = userdata;
        KubeConnections *connections = request->connections;
        uint64_t due;

        if (!request->is_started) /* the request for which it waits has its own limit */
                request->started_at = request->received_at = usec;
        due = request->has_response || request->spec.response_timeout_usec == 0
                      ? request->received_at + request->spec.idle_timeout_usec
                      : request->started_at + request->spec.response_timeout_usec;
        if (usec < due)
                return event_timer_arm_at(source, due);
        request->abort_reason = "no data for too long";
        connections->is_held = true;
        kube_request_finish(request, CURLE_OPERATION_TIMEDOUT);
        connections->is_held = false;
        kube_connections_process_queue(connections);
        return 0;
}

static int start_idle_timer(KubeRequest *request) {
        const KubeRequestSpec *spec = &request->spec;
        uint64_t usec = spec->response_timeout_usec > 0 ? spec->response_timeout_usec
                                                        : spec->idle_timeout_usec;

        request->started_at = request->received_at = now_boottime_usec();
        if (usec == 0)
                return 0;
        return sd_event_add_time(request->connections->client->event, &request->idle_timer,
                                 CLOCK_BOOTTIME, request->started_at + usec, USEC_PER_SEC,
                                 on_idle_timer, request);
}

/* ---- the start of a request ---- */

/* With HTTP/2 all requests share the connection, so the next one may go to another server. */
static int on_socket_closed(void *userdata, curl_socket_t fd) {
        const KubeConnections *connections = userdata;

        if (connections->client && connections->is_multiplexed)
                kube_gate_close(connections->client);
        return close(fd);
}

/* The kernel detects a lost server, without wake-ups of the agent. */
static int set_socket_options(void *userdata, curl_socket_t fd, curlsocktype purpose) {
        KubeRequest *request = userdata;
        static const struct {
                int level, option, value;
        } options[] = {
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_SEC },
                { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SEC },
                { IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MSEC },
        };

        /* The connection of the request was closed at the moment when it started. */
        if (kube_gate_holds(request)) {
                request->is_premature = true;
                request->abort_reason = "the connection was closed";
                return CURL_SOCKOPT_ERROR;
        }
        for (size_t i = 0; i < N_ELEMENTS(options); i++)
                (void) setsockopt(fd, options[i].level, options[i].option, &options[i].value,
                                  sizeof(options[i].value));
        return CURL_SOCKOPT_OK;
}

/* The TLS options also belong to the generation: curl_transfer_set_tls(). */
static void set_connection_options(KubeRequest *request) {
        const KubeConnections *connections = request->connections;
        const CurlLibrary *curl = curl_library(NULL);
        CURL *easy = request->easy;

        curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl->easy_setopt(easy, CURLOPT_PIPEWAIT, (long) !connections->client->is_plain);
        curl->easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, set_socket_options);
        curl->easy_setopt(easy, CURLOPT_SOCKOPTDATA, request);
        curl->easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_closed);
        curl->easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, connections);
        if (connections->connect_to)
                curl->easy_setopt(easy, CURLOPT_CONNECT_TO, connections->connect_to);
}

static CurlTls tls_of_connections(const KubeConnections *connections) {
        const KubeTlsConfig *config = &connections->tls_config;

        return (CurlTls){ .authority_fd = config->authority_fd,
                          .certificate_fd = config->key_fd >= 0 ? config->certificate_fd : -EBADF,
                          .key_fd = config->key_fd,
                          .is_unverified = connections->client->is_insecure };
}

static void set_request_deadline(KubeRequest *request, const KubeRequestSpec *spec) {
        uint64_t usec =
                spec->deadline_usec > 0 ? spec->deadline_usec : KUBE_DEADLINE_SEC * USEC_PER_SEC;

        if (usec == UINT64_MAX)
                return;
        curl_library(NULL)->easy_setopt(
                request->easy, CURLOPT_TIMEOUT_MS,
                (long) MAX(MIN(usec, DAY_SEC * USEC_PER_SEC) / USEC_PER_MSEC, 1));
}

static int init_request_transfer(KubeRequest *request, const KubeRequestSpec *spec) {
        const KubeClient *client = request->connections->client;
        char agent[128];
        cleanup_free char *url = text_format("%s%s", client->address.base, spec->path);

        if (!url)
                return -ENOMEM;
        (void) snprintf(agent, sizeof(agent), "mainstay/%s (linux/%s)", MAINSTAY_VERSION,
                        machine_architecture());
        return curl_transfer_init(
                &request->transfer, request->easy,
                &(CurlTransferSpec){ .url = url,
                                     .protocols = "http,https",
                                     .method = spec->method,
                                     .user_agent = agent,
                                     .proxy = client->proxy,
                                     .body = spec->body,
                                     .body_length = spec->body_length,
                                     .tls = tls_of_connections(request->connections),
                                     .http_version = client->is_plain ? CURL_HTTP_VERSION_1_1
                                                                      : CURL_HTTP_VERSION_2TLS,
                                     .connect_timeout_msec = CONNECT_TIMEOUT_MSEC,
                                     .buffer_size = spec->is_mostly_idle ? QUIET_BUFFER : BUFFER,
                                     .header_max = HEADERS_MAX,
                                     .on_header = on_response_header,
                                     .on_data = on_response_body,
                                     .userdata = request });
}

static int set_body_headers(CurlTransfer *transfer, const KubeRequestSpec *spec) {
        cleanup_free char *type = NULL;
        int r;

        if (!spec->body)
                return 0;
        type = text_format("Content-Type: %s",
                           spec->content_type ? spec->content_type : "application/json");
        if (!type)
                return -ENOMEM;
        r = curl_transfer_add_header(transfer, type);
        if (r < 0)
                return r;
        return curl_transfer_add_header(transfer, "Expect:"); /* without "100-continue" */
}

static int set_request_headers(CurlTransfer *transfer, const KubeClient *client,
                               const KubeRequestSpec *spec) {
        cleanup_with(secret_freep) char *bearer = NULL;
        int r = curl_transfer_add_header(transfer, "Accept: application/json");

        if (r < 0)
                return r;
        if (client->address.host) {
                r = curl_transfer_add_header(transfer, client->address.host);
                if (r < 0)
                        return r;
        }
        r = set_body_headers(transfer, spec);
        if (r < 0 || !client->token)
                return r;
        bearer = text_format("Authorization: Bearer %s", client->token);
        if (!bearer)
                return -ENOMEM;
        return curl_transfer_add_header(transfer, bearer);
}

static int set_request_options(KubeRequest *request, const KubeRequestSpec *spec) {
        const CurlLibrary *curl = curl_library(NULL);
        CURL *easy = request->easy;
        int r = init_request_transfer(request, spec);

        if (r < 0)
                return r;
        r = set_request_headers(&request->transfer, request->connections->client, spec);
        if (r < 0)
                return r;
        curl->easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl->easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long) UPLOAD_BUFFER);
        curl->easy_setopt(easy, CURLOPT_VERBOSE, 1L);
        curl->easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_curl_debug);
        curl->easy_setopt(easy, CURLOPT_DEBUGDATA, request);
        set_connection_options(request);
        set_request_deadline(request, spec);
        return 0;
}

void kube_request_move_to(KubeRequest *request, KubeConnections *connections) {
        CurlTls tls = tls_of_connections(connections);

        unlink_kube_request(request);
        link_kube_request(request, connections);
        set_connection_options(request);
        curl_transfer_set_tls(&request->transfer, &tls);
}

static int check_request_spec(const KubeRequestSpec *spec, Error *reterr) {
        bool is_known = false;

        for (size_t i = 0; i < N_ELEMENTS(methods); i++)
                is_known = is_known || streq(methods[i], spec->method);
        if (!is_known)
                return error_setf(reterr, EINVAL, "there is no method '%s'", spec->method);
        if (!kube_request_path_is_valid(spec->path))
                return error_setf(reterr, EINVAL, "'%s' is not a valid path", spec->path);
        return 0;
}

static int begin_kube_request(KubeRequest *request, const KubeRequestSpec *spec) {
        int r;

        request->easy = curl_library(NULL)->easy_init();
        if (!request->easy)
                return -ENOMEM;
        r = set_request_options(request, spec);
        if (r < 0)
                return r;
        r = start_idle_timer(request);
        if (r < 0 || kube_connections_are_held(request->connections) || kube_gate_holds(request))
                return r; /* starts once nothing holds it */
        r = kube_connections_start_request(request);
        request->is_started = r >= 0;
        return r;
}

int kube_request_start(KubeClient *client, const KubeRequestSpec *spec, bool is_gate,
                       KubeRequest **ret, Error *reterr) {
        KubeRequest *request;
        int r = check_request_spec(spec, reterr);

        if (r < 0)
                return r;
        request = calloc(1, sizeof(*request));
        if (!request)
                return -ENOMEM;
        kube_client_refresh_token(client, false);
        request->spec = *spec;
        request->is_gate = is_gate;
        link_kube_request(request, client->connections);
        r = begin_kube_request(request, spec);
        if (r < 0) {
                kube_request_free(request);
                return r;
        }
        client->n_requests++;
        if (ret)
                *ret = request;
        return 0;
}

int kube_client_start_request(KubeClient *client, const KubeRequestSpec *spec, KubeRequest **ret,
                              Error *reterr) {
        int r = kube_gate_ask(client, reterr);

        return r < 0 ? r : kube_request_start(client, spec, /* is_gate= */ false, ret, reterr);
}
