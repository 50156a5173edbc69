/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client-private.h"

#include "common/cleanup.h"

enum {
        LANE_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20, /* containers come first */
        STREAMS_MAX = 1000,                            /* on one connection; servers say less */
        STREAMS_LEAST = 80,                            /* that a server lets us have on each */
        CONNECTIONS_MORE = 1,                          /* than these make necessary */
};

static void on_done(CURL *easy, CURLcode code, void *userdata) {
        KubeLane *lane = userdata;
        void *request = NULL;

        curl_library(NULL)->easy_getinfo(easy, CURLINFO_PRIVATE, &request);
        if (request && ((KubeRequest *) request)->lane == lane)
                kube_request_finish(request, code);
}

static void on_settle(void *userdata) {
        kube_lane_settle(userdata);
}

int kube_lane_new(KubeClient *client, KubeIdentity *identity, KubeLane **ret, Error *reterr) {
        cleanup_with(kube_lane_freep) KubeLane *lane = calloc(1, sizeof(*lane));
        int r;

        if (!lane)
                return -ENOMEM;
        lane->identity = KUBE_IDENTITY_NULL;
        lane->client = client;
        r = curl_loop_new(&(CurlLoopSpec){ .event = client->event,
                                           .description = "kube",
                                           .priority = LANE_PRIORITY,
                                           .on_done = on_done,
                                           .on_settle = on_settle,
                                           .userdata = lane },
                          &lane->loop, reterr);
        if (r < 0)
                return r;
        curl_loop_set_streams(lane->loop, STREAMS_MAX);
        if (client->address.connect_to) {
                lane->connect_to =
                        curl_library(NULL)->slist_append(NULL, client->address.connect_to);
                if (!lane->connect_to)
                        return -ENOMEM;
        }
        lane->identity = *identity;
        *identity = KUBE_IDENTITY_NULL;
        *ret = TAKE_PTR(lane);
        return 0;
}

KubeLane *kube_lane_free(KubeLane *lane) {
        if (!lane)
                return NULL;
        while (lane->requests)
                kube_request_free(lane->requests);
        if (lane->loop) {
                curl_loop_free(lane->loop);
                curl_library(NULL)->slist_free_all(lane->connect_to);
        }
        kube_identity_done(&lane->identity);
        free(lane);
        return NULL;
}

void kube_lane_heard(KubeLane *lane, CURL *easy) {
        long version = 0;

        curl_library(NULL)->easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        lane->is_multiplexed = version == CURL_HTTP_VERSION_2_0;
}

/* While one more connection is being made, libcurl would make yet another for each request that
 * does not fit on the others. */
int kube_lane_begin(KubeRequest *request) {
        KubeLane *lane = request->lane;
        unsigned max = CONNECTIONS_MORE + lane->n_requests / STREAMS_LEAST;

        curl_loop_set_connections(lane->loop, lane->is_multiplexed ? max : 0);
        return curl_loop_add(lane->loop, request->easy);
}

static void begin(KubeRequest *request) {
        request->is_begun = true;
        if (kube_lane_begin(request) < 0)
                kube_request_finish(request, CURLE_FAILED_INIT);
}

/* One that is to be freed, or that is to begin; the list may be another after each. */
static KubeRequest *find_due(const KubeLane *lane) {
        for (KubeRequest *request = lane->requests; request; request = request->next)
                if (request->is_cancelled || !request->is_begun)
                        return request;
        return NULL;
}

static KubeRequest *find_stream(const KubeLane *lane) {
        for (KubeRequest *request = lane->requests; request; request = request->next)
                if (request->call.on_data && request->is_heard && !request->is_cancelled)
                        return request;
        return NULL;
}

void kube_lane_end_streams(KubeLane *lane) {
        KubeRequest *request;

        while ((request = find_stream(lane))) {
                request->refusal = "nobody answers on its connection any more";
                kube_request_finish(request, CURLE_OPERATION_TIMEDOUT);
        }
}

bool kube_lane_is_held(const KubeLane *lane) {
        return lane->is_held || curl_loop_is_busy(lane->loop);
}

void kube_lane_retire(KubeLane *lane) {
        if (!lane->is_left || lane->requests || kube_lane_is_held(lane))
                return;
        if (lane->client)
                kube_client_forget_lane(lane->client, lane);
        kube_lane_free(lane);
}

/* Where those go on that have not begun: another identity is for those that are made with it. */
static KubeLane *find_successor(const KubeLane *lane) {
        KubeLane *next = lane->client ? lane->client->lane : NULL;

        return lane->is_left && next && streq(lane->identity.hash, next->identity.hash) ? next
                                                                                        : NULL;
}

static void settle_requests(KubeLane *lane) {
        KubeRequest *due;

        while ((due = find_due(lane))) {
                KubeLane *next = find_successor(lane);

                if (due->is_cancelled)
                        kube_request_free(due);
                else if (next)
                        kube_request_move(due, next);
                else
                        begin(due);
        }
}

/* Whoever is told may end the client, and with it all requests. */
void kube_lane_settle(KubeLane *lane) {
        KubeLane *next;

        if (kube_lane_is_held(lane))
                return;
        lane->is_held = true;
        if (lane->is_ending && lane->client && lane == lane->client->lane)
                kube_client_change_lane(lane->client);
        settle_requests(lane);
        if (lane->client)
                kube_client_tell_state(lane->client);
        next = find_successor(lane);
        if (next)
                kube_lane_settle(next);
        settle_requests(lane);
        lane->is_held = false;
        kube_lane_retire(lane);
}

void kube_lane_leave(KubeLane *lane, bool is_client_gone) {
        lane->is_left = true;
        if (is_client_gone) {
                lane->client = NULL;
                for (KubeRequest *request = lane->requests; request; request = request->next)
                        request->is_cancelled = true;
        }
        if (!kube_lane_is_held(lane) && is_client_gone)
                while (lane->requests)
                        kube_request_free(lane->requests);
        kube_lane_retire(lane);
}
