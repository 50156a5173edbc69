/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugins/plugin-manager.h"

#include "agent/model/names.h"
#include "agent/plugins/plugin-registry.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/list.h"
#include "common/log.h"
#include "common/text.h"
#include "common/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_FIRST_USEC USEC_PER_SEC
#define RETRY_MAX_USEC   (64 * USEC_PER_SEC)

enum {
        BACKLOG = 64,
        SOCKET_MODE = 0755, /* like the kubelet's with the usual umask */
        PLUGINS_MAX = 128,
};

static const char socket_name[] = "kubelet.sock";

/* The listeners in the order of their names in PLUGIN_LISTENER. */
typedef enum PluginSocket {
        SOCKET_REGISTRATION,
        SOCKET_POD_RESOURCES,
        N_PLUGIN_SOCKETS,
} PluginSocket;

static const struct {
        const char *directory, *name;
} sockets[N_PLUGIN_SOCKETS] = {
        [SOCKET_REGISTRATION] = { "device-plugins", "registration" },
        [SOCKET_POD_RESOURCES] = { "pod-resources", "pod-resources" },
};

/* A device plugin that has registered. */
typedef struct RegisteredPlugin {
        struct RegisteredPlugin *next;
        PluginManager *manager;
        int64_t connection;
        char *resource;
        bool is_adopted; /* through the registry, not through device-plugins/kubelet.sock */
} RegisteredPlugin;

struct PluginManager {
        PluginManagerConfig config;
        int directories[N_PLUGIN_SOCKETS]; /* -EBADF: does not exist */
        int listeners[N_PLUGIN_SOCKETS];
        sd_event_source *listen_sources[N_PLUGIN_SOCKETS]; /* off while the program runs */
        PluginChannel channel;                             /* fd -EBADF: the program does not run */
        sd_event_source *channel_source;
        sd_event_source *exit_source;
        sd_event_source *retry_timer;
        sd_event_source *expiry_timer;
        uint64_t retry_usec; /* delay after the next failure */
        RegisteredPlugin *plugins;
        PluginRegistry *registry;
};

/* ---- sockets ---- */

static int address_in(int dir_fd, const char *name, struct sockaddr_un *ret) {
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        return snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir_fd, name) <
                               (int) sizeof(ret->sun_path)
                       ? 0
                       : -ENAMETOOLONG;
}

static int bind_plugin_socket(int dir_fd) {
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;
        int r = address_in(dir_fd, socket_name, &address);

        if (r < 0)
                return r;
        if (unlinkat(dir_fd, socket_name, 0) < 0 && errno != ENOENT)
                return -errno;
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(fd, BACKLOG) < 0 || fchmodat(dir_fd, socket_name, SOCKET_MODE, 0) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Plugins notice that their socket is gone, and register again. */
static void remove_sockets(int dir_fd) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;

        if (!dir)
                close_fd(copy);
        while (dir && (entry = readdir(dir))) {
                struct stat st;

                if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISSOCK(st.st_mode))
                        (void) unlinkat(dir_fd, entry->d_name, 0);
        }
}

static int on_plugin_client(sd_event_source *source, int fd, uint32_t events, void *userdata);

static int listen_at(PluginManager *manager, PluginSocket which) {
        int fd = bind_plugin_socket(manager->directories[which]);

        if (fd < 0)
                return fd;
        manager->listen_sources[which] =
                sd_event_source_disable_unref(manager->listen_sources[which]);
        close_fd(manager->listeners[which]);
        manager->listeners[which] = fd;
        return sd_event_add_io(manager->config.event, &manager->listen_sources[which], fd, EPOLLIN,
                               on_plugin_client, manager);
}

static int open_socket_directory(PluginManager *manager, PluginSocket which) {
        cleanup_free char *path =
                text_format("%s/%s", manager->config.kubelet_dir, sockets[which].directory);
        int r;

        if (!path)
                return -ENOMEM;
        manager->directories[which] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = manager->directories[which] < 0 ? -errno : 0;
        if (r >= 0 && which == SOCKET_REGISTRATION)
                remove_sockets(manager->directories[which]);
        if (r >= 0)
                r = listen_at(manager, which);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot listen at %s/%s for plugins", path,
                                         socket_name);
        return r == -ENOMEM ? r : 0;
}

/* ---- providers ---- */

static RegisteredPlugin *find_registered(const PluginManager *manager, int64_t connection) {
        list_foreach(plugin, manager->plugins)
                if (plugin->connection == connection)
                        return plugin;
        return NULL;
}

static int send_to_host(PluginManager *manager, const PluginMessage *message, int fd) {
        int r = -ENOTCONN;

        if (manager->channel.fd >= 0)
                r = plugin_channel_send(&manager->channel, message, fd);
        if (r >= 0)
                (void) sd_event_source_set_io_events(
                        manager->channel_source,
                        EPOLLIN | (plugin_channel_has_output(&manager->channel) ? EPOLLOUT : 0));
        return r;
}

static int send_call(const RegisteredPlugin *plugin, PluginMessage *message, Error *reterr) {
        int r;

        message->connection = plugin->connection;
        r = send_to_host(plugin->manager, message, -EBADF);
        return r < 0 ? error_setf(reterr, -r, "cannot reach mainstay-plugins: %s", strerror(-r))
                     : -EINPROGRESS;
}

static char **borrow_ids(char *const *ids) {
        return (char **) (uintptr_t) ids;
}

static int plugin_prefer(void *provider, uint64_t call, const char *resource,
                         char *const *available, char *const *must_include, size_t n,
                         char ***ret_ids, Error *reterr) {
        return send_call(provider,
                         &(PluginMessage){ .kind = PLUGIN_PREFER,
                                           .call = (int64_t) call,
                                           .ids = borrow_ids(available),
                                           .included = borrow_ids(must_include),
                                           .size = (int64_t) n },
                         reterr);
}

static int plugin_allocate(void *provider, uint64_t call, const char *resource, char *const *ids,
                           DeviceEdits *ret, Error *reterr) {
        return send_call(provider,
                         &(PluginMessage){ .kind = PLUGIN_ALLOCATE,
                                           .call = (int64_t) call,
                                           .ids = borrow_ids(ids) },
                         reterr);
}

static int plugin_prepare_start(void *provider, uint64_t call, const char *resource,
                                char *const *ids, Error *reterr) {
        return send_call(provider,
                         &(PluginMessage){ .kind = PLUGIN_PREPARE,
                                           .call = (int64_t) call,
                                           .ids = borrow_ids(ids) },
                         reterr);
}

static const DeviceProviderOps plugin_provider_ops = { plugin_prefer, plugin_allocate,
                                                       plugin_prepare_start };

static void arm_expiry(PluginManager *manager, uint64_t next) {
        uint64_t now = now_boottime_usec();

        if (next != USEC_INFINITY)
                (void) event_timer_arm(manager->expiry_timer, next > now ? next - now : 0);
}

static int on_provider_expiry(sd_event_source *source, uint64_t usec, void *userdata) {
        PluginManager *manager = userdata;

        arm_expiry(manager, device_manager_expire(manager->config.devices, now_boottime_usec()));
        return 0;
}

static void forget_plugin(PluginManager *manager, RegisteredPlugin *plugin) {
        uint64_t now = now_boottime_usec();

        LIST_REMOVE(manager->plugins, plugin);
        log_info("The device plugin of '%s' is gone", plugin->resource);
        device_manager_unregister(manager->config.devices, plugin->resource, plugin, now);
        free(plugin->resource);
        free(plugin);
        arm_expiry(manager, device_manager_expire(manager->config.devices, now));
}

static size_t count_registered(const PluginManager *manager) {
        size_t n = 0;

        list_foreach(plugin, manager->plugins)
                n++;
        return n;
}

static int register_resource(PluginManager *manager, PluginMessage *message) {
        RegisteredPlugin *plugin;
        int r;

        if (!message->name || check_extended_resource(message->name, NULL) < 0 ||
            find_registered(manager, message->connection) ||
            count_registered(manager) >= PLUGINS_MAX)
                return -EBADMSG;
        plugin = calloc(1, sizeof(*plugin));
        if (!plugin)
                return -ENOMEM;
        plugin->manager = manager;
        plugin->connection = message->connection;
        plugin->is_adopted = message->call != 0;
        plugin->resource = strdup(message->name);
        LIST_PREPEND(manager->plugins, plugin);
        r = plugin->resource
                    ? device_manager_register(
                              manager->config.devices, plugin->resource,
                              &(DeviceProvider){ .ops = &plugin_provider_ops,
                                                 .userdata = plugin,
                                                 .has_preferences = message->has_preferences,
                                                 .prepares_start = message->prepares_start })
                    : -ENOMEM;
        if (r >= 0)
                log_info("A device plugin has registered for '%s'", plugin->resource);
        if (r >= 0 && plugin->is_adopted)
                plugin_registry_on_message(manager->registry, message);
        return r;
}

static int take_devices_of(PluginManager *manager, PluginMessage *message) {
        const RegisteredPlugin *plugin = find_registered(manager, message->connection);
        DeviceList devices = message->devices;

        if (!plugin)
                return 0;
        for (size_t i = 0; i < devices.n; i++)
                if (!devices.items[i].id)
                        return -EBADMSG;
        message->devices = (DeviceList){ 0 };
        return device_manager_set_devices_take(manager->config.devices, plugin->resource, plugin,
                                               &devices);
}

static int take_answer(PluginManager *manager, PluginMessage *message) {
        DeviceAnswer answer = { .error = message->error };

        if (device_edits_check(&message->edits, NULL) < 0)
                return -EBADMSG;
        if (message->error)
                utf8_sanitize(message->error);
        answer.ids = TAKE_PTR(message->ids);
        answer.edits = message->edits;
        message->edits = (DeviceEdits){ 0 };
        device_manager_answer_take(manager->config.devices, (uint64_t) message->call, &answer);
        return 0;
}

/* ---- connections for mainstay-plugins ---- */

static int connect_to_plugin(const PluginManager *manager, const char *name) {
        if (!name || !name[0] || strchr(name, '/') || name[0] == '.')
                return -EINVAL;
        return connect_plugin_socket(manager->directories[SOCKET_REGISTRATION], name);
}

static int answer_connect(PluginManager *manager, const PluginMessage *message) {
        cleanup_close int fd = connect_to_plugin(manager, message->name);

        return plugin_channel_send(&manager->channel,
                                   &(PluginMessage){ .kind = PLUGIN_CONNECTED,
                                                     .connection = message->connection,
                                                     .error = fd < 0 ? strerror(-fd) : NULL },
                                   fd);
}

static int answer_list(PluginManager *manager, const PluginMessage *message) {
        cleanup_buffer Buffer body = { 0 };
        cleanup_error Error error = ERROR_NULL;
        PluginMessage answer = { .kind = PLUGIN_LISTED, .call = message->call };
        int r = manager->config.list((PluginListMethod) message->method, strna(message->name),
                                     strna(message->namespace), &body, &error,
                                     manager->config.userdata);

        if (r < 0)
                answer.error = (char *) (uintptr_t) error_message(&error, r);
        else
                answer.body = body;
        return plugin_channel_send(&manager->channel, &answer, -EBADF);
}

static void take_csi_answer(PluginManager *manager, PluginMessage *message) {
        if (message->error)
                utf8_sanitize(message->error);
        if (message->call < CSI_CALL_FIRST)
                plugin_registry_on_message(manager->registry, message);
        else
                csi_manager_answer(manager->config.csi, message->call, message->code,
                                   message->error, &message->csi);
}

/* ---- the channel ---- */

static void close_channel(PluginManager *manager) {
        manager->channel_source = sd_event_source_disable_unref(manager->channel_source);
        plugin_channel_done(&manager->channel);
}

static int handle_message(PluginManager *manager, PluginMessage *message) {
        RegisteredPlugin *plugin;

        switch (message->kind) {
        case PLUGIN_CONNECT:
                return answer_connect(manager, message);
        case PLUGIN_REGISTER:
                return register_resource(manager, message);
        case PLUGIN_DEVICES:
                return take_devices_of(manager, message);
        case PLUGIN_GONE:
                plugin = find_registered(manager, message->connection);
                if (plugin)
                        forget_plugin(manager, plugin);
                return 0;
        case PLUGIN_ANSWER:
                return take_answer(manager, message);
        case PLUGIN_LIST:
                return answer_list(manager, message);
        case PLUGIN_CSI_ANSWER:
                take_csi_answer(manager, message);
                return 0;
        case PLUGIN_INFO:
        case PLUGIN_REFUSED:
        case PLUGIN_NOTIFIED:
                if (message->error)
                        utf8_sanitize(message->error);
                plugin_registry_on_message(manager->registry, message);
                return 0;
        default:
                return -EBADMSG;
        }
}

static void on_host_message(PluginMessage *message, int *fd, void *userdata) {
        PluginManager *manager = userdata;
        int r = handle_message(manager, message);

        if (r < 0) {
                (void) log_warning_errno(r, "Closing the channel to %s", manager->config.program);
                close_channel(manager);
        }
}

static int on_channel_ready(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        PluginManager *manager = userdata;
        int r = plugin_channel_receive(&manager->channel, on_host_message, manager);

        if (r >= 0 && manager->channel.fd >= 0)
                r = plugin_channel_flush(&manager->channel);
        if (manager->channel.fd < 0)
                return 0;
        if (r < 0)
                close_channel(manager);
        else
                (void) sd_event_source_set_io_events(
                        source, EPOLLIN | (plugin_channel_has_output(&manager->channel)
                                                   ? (uint32_t) EPOLLOUT
                                                   : 0));
        return 0;
}

/* ---- the process ---- */

static void set_listening(PluginManager *manager, int enabled) {
        for (PluginSocket which = 0; which < N_PLUGIN_SOCKETS; which++)
                if (manager->listen_sources[which])
                        (void) sd_event_source_set_enabled(manager->listen_sources[which], enabled);
}

static void retry_host_later(PluginManager *manager) {
        (void) event_timer_arm(manager->retry_timer, manager->retry_usec);
        manager->retry_usec = MIN(2 * manager->retry_usec, RETRY_MAX_USEC);
}

/* Registered plugins notice a new socket, and register again. */
static void forget_host(PluginManager *manager) {
        bool had_plugins = false;

        list_foreach(plugin, manager->plugins)
                had_plugins = had_plugins || !plugin->is_adopted;
        close_channel(manager);
        while (manager->plugins)
                forget_plugin(manager, manager->plugins);
        if (had_plugins && listen_at(manager, SOCKET_REGISTRATION) < 0)
                log_warning("Cannot make a new socket for device plugins; they register when the "
                            "agent starts again");
}

static int on_host_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        set_listening(userdata, SD_EVENT_ON);
        return 0;
}

static int on_host_exit(sd_event_source *source, const siginfo_t *si, void *userdata) {
        PluginManager *manager = userdata;
        bool has_succeeded = si->si_code == CLD_EXITED && si->si_status == 0;
        bool was_idle = has_succeeded && !manager->plugins;

        manager->exit_source = sd_event_source_disable_unref(manager->exit_source);
        forget_host(manager);
        plugin_registry_on_host_gone(manager->registry, was_idle);
        csi_manager_on_calls_lost(manager->config.csi, !was_idle);
        if (has_succeeded) {
                manager->retry_usec = RETRY_FIRST_USEC;
                set_listening(manager, SD_EVENT_ON);
                return 0;
        }
        log_warning("'%s' %s %d", manager->config.program,
                    si->si_code == CLD_EXITED ? "exited with status" : "was killed by signal",
                    si->si_status);
        set_listening(manager, SD_EVENT_OFF);
        retry_host_later(manager);
        return 0;
}

static int send_listeners(PluginManager *manager) {
        int r = 0;

        for (PluginSocket which = 0; which < N_PLUGIN_SOCKETS && r >= 0; which++)
                if (manager->listeners[which] >= 0)
                        r = plugin_channel_send(
                                &manager->channel,
                                &(PluginMessage){
                                        .kind = PLUGIN_LISTENER,
                                        .name = (char *) (uintptr_t) sockets[which].name },
                                manager->listeners[which]);
        return r;
}

static int start_host(PluginManager *manager) {
        char *const argv[] = { manager->config.program, NULL };
        cleanup_close int child_fd = -EBADF;
        int fds[2];
        pid_t pid;
        int r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        plugin_channel_init(&manager->channel, fds[0]);
        child_fd = fds[1];
        r = child_spawn_detached(argv, child_fd, -EBADF, &pid);
        if (r >= 0)
                r = sd_event_add_child(manager->config.event, &manager->exit_source, pid, WEXITED,
                                       on_host_exit, manager);
        if (r >= 0)
                r = child_source_rearm(manager->exit_source);
        if (r >= 0)
                r = sd_event_add_io(manager->config.event, &manager->channel_source,
                                    manager->channel.fd, EPOLLIN, on_channel_ready, manager);
        return r < 0 ? r : send_listeners(manager);
}

/* 0; or -errno, in which case it is tried again later. */
static int ensure_host(PluginManager *manager) {
        int r = 0;

        set_listening(manager, SD_EVENT_OFF);
        if (!manager->exit_source)
                r = start_host(manager);
        if (r >= 0)
                return 0;
        (void) log_warning_errno(r, "Cannot start %s", manager->config.program);
        close_channel(manager);
        if (!manager->exit_source)
                retry_host_later(manager);
        return r;
}

static int on_plugin_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        (void) ensure_host(userdata);
        return 0;
}

static bool waits_for_retry(const PluginManager *manager) {
        int enabled = SD_EVENT_OFF;

        return sd_event_source_get_enabled(manager->retry_timer, &enabled) >= 0 &&
               enabled != SD_EVENT_OFF;
}

static int send_for_registry(const PluginMessage *message, int fd, void *userdata) {
        PluginManager *manager = userdata;
        int r = 0;

        if ((message->kind == PLUGIN_ASK_INFO || message->kind == PLUGIN_CALL_CSI) &&
            !manager->exit_source)
                r = waits_for_retry(manager) ? -EAGAIN : ensure_host(manager);
        return r < 0 ? r : send_to_host(manager, message, fd);
}

static int call_csi_driver(const CsiCallSpec *call, void *userdata) {
        PluginManager *manager = userdata;
        cleanup_close int fd = plugin_registry_connect(manager->registry, call->endpoint);

        return fd < 0 ? fd
                      : send_for_registry(
                                &(PluginMessage){ .kind = PLUGIN_CALL_CSI,
                                                  .call = call->call,
                                                  .name = (char *) (uintptr_t) call->method,
                                                  .body = *call->request,
                                                  .size = (int64_t) call->usec },
                                fd, manager);
}

/* ---- the manager ---- */

int plugin_manager_new(const PluginManagerConfig *config, PluginManager **ret) {
        PluginManager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->config = *config;
        manager->channel.fd = -EBADF;
        manager->retry_usec = RETRY_FIRST_USEC;
        for (PluginSocket which = 0; which < N_PLUGIN_SOCKETS; which++)
                manager->directories[which] = manager->listeners[which] = -EBADF;
        r = event_add_disabled_timer(config->event, &manager->retry_timer, CLOCK_BOOTTIME, 0,
                                     on_host_retry, manager);
        if (r >= 0)
                r = event_add_disabled_timer(config->event, &manager->expiry_timer, CLOCK_BOOTTIME,
                                             USEC_PER_SEC, on_provider_expiry, manager);
        for (PluginSocket which = 0; which < N_PLUGIN_SOCKETS && r >= 0; which++)
                r = open_socket_directory(manager, which);
        if (r >= 0)
                r = plugin_registry_new(&(PluginRegistryConfig){ .event = config->event,
                                                                 .kubelet_dir = config->kubelet_dir,
                                                                 .csi = config->csi,
                                                                 .send = send_for_registry,
                                                                 .userdata = manager },
                                        &manager->registry);
        if (r < 0) {
                plugin_manager_free(manager);
                return r;
        }
        csi_manager_set_caller(config->csi, call_csi_driver, manager);
        *ret = manager;
        return 0;
}

PluginManager *plugin_manager_free(PluginManager *manager) {
        if (!manager)
                return NULL;
        csi_manager_set_caller(manager->config.csi, NULL, NULL);
        plugin_registry_free(manager->registry);
        close_channel(manager);
        while (manager->plugins) {
                RegisteredPlugin *plugin = manager->plugins;

                LIST_REMOVE(manager->plugins, plugin);
                device_manager_unregister(manager->config.devices, plugin->resource, plugin,
                                          now_boottime_usec());
                free(plugin->resource);
                free(plugin);
        }
        for (PluginSocket which = 0; which < N_PLUGIN_SOCKETS; which++) {
                sd_event_source_disable_unref(manager->listen_sources[which]);
                close_fd(manager->listeners[which]);
                close_fd(manager->directories[which]);
        }
        sd_event_source_disable_unref(manager->exit_source);
        sd_event_source_disable_unref(manager->retry_timer);
        sd_event_source_disable_unref(manager->expiry_timer);
        free(manager);
        return NULL;
}
