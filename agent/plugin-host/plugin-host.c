/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: the channel to the agent, two listeners, their clients, and the plugins. */

#include "agent/plugin-host/plugin-host-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/list.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The program exits when it has had no plugins or clients for this long. */
#define IDLE_USEC (5 * USEC_PER_SEC)

enum {
        CLIENTS_MAX = 64, /* maximum number of a server's clients */
        POLL_MAX = 1024,  /* more than the limits of all kinds of connections together */
};

void plugin_host_send(PluginHost *host, const PluginMessage *message) {
        int r;

        DIE_AT("plugins.telling");
        r = plugin_channel_send(&host->channel, message, -1);
        if (r < 0 && host->error == 0)
                host->error = r;
}

static void on_agent_message(PluginMessage *message, int *fd, void *userdata) {
        PluginHost *host = userdata;

        DIE_AT("plugins.told");
        switch (message->kind) {
        case PLUGIN_LISTENER:
                if (streq_ptr(message->name, "registration"))
                        host->listeners[SERVER_REGISTRATION] = TAKE_FD(*fd);
                else
                        host->listeners[SERVER_POD_RESOURCES] = TAKE_FD(*fd);
                break;
        case PLUGIN_CONNECTED:
                device_plugin_connected(host, message, fd);
                break;
        case PLUGIN_PREFER:
        case PLUGIN_ALLOCATE:
        case PLUGIN_PREPARE:
                device_plugin_request(host, message);
                break;
        case PLUGIN_LISTED:
                pod_resources_listed(host, message);
                break;
        case PLUGIN_ASK_INFO:
                registrant_ask(host, message, fd);
                break;
        case PLUGIN_ADOPT:
                device_plugin_adopt(host, message, fd);
                break;
        case PLUGIN_NOTIFY:
                registrant_notify(host, message);
                break;
        case PLUGIN_CLOSE:
                registrant_close(host, message);
                break;
        case PLUGIN_CALL_CSI:
                csi_call_start(host, message, fd);
                break;
        default:
                break;
        }
}

/* ---- clients ---- */

static size_t count_clients(const PluginHost *host, PluginServer server) {
        size_t n = 0;

        list_foreach(client, host->clients[server])
                n++;
        return n;
}

static void accept_client(PluginHost *host, PluginServer server) {
        GrpcServerHandlers handlers = { registration_on_request, registration_on_gone, host };
        int fd = accept4(host->listeners[server], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        PluginClient *client = fd < 0 ? NULL : calloc(1, sizeof(*client));

        if (server == SERVER_POD_RESOURCES) {
                handlers.on_request = pod_resources_on_request;
                handlers.on_gone = pod_resources_on_gone;
        }
        if (!client) {
                close_fd(fd);
                return;
        }
        DIE_AT("plugins.accepted");
        if (grpc_server_new(fd, &handlers, &client->connection) < 0)
                free(client);
        else
                LIST_PREPEND(host->clients[server], client);
}

static void process_clients(PluginHost *host, PluginServer server) {
        list_foreach_safe(client, host->clients[server]) {
                if (grpc_connection_process(client->connection, host->now) >= 0)
                        continue;
                LIST_REMOVE(host->clients[server], client);
                grpc_connection_free(client->connection);
                free(client);
        }
}

static void process_plugins(PluginHost *host) {
        list_foreach(plugin, host->plugins) {
                device_plugin_check_time(plugin, host->now);
                if (!plugin->is_dead && plugin->connection &&
                    grpc_connection_process(plugin->connection, host->now) < 0)
                        device_plugin_die(plugin);
        }
        list_foreach_safe(plugin, host->plugins) {
                if (!plugin->is_dead)
                        continue;
                device_plugin_refuse(plugin,
                                     "failed to get device plugin options: rpc error: code = "
                                     "Unavailable desc = the connection is gone");
                LIST_REMOVE(host->plugins, plugin);
                device_plugin_free(plugin);
        }
}

/* ---- the loop ---- */

typedef struct PollSet {
        struct pollfd items[POLL_MAX];
        size_t n;
        uint64_t deadline;
} PollSet;

static void poll_fd(PollSet *set, int fd, short events) {
        if (set->n < POLL_MAX)
                set->items[set->n++] = (struct pollfd){ .fd = fd, .events = events };
}

static void poll_connection(PollSet *set, const GrpcConnection *connection) {
        poll_fd(set, grpc_connection_fd(connection), grpc_connection_events(connection));
        set->deadline = MIN(set->deadline, grpc_connection_deadline(connection));
}

/* The channel and the listeners are first, in this order. */
static void collect_fds(const PluginHost *host, PollSet *set) {
        set->n = 0;
        set->deadline = host->idle_since > 0 ? host->idle_since + IDLE_USEC : UINT64_MAX;
        poll_fd(set, host->channel.fd,
                (short) (POLLIN | (plugin_channel_has_output(&host->channel) ? POLLOUT : 0)));
        for (PluginServer server = 0; server < N_PLUGIN_SERVERS; server++)
                poll_fd(set,
                        count_clients(host, server) < CLIENTS_MAX ? host->listeners[server]
                                                                  : -EBADF,
                        POLLIN);
        for (PluginServer server = 0; server < N_PLUGIN_SERVERS; server++)
                list_foreach(client, host->clients[server])
                        poll_connection(set, client->connection);
        list_foreach(registrant, host->registrants)
                poll_connection(set, registrant->connection);
        list_foreach(call, host->csi_calls)
                poll_connection(set, call->connection);
        list_foreach(plugin, host->plugins) {
                if (plugin->connection)
                        poll_connection(set, plugin->connection);
                else
                        set->deadline =
                                MIN(set->deadline, plugin->retry_at > 0 ? plugin->retry_at
                                                                        : plugin->connect_deadline);
        }
}

static int wait_for_events(PollSet *set) {
        uint64_t now = now_boottime_usec(), left = 0;
        int timeout = -1;

        if (set->deadline != UINT64_MAX) {
                left = set->deadline > now ? set->deadline - now : 0;
                timeout = (int) MIN(left / USEC_PER_MSEC + (left > 0), (uint64_t) 3600 * 1000);
        }
        return poll(set->items, set->n, timeout) < 0 && errno != EINTR ? -errno : 0;
}

static int process_channel(PluginHost *host, short events) {
        int r = 0;

        if (events & (POLLIN | POLLHUP | POLLERR))
                r = plugin_channel_receive(&host->channel, on_agent_message, host);
        if (r >= 0)
                r = plugin_channel_flush(&host->channel);
        return r;
}

/* Whether the program has been idle for long enough. */
static bool is_idle(PluginHost *host) {
        if (host->plugins || host->registrants || host->csi_calls ||
            host->clients[SERVER_REGISTRATION] || host->clients[SERVER_POD_RESOURCES] ||
            plugin_channel_has_output(&host->channel)) {
                host->idle_since = 0;
                return false;
        }
        if (host->idle_since == 0)
                host->idle_since = host->now;
        return host->now >= host->idle_since + IDLE_USEC;
}

static int run_turn(PluginHost *host, PollSet *set) {
        int r;

        collect_fds(host, set);
        r = wait_for_events(set);
        if (r < 0)
                return r;
        host->now = now_boottime_usec();
        r = process_channel(host, set->items[0].revents);
        if (r < 0)
                return r;
        for (PluginServer server = 0; server < N_PLUGIN_SERVERS; server++) {
                if (set->items[1 + server].revents)
                        accept_client(host, server);
                process_clients(host, server);
        }
        process_plugins(host);
        registrants_process(host);
        csi_calls_process(host);
        return host->error;
}

static void host_done(PluginHost *host) {
        for (PluginServer server = 0; server < N_PLUGIN_SERVERS; server++) {
                list_foreach_safe(client, host->clients[server]) {
                        LIST_REMOVE(host->clients[server], client);
                        grpc_connection_free(client->connection);
                        free(client);
                }
                close_fd(host->listeners[server]);
        }
        list_foreach_safe(plugin, host->plugins) {
                plugin->is_dead = true;
                device_plugin_free(plugin);
        }
        registrants_done(host);
        csi_calls_done(host);
        list_foreach_safe(list, host->lists)
                free(list);
        plugin_channel_done(&host->channel);
}

int plugin_host_run(int channel_fd) {
        PluginHost host = { .listeners = { -EBADF, -EBADF } };
        PollSet *set = calloc(1, sizeof(*set));
        int r = set ? 0 : -ENOMEM;

        plugin_channel_init(&host.channel, channel_fd);
        host.now = now_boottime_usec();
        host.idle_since = host.now;
        host.tokens_at = 0;
        while (r >= 0 && !is_idle(&host))
                r = run_turn(&host, set);
        host_done(&host);
        free(set);
        /* The agent has exited, or restarts this process. */
        return r == -ECONNRESET || r == -EPIPE ? 0 : r;
}
