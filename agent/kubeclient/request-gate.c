/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a client: requests that wait for the response to another one. They are in the list of
 * the current generation, but not started. They are sent, or fail, in a separate turn of the loop,
 * because callbacks of requests may start and cancel others, and replace the generation. */

#include "agent/kubeclient/kube-client-private.h"

#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/list.h"
#include "common/text.h"

enum {
        DECIDED_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20, /* same as for connections */
};

bool kube_gate_holds(const KubeRequest *request) {
        const KubeClient *client = request->connections->client;

        return client && client->gate.gate.path && !client->gate.is_open && !request->is_gate;
}

void kube_gate_close(KubeClient *client) {
        client->gate.is_open = client->gate.opens = false;
}

void kube_gate_done(KubeGateState *state) {
        sd_event_source_disable_unref(state->decided);
        free(state->error);
}

/* ---- the answer ---- */

static KubeRequest *find_refused_request(const KubeConnections *connections) {
        list_foreach(request, connections->requests)
                if (request->is_refused && !request->is_cancelled)
                        return request;
        return NULL;
}

static void mark_waiting_requests(const KubeConnections *connections) {
        list_foreach(request, connections->requests)
                request->is_refused = !request->is_started && !request->is_gate;
}

/* A callback may start another request, which is not marked. */
static void refuse_marked_requests(KubeConnections *connections, const KubeResponse *response) {
        KubeRequest *request;

        while ((request = find_refused_request(connections)))
                kube_request_refuse(request, response);
}

/* A callback may free the client. */
static int on_gate_decided(sd_event_source *source, void *userdata) {
        KubeClient *client = userdata;
        KubeConnections *connections = client->connections;
        cleanup_free char *error = TAKE_PTR(client->gate.error);

        if (client->gate.has_failed) {
                mark_waiting_requests(connections);
                client->gate.has_failed = false;
                client->gate.is_open = client->gate.opens;
                connections->is_held = true;
                refuse_marked_requests(
                        connections,
                        &(KubeResponse){ .error = error,
                                         .status = client->gate.status,
                                         .retry_after_usec = client->gate.retry_after_usec,
                                         .body = "" });
                connections->is_held = false;
        }
        kube_connections_process_queue(connections);
        return 0;
}

static const char *explain_gate_failure(const KubeResponse *response, KubeGateVerdict verdict) {
        if (verdict == KUBE_GATE_REJECTS)
                return "the server is another one than before";
        return response->error || response->status >= 400 ? response->error
                                                          : "an unexpected response";
}

static void on_gate_response(const KubeResponse *response, void *userdata) {
        KubeClient *client = userdata;
        KubeGateState *state = &client->gate;
        KubeGateVerdict verdict;
        const char *why;

        state->request = NULL;
        verdict = state->gate.on_response(response, state->gate.userdata);
        state->is_open = verdict == KUBE_GATE_PASSES;
        state->opens = verdict == KUBE_GATE_REJECTS;
        state->has_failed = verdict != KUBE_GATE_PASSES;
        why = explain_gate_failure(response, verdict);
        (void) text_replace(&state->error, state->has_failed ? why : NULL);
        state->status = response->error ? 0 : response->status;
        state->retry_after_usec = response->retry_after_usec;
        (void) sd_event_source_set_enabled(state->decided, SD_EVENT_ONESHOT);
}

/* ---- the question ---- */

int kube_gate_ask(KubeClient *client, Error *reterr) {
        KubeGateState *state = &client->gate;

        if (!state->gate.path || state->is_open || state->request || state->has_failed)
                return 0;
        return kube_request_start(client,
                                  &(KubeRequestSpec){ .method = "GET",
                                                      .path = state->gate.path,
                                                      .on_done = on_gate_response,
                                                      .userdata = client },
                                  /* is_gate= */ true, &state->request, reterr);
}

void kube_gate_ask_again(KubeClient *client) {
        if (!client->gate.request)
                return;
        client->gate.request = kube_request_cancel(client->gate.request);
        (void) kube_gate_ask(client, NULL);
}

int kube_client_set_gate(KubeClient *client, const KubeGate *gate) {
        client->gate.gate = *gate;
        return event_add_disabled_defer(client->event, &client->gate.decided, DECIDED_PRIORITY,
                                        on_gate_decided, client);
}
