/* SPDX-License-Identifier: Apache-2.0 */
/* The server of PodResourcesLister, v1, and of the List of v1alpha1: checks requests and their
 * rate; the agent answers them. */

#include "agent/plugin-host/device-plugin-messages.h"
#include "agent/plugin-host/plugin-host-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"

#include <errno.h>
#include <stdlib.h>

/* The kubelet's limit: 100 requests a second, 10 at once. */
#define REQUEST_USEC (USEC_PER_SEC / 100)
#define BURST        10

static bool takes_token(PluginHost *host) {
        uint64_t now = now_boottime_usec();

        host->tokens = MIN(host->tokens + (now - host->tokens_at), BURST * REQUEST_USEC);
        host->tokens_at = now;
        if (host->tokens < REQUEST_USEC)
                return false;
        host->tokens -= REQUEST_USEC;
        return true;
}

static void ask_agent(PluginHost *host, GrpcCall *call, PluginListMethod method,
                      const GetPodRequest *pod) {
        PendingList *list = calloc(1, sizeof(*list));

        if (!list) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        list->call = ++host->last_id;
        list->request = call;
        LIST_PREPEND(host->lists, list);
        plugin_host_send(host, &(PluginMessage){ .kind = PLUGIN_LIST,
                                                 .call = list->call,
                                                 .method = (int64_t) method,
                                                 .name = pod ? pod->name : NULL,
                                                 .namespace = pod ? pod->namespace : NULL });
}

static void get_pod(PluginHost *host, GrpcCall *call, const char *message, size_t length) {
        cleanup_error Error error = ERROR_NULL;
        GetPodRequest request = { 0 };
        int r = protobuf_decode(&get_pod_request_table, message, length, &request, &error);

        if (r < 0)
                grpc_call_fail(call, GRPC_INTERNAL, "%s", error_message(&error, r));
        else
                ask_agent(host, call, PLUGIN_GET_POD, &request);
        protobuf_done(&get_pod_request_table, &request);
}

void pod_resources_on_request(GrpcCall *call, const char *path, const char *message, size_t length,
                              void *userdata) {
        PluginHost *host = userdata;

        if (!takes_token(host))
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "rejected by rate limit");
        else if (streq(path, "/v1.PodResourcesLister/List") ||
                 streq(path, "/v1alpha1.PodResourcesLister/List"))
                ask_agent(host, call, PLUGIN_LIST_PODS, NULL);
        else if (streq(path, "/v1.PodResourcesLister/GetAllocatableResources"))
                ask_agent(host, call, PLUGIN_LIST_ALLOCATABLE, NULL);
        else if (streq(path, "/v1.PodResourcesLister/Get"))
                get_pod(host, call, message, length);
        else
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, "unknown method %s", path);
}

void pod_resources_on_gone(GrpcCall *call, void *userdata) {
        PluginHost *host = userdata;

        list_foreach_safe(list, host->lists) {
                if (list->request != call)
                        continue;
                LIST_REMOVE(host->lists, list);
                free(list);
        }
}

void pod_resources_listed(PluginHost *host, const PluginMessage *message) {
        list_foreach_safe(list, host->lists) {
                if (list->call != message->call)
                        continue;
                if (message->error)
                        grpc_call_fail(list->request, GRPC_UNKNOWN, "%s", message->error);
                else
                        grpc_call_reply(list->request, strna(message->body.data),
                                        message->body.length);
                LIST_REMOVE(host->lists, list);
                free(list);
        }
}
