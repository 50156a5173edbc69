/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/sandbox.h"

#include "agent/sandbox/counted-containers.h"
#include "agent/sandbox/exec-requests.h"
#include "agent/sandbox/protocol.h"
#include "agent/sandbox/runtime-copy.h"
#include "agent/sandbox/shim-launch.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/packet.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* The agent creates the socket, not the shim: requests are queued in it while the shim starts, and
 * a second shim for the same pod fails at bind(2). The end of the connection is the only sign that
 * the shim is gone, whether it is this agent's child or was started by an earlier one. */

#define RECONNECT_USEC USEC_PER_SEC

enum {
        QUEUE_BYTES_MAX = 4 * 1024 * 1024,
        PACKETS_PER_TURN = 32,
        BACKLOG = 16,
        CLEANUP_TIMEOUT_SEC = 120,
        PROTOCOL_WITH_NOTES = 2, /* also delayed stops, and programs in containers */
        PROTOCOL_WITH_NETWORK =
                3, /* protocol version since which a shim sends its network namespace */
        PROTOCOL_WITH_ATTACH = 4,
        PROTOCOL_WITH_USAGE = 5,
        PROTOCOL_WITH_PREPARED_VOLUMES = 6,
        PROTOCOL_WITH_DEVICES = 7,
};

struct Sandbox {
        SandboxConfig config;
        char *uid;
        int fd;
        sd_event_source *io;
        sd_event_source *reconnect_timer; /* while it cannot reconnect because resources are
                                           * short */
        pid_t pid;
        bool has_greeted; /* PID of the shim, from its greeting */
        unsigned version; /* protocol version of the shim */
        int network_fd;   /* network namespace of the pod, or -EBADF */
        PacketQueue queue;
        SandboxExec *execs; /* programs whose results are awaited */
        CountedContainers counted;
        bool is_usage_asked; /* and the answer is still incomplete */
        sandbox_event_t on_event;
        void *userdata;
        bool *freed; /* set when a callback frees the sandbox */
};

/* Addresses the socket using its directory's descriptor, because run directories may be longer than
 * socket addresses. */
typedef struct ShimSocketAddress {
        int dir_fd;
        struct sockaddr_un address;
} ShimSocketAddress;

static void shim_socket_address_done(ShimSocketAddress *socket_address) {
        socket_address->dir_fd = close_fd(socket_address->dir_fd);
}

static const char socket_name[] = "shim.sock";

static int shim_socket_address_open(const Sandbox *sandbox, ShimSocketAddress *ret) {
        cleanup_free char *directory =
                text_format("%s/pods/%s", sandbox->config.run_dir, sandbox->uid);

        if (!directory)
                return -ENOMEM;
        ret->dir_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (ret->dir_fd < 0)
                return -errno;
        ret->address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        (void) snprintf(ret->address.sun_path, sizeof(ret->address.sun_path), "/proc/self/fd/%d/%s",
                        ret->dir_fd, socket_name);
        return 0;
}

static int new_shim_socket(void) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd < 0 ? -errno : fd;
}

/* A connected socket or -errno; -ENOENT or -ECONNREFUSED if there is no shim. */
static int connect_to_shim(const ShimSocketAddress *socket_address) {
        cleanup_close int fd = new_shim_socket();

        if (fd < 0)
                return fd;
        if (connect(fd, (const struct sockaddr *) &socket_address->address,
                    sizeof(socket_address->address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int bind_shim_socket(const ShimSocketAddress *socket_address) {
        cleanup_close int fd = new_shim_socket();

        if (fd < 0)
                return fd;
        /* Creates the file with the socket's mode, so that other users can never connect. */
        if (fchmod(fd, 0600) < 0 ||
            bind(fd, (const struct sockaddr *) &socket_address->address,
                 sizeof(socket_address->address)) < 0 ||
            listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* A listening socket; -EEXIST if a shim listens on the existing one. */
static int listen_on_shim_socket(const ShimSocketAddress *socket_address) {
        cleanup_close int probe = -EBADF;
        int fd = bind_shim_socket(socket_address);

        if (fd != -EADDRINUSE)
                return fd;
        probe = connect_to_shim(socket_address);
        if (probe >= 0)
                return -EEXIST;
        if (probe != -ECONNREFUSED)
                return probe;
        if (unlinkat(socket_address->dir_fd, socket_name, 0) < 0 && errno != ENOENT)
                return -errno;
        return bind_shim_socket(socket_address);
}

int sandbox_new(const SandboxConfig *config, const char *uid, sandbox_event_t on_event,
                void *userdata, Sandbox **ret) {
        Sandbox *sandbox = calloc(1, sizeof(*sandbox));

        if (!sandbox)
                return -ENOMEM;
        sandbox->config = *config;
        sandbox->fd = sandbox->network_fd = -EBADF;
        sandbox->on_event = on_event;
        sandbox->userdata = userdata;
        sandbox->uid = strdup(uid);
        if (!sandbox->uid) {
                free(sandbox);
                return -ENOMEM;
        }
        *ret = sandbox;
        return 0;
}

static void disconnect_from_shim(Sandbox *sandbox) {
        sandbox->io = sd_event_source_disable_unref(sandbox->io);
        sandbox->reconnect_timer = sd_event_source_disable_unref(sandbox->reconnect_timer);
        sandbox->fd = close_fd(sandbox->fd);
        sandbox->pid = 0;
        sandbox->has_greeted = false;
        sandbox->is_usage_asked = false;
        sandbox->network_fd = close_fd(sandbox->network_fd);
        counted_containers_clear(&sandbox->counted);
        packet_queue_clear(&sandbox->queue);
}

/* --- events ------------------------------------------------------------------------------- */

static void handle_usage_event(Sandbox *sandbox, const ShimEvent *event) {
        const ProcessUsage usage = { .n_descriptors = event->n_descriptors,
                                     .n_sockets = event->n_sockets,
                                     .open_files_max = event->open_files_max };

        if (event->id)
                (void) counted_containers_set(&sandbox->counted, event->id, &usage,
                                              now_realtime_usec());
        else
                sandbox->is_usage_asked = false;
}

static void handle_shim_event(Sandbox *sandbox, const ShimEvent *event) {
        switch (event->type) {
        case SHIM_EVENT_HELLO:
                sandbox->pid = event->pid;
                sandbox->has_greeted = true;
                sandbox->version = event->version;
                break;
        case SHIM_EVENT_ERROR:
                log_warning("Pod %s: container '%.12s': %s", sandbox->uid, strna(event->id),
                            event->message);
                break;
        case SHIM_EVENT_USAGE:
                handle_usage_event(sandbox, event);
                break;
        case SHIM_EVENT_EXEC_DONE:
                exec_requests_finish(&sandbox->execs, event);
                break;
        default:
                if (event->type == SHIM_EVENT_EXITED && event->id)
                        counted_containers_remove(&sandbox->counted, event->id);
                sandbox->on_event(sandbox, event, sandbox->userdata);
        }
}

/* 1; -ENOMEM if there is no memory for the event. */
static int handle_shim_packet(Sandbox *sandbox, const char *data, size_t length) {
        cleanup_shim_event ShimEvent event = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r;

        FAIL_AT("sandbox.decode-event");
        r = shim_event_decode(data, length, &event, &error);
        if (r == -ENOMEM)
                return r;
        if (r >= 0)
                handle_shim_event(sandbox, &event);
        else
                log_warning("Dropped an invalid event of the shim of pod %s: %s", sandbox->uid,
                            error_message(&error, r));
        return 1;
}

/* Reads one packet. 1; 0 if none is waiting; -ECONNRESET if the shim has closed the connection;
 * another -errno if its event is lost, such as -ENOMEM. */
static int receive_shim_packet(Sandbox *sandbox) {
        cleanup_free char *data = NULL;
        cleanup_close int passed_fd = -EBADF;
        ssize_t length, n;

        length = recv(sandbox->fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (length < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (length == 0)
                return -ECONNRESET;
        if (length <= SHIM_PROTOCOL_PACKET_MAX && !(data = malloc((size_t) length)))
                return -ENOMEM;
        DIE_AT("sandbox.receive-event");
        n = packet_receive(sandbox->fd, data, data ? (size_t) length : 0, &passed_fd);
        if (n < 0)
                return (int) n;
        if (passed_fd >= 0) {
                close_fd(sandbox->network_fd);
                sandbox->network_fd = TAKE_FD(passed_fd);
        }
        if (data)
                return handle_shim_packet(sandbox, data, (size_t) n);
        log_warning(
                "Dropped an event of the shim of pod %s: its %zd bytes are larger than a packet",
                sandbox->uid, length);
        return 1;
}

static void send_queued_requests(Sandbox *sandbox) {
        while (sandbox->queue.first) {
                const QueuedPacket *packet = sandbox->queue.first;

                if (send(sandbox->fd, packet->data, packet->length, MSG_DONTWAIT | MSG_NOSIGNAL) <
                    0) {
                        if (errno == EINTR)
                                continue;
                        break;
                }
                packet_queue_pop(&sandbox->queue);
        }
        (void) sd_event_source_set_io_events(sandbox->io,
                                             sandbox->queue.first ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int on_shim_socket_io(sd_event_source *source, int fd, uint32_t events, void *userdata);

/* --- requests ----------------------------------------------------------------------------- */

/* Passes the descriptor, unless it is < 0 or the request has to be queued. */
static int send_shim_request_with_fd(Sandbox *sandbox, const ShimRequest *request, int pass_fd) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r;

        if (sandbox->fd < 0)
                return -ENOTCONN;
        r = shim_request_encode(request, &data, &length);
        if (r < 0)
                return r;
        FAIL_AT("sandbox.request");
        if (!sandbox->queue.first && packet_send(sandbox->fd, data, length, pass_fd) >= 0)
                return 0;
        r = packet_queue_append(&sandbox->queue, QUEUE_BYTES_MAX, data, length);
        if (r < 0)
                return r;
        (void) TAKE_PTR(data);
        send_queued_requests(sandbox);
        return 0;
}

static int send_shim_request(Sandbox *sandbox, const ShimRequest *request) {
        return send_shim_request_with_fd(sandbox, request, -EBADF);
}

static int attach_shim_connection(Sandbox *sandbox, int fd) {
        ShimRequest hello = { .type = SHIM_REQUEST_HELLO, .version = SHIM_PROTOCOL_VERSION };
        int r;

        sandbox->fd = fd;
        r = sd_event_add_io(sandbox->config.event, &sandbox->io, fd, EPOLLIN, on_shim_socket_io,
                            sandbox);
        if (r >= 0) {
                (void) sd_event_source_set_description(sandbox->io, "sandbox");
                r = send_shim_request(sandbox, &hello);
        }
        if (r < 0)
                disconnect_from_shim(sandbox);
        return r;
}

int sandbox_connect(Sandbox *sandbox, Error *reterr) {
        cleanup_with(shim_socket_address_done)
                ShimSocketAddress socket_address = { .dir_fd = -EBADF };
        int r = shim_socket_address_open(sandbox, &socket_address), fd;

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_prefixf(reterr, r, "cannot look up the shim's socket");
        fd = connect_to_shim(&socket_address);
        if (fd == -ENOENT || fd == -ECONNREFUSED)
                return 0;
        r = fd < 0 ? fd : attach_shim_connection(sandbox, fd);
        return r < 0 ? error_prefixf(reterr, r, "cannot connect to the shim") : 1;
}

static int on_reconnect_timer(sd_event_source *source, uint64_t usec, void *userdata);

static bool can_reconnect_later(Sandbox *sandbox, int r) {
        if (r != -EMFILE && r != -ENFILE && r != -ENOMEM && r != -EAGAIN)
                return false;
        return sd_event_add_time_relative(sandbox->config.event, &sandbox->reconnect_timer,
                                          CLOCK_BOOTTIME, RECONNECT_USEC, 0, on_reconnect_timer,
                                          sandbox) >= 0;
}

static void report_shim_lost(Sandbox *sandbox) {
        const ShimEvent event = { .type = SHIM_EVENT_LOST,
                                  .name = "",
                                  .note = "",
                                  .message = "",
                                  .output = "",
                                  .error = "" };

        sandbox->on_event(sandbox, &event, sandbox->userdata);
}

/* If resources are short, it is unknown whether the shim still runs. Reporting it as lost would
 * kill its containers. */
static void reconnect_to_shim(Sandbox *sandbox) {
        int r;

        sandbox->reconnect_timer = sd_event_source_disable_unref(sandbox->reconnect_timer);
        r = sandbox_connect(sandbox, NULL);
        if (r <= 0 && !can_reconnect_later(sandbox, r))
                report_shim_lost(sandbox);
}

static int on_reconnect_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        reconnect_to_shim(userdata);
        return 0;
}

/* The connection has ended (-ECONNRESET), or an event on it was lost. A shim that still runs has
 * closed the connection because this agent was slow or a second agent connected; on a new
 * connection it reports its complete state again. A shim that is exiting may still accept a
 * connection, but sends no greeting. */
static void reconnect_or_report_lost(Sandbox *sandbox, int reason) {
        bool may_live = sandbox->has_greeted || reason != -ECONNRESET;

        disconnect_from_shim(sandbox);
        if (may_live)
                reconnect_to_shim(sandbox);
        else
                report_shim_lost(sandbox);
}

static int on_shim_socket_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Sandbox *sandbox = userdata;
        bool freed = false;
        int r = 1;

        if (events & EPOLLOUT)
                send_queued_requests(sandbox);
        sandbox->freed = &freed;
        for (unsigned i = 0; i < PACKETS_PER_TURN && r > 0; i++) {
                r = receive_shim_packet(sandbox);
                if (freed)
                        return 0;
                if (sandbox->fd != fd) /* the callback has started a new shim */
                        break;
        }
        if (r < 0 && sandbox->fd == fd) {
                reconnect_or_report_lost(sandbox, r);
                if (freed)
                        return 0;
        }
        sandbox->freed = NULL;
        return 0;
}

int sandbox_setup(Sandbox *sandbox, const SandboxSetupOptions *setup) {
        return send_shim_request(sandbox, &(ShimRequest){ .type = SHIM_REQUEST_SETUP,
                                                          .fstab = setup->fstab,
                                                          .hostname = setup->hostname,
                                                          .log_max_size = setup->log_max_size,
                                                          .log_max_files = setup->log_max_files });
}

static StringList string_list_of_strv(char *const *strv) {
        return (StringList){ (const char *const *) strv, strv_length(strv) };
}

/* The shim was started before an upgrade and does not support the request. */
static bool is_shim_older_than(const Sandbox *sandbox, unsigned version) {
        return sandbox->has_greeted && sandbox->version < version;
}

bool sandbox_prepares_volumes(const Sandbox *sandbox) {
        return !is_shim_older_than(sandbox, PROTOCOL_WITH_PREPARED_VOLUMES);
}

/* A borrowed descriptor; < 0: there is none, and the shim executes the runtime by its path. */
static int runtime_copy_of(const Sandbox *sandbox) {
        const SandboxConfig *config = &sandbox->config;

        if (!config->runtime_copy || !sandbox->has_greeted)
                return -EBADF;
        return runtime_copy_get(config->runtime_copy, config->runtime_path);
}

int sandbox_run_container(Sandbox *sandbox, const SandboxContainerConfig *run) {
        if (run->target && is_shim_older_than(sandbox, PROTOCOL_WITH_ATTACH))
                return -ENOTSUP;
        return send_shim_request_with_fd(
                sandbox,
                &(ShimRequest){ .type = SHIM_REQUEST_RUN,
                                .id = run->id,
                                .name = run->name,
                                .attempt = run->attempt,
                                .bundle = run->bundle,
                                .log = run->log,
                                .journal_fields = string_list_of_strv(run->journal_fields),
                                .events_file = run->events_file,
                                .note = run->note,
                                .has_input = run->has_input,
                                .keeps_early = run->keeps_early,
                                .has_terminal = run->has_terminal,
                                .target = run->target },
                runtime_copy_of(sandbox));
}

int sandbox_stop_container_delayed(Sandbox *sandbox, const char *id, int signal,
                                   uint64_t delay_usec, uint64_t grace_usec) {
        if (delay_usec > 0 && is_shim_older_than(sandbox, PROTOCOL_WITH_NOTES))
                return -ENOTSUP;
        return send_shim_request(sandbox, &(ShimRequest){ .type = SHIM_REQUEST_STOP,
                                                          .id = id,
                                                          .signal = signal,
                                                          .delay_usec = delay_usec,
                                                          .grace_usec = grace_usec });
}

int sandbox_stop_container(Sandbox *sandbox, const char *id, int signal, uint64_t grace_usec) {
        return sandbox_stop_container_delayed(sandbox, id, signal, 0, grace_usec);
}

int sandbox_set_container_note(Sandbox *sandbox, const char *id, const char *note) {
        if (is_shim_older_than(sandbox, PROTOCOL_WITH_NOTES))
                return -ENOTSUP;
        return send_shim_request(
                sandbox, &(ShimRequest){ .type = SHIM_REQUEST_NOTE, .id = id, .note = note });
}

int sandbox_remove_container(Sandbox *sandbox, const char *id, const char *const *directories,
                             size_t n_directories) {
        return send_shim_request(sandbox,
                                 &(ShimRequest){ .type = SHIM_REQUEST_DELETE,
                                                 .id = id,
                                                 .directories = { directories, n_directories } });
}

static int send_exec_request(Sandbox *sandbox, ShimRequest *request, sandbox_exec_done_t done,
                             void *userdata, SandboxExec **ret) {
        SandboxExec *exec = exec_requests_add(&sandbox->execs, done, userdata);
        int r;

        if (!exec)
                return -ENOMEM;
        request->id = exec_request_id(exec);
        r = send_shim_request(sandbox, request);
        *ret = r < 0 ? sandbox_exec_cancel(exec) : exec;
        return r;
}

int sandbox_run_program(Sandbox *sandbox, const SandboxProgram *program, sandbox_exec_done_t done,
                        void *userdata, SandboxExec **ret) {
        ShimRequest request = { .type = SHIM_REQUEST_EXEC,
                                .arguments = string_list_of_strv(program->argv),
                                .environment = string_list_of_strv(program->environment),
                                .input = program->input,
                                .in_host = program->in_host,
                                .timeout_usec = program->timeout_usec,
                                .interface = program->interface,
                                .address = program->address,
                                .keeps_router_advertisements =
                                        program->keeps_router_advertisements };

        return send_exec_request(sandbox, &request, done, userdata, ret);
}

/* The request is sent immediately or not at all, because the descriptor cannot be queued. */
static int send_client_request(Sandbox *sandbox, const ShimRequest *request, int socket_fd) {
        cleanup_free char *data = NULL;
        size_t length;
        int r;

        if (sandbox->fd < 0)
                return -ENOTCONN;
        if (sandbox->queue.first)
                return -EBUSY;
        r = shim_request_encode(request, &data, &length);
        if (r < 0)
                return r;
        r = packet_send(sandbox->fd, data, length, socket_fd);
        return r == -EAGAIN ? -EBUSY : r;
}

int sandbox_open_session(Sandbox *sandbox, const SandboxSession *session, int socket_fd) {
        return send_client_request(sandbox,
                                   &(ShimRequest){ .type = SHIM_REQUEST_SESSION,
                                                   .id = session->container,
                                                   .arguments = string_list_of_strv(session->argv),
                                                   .has_input = session->has_input,
                                                   .has_output = session->has_output,
                                                   .has_error = session->has_error,
                                                   .has_terminal = session->has_terminal,
                                                   .is_held = session->is_held },
                                   socket_fd);
}

bool sandbox_can_attach(const Sandbox *sandbox) {
        return !is_shim_older_than(sandbox, PROTOCOL_WITH_ATTACH);
}

int sandbox_attach(Sandbox *sandbox, const SandboxAttach *attach, int socket_fd) {
        if (!sandbox_can_attach(sandbox))
                return -ENOTSUP;
        return send_client_request(sandbox,
                                   &(ShimRequest){ .type = SHIM_REQUEST_ATTACH,
                                                   .id = attach->container,
                                                   .has_input = attach->has_input,
                                                   .has_output = attach->has_output,
                                                   .has_error = attach->has_error,
                                                   .has_terminal = attach->has_terminal,
                                                   .is_input_once = attach->is_input_once },
                                   socket_fd);
}

int sandbox_exec_in_container(Sandbox *sandbox, const SandboxContainerExec *spec,
                              sandbox_exec_done_t done, void *userdata, SandboxExec **ret) {
        ShimRequest request = { .type = SHIM_REQUEST_EXEC_IN,
                                .container = spec->container,
                                .arguments = string_list_of_strv(spec->argv),
                                .timeout_usec = spec->timeout_usec };

        if (is_shim_older_than(sandbox, PROTOCOL_WITH_NOTES))
                return -ENOTSUP;
        return send_exec_request(sandbox, &request, done, userdata, ret);
}

int sandbox_set_container_devices(Sandbox *sandbox, const char *id, char *const *devices) {
        if (is_shim_older_than(sandbox, PROTOCOL_WITH_DEVICES))
                return -ENOTSUP;
        return send_shim_request(sandbox,
                                 &(ShimRequest){ .type = SHIM_REQUEST_DEVICES,
                                                 .id = id,
                                                 .devices = string_list_of_strv(devices) });
}

int sandbox_request_usage(Sandbox *sandbox) {
        int r;

        if (!sandbox->has_greeted)
                return -ENOTCONN;
        if (is_shim_older_than(sandbox, PROTOCOL_WITH_USAGE))
                return -ENOTSUP;
        if (sandbox->is_usage_asked)
                return 0;
        r = send_shim_request(sandbox, &(ShimRequest){ .type = SHIM_REQUEST_USAGE });
        sandbox->is_usage_asked = r >= 0;
        return r;
}

const ProcessUsage *sandbox_container_usage(const Sandbox *sandbox, const char *id,
                                            uint64_t *ret_taken_at) {
        const CountedContainer *found = counted_containers_find(&sandbox->counted, id);

        if (!found)
                return NULL;
        *ret_taken_at = found->taken_at;
        return &found->usage;
}

int sandbox_teardown(Sandbox *sandbox) {
        return send_shim_request(sandbox, &(ShimRequest){ .type = SHIM_REQUEST_TEARDOWN });
}

pid_t sandbox_pid(const Sandbox *sandbox) {
        return sandbox->pid;
}

/* For a shim that does not send its namespace: opens it, as far as permitted. */
static int open_network_of_pid(const Sandbox *sandbox) {
        struct stat mine, its;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) sandbox->pid);
        if (stat("/proc/self/ns/net", &mine) < 0 || stat(path, &its) < 0)
                return -errno;
        return mine.st_ino == its.st_ino && mine.st_dev == its.st_dev
                       ? -ENOENT
                       : open(path, O_RDONLY | O_CLOEXEC);
}

int sandbox_open_network_namespace(const Sandbox *sandbox) {
        int fd;

        if (sandbox->version >= PROTOCOL_WITH_NETWORK && sandbox->network_fd < 0)
                return -ENOENT;
        fd = sandbox->version < PROTOCOL_WITH_NETWORK
                     ? open_network_of_pid(sandbox)
                     : fcntl(sandbox->network_fd, F_DUPFD_CLOEXEC, 3);
        return fd == -1 ? -errno : fd;
}

bool sandbox_is_connected(const Sandbox *sandbox) {
        return sandbox->fd >= 0;
}

Sandbox *sandbox_free(Sandbox *sandbox) {
        if (!sandbox)
                return NULL;
        if (sandbox->freed)
                *sandbox->freed = true;
        disconnect_from_shim(sandbox);
        exec_requests_abandon(&sandbox->execs);
        free(sandbox->uid);
        free(sandbox);
        return NULL;
}

/* --- processes ---------------------------------------------------------------------------- */

void sandbox_set_runtime(Sandbox *sandbox, const char *runtime_path) {
        sandbox->config.runtime_path = runtime_path;
}

int sandbox_start(Sandbox *sandbox, const SandboxStartOptions *start, Error *reterr) {
        cleanup_with(shim_socket_address_done)
                ShimSocketAddress socket_address = { .dir_fd = -EBADF };
        cleanup_close int listen_fd = -EBADF, fd = -EBADF;
        pid_t pid = 0;
        int r;

        if (sandbox->fd >= 0)
                return error_setf(reterr, EEXIST, "a shim of the pod is running already");
        FAIL_AT("sandbox.start");
        r = shim_socket_address_open(sandbox, &socket_address);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot open the pod's directory");
        listen_fd = listen_on_shim_socket(&socket_address);
        if (listen_fd < 0)
                return error_prefixf(reterr, listen_fd, "cannot create the shim's socket");
        fd = connect_to_shim(&socket_address);
        r = fd < 0 ? fd
                   : shim_launch(&sandbox->config, sandbox->uid, start, listen_fd, &pid, reterr);
        if (r < 0) {
                (void) unlinkat(socket_address.dir_fd, socket_name, 0);
                return r;
        }
        DIE_AT("sandbox.started");
        r = attach_shim_connection(sandbox, TAKE_FD(fd));
        if (r < 0)
                return r;
        sandbox->pid = pid;
        return 0;
}

int sandbox_prepare(const SandboxConfig *config, const char *kubelet_dir, Error *reterr) {
        char *argv[] = {
                (char *) (uintptr_t) config->shim_path,
                (char *) (uintptr_t) "prepare",
                (char *) (uintptr_t) config->run_dir,
                (char *) (uintptr_t) kubelet_dir,
                NULL,
        };
        int status, r;
        pid_t pid;

        r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
        if (r != 0)
                return error_setf(reterr, r, "cannot start '%s': %s", argv[0], strerror(r));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_setf(reterr, errno, "cannot wait for '%s': %s", argv[0],
                                          strerror(errno));
        if (WIFSIGNALED(status))
                return error_setf(reterr, EIO, "cannot prepare '%s': '%s' was killed by signal %d",
                                  config->run_dir, argv[0], WTERMSIG(status));
        if (WEXITSTATUS(status) != 0) /* it has logged the reason */
                return error_setf(reterr, EIO, "cannot prepare '%s'", config->run_dir);
        return 0;
}

int sandbox_cleanup(const SandboxConfig *config, const SandboxCleanup *cleanup, child_done_t done,
                    void *userdata, Child **ret, Error *reterr) {
        cleanup_strv char **argv = NULL;
        ChildSpec spec = { .timeout_usec = CLEANUP_TIMEOUT_SEC * UINT64_C(1000000) };
        int r = strv_append(&argv, config->shim_path);

        if (r < 0)
                return r;
        r = strv_append(&argv, "cleanup");
        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--agent=%d", (int) getpid());
        if (r < 0)
                return r;
        if (cleanup->uid)
                r = shim_append_cgroup_options(config, cleanup->uid, &argv);
        if (r < 0)
                return r;
        if (cleanup->cgroup)
                r = strv_appendf(&argv, "--cgroup=%s", cleanup->cgroup);
        if (r < 0)
                return r;
        if (cleanup->emptied)
                r = strv_appendf(&argv, "--empty=%s", cleanup->emptied);
        if (r < 0)
                return r;
        if (cleanup->synced)
                r = strv_appendf(&argv, "--synced=%s", cleanup->synced);
        if (r < 0)
                return r;
        for (size_t i = 0; i < cleanup->n_directories; i++) {
                r = strv_append(&argv, cleanup->directories[i]);
                if (r < 0)
                        return r;
        }
        spec.argv = argv;
        return child_spawn(config->event, &spec, done, userdata, ret, reterr);
}

const char *sandbox_group_of_shims(const SandboxConfig *config) {
        return shim_group_of_all(config);
}
