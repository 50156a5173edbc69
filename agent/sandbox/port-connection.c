/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/port-connection.h"

#include "common/child.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/network-namespace.h"
#include "common/packet.h"

#include <stdint.h>
#include <sys/socket.h>

#define TIMEOUT_USEC (UINT64_C(30) * 1000000)

static void on_connector_exit(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-shim connect", &error);

        if (r < 0)
                log_warning("Cannot connect to a port of a pod: %s", error_message(&error, r));
}

static int start_connector(const SandboxConfig *config, int socket_fd, unsigned port, bool is_ipv6,
                           Error *reterr) {
        char number[16], verb[] = "connect", family[] = "--ipv6";
        char *argv[] = { (char *) (uintptr_t) config->connect_path, verb, number,
                         is_ipv6 ? family : NULL, NULL };

        (void) snprintf(number, sizeof(number), "%u", port);
        return child_spawn(
                config->event,
                &(ChildSpec){ .argv = argv, .timeout_usec = TIMEOUT_USEC, .input_fd = socket_fd },
                on_connector_exit, NULL, NULL, reterr);
}

/* Such a connection needs neither a namespace nor a privilege. */
static int connect_on_node(int socket_fd, unsigned port, bool is_ipv6, Error *reterr) {
        cleanup_close int fd = connect_to_loopback_of_namespace(-EBADF, port, is_ipv6);

        if (fd < 0)
                return error_setf(reterr, -fd, "cannot connect to localhost:%u in the pod: %s",
                                  port, strerror(-fd));
        return packet_send(socket_fd, "", 1, fd);
}

int port_connection_request(const SandboxConfig *config, int namespace_fd, unsigned port,
                            bool is_ipv6, Error *reterr) {
        cleanup_close int ours = -EBADF, theirs = -EBADF;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return error_setf(reterr, errno, "cannot make a socket: %s", strerror(errno));
        ours = fds[0];
        theirs = fds[1];
        if (namespace_fd < 0) {
                r = connect_on_node(theirs, port, is_ipv6, reterr);
                return r < 0 ? r : TAKE_FD(ours);
        }
        r = packet_send(ours, "", 1, namespace_fd);
        if (r >= 0)
                r = start_connector(config, theirs, port, is_ipv6, reterr);
        return r < 0 ? r : TAKE_FD(ours);
}
