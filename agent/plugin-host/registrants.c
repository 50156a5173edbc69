/* SPDX-License-Identifier: Apache-2.0 */
/* The client of pluginregistration v1. The agent has found a plugin's socket and decides about the
 * plugin; this file calls the two methods of the plugin. */

#include "agent/plugin-host/plugin-host-private.h"
#include "agent/plugin-host/plugin-info.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"

#include <errno.h>
#include <stdlib.h>

#define SERVICE "/pluginregistration.Registration/"

#define INFO_USEC   (10 * USEC_PER_SEC) /* upstream: 10 s until connected, then 1 s */
#define NOTIFY_USEC (5 * USEC_PER_SEC)

enum {
        REGISTRANTS_MAX = 128
};

static Registrant *find_registrant(const PluginHost *host, int64_t call) {
        list_foreach(registrant, host->registrants)
                if (registrant->call == call && !registrant->is_dead)
                        return registrant;
        return NULL;
}

/* Sends the answer that the agent waits for. */
static void send_answer(Registrant *registrant, GrpcCode code, const char *text) {
        PluginMessage *answer = &registrant->answer;

        if (answer->kind == 0)
                return;
        if (code == GRPC_OK && !registrant->has_answer) {
                code = GRPC_INTERNAL;
                text = "the answer is not valid";
        }
        answer->call = registrant->call;
        if (code != GRPC_OK)
                answer->error = format_rpc_error(code, text);
        plugin_host_send(registrant->host, answer);
        plugin_message_done(answer);
}

static void on_answer_end(GrpcCode code, const char *text, void *userdata) {
        Registrant *registrant = userdata;
        bool is_last = registrant->answer.kind == PLUGIN_NOTIFIED || code != GRPC_OK;

        send_answer(registrant, code, text);
        registrant->is_dead = registrant->is_dead || is_last;
}

static void on_info(const char *data, size_t length, void *userdata) {
        Registrant *registrant = userdata;

        registrant->has_answer = decode_plugin_info(data, length, &registrant->answer) >= 0;
}

static void on_notified(const char *data, size_t length, void *userdata) {
        Registrant *registrant = userdata;

        registrant->has_answer = true;
}

static void call_registrant(Registrant *registrant, PluginMessageKind answer, const char *path,
                            const Buffer *request, uint64_t usec) {
        const GrpcCallHandlers handlers = { answer == PLUGIN_INFO ? on_info : on_notified,
                                            on_answer_end, registrant };
        int r;

        registrant->answer.kind = answer;
        registrant->has_answer = false;
        r = grpc_call_start(registrant->connection, path, strna(request->data), request->length,
                            false, registrant->host->now + usec, &handlers, NULL);
        if (r < 0)
                on_answer_end(GRPC_UNAVAILABLE, strerror(-r), registrant);
}

static size_t count_registrants(const PluginHost *host) {
        size_t n = 0;

        list_foreach(registrant, host->registrants)
                n++;
        return n;
}

static void refuse_registrant(PluginHost *host, const PluginMessage *message, const char *why) {
        plugin_host_send(host, &(PluginMessage){ .kind = PLUGIN_INFO,
                                                 .call = message->call,
                                                 .error = (char *) (uintptr_t) why });
}

void registrant_ask(PluginHost *host, const PluginMessage *message, int *fd) {
        Registrant *registrant;

        if (count_registrants(host) >= REGISTRANTS_MAX || *fd < 0) {
                refuse_registrant(host, message, "too many plugins register at once");
                return;
        }
        registrant = calloc(1, sizeof(*registrant));
        if (!registrant || grpc_client_new(TAKE_FD(*fd), &registrant->connection) < 0) {
                free(registrant);
                refuse_registrant(host, message, "out of memory");
                return;
        }
        registrant->host = host;
        registrant->call = message->call;
        LIST_PREPEND(host->registrants, registrant);
        call_registrant(registrant, PLUGIN_INFO, SERVICE "GetInfo", &(Buffer){ 0 }, INFO_USEC);
}

void registrant_notify(PluginHost *host, const PluginMessage *message) {
        static char closed[] = "the plugin has closed its connection";
        Registrant *registrant = find_registrant(host, message->call);
        cleanup_buffer Buffer request = { 0 };

        if (!registrant || encode_registration_status(message->error, &request) < 0) {
                plugin_host_send(host, &(PluginMessage){ .kind = PLUGIN_NOTIFIED,
                                                         .call = message->call,
                                                         .error = closed });
                return;
        }
        call_registrant(registrant, PLUGIN_NOTIFIED, SERVICE "NotifyRegistrationStatus", &request,
                        NOTIFY_USEC);
}

void registrant_close(PluginHost *host, const PluginMessage *message) {
        Registrant *registrant = find_registrant(host, message->call);

        device_plugin_end_adopted(host, message->call);
        if (registrant) {
                plugin_message_done(&registrant->answer);
                registrant->is_dead = true;
        }
}

static void registrant_free(Registrant *registrant) {
        plugin_message_done(&registrant->answer);
        grpc_connection_free(registrant->connection);
        plugin_message_done(&registrant->answer);
        free(registrant);
}

void registrants_process(PluginHost *host) {
        list_foreach(registrant, host->registrants)
                if (!registrant->is_dead &&
                    grpc_connection_process(registrant->connection, host->now) < 0) {
                        send_answer(registrant, GRPC_UNAVAILABLE, "the connection is gone");
                        registrant->is_dead = true;
                }
        list_foreach_safe(registrant, host->registrants) {
                if (!registrant->is_dead)
                        continue;
                LIST_REMOVE(host->registrants, registrant);
                registrant_free(registrant);
        }
}

void registrants_done(PluginHost *host) {
        list_foreach_safe(registrant, host->registrants) {
                LIST_REMOVE(host->registrants, registrant);
                registrant_free(registrant);
        }
}
