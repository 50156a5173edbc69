/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugins/plugin-registry.h"

#include "agent/model/names.h"
#include "agent/plugins/registry-watch.h"
#include "common/back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"
#include "common/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DIRECTORY      "plugins_registry"
#define DEVICE_VERSION "v1beta1"

#define NODE_INFO_USEC (120 * USEC_PER_SEC)

/* The time within which a device plugin must listen on its endpoint. */
#define CONNECT_USEC (10 * USEC_PER_SEC)

static const BackOffLimits register_back_off = { 500 * USEC_PER_MSEC, 122 * USEC_PER_SEC };

/* A socket appears slightly before its plugin listens. */
static const BackOffLimits connect_back_off = { 50 * USEC_PER_MSEC, 122 * USEC_PER_SEC };

enum {
        SOCKETS_MAX = 128
};

typedef enum RegistryState {
        REGISTRY_WAITING,     /* until 'due' */
        REGISTRY_ASKING,      /* GetInfo */
        REGISTRY_CONNECTING,  /* to the endpoint of a device plugin, again at 'due' */
        REGISTRY_ADOPTING,    /* the options of the device plugin are being requested */
        REGISTRY_ASKING_NODE, /* NodeGetInfo of a CSI driver */
        REGISTRY_NOTIFYING,   /* NotifyRegistrationStatus */
        REGISTRY_REGISTERED,
} RegistryState;

typedef struct RegistrySocket {
        struct RegistrySocket *next;
        PluginRegistry *registry;
        char *path; /* path in the directory */
        SocketIdentity identity;
        RegistryState state;
        int64_t call; /* ID of the call in mainstay-plugins; 0: none */
        char *type, *name, *endpoint;
        char **versions;
        bool is_csi_driver;     /* the driver 'name' is registered through this socket */
        char *failure;          /* the error that is being or was last reported to the plugin; or
                                 * NULL */
        uint64_t due;           /* boot time; USEC_INFINITY: no timer */
        uint64_t delay;         /* back-off delay */
        uint64_t connect_delay; /* back-off delay for its endpoint, … */
        uint64_t connect_until; /* … which must be listening by this time */
} RegistrySocket;

struct PluginRegistry {
        PluginRegistryConfig config;
        int kubelet_fd;
        int dir_fd;
        RegistryWatch *watch;
        RegistrySocket *sockets;
        sd_event_source *timer;
        int64_t last_call;
};

int connect_plugin_socket(int dir_fd, const char *path) {
        cleanup_close int fd = -EBADF, path_fd = -EBADF;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;

        path_fd = open_no_symlinks(dir_fd, path, O_PATH | O_NOFOLLOW, 0);
        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (!S_ISSOCK(st.st_mode))
                return -ENOTSOCK;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", path_fd);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* ---- time ---- */

static void arm_registry(const PluginRegistry *registry) {
        uint64_t now = now_boottime_usec(), due = USEC_INFINITY;

        list_foreach(one, registry->sockets)
                due = MIN(due, one->due);
        if (due != USEC_INFINITY)
                (void) event_timer_arm(registry->timer, due > now ? due - now : 0);
}

static void wait_for(RegistrySocket *one, uint64_t delay) {
        one->due = now_boottime_usec() + delay;
        arm_registry(one->registry);
}

/* ---- one registration ---- */

static void forget_info(RegistrySocket *one) {
        free(one->type);
        free(one->name);
        free(one->endpoint);
        strv_free(one->versions);
        one->type = one->name = one->endpoint = NULL;
        one->versions = NULL;
}

static void deregister_driver(RegistrySocket *one) {
        if (one->is_csi_driver)
                csi_manager_unregister(one->registry->config.csi, one->name);
        one->is_csi_driver = false;
}

static void close_call(RegistrySocket *one) {
        const PluginRegistryConfig *config = &one->registry->config;

        if (one->call)
                (void) config->send(&(PluginMessage){ .kind = PLUGIN_CLOSE, .call = one->call },
                                    -EBADF, config->userdata);
        one->call = 0;
}

static void log_failure(RegistrySocket *one, const char *why) {
        if (!streq_ptr(one->failure, why))
                log_warning("The plugin at %s/" DIRECTORY "/%s is not registered: %s",
                            one->registry->config.kubelet_dir, one->path, why);
        free(one->failure);
        one->failure = strdup(why);
}

static void try_again_later(RegistrySocket *one, const BackOffLimits *limits) {
        close_call(one);
        deregister_driver(one);
        forget_info(one);
        one->state = REGISTRY_WAITING;
        one->delay = back_off_next_delay(one->delay, limits);
        wait_for(one, one->delay);
}

static void fail_socket(RegistrySocket *one, const char *why) {
        log_failure(one, why);
        try_again_later(one, &register_back_off);
}

/* 'failure' is NULL for a registered plugin. */
static void notify_plugin(RegistrySocket *one, const char *failure) {
        const PluginRegistryConfig *config = &one->registry->config;
        PluginMessage message = { .kind = PLUGIN_NOTIFY,
                                  .call = one->call,
                                  .error = (char *) (uintptr_t) failure };
        int r;

        if (failure)
                log_failure(one, failure);
        else {
                free(one->failure);
                one->failure = NULL;
        }
        one->state = REGISTRY_NOTIFYING;
        one->due = USEC_INFINITY;
        r = config->send(&message, -EBADF, config->userdata);
        if (r < 0)
                fail_socket(one, strerror(-r));
}

static void refuse_plugin(RegistrySocket *one, const char *step, const char *why) {
        cleanup_free char *text = text_format("RegisterPlugin error -- %s with err: %s", step, why);

        notify_plugin(one, text ? text : why);
}

static void ask_socket(RegistrySocket *one) {
        PluginRegistry *registry = one->registry;
        cleanup_close int fd = connect_plugin_socket(registry->dir_fd, one->path);
        int r = fd;

        one->due = USEC_INFINITY;
        if (fd < 0) {
                if (fd != -ECONNREFUSED || one->delay >= register_back_off.initial_usec)
                        log_failure(one, strerror(-fd));
                try_again_later(one, &connect_back_off);
                return;
        }
        one->call = ++registry->last_call;
        one->state = REGISTRY_ASKING;
        r = registry->config.send(&(PluginMessage){ .kind = PLUGIN_ASK_INFO, .call = one->call },
                                  fd, registry->config.userdata);
        if (r == -EAGAIN) /* mainstay-plugins has its own back-off */
                try_again_later(one, &register_back_off);
        else if (r < 0)
                fail_socket(one, strerror(-r));
}

/* ---- device plugins ---- */

/* The path of its endpoint below the kubelet's directory, or NULL. */
static const char *endpoint_beneath(const PluginRegistry *registry, const char *endpoint) {
        const char *root = registry->config.kubelet_dir;
        size_t n = strlen(root);

        while (n > 1 && root[n - 1] == '/')
                n--;
        if (strncmp(endpoint, root, n) != 0 || endpoint[n] != '/')
                return NULL;
        endpoint += n;
        return endpoint + strspn(endpoint, "/");
}

int plugin_registry_connect(const PluginRegistry *registry, const char *endpoint) {
        const char *path = endpoint_beneath(registry, endpoint);

        return path && path[0] ? connect_plugin_socket(registry->kubelet_fd, path) : -EXDEV;
}

/* Without an endpoint, the socket itself is used. */
static int connect_endpoint(const RegistrySocket *one) {
        if (!one->endpoint || !one->endpoint[0])
                return connect_plugin_socket(one->registry->dir_fd, one->path);
        return plugin_registry_connect(one->registry, one->endpoint);
}

static void refuse_endpoint(RegistrySocket *one, int r) {
        cleanup_free char *text =
                r == -EXDEV ? text_format("failed to dial device plugin: the endpoint %s is not "
                                          "below %s, where this node looks for plugins",
                                          one->endpoint, one->registry->config.kubelet_dir)
                            : text_format("failed to dial device plugin: %s", strerror(-r));

        refuse_plugin(one, "plugin registration failed", strna(text));
}

static void adopt_device_plugin(RegistrySocket *one) {
        const PluginRegistryConfig *config = &one->registry->config;
        cleanup_close int fd = connect_endpoint(one);
        int r = fd;

        one->due = USEC_INFINITY;
        if (r == -ECONNREFUSED && now_boottime_usec() < one->connect_until) {
                one->connect_delay = back_off_next_delay(one->connect_delay, &connect_back_off);
                wait_for(one, one->connect_delay);
                return;
        }
        if (r < 0) {
                refuse_endpoint(one, r);
                return;
        }
        one->state = REGISTRY_ADOPTING;
        r = config->send(
                &(PluginMessage){ .kind = PLUGIN_ADOPT, .call = one->call, .name = one->name }, fd,
                config->userdata);
        if (r < 0)
                fail_socket(one, strerror(-r));
}

static void register_device_plugin(RegistrySocket *one, char *const *versions) {
        cleanup_free char *list = text_join(versions, " "), *why = NULL;

        if (!strv_contains(versions, DEVICE_VERSION))
                why = text_format("manager version, " DEVICE_VERSION ", is not among plugin "
                                  "supported versions [%s]",
                                  strna(list));
        else if (check_extended_resource(one->name, NULL) < 0)
                why = text_format("invalid name of device plugin socket: the ResourceName \"%s\" "
                                  "is invalid",
                                  one->name);
        if (why) {
                refuse_plugin(one, "plugin validation failed", why);
                return;
        }
        one->state = REGISTRY_CONNECTING;
        one->connect_delay = 0;
        one->connect_until = now_boottime_usec() + CONNECT_USEC;
        adopt_device_plugin(one);
}

/* ---- CSI drivers ---- */

static void refuse_driver(RegistrySocket *one, int r) {
        cleanup_free char *text =
                r == -EXDEV ? text_format("the endpoint %s is not below %s, where this node looks "
                                          "for plugins",
                                          one->endpoint, one->registry->config.kubelet_dir)
                            : text_format("rpc error: code = Unavailable desc = cannot connect to "
                                          "%s: %s",
                                          one->endpoint, strerror(-r));

        refuse_plugin(one, "plugin registration failed", strna(text));
}

static void ask_driver(RegistrySocket *one) {
        const PluginRegistryConfig *config = &one->registry->config;
        cleanup_close int fd = connect_endpoint(one);
        int r = fd;

        one->state = REGISTRY_ASKING_NODE;
        one->due = USEC_INFINITY;
        if (r >= 0)
                r = config->send(&(PluginMessage){ .kind = PLUGIN_CALL_CSI,
                                                   .call = one->call,
                                                   .name = (char *) (uintptr_t) "NodeGetInfo",
                                                   .size = NODE_INFO_USEC },
                                 fd, config->userdata);
        if (r < 0)
                refuse_driver(one, r);
}

/* Calls of the driver need the path of its socket. */
static int complete_endpoint(RegistrySocket *one) {
        if (one->endpoint[0])
                return 0;
        free(one->endpoint);
        one->endpoint =
                text_format("%s/" DIRECTORY "/%s", one->registry->config.kubelet_dir, one->path);
        return one->endpoint ? 0 : -ENOMEM;
}

static void register_csi_driver(RegistrySocket *one, PluginMessage *message) {
        cleanup_error Error error = ERROR_NULL;
        int r = complete_endpoint(one);

        if (r < 0) {
                fail_socket(one, strerror(-r));
                return;
        }
        r = csi_manager_check_driver(one->registry->config.csi, one->name, one->endpoint,
                                     message->ids, &error);
        if (r < 0) {
                refuse_plugin(one, "plugin validation failed", error_message(&error, r));
                return;
        }
        one->versions = TAKE_PTR(message->ids);
        ask_driver(one);
}

static void take_node_info(RegistrySocket *one, const PluginMessage *message) {
        int r;

        if (one->state != REGISTRY_ASKING_NODE)
                return;
        if (message->code != 0) {
                refuse_plugin(one, "plugin registration failed", strna(message->error));
                return;
        }
        r = csi_manager_register(one->registry->config.csi, one->name, one->endpoint, one->versions,
                                 &message->csi);
        if (r < 0) {
                fail_socket(one, strerror(-r));
                return;
        }
        /* A socket of a lower version through which the driver was registered loses the driver. */
        list_foreach(other, one->registry->sockets)
                if (other != one && streq_ptr(other->name, one->name))
                        other->is_csi_driver = false;
        one->is_csi_driver = true;
        notify_plugin(one, NULL);
}

/* ---- answers ---- */

static void refuse_plugin_type(RegistrySocket *one) {
        const char *hint =
                streq(one->type, "DRAPlugin")
                        ? "; this node does not support dynamic resource allocation, see "
                          "mainstay-differences(7)"
                        : "";
        cleanup_free char *text =
                text_format("RegisterPlugin error -- no handler registered for plugin type: %s at "
                            "socket %s/" DIRECTORY "/%s%s",
                            one->type, one->registry->config.kubelet_dir, one->path, hint);

        notify_plugin(one, strna(text));
}

static char *copy_clean(const char *text) {
        char *copy = strdup(strna(text));

        if (copy)
                utf8_sanitize(copy);
        return copy;
}

static void take_info(RegistrySocket *one, PluginMessage *message) {
        if (one->state != REGISTRY_ASKING)
                return;
        if (message->error) {
                cleanup_free char *why = text_format(
                        "failed to get plugin info using RPC GetInfo: %s", message->error);

                fail_socket(one, strna(why));
                return;
        }
        forget_info(one);
        one->type = copy_clean(message->type);
        one->name = copy_clean(message->name);
        one->endpoint = strdup(strna(message->endpoint));
        if (!one->type || !one->name || !one->endpoint)
                fail_socket(one, "out of memory");
        else if (streq(one->type, "DevicePlugin"))
                register_device_plugin(one, message->ids);
        else if (streq(one->type, "CSIPlugin"))
                register_csi_driver(one, message);
        else
                refuse_plugin_type(one);
}

static void take_notified(RegistrySocket *one, const PluginMessage *message) {
        if (one->state != REGISTRY_NOTIFYING)
                return;
        if (one->failure)
                try_again_later(one, &register_back_off);
        else if (message->error) {
                cleanup_free char *why =
                        text_format("failed to send registration status: %s", message->error);

                fail_socket(one, strna(why));
        } else {
                one->state = REGISTRY_REGISTERED;
                one->delay = 0;
        }
}

static RegistrySocket *find_call(const PluginRegistry *registry, int64_t call) {
        list_foreach(one, registry->sockets)
                if (one->call == call)
                        return one;
        return NULL;
}

void plugin_registry_on_message(PluginRegistry *registry, PluginMessage *message) {
        RegistrySocket *one = message->call ? find_call(registry, message->call) : NULL;

        if (!one)
                return;
        switch (message->kind) {
        case PLUGIN_INFO:
                take_info(one, message);
                break;
        case PLUGIN_REGISTER:
                if (one->state == REGISTRY_ADOPTING)
                        notify_plugin(one, NULL);
                break;
        case PLUGIN_REFUSED:
                if (one->state == REGISTRY_ADOPTING)
                        refuse_plugin(one, "plugin registration failed", strna(message->error));
                break;
        case PLUGIN_NOTIFIED:
                take_notified(one, message);
                break;
        case PLUGIN_CSI_ANSWER:
                take_node_info(one, message);
                break;
        default:
                break;
        }
}

void plugin_registry_on_host_gone(PluginRegistry *registry, bool was_idle) {
        list_foreach(one, registry->sockets) {
                one->call = 0;
                if (one->state == REGISTRY_WAITING ||
                    (one->state == REGISTRY_REGISTERED && (was_idle || one->is_csi_driver)))
                        continue;
                deregister_driver(one);
                forget_info(one);
                one->state = REGISTRY_WAITING;
                wait_for(one, was_idle ? 0 : register_back_off.initial_usec);
        }
}

/* ---- sockets ---- */

static int on_registry_due(sd_event_source *source, uint64_t usec, void *userdata) {
        PluginRegistry *registry = userdata;
        uint64_t now = now_boottime_usec();

        list_foreach(one, registry->sockets) {
                if (one->due > now)
                        continue;
                if (one->state == REGISTRY_CONNECTING)
                        adopt_device_plugin(one);
                else
                        ask_socket(one);
        }
        arm_registry(registry);
        return 0;
}

static void free_socket(RegistrySocket *one) {
        forget_info(one);
        free(one->path);
        free(one->failure);
        free(one);
}

static void remove_socket(RegistrySocket *one) {
        if (one->state == REGISTRY_REGISTERED)
                log_info("The %s '%s' has deregistered: its socket %s is gone", one->type,
                         one->name, one->path);
        close_call(one);
        deregister_driver(one);
        LIST_REMOVE(one->registry->sockets, one);
        free_socket(one);
}

static void on_socket_gone(const char *path, void *userdata) {
        PluginRegistry *registry = userdata;

        list_foreach_safe(one, registry->sockets)
                if (registry_path_is_within(one->path, path))
                        remove_socket(one);
}

static void on_events_lost(void *userdata) {
        const PluginRegistry *registry = userdata;

        list_foreach_safe(one, registry->sockets)
                if (faccessat(registry->dir_fd, one->path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        remove_socket(one);
}

static RegistrySocket *find_socket(const PluginRegistry *registry, const char *path, size_t *ret) {
        RegistrySocket *found = NULL;

        *ret = 0;
        list_foreach(one, registry->sockets) {
                (*ret)++;
                if (streq(one->path, path))
                        found = one;
        }
        return found;
}

static void on_socket(const char *path, const SocketIdentity *identity, void *userdata) {
        PluginRegistry *registry = userdata;
        size_t n;
        RegistrySocket *one = find_socket(registry, path, &n);

        if (one && socket_identity_equals(&one->identity, identity))
                return;
        if (one)
                remove_socket(one);
        one = n < SOCKETS_MAX ? calloc(1, sizeof(*one)) : NULL;
        if (one)
                one->path = strdup(path);
        if (!one || !one->path) {
                log_warning("Ignoring the plugin at %s/" DIRECTORY "/%s: there are %zu already",
                            registry->config.kubelet_dir, path, n);
                free(one);
                return;
        }
        one->registry = registry;
        one->identity = *identity;
        LIST_PREPEND(registry->sockets, one);
        wait_for(one, 0);
}

/* ---- the registry ---- */

static int watch_sockets(PluginRegistry *registry) {
        const RegistryWatchHandlers handlers = { on_socket, on_socket_gone, on_events_lost,
                                                 registry };

        registry->kubelet_fd =
                open(registry->config.kubelet_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (registry->kubelet_fd < 0)
                return -errno;
        registry->dir_fd = openat(registry->kubelet_fd, DIRECTORY,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (registry->dir_fd < 0)
                return -errno;
        return registry_watch_new(registry->config.event, registry->dir_fd, &handlers,
                                  &registry->watch);
}

int plugin_registry_new(const PluginRegistryConfig *config, PluginRegistry **ret) {
        PluginRegistry *registry = calloc(1, sizeof(*registry));
        int r;

        if (!registry)
                return -ENOMEM;
        registry->config = *config;
        registry->kubelet_fd = registry->dir_fd = -EBADF;
        r = event_add_disabled_timer(config->event, &registry->timer, CLOCK_BOOTTIME,
                                     20 * USEC_PER_MSEC, on_registry_due, registry);
        if (r < 0) {
                plugin_registry_free(registry);
                return r;
        }
        r = watch_sockets(registry);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot watch %s/" DIRECTORY " for plugins",
                                         config->kubelet_dir);
        *ret = registry;
        return 0;
}

PluginRegistry *plugin_registry_free(PluginRegistry *registry) {
        if (!registry)
                return NULL;
        registry_watch_free(registry->watch);
        while (registry->sockets) {
                RegistrySocket *one = registry->sockets;

                LIST_REMOVE(registry->sockets, one);
                free_socket(one);
        }
        sd_event_source_disable_unref(registry->timer);
        close_fd(registry->dir_fd);
        close_fd(registry->kubelet_fd);
        free(registry);
        return NULL;
}
