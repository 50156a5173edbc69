/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the API server client for `mainstay debug dump`: its connection and the requests that are
 * in flight. Headers and bodies are not printed: they may contain credentials. */

#include "agent/kubeclient/kube-client-private.h"

#include "common/clock.h"
#include "common/dump.h"

#include <inttypes.h>

static void dump_connections(const KubeConnections *connections, const char *state, FILE *out) {
        char age[DUMP_DURATION_SIZE];
        uint64_t now = now_boottime_usec();

        dump_line(out, 1, "connections: %s, %u requests, HTTP/%s", state, connections->n_requests,
                  connections->is_multiplexed ? "2" : "1.1");
        for (const KubeRequest *request = connections->requests; request; request = request->next) {
                KubeRequestName name = kube_request_name(request);

                dump_line(out, 2, "request: %s %s, %s for %s", name.method, name.path,
                          request->is_cancelled   ? "ended"
                          : request->has_response ? "response arrives"
                          : request->is_started   ? "sent"
                                                  : "queued",
                          dump_format_duration(age, now - request->started_at));
                dump_timer(out, 3, "request times out", request->idle_timer);
        }
}

void kube_client_dump(const KubeClient *client, FILE *out) {
        char since[RFC3339_SIZE], due[DUMP_DURATION_SIZE];
        KubeClientState state = kube_client_state(client);

        dump_line(out, 1, "server: %s", client->server);
        dump_line(out, 1, "connection: %s since %s",
                  state.since == 0     ? "not tried yet,"
                  : client->is_reached ? "reached"
                                       : "not reached",
                  state.since == 0 ? "start" : format_rfc3339(since, state.since));
        if (state.last_error)
                dump_line(out, 1, "last error: %s", state.last_error);
        if (state.credentials_error)
                dump_line(out, 1, "credentials error: %s", state.credentials_error);
        if (!client->is_reached && client->next_attempt_at > 0)
                dump_line(out, 1, "next attempt: %s",
                          dump_format_due(due, client->next_attempt_at));
        dump_line(out, 1, "requests: %" PRIu64 " since start", client->n_requests);
        if (state.not_after > 0)
                dump_line(out, 1, "client certificate: expires %s",
                          format_rfc3339(since, state.not_after));
        dump_line(out, 1, "bearer token: %s", client->token ? "present" : "none");
        if (client->connections)
                dump_connections(client->connections, "current", out);
        for (const KubeConnections *old = client->draining; old; old = old->next)
                dump_connections(old, "draining", out);
}
