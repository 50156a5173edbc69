/* SPDX-License-Identifier: Apache-2.0 */
/* The client of csi.v1.Node: each call has a separate connection, as in the kubelet, so that a
 * restarted driver is reached immediately. */

#include "agent/plugin-host/csi-answers.h"
#include "agent/plugin-host/plugin-host-private.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

enum {
        CALLS_MAX = 128
};

static void send_csi_answer(CsiCall *call, GrpcCode code, const char *text) {
        PluginMessage *answer = &call->answer;

        if (call->is_dead)
                return;
        call->is_dead = true;
        answer->kind = PLUGIN_CSI_ANSWER;
        answer->code = code;
        if (code != GRPC_OK)
                answer->error = format_rpc_error(code, text);
        plugin_host_send(call->host, answer);
}

static void on_csi_message(const char *data, size_t length, void *userdata) {
        CsiCall *call = userdata;
        const char *method = strna(call->answer.name);
        int r = 0;

        if (streq(method, "NodeGetInfo"))
                r = decode_csi_node_info(data, length, &call->answer.csi);
        else if (streq(method, "NodeGetCapabilities"))
                r = decode_csi_capabilities(data, length, &call->answer.csi);
        else if (streq(method, "NodeGetVolumeStats"))
                r = decode_csi_volume_stats(data, length, &call->answer.csi);
        call->is_valid = r >= 0;
}

static void on_csi_end(GrpcCode code, const char *text, void *userdata) {
        CsiCall *call = userdata;

        if (code == GRPC_OK && !call->is_valid)
                send_csi_answer(call, GRPC_INTERNAL, "the answer is not valid");
        else
                send_csi_answer(call, code, text);
}

static size_t count_csi_calls(const PluginHost *host) {
        size_t n = 0;

        list_foreach(call, host->csi_calls)
                n++;
        return n;
}

static void refuse_csi_call(PluginHost *host, int64_t call, const char *why) {
        CsiCall refused = { .host = host, .answer.call = call };

        send_csi_answer(&refused, GRPC_UNAVAILABLE, why);
        plugin_message_done(&refused.answer);
}

void csi_call_start(PluginHost *host, const PluginMessage *message, int *fd) {
        cleanup_free char *path = text_format("/csi.v1.Node/%s", strna(message->name));
        char *name = strdup(strna(message->name));
        CsiCall *call = calloc(1, sizeof(*call));
        const GrpcCallHandlers handlers = { on_csi_message, on_csi_end, call };

        if (*fd < 0 || count_csi_calls(host) >= CALLS_MAX || !call || !path || !name ||
            grpc_client_new(TAKE_FD(*fd), &call->connection) < 0) {
                free(call);
                free(name);
                refuse_csi_call(host, message->call, "too many calls at once");
                return;
        }
        call->host = host;
        call->answer.call = message->call;
        call->answer.name = name;
        LIST_PREPEND(host->csi_calls, call);
        if (grpc_call_start(call->connection, path, strna(message->body.data), message->body.length,
                            false, host->now + (uint64_t) message->size, &handlers, NULL) < 0)
                send_csi_answer(call, GRPC_UNAVAILABLE, "out of memory");
}

static void csi_call_free(CsiCall *call) {
        call->is_dead = true; /* a closed connection is not an answer */
        grpc_connection_free(call->connection);
        plugin_message_done(&call->answer);
        free(call);
}

void csi_calls_process(PluginHost *host) {
        list_foreach(call, host->csi_calls)
                if (!call->is_dead && grpc_connection_process(call->connection, host->now) < 0)
                        send_csi_answer(call, GRPC_UNAVAILABLE, "the connection is gone");
        list_foreach_safe(call, host->csi_calls) {
                if (!call->is_dead)
                        continue;
                LIST_REMOVE(host->csi_calls, call);
                csi_call_free(call);
        }
}

void csi_calls_done(PluginHost *host) {
        list_foreach_safe(call, host->csi_calls) {
                LIST_REMOVE(host->csi_calls, call);
                csi_call_free(call);
        }
}
