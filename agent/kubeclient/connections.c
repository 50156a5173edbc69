/* SPDX-License-Identifier: Apache-2.0 */
/* Connection generations: which requests share a libcurl multi handle, when a request starts,
 * and how an old generation is drained. */

#include "agent/kubeclient/kube-client-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/list.h"
#include "common/memory-trim-timer.h"

enum {
        CONNECTIONS_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20, /* containers have priority */
        STREAMS_MAX = 1000,   /* on one connection; servers allow fewer */
        STREAMS_LEAST = 80,   /* minimum that servers allow on each connection */
        CONNECTIONS_MORE = 1, /* in addition to the required ones: one may refuse new requests */
        CONNECTIONS_IDLE = 2, /* for HTTP/1.1; each one costs about 25 KiB with TLS */
        QUIET_SEC = 30,       /* how long a response in an old generation may be silent */
};

static void on_transfer_done(CURL *easy, CURLcode code, void *userdata) {
        KubeConnections *connections = userdata;
        void *request = NULL;

        curl_library(NULL)->easy_getinfo(easy, CURLINFO_PRIVATE, &request);
        if (!request || ((KubeRequest *) request)->connections != connections)
                return;
        ((KubeRequest *) request)->is_complete = true;
        kube_request_finish(request, code);
}

static void on_curl_settled(void *userdata) {
        memory_trim_timer_restart(); /* memory that the libraries used for the request */
        kube_connections_process_queue(userdata);
}

int kube_connections_new(KubeClient *client, KubeTlsConfig *tls_config, KubeConnections **ret,
                         Error *reterr) {
        cleanup_with(kube_connections_freep) KubeConnections *connections =
                calloc(1, sizeof(*connections));
        int r;

        if (!connections)
                return -ENOMEM;
        connections->tls_config = KUBE_TLS_CONFIG_NULL;
        connections->client = client;
        r = curl_loop_new(&(CurlLoopSpec){ .event = client->event,
                                           .description = "kube",
                                           .priority = CONNECTIONS_PRIORITY,
                                           .on_done = on_transfer_done,
                                           .on_settle = on_curl_settled,
                                           .userdata = connections },
                          &connections->loop, reterr);
        if (r < 0)
                return r;
        curl_loop_set_streams(connections->loop, STREAMS_MAX);
        if (client->address.connect_to) {
                connections->connect_to =
                        curl_library(NULL)->slist_append(NULL, client->address.connect_to);
                if (!connections->connect_to)
                        return -ENOMEM;
        }
        connections->tls_config = *tls_config;
        *tls_config = KUBE_TLS_CONFIG_NULL;
        *ret = TAKE_PTR(connections);
        return 0;
}

KubeConnections *kube_connections_free(KubeConnections *connections) {
        if (!connections)
                return NULL;
        while (connections->requests)
                kube_request_free(connections->requests);
        if (connections->loop) {
                curl_loop_free(connections->loop);
                curl_library(NULL)->slist_free_all(connections->connect_to);
        }
        sd_event_source_disable_unref(connections->quiet_timer);
        kube_tls_config_done(&connections->tls_config);
        free(connections);
        return NULL;
}

void kube_connections_note_response(KubeConnections *connections, CURL *easy) {
        long version = 0;

        curl_library(NULL)->easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        connections->is_multiplexed = version == CURL_HTTP_VERSION_2_0;
}

void kube_connections_limit_idle(const KubeConnections *connections) {
        curl_loop_set_open_connections(connections->loop,
                                       connections->n_requests + CONNECTIONS_IDLE);
}

/* While a connection is being established, libcurl would open another one for each request that
 * does not fit on the existing ones. */
int kube_connections_start_request(KubeRequest *request) {
        KubeConnections *connections = request->connections;
        unsigned max = 1 + CONNECTIONS_MORE + connections->n_requests / STREAMS_LEAST;

        curl_loop_set_connections(connections->loop, connections->is_multiplexed ? max : 0);
        return curl_loop_add(connections->loop, request->easy);
}

static void start_queued_request(KubeRequest *request) {
        request->is_started = true;
        if (kube_connections_start_request(request) < 0)
                kube_request_finish(request, CURLE_FAILED_INIT);
}

/* Finds a request that must be freed or started; the list may change after each one. */
static KubeRequest *find_unstarted_request(const KubeConnections *connections) {
        list_foreach(request, connections->requests)
                if (!request->is_finishing &&
                    (request->is_cancelled || (!request->is_started && !kube_gate_holds(request))))
                        return request;
        return NULL;
}

/* Finds a request in flight; with 'since', only one whose response has started but has been silent
 * since then. */
static KubeRequest *find_sent_request(const KubeConnections *connections, uint64_t since) {
        list_foreach(request, connections->requests) {
                bool is_quiet = request->has_response && request->received_at < since;

                if (request->is_started && !request->is_finishing && !request->is_cancelled &&
                    !request->is_complete && (since == 0 || is_quiet))
                        return request;
        }
        return NULL;
}

static void fail_sent_requests(KubeConnections *connections, uint64_t since, const char *why) {
        KubeRequest *request;

        connections->is_failing = true;
        while ((request = find_sent_request(connections, since))) {
                request->abort_reason = why;
                kube_request_finish(request, CURLE_OPERATION_TIMEDOUT);
        }
        connections->is_failing = false;
}

void kube_connections_fail_requests(KubeConnections *connections) {
        fail_sent_requests(connections, 0, "the server no longer answers on this connection");
}

/* No new request uses a connection of an old generation, so nothing would show that it has stopped
 * responding. Therefore silent watches on it continue in the current generation. */
static int on_quiet_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        KubeConnections *connections = userdata;
        uint64_t apart = QUIET_SEC * USEC_PER_SEC;

        (void) event_timer_arm(source, apart);
        connections->is_held = true;
        fail_sent_requests(connections, now_boottime_usec() - apart, "its connection was replaced");
        connections->is_held = false;
        kube_connections_process_queue(connections);
        return 0;
}

bool kube_connections_are_held(const KubeConnections *connections) {
        return connections->is_held || curl_loop_is_busy(connections->loop);
}

void kube_connections_free_if_drained(KubeConnections *connections) {
        if (!connections->is_draining || connections->requests ||
            kube_connections_are_held(connections))
                return;
        if (connections->client)
                kube_client_remove_connections(connections->client, connections);
        kube_connections_free(connections);
}

/* The generation for requests that have not started, which must not use credentials older than the
 * current ones. */
static KubeConnections *find_newer_connections(const KubeConnections *connections) {
        KubeConnections *next = connections->client ? connections->client->connections : NULL;

        return connections->is_draining && next &&
                               streq(connections->tls_config.hash, next->tls_config.hash)
                       ? next
                       : NULL;
}

static void process_queued_requests(KubeConnections *connections) {
        KubeRequest *due;

        while ((due = find_unstarted_request(connections))) {
                KubeConnections *next = find_newer_connections(connections);

                if (due->is_cancelled)
                        kube_request_free(due);
                else if (next)
                        kube_request_move_to(due, next);
                else
                        start_queued_request(due);
        }
}

/* A callback may free the client, and with it all requests. */
void kube_connections_process_queue(KubeConnections *connections) {
        KubeConnections *next;

        if (kube_connections_are_held(connections))
                return;
        connections->is_held = true;
        if (connections->has_goaway && connections->client &&
            connections == connections->client->connections)
                kube_client_renew_connections(connections->client);
        process_queued_requests(connections);
        if (connections->client)
                kube_client_notify_state(connections->client);
        next = find_newer_connections(connections);
        if (next)
                kube_connections_process_queue(next);
        process_queued_requests(connections);
        connections->is_held = false;
        kube_connections_free_if_drained(connections);
}

void kube_connections_drain(KubeConnections *connections, bool is_client_gone) {
        connections->is_draining = true;
        if (is_client_gone) {
                connections->client = NULL;
                list_foreach(request, connections->requests)
                        request->is_cancelled = true;
        } else
                (void) sd_event_add_time_relative(
                        connections->client->event, &connections->quiet_timer, CLOCK_BOOTTIME,
                        QUIET_SEC * USEC_PER_SEC, USEC_PER_SEC, on_quiet_timer, connections);
        if (!kube_connections_are_held(connections) && is_client_gone)
                while (connections->requests)
                        kube_request_free(connections->requests);
        kube_connections_free_if_drained(connections);
}
