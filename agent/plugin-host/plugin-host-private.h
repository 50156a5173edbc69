/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of mainstay-plugins. Objects are marked in callbacks and swept once per turn. */

#include "agent/plugin-host/plugin-host.h"
#include "agent/plugins/plugin-protocol.h"
#include "common/grpc.h"

typedef struct PluginHost PluginHost;

/* A device plugin that is registering or has registered. */
typedef struct DevicePlugin {
        struct DevicePlugin *next;
        PluginHost *host;
        int64_t id;
        char *resource;
        GrpcConnection *connection; /* NULL: the agent has not connected yet */
        GrpcCall *registration;     /* its Register call, which has not been answered yet; or
                                     * NULL */
        int64_t adopted_by;         /* call of the registrant; 0: it registered itself */
        char *endpoint;
        uint64_t connect_deadline;
        uint64_t retry_at; /* time at which a failed connection is retried; 0: none */
        bool has_preferences, prepares_start;
        bool has_answered;  /* its GetDevicePluginOptions call has returned one message */
        bool is_registered; /* the agent has accepted its registration */
        bool is_dead;       /* freed at the end of the turn */
} DevicePlugin;

/* A plugin that the agent has found in plugins_registry, while it is registering. */
typedef struct Registrant {
        struct Registrant *next;
        PluginHost *host;
        int64_t call; /* the agent's ID for it */
        GrpcConnection *connection;
        PluginMessage answer; /* deadline of the call in progress, if its kind is not 0 */
        bool has_answer;      /* the plugin has returned a valid answer */
        bool is_dead;         /* freed at the end of the turn */
} Registrant;

/* A call of a CSI driver, over its own connection. */
typedef struct CsiCall {
        struct CsiCall *next;
        PluginHost *host;
        GrpcConnection *connection;
        PluginMessage answer; /* sent when the call ends */
        bool is_valid;        /* the driver's answer could be decoded */
        bool is_dead;         /* freed at the end of the turn */
} CsiCall;

/* A client of one of the two servers. */
typedef struct PluginClient {
        struct PluginClient *next;
        GrpcConnection *connection;
} PluginClient;

typedef enum PluginServer {
        SERVER_REGISTRATION,
        SERVER_POD_RESOURCES,
        N_PLUGIN_SERVERS,
} PluginServer;

/* A pod resources request that the agent answers. */
typedef struct PendingList {
        struct PendingList *next;
        int64_t call;
        GrpcCall *request;
} PendingList;

struct PluginHost {
        PluginChannel channel;
        int listeners[N_PLUGIN_SERVERS]; /* -EBADF: not yet */
        PluginClient *clients[N_PLUGIN_SERVERS];
        DevicePlugin *plugins;
        Registrant *registrants;
        CsiCall *csi_calls;
        PendingList *lists;
        int64_t last_id;
        uint64_t now;        /* time of this turn */
        uint64_t idle_since; /* 0: it is not idle */
        uint64_t tokens_at;  /* time at which the tokens of the rate limit were last counted, */
        uint64_t tokens;     /* in microseconds' worth of requests */
        int error;           /* error of the channel */
};

/* Sends a message to the agent; a failure ends the program. */
void plugin_host_send(PluginHost *host, const PluginMessage *message);

/* ---- device plugins ---- */

void registration_on_request(GrpcCall *call, const char *path, const char *message, size_t length,
                             void *userdata);
void registration_on_gone(GrpcCall *call, void *userdata);

/* Handles messages of the agent. */
void device_plugin_connected(PluginHost *host, const PluginMessage *message, int *fd);
void device_plugin_request(PluginHost *host, const PluginMessage *message);

/* Takes the descriptor of a plugin's socket, and calls GetDevicePluginOptions. */
void device_plugin_adopt(PluginHost *host, const PluginMessage *message, int *fd);

/* Drops this plugin, whether it has registered or not. */
void device_plugin_end_adopted(PluginHost *host, int64_t call);

void device_plugin_check_time(DevicePlugin *plugin, uint64_t now);
void device_plugin_die(DevicePlugin *plugin);

/* Refuses the plugin's registration if it is still in progress. */
void device_plugin_refuse(DevicePlugin *plugin, const char *why);

void device_plugin_free(DevicePlugin *plugin);

/* A gRPC error as printed by Go. The caller frees it; NULL: out of memory. */
char *format_rpc_error(GrpcCode code, const char *text);

/* ---- plugins in plugins_registry ---- */

/* Handles messages of the agent. */
void registrant_ask(PluginHost *host, const PluginMessage *message, int *fd);
void registrant_notify(PluginHost *host, const PluginMessage *message);
void registrant_close(PluginHost *host, const PluginMessage *message);

void registrants_process(PluginHost *host);
void registrants_done(PluginHost *host);

/* ---- CSI drivers ---- */

/* Handles a message of the agent. */
void csi_call_start(PluginHost *host, const PluginMessage *message, int *fd);

void csi_calls_process(PluginHost *host);
void csi_calls_done(PluginHost *host);

/* ---- pod resources ---- */

void pod_resources_on_request(GrpcCall *call, const char *path, const char *message, size_t length,
                              void *userdata);
void pod_resources_on_gone(GrpcCall *call, void *userdata);
void pod_resources_listed(PluginHost *host, const PluginMessage *message);
