/* SPDX-License-Identifier: Apache-2.0 */

/* Queries the kernel with sock_diag(7), which walks only listening sockets, whereas /proc/net/tcp
 * contains all connections. */

#include "common/listening-port.h"

#include "common/cleanup.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

typedef struct ListenerRequest {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
} ListenerRequest;

/* The first message is a socket, the end of the list, or an error. */
static int read_listener_reply(int fd) {
        union {
                struct nlmsghdr header;
                char bytes[8192];
        } reply;
        ssize_t n = recv(fd, &reply, sizeof(reply), 0);

        if (n < 0)
                return -errno;
        if (!NLMSG_OK(&reply.header, (size_t) n))
                return -EBADMSG;
        if (reply.header.nlmsg_type == NLMSG_ERROR)
                return -EOPNOTSUPP;
        return reply.header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

static int find_listener(uint8_t family, uint16_t port) {
        const ListenerRequest request = {
                .header = { .nlmsg_len = sizeof(request),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
                .body = { .sdiag_family = family,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_states = 1U << TCP_LISTEN,
                          .id.idiag_sport = htons(port) },
        };
        cleanup_close int fd =
                socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

        if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0)
                return -errno;
        return read_listener_reply(fd);
}

int port_has_listener(uint16_t port) {
        int r = find_listener(AF_INET6, port);

        return r == 1 ? r : find_listener(AF_INET, port);
}
