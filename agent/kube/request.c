/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client-private.h"

#include "common/architecture.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>

enum {
        CONNECT_TIMEOUT_MSEC = 10 * 1000,
        DAY_SEC = 24 * 3600,     /* whatever is asked for is not longer */
        KEEPALIVE_IDLE_SEC = 10, /* nothing came for so long: the kernel asks */
        KEEPALIVE_INTERVAL_SEC = 5,
        USER_TIMEOUT_MSEC = 25 * 1000, /* nothing came, though it was asked: the end */
        HEADERS_MAX = 256 * 1024,
        QUIET_BUFFER = 1024, /* the least that libcurl takes; there is one for each watch */
        BUFFER = 16 * 1024,
        UPLOAD_BUFFER = 16 * 1024,    /* likewise the least; over HTTP/1.1 each request has one */
        STREAM_ERROR_MAX = 64 * 1024, /* of the body of a stream that is none */
};

static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

/* ---- what comes ---- */

static unsigned status_of(const KubeRequest *request) {
        long status = 0;

        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
        return (unsigned) status;
}

static size_t refuse(KubeRequest *request, const char *why) {
        request->refusal = why;
        return 0;
}

static void note_heard(KubeRequest *request) {
        request->heard_at = request->lane->heard_at = now_boottime_usec();
}

static size_t on_header(char *data, size_t size, size_t n, void *userdata) {
        KubeRequest *request = userdata;

        if (request->is_cancelled)
                return 0;
        request->headers_length += size * n;
        if (request->headers_length > HEADERS_MAX)
                return refuse(request, "the answer's headers are too long");
        note_heard(request);
        if (!request->is_heard && status_of(request) >= 200) {
                request->is_heard = true;
                if (request->call.silence_usec == 0)
                        request->silence = sd_event_source_disable_unref(request->silence);
                kube_lane_heard(request->lane, request->easy);
                kube_client_heard(request->lane->client);
        }
        /* An empty line ends them. */
        if (size * n <= 2 && request->call.on_open && status_of(request) == 200)
                request->call.on_open(request->call.userdata);
        return size * n;
}

static int grow(KubeRequest *request, size_t length, size_t max) {
        size_t room = MAX(request->room, KIB);
        char *larger;

        while (room < length)
                room *= 2;
        room = MIN(room, max);
        if (room == request->room)
                return 0;
        larger = realloc(request->answer, room + 1);
        if (!larger)
                return -ENOMEM;
        request->answer = larger;
        request->room = room;
        return 0;
}

static size_t keep_body(KubeRequest *request, const char *data, size_t length) {
        size_t max = request->call.on_data ? STREAM_ERROR_MAX : KUBE_RESPONSE_MAX;

        if (request->length + length > max)
                return refuse(request, "the answer is too long");
        if (grow(request, request->length + length, max) < 0)
                return refuse(request, "no memory for the answer");
        memcpy(request->answer + request->length, data, length);
        request->length += length;
        return length;
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata) {
        KubeRequest *request = userdata;
        size_t length = size * n;

        if (request->is_cancelled)
                return 0;
        note_heard(request);
        if (!request->call.on_data || status_of(request) != 200)
                return keep_body(request, data, length);
        request->verdict = request->call.on_data(data, length, request->call.userdata);
        return request->verdict < 0 ? 0 : length;
}

/* libcurl would go on to ask for more on a connection on which the server wants no more, and wait
 * for ever. It says so to nobody but whoever looks at its work. */
static int on_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *userdata) {
        static const char goodbye[] = "GOAWAY";
        KubeRequest *request = userdata;

        if (type == CURLINFO_TEXT && memmem(data, size, goodbye, strlen(goodbye)))
                request->lane->is_ending = true;
        return 0;
}

/* ---- the end ---- */

static uint64_t retry_after(const KubeRequest *request) {
        curl_off_t seconds = 0;

        curl_library(NULL)->easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &seconds);
        return seconds > 0 ? (uint64_t) MIN(seconds, (curl_off_t) DAY_SEC) * USEC_PER_SEC : 0;
}

/* A certificate is "not yet valid", or "has expired", where the clock is wrong. */
static bool is_about_time(CURLcode code) {
        return code == CURLE_PEER_FAILED_VERIFICATION;
}

/* Ours go on behind it. How long it has lasted each time is no news. */
static void trim(char *text) {
        char *after = strstr(text, " after "), *end = text + strlen(text);

        while (end > text && strchr(". \n", end[-1]))
                *--end = '\0';
        if (!after)
                return;
        end = after + strlen(" after ");
        end += strspn(end, "0123456789");
        if (strncmp(end, " ms", 3) != 0)
                return;
        end += 3;
        memmove(after, end, strlen(end) + 1);
}

static char *explain(KubeRequest *request, CURLcode code) {
        const char *why = request->refusal;
        char *sentence = NULL, *file = strstr(request->error, " CAfile: ");
        char clock[CLOCK_WORDS_SIZE];

        if (file) /* a memory file, whose name says nothing */
                *file = '\0';
        trim(request->error);
        if (!why && code == CURLE_OPERATION_TIMEDOUT)
                why = request->is_heard ? "the answer did not come to its end in time"
                                        : "there was no answer in time";
        if (!why && request->verdict < 0)
                why = strerror(-request->verdict);
        if (!why)
                why = request->error[0] ? request->error : curl_library(NULL)->easy_strerror(code);
        kube_clock_words(clock, now_realtime_usec());
        if (asprintf(&sentence, "%s: %s%s%s", request->lane->client->server, why,
                     is_about_time(code) ? "; " : "", is_about_time(code) ? clock : "") < 0)
                return NULL;
        return sentence;
}

static void note_end(KubeRequest *request, CURLcode code, const char *trouble) {
        KubeLane *lane = request->lane;
        KubeClient *client = lane->client;

        if (status_of(request) == 401)
                kube_client_refresh_token(client, true);
        if (code == CURLE_OK || request->is_heard || request->verdict < 0)
                return;
        kube_client_unheard(client, trouble);
        /* A connection on which nobody answers is as good as none: the next request has another. */
        if (code != CURLE_OPERATION_TIMEDOUT)
                return;
        if (lane == client->lane)
                kube_client_change_lane(client);
        if (lane->heard_at < request->begun_at)
                kube_lane_end_streams(lane);
}

void kube_request_finish(KubeRequest *request, CURLcode code) {
        cleanup_free char *trouble = NULL;
        KubeAnswer answer = { .body = "" };

        if (request->is_cancelled) {
                kube_request_free(request);
                return;
        }
        request->is_cancelled = true; /* whoever is told may cancel it still */
        if (code != CURLE_OK) {
                trouble = explain(request, code);
                answer.error = trouble ? trouble : "no memory";
        } else {
                answer.status = status_of(request);
                answer.retry_after_usec = retry_after(request);
        }
        if (code == CURLE_OK && request->answer) {
                request->answer[request->length] = '\0';
                answer.body = request->answer;
                answer.length = request->length;
        }
        note_end(request, code, answer.error);
        if (request->call.on_done)
                request->call.on_done(&answer, request->call.userdata);
        kube_request_free(request);
}

static void unlink_request(KubeRequest *request) {
        KubeRequest **at = &request->lane->requests;

        while (*at && *at != request)
                at = &(*at)->next;
        if (!*at)
                return;
        *at = request->next;
        request->lane->n_requests--;
}

static void link_request(KubeRequest *request, KubeLane *lane) {
        request->lane = lane;
        request->next = lane->requests;
        lane->requests = request;
        lane->n_requests++;
}

void kube_request_free(KubeRequest *request) {
        unlink_request(request);
        if (request->easy) {
                if (request->is_begun)
                        curl_loop_remove(request->lane->loop, request->easy);
                curl_library(NULL)->easy_cleanup(request->easy);
        }
        for (struct curl_slist *header = request->headers; header; header = header->next)
                explicit_bzero(header->data, strlen(header->data));
        curl_library(NULL)->slist_free_all(request->headers);
        sd_event_source_disable_unref(request->silence);
        free(request->answer);
        free(request);
}

KubeRequest *kube_request_cancel(KubeRequest *request) {
        KubeLane *lane;

        if (!request || request->is_cancelled)
                return NULL;
        lane = request->lane;
        request->is_cancelled = true;
        if (kube_lane_is_held(lane))
                return NULL;
        kube_request_free(request);
        kube_lane_retire(lane);
        return NULL;
}

/* ---- silence ---- */

static int on_silence(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeRequest *request = userdata;
        KubeLane *lane = request->lane;
        uint64_t due = request->is_heard || request->call.answer_usec == 0
                               ? request->heard_at + request->call.silence_usec
                               : request->begun_at + request->call.answer_usec;

        if (usec < due) {
                int r = sd_event_source_set_time(source, due);

                return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        request->refusal = "nothing came for too long";
        lane->is_held = true;
        kube_request_finish(request, CURLE_OPERATION_TIMEDOUT);
        lane->is_held = false;
        kube_lane_settle(lane);
        return 0;
}

static int watch_silence(KubeRequest *request) {
        const KubeCall *call = &request->call;
        uint64_t usec = call->answer_usec > 0 ? call->answer_usec : call->silence_usec;

        request->begun_at = request->heard_at = now_boottime_usec();
        if (usec == 0)
                return 0;
        return sd_event_add_time(request->lane->client->event, &request->silence, CLOCK_BOOTTIME,
                                 request->begun_at + usec, USEC_PER_SEC, on_silence, request);
}

/* ---- the beginning ---- */

/* The kernel finds out that a server is gone, and no one is woken for it. */
static int on_socket(void *userdata, curl_socket_t fd, curlsocktype purpose) {
        static const struct {
                int level, option, value;
        } options[] = {
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_SEC },
                { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SEC },
                { IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MSEC },
        };

        for (size_t i = 0; i < N_ELEMENTS(options); i++)
                (void) setsockopt(fd, options[i].level, options[i].option, &options[i].value,
                                  sizeof(options[i].value));
        return CURL_SOCKOPT_OK;
}

static int add_header(KubeRequest *request, const char *header) {
        struct curl_slist *longer = curl_library(NULL)->slist_append(request->headers, header);

        if (!longer)
                return -ENOMEM;
        request->headers = longer;
        return 0;
}

static int add_headers(KubeRequest *request, const KubeCall *call) {
        const KubeClient *client = request->lane->client;
        cleanup_with(secret_freep) char *bearer = NULL;
        cleanup_free char *type = NULL;
        int r = add_header(request, "Accept: application/json");

        if (r >= 0 && client->address.host)
                r = add_header(request, client->address.host);
        if (r >= 0 && call->body) {
                if (asprintf(&type, "Content-Type: %s",
                             call->content_type ? call->content_type : "application/json") < 0)
                        return -ENOMEM;
                r = add_header(request, type);
        }
        if (r >= 0 && call->body)
                r = add_header(request, "Expect:"); /* we do not ask before we send */
        if (r < 0 || !client->token)
                return r;
        if (asprintf(&bearer, "Authorization: Bearer %s", client->token) < 0)
                return -ENOMEM;
        return add_header(request, bearer);
}

static void set_identity(const KubeRequest *request) {
        const KubeLane *lane = request->lane;
        const CurlLibrary *curl = curl_library(NULL);
        char path[MEMORY_PATH_SIZE];
        CURL *easy = request->easy;
        long verify = !lane->client->is_insecure;

        curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify);
        curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
        curl->easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
        if (lane->identity.authority_fd >= 0) {
                curl->easy_setopt(easy, CURLOPT_CAINFO,
                                  memory_path(lane->identity.authority_fd, path));
                curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
        }
        if (lane->identity.certificate_fd < 0 || lane->identity.key_fd < 0)
                return;
        curl->easy_setopt(easy, CURLOPT_SSLCERT, memory_path(lane->identity.certificate_fd, path));
        curl->easy_setopt(easy, CURLOPT_SSLKEY, memory_path(lane->identity.key_fd, path));
}

static void set_connection(KubeRequest *request) {
        const KubeClient *client = request->lane->client;
        const CurlLibrary *curl = curl_library(NULL);
        CURL *easy = request->easy;

        curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
        curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl->easy_setopt(easy, CURLOPT_PROXY, client->proxy);
        curl->easy_setopt(easy, CURLOPT_NOPROXY, "");
        curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl->easy_setopt(
                easy, CURLOPT_HTTP_VERSION,
                (long) (client->is_plain ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
        curl->easy_setopt(easy, CURLOPT_PIPEWAIT, (long) !client->is_plain);
        curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_TIMEOUT_MSEC);
        curl->easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
        if (request->lane->connect_to)
                curl->easy_setopt(easy, CURLOPT_CONNECT_TO, request->lane->connect_to);
}

static void set_deadline(KubeRequest *request, const KubeCall *call) {
        uint64_t usec =
                call->deadline_usec > 0 ? call->deadline_usec : KUBE_DEADLINE_SEC * USEC_PER_SEC;

        if (usec == UINT64_MAX)
                return;
        curl_library(NULL)->easy_setopt(
                request->easy, CURLOPT_TIMEOUT_MS,
                (long) MAX(MIN(usec, DAY_SEC * USEC_PER_SEC) / USEC_PER_MSEC, 1));
}

static int set_options(KubeRequest *request, const KubeCall *call) {
        const KubeClient *client = request->lane->client;
        const CurlLibrary *curl = curl_library(NULL);
        cleanup_free char *url = NULL;
        char agent[128];
        CURL *easy = request->easy;

        if (asprintf(&url, "%s%s", client->address.base, call->path) < 0)
                return -ENOMEM;
        (void) snprintf(agent, sizeof(agent), "mainstay/%s (linux/%s)", MAINSTAY_VERSION,
                        machine_architecture());
        if (curl->easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK ||
            curl->easy_setopt(easy, CURLOPT_USERAGENT, agent) != CURLE_OK)
                return -ENOMEM;
        if (call->body) {
                curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long) call->body_length);
                if (curl->easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, call->body) != CURLE_OK)
                        return -ENOMEM;
        }
        curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
        curl->easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
        curl->easy_setopt(easy, CURLOPT_BUFFERSIZE,
                          (long) (call->is_quiet ? QUIET_BUFFER : BUFFER));
        curl->easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long) UPLOAD_BUFFER);
        curl->easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
        curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl->easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        curl->easy_setopt(easy, CURLOPT_HEADERDATA, request);
        curl->easy_setopt(easy, CURLOPT_VERBOSE, 1L);
        curl->easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
        curl->easy_setopt(easy, CURLOPT_DEBUGDATA, request);
        set_connection(request);
        set_identity(request);
        set_deadline(request, call);
        return 0;
}

void kube_request_move(KubeRequest *request, KubeLane *lane) {
        unlink_request(request);
        link_request(request, lane);
        set_connection(request);
        set_identity(request);
}

static int check_call(const KubeCall *call, Error *reterr) {
        bool is_known = false;

        for (size_t i = 0; i < N_ELEMENTS(methods); i++)
                is_known = is_known || streq(methods[i], call->method);
        if (!is_known)
                return error_setf(reterr, EINVAL, "there is no method '%s'", call->method);
        if (!kube_path_is_valid(call->path))
                return error_setf(reterr, EINVAL, "'%s' is no path", call->path);
        return 0;
}

static int begin(KubeRequest *request, const KubeCall *call) {
        int r;

        request->easy = curl_library(NULL)->easy_init();
        if (!request->easy)
                return -ENOMEM;
        r = add_headers(request, call);
        if (r >= 0)
                r = set_options(request, call);
        if (r >= 0)
                r = watch_silence(request);
        if (r < 0 || kube_lane_is_held(request->lane))
                return r; /* begins when the lane settles */
        r = kube_lane_begin(request);
        request->is_begun = r >= 0;
        return r;
}

int kube_client_call(KubeClient *client, const KubeCall *call, KubeRequest **ret, Error *reterr) {
        KubeRequest *request;
        int r = check_call(call, reterr);

        if (r < 0)
                return r;
        request = calloc(1, sizeof(*request));
        if (!request)
                return -ENOMEM;
        kube_client_refresh_token(client, false);
        request->call = *call;
        link_request(request, client->lane);
        r = begin(request, call);
        if (r < 0) {
                kube_request_free(request);
                return r;
        }
        client->n_requests++;
        if (ret)
                *ret = request;
        return 0;
}
