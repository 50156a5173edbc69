/* SPDX-License-Identifier: Apache-2.0 */
/* The server of Registration and the client of DevicePlugin, v1beta1. Register is answered when the
 * plugin has been connected and has returned its options. */

#include "agent/plugin-host/device-plugin-messages.h"
#include "agent/plugin-host/plugin-host-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

#define DEVICE_PLUGIN_VERSION "v1beta1"
#define SERVICE               "/v1beta1.DevicePlugin/"

#define CONNECT_USEC       (10 * USEC_PER_SEC)
#define CONNECT_RETRY_USEC (250 * USEC_PER_MSEC)
#define OPTIONS_USEC       (10 * USEC_PER_SEC)
#define PREFER_USEC        (10 * USEC_PER_SEC)
#define ALLOCATE_USEC      (60 * USEC_PER_SEC) /* upstream has no timeout, and waits forever */
#define PREPARE_USEC       (30 * USEC_PER_SEC)

enum {
        PLUGINS_MAX = 128,
        NAME_MAX_LENGTH = 255,
};

char *format_rpc_error(GrpcCode code, const char *text) {
        return text_format("rpc error: code = %s desc = %s", grpc_code_name(code), text);
}

/* ---- the end of a plugin ---- */

void device_plugin_die(DevicePlugin *plugin) {
        if (plugin->is_dead)
                return;
        plugin->is_dead = true;
        if (plugin->is_registered)
                plugin_host_send(plugin->host,
                                 &(PluginMessage){ .kind = PLUGIN_GONE, .connection = plugin->id });
}

void device_plugin_free(DevicePlugin *plugin) {
        grpc_connection_free(plugin->connection);
        free(plugin->resource);
        free(plugin->endpoint);
        free(plugin);
}

void device_plugin_refuse(DevicePlugin *plugin, const char *why) {
        if (plugin->registration)
                grpc_call_fail(plugin->registration, GRPC_UNKNOWN, "%s", why);
        if (plugin->adopted_by && !plugin->is_registered)
                plugin_host_send(plugin->host,
                                 &(PluginMessage){ .kind = PLUGIN_REFUSED,
                                                   .call = plugin->adopted_by,
                                                   .error = (char *) (uintptr_t) why });
        plugin->registration = NULL;
        plugin->adopted_by = 0;
}

static void fail_registration(DevicePlugin *plugin, const char *what, const char *why) {
        cleanup_free char *text = text_format("%s: %s", what, why);

        device_plugin_refuse(plugin, text ? text : what);
        device_plugin_die(plugin);
}

static void ask_connection(DevicePlugin *plugin) {
        plugin->retry_at = 0;
        plugin_host_send(plugin->host, &(PluginMessage){ .kind = PLUGIN_CONNECT,
                                                         .connection = plugin->id,
                                                         .name = plugin->endpoint });
}

void device_plugin_check_time(DevicePlugin *plugin, uint64_t now) {
        if (plugin->is_dead || plugin->connection)
                return;
        if (now >= plugin->connect_deadline)
                fail_registration(plugin, "failed to dial device plugin",
                                  "context deadline exceeded");
        else if (plugin->retry_at > 0 && now >= plugin->retry_at)
                ask_connection(plugin);
}

/* ---- ListAndWatch ---- */

static void on_devices(const char *data, size_t length, void *userdata) {
        DevicePlugin *plugin = userdata;
        PluginMessage message = { .kind = PLUGIN_DEVICES, .connection = plugin->id };

        if (plugin->is_dead)
                return;
        if (decode_device_list(data, length, &message.devices, NULL) < 0) {
                device_plugin_die(plugin);
                return;
        }
        plugin_host_send(plugin->host, &message);
        plugin_message_done(&message);
}

static void on_devices_end(GrpcCode code, const char *text, void *userdata) {
        device_plugin_die(userdata);
}

static int watch_devices(DevicePlugin *plugin) {
        const GrpcCallHandlers handlers = { on_devices, on_devices_end, plugin };

        return grpc_call_start(plugin->connection, SERVICE "ListAndWatch", "", 0, true, UINT64_MAX,
                               &handlers, NULL);
}

/* ---- GetDevicePluginOptions ---- */

static void on_options(const char *data, size_t length, void *userdata) {
        DevicePlugin *plugin = userdata;
        DevicePluginOptions options = { 0 };

        plugin->has_answered =
                protobuf_decode(&device_plugin_options_table, data, length, &options, NULL) >= 0;
        plugin->has_preferences = options.has_preferred_allocation;
        plugin->prepares_start = options.pre_start_required;
}

static void on_options_end(GrpcCode code, const char *text, void *userdata) {
        DevicePlugin *plugin = userdata;
        bool is_valid = code != GRPC_OK || plugin->has_answered;
        cleanup_free char *error = format_rpc_error(is_valid ? code : GRPC_INTERNAL,
                                                    is_valid ? text : "the answer is not valid");

        if (plugin->is_dead)
                return;
        if (code != GRPC_OK || !plugin->has_answered) {
                fail_registration(plugin, "failed to get device plugin options", strna(error));
                return;
        }
        plugin->is_registered = true;
        plugin_host_send(plugin->host, &(PluginMessage){
                                               .kind = PLUGIN_REGISTER,
                                               .connection = plugin->id,
                                               .call = plugin->adopted_by,
                                               .name = plugin->resource,
                                               .has_preferences = plugin->has_preferences,
                                               .prepares_start = plugin->prepares_start,
                                       });
        if (plugin->registration)
                grpc_call_reply(plugin->registration, "", 0);
        plugin->registration = NULL;
        if (watch_devices(plugin) < 0)
                device_plugin_die(plugin);
}

static DevicePlugin *find_plugin(const PluginHost *host, int64_t id) {
        list_foreach(plugin, host->plugins)
                if (plugin->id == id && !plugin->is_dead)
                        return plugin;
        return NULL;
}

static void ask_options(DevicePlugin *plugin, int *fd) {
        const GrpcCallHandlers handlers = { on_options, on_options_end, plugin };

        if (grpc_client_new(TAKE_FD(*fd), &plugin->connection) < 0 ||
            grpc_call_start(plugin->connection, SERVICE "GetDevicePluginOptions", "", 0, false,
                            plugin->host->now + OPTIONS_USEC, &handlers, NULL) < 0)
                fail_registration(plugin, "failed to dial device plugin", "out of memory");
}

void device_plugin_connected(PluginHost *host, const PluginMessage *message, int *fd) {
        DevicePlugin *plugin = find_plugin(host, message->connection);

        if (!plugin || plugin->connection)
                return;
        /* The plugin may start to listen a little later, because some plugins register first. */
        if (message->error || *fd < 0) {
                plugin->retry_at = host->now + CONNECT_RETRY_USEC;
                if (plugin->retry_at >= plugin->connect_deadline)
                        fail_registration(plugin, "failed to dial device plugin",
                                          message->error ? message->error : "no connection");
                return;
        }
        ask_options(plugin, fd);
}

/* ---- Register ---- */

static size_t count_plugins(const PluginHost *host) {
        size_t n = 0;

        list_foreach(plugin, host->plugins)
                n++;
        return n;
}

static bool is_endpoint(const char *name) {
        return name && name[0] && name[0] != '.' && strlen(name) <= NAME_MAX_LENGTH &&
               !strchr(name, '/');
}

/* NULL: out of memory. */
static DevicePlugin *add_plugin(PluginHost *host) {
        DevicePlugin *plugin = calloc(1, sizeof(*plugin));

        if (!plugin)
                return NULL;
        plugin->host = host;
        plugin->id = ++host->last_id;
        LIST_PREPEND(host->plugins, plugin);
        return plugin;
}

static void register_plugin(PluginHost *host, GrpcCall *call, RegisterRequest *request) {
        DevicePlugin *plugin = add_plugin(host);

        if (!plugin) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        plugin->resource = TAKE_PTR(request->resource_name);
        plugin->registration = call;
        plugin->connect_deadline = host->now + CONNECT_USEC;
        grpc_call_set_userdata(call, plugin);
        plugin->endpoint = TAKE_PTR(request->endpoint);
        ask_connection(plugin);
}

static void check_registration(PluginHost *host, GrpcCall *call, RegisterRequest *request) {
        const char *resource = strna(request->resource_name);

        if (!streq_ptr(request->version, DEVICE_PLUGIN_VERSION))
                grpc_call_fail(
                        call, GRPC_UNKNOWN,
                        "requested API version \"%s\" is not supported by kubelet. Supported "
                        "version is [\"" DEVICE_PLUGIN_VERSION "\"]",
                        strna(request->version));
        else if (!is_extended_resource_name(resource))
                grpc_call_fail(call, GRPC_UNKNOWN, "the ResourceName \"%s\" is invalid", resource);
        else if (!is_endpoint(request->endpoint))
                grpc_call_fail(call, GRPC_UNKNOWN,
                               "failed to dial device plugin: \"%s\" is not the name of a socket",
                               strna(request->endpoint));
        else if (count_plugins(host) >= PLUGINS_MAX)
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "there are %d device plugins already",
                               PLUGINS_MAX);
        else
                register_plugin(host, call, request);
}

void registration_on_request(GrpcCall *call, const char *path, const char *message, size_t length,
                             void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        RegisterRequest request = { 0 };
        int r;

        if (!streq(path, "/v1beta1.Registration/Register")) {
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, "unknown method %s", path);
                return;
        }
        r = protobuf_decode(&register_request_table, message, length, &request, &error);
        if (r < 0)
                grpc_call_fail(call, GRPC_INTERNAL, "%s", error_message(&error, r));
        else
                check_registration(userdata, call, &request);
        protobuf_done(&register_request_table, &request);
}

/* Either the plugin itself is gone, or only its request. */
void registration_on_gone(GrpcCall *call, void *userdata) {
        DevicePlugin *plugin = grpc_call_userdata(call);

        if (!plugin)
                return;
        plugin->registration = NULL;
        if (!plugin->is_registered)
                device_plugin_die(plugin);
}

/* ---- a plugin of plugins_registry ---- */

static void refuse_adoption(PluginHost *host, int64_t call, const char *why) {
        plugin_host_send(host, &(PluginMessage){ .kind = PLUGIN_REFUSED,
                                                 .call = call,
                                                 .error = (char *) (uintptr_t) why });
}

void device_plugin_adopt(PluginHost *host, const PluginMessage *message, int *fd) {
        DevicePlugin *plugin;

        if (count_plugins(host) >= PLUGINS_MAX) {
                refuse_adoption(host, message->call, "there are too many device plugins");
                return;
        }
        plugin = add_plugin(host);
        if (!plugin) {
                refuse_adoption(host, message->call, "out of memory");
                return;
        }
        plugin->adopted_by = message->call;
        plugin->resource = strdup(strna(message->name));
        if (plugin->resource && *fd >= 0)
                ask_options(plugin, fd);
        else
                fail_registration(plugin, "failed to dial device plugin", "no connection");
}

void device_plugin_end_adopted(PluginHost *host, int64_t call) {
        list_foreach(plugin, host->plugins)
                if (plugin->adopted_by == call)
                        device_plugin_die(plugin);
}

/* ---- calls of the agent ---- */

/* A call whose answer the agent waits for. */
typedef struct PluginCall {
        PluginHost *host;
        int64_t call;
        PluginMessageKind kind;
        PluginMessage answer;
        Error error; /* why the answer is invalid */
        int result;
} PluginCall;

static void on_plugin_answer(const char *data, size_t length, void *userdata) {
        PluginCall *call = userdata;

        if (call->kind == PLUGIN_PREFER)
                call->result =
                        decode_preferred_answer(data, length, &call->answer.ids, &call->error);
        else if (call->kind == PLUGIN_ALLOCATE)
                call->result =
                        decode_allocate_answer(data, length, &call->answer.edits, &call->error);
}

static void on_plugin_answer_end(GrpcCode code, const char *text, void *userdata) {
        PluginCall *call = userdata;

        call->answer.kind = PLUGIN_ANSWER;
        call->answer.call = call->call;
        if (code != GRPC_OK)
                call->answer.error = format_rpc_error(code, text);
        else if (call->result < 0)
                call->answer.error = strdup(error_message(&call->error, call->result));
        plugin_host_send(call->host, &call->answer);
        plugin_message_done(&call->answer);
        error_done(&call->error);
        free(call);
}

static int encode_plugin_request(const PluginMessage *message, Buffer *ret) {
        switch (message->kind) {
        case PLUGIN_PREFER:
                return encode_preferred_request(message->ids, message->included, message->size,
                                                ret);
        case PLUGIN_ALLOCATE:
                return encode_allocate_request(message->ids, ret);
        default:
                return encode_prepare_request(message->ids, ret);
        }
}

static int start_plugin_call(DevicePlugin *plugin, const PluginMessage *message,
                             const GrpcCallHandlers *handlers) {
        static const struct {
                const char *path;
                uint64_t usec;
        } methods[N_PLUGIN_MESSAGE_KINDS] = {
                [PLUGIN_PREFER] = { SERVICE "GetPreferredAllocation", PREFER_USEC },
                [PLUGIN_ALLOCATE] = { SERVICE "Allocate", ALLOCATE_USEC },
                [PLUGIN_PREPARE] = { SERVICE "PreStartContainer", PREPARE_USEC },
        };
        cleanup_buffer Buffer request = { 0 };
        int r = encode_plugin_request(message, &request);

        return r < 0 ? r
                     : grpc_call_start(plugin->connection, methods[message->kind].path,
                                       strna(request.data), request.length, false,
                                       plugin->host->now + methods[message->kind].usec, handlers,
                                       NULL);
}

void device_plugin_request(PluginHost *host, const PluginMessage *message) {
        DevicePlugin *plugin = find_plugin(host, message->connection);
        PluginCall *call = calloc(1, sizeof(*call));
        const GrpcCallHandlers handlers = { on_plugin_answer, on_plugin_answer_end, call };

        if (!call) {
                host->error = -ENOMEM;
                return;
        }
        call->host = host;
        call->call = message->call;
        call->kind = (PluginMessageKind) message->kind;
        if (!plugin || !plugin->connection)
                on_plugin_answer_end(GRPC_UNAVAILABLE, "the device plugin is gone", call);
        else if (start_plugin_call(plugin, message, &handlers) < 0)
                on_plugin_answer_end(GRPC_RESOURCE_EXHAUSTED, "out of memory", call);
}
