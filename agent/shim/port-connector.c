/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/port-connector.h"

#include "common/cleanup.h"
#include "common/network-namespace.h"
#include "common/packet.h"

int port_connector_serve(int socket_fd, unsigned port, bool is_ipv6) {
        cleanup_close int namespace_fd = -EBADF, fd = -EBADF;
        char byte, message[128];
        ssize_t n = packet_receive(socket_fd, &byte, sizeof(byte), &namespace_fd);

        if (n < 0)
                return (int) n;
        if (namespace_fd < 0)
                return -EBADMSG;
        fd = connect_to_loopback_of_namespace(namespace_fd, port, is_ipv6);
        if (fd >= 0)
                return packet_send(socket_fd, "", 1, fd);
        (void) snprintf(message, sizeof(message), "cannot connect to localhost:%u in the pod: %s",
                        port, strerror(-fd));
        return packet_send(socket_fd, message, strlen(message), -EBADF);
}
