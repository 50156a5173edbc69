/* SPDX-License-Identifier: Apache-2.0 */
#include "common/network-namespace.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

enum {
        INTERFACE_TABLE_MAX = 256 * 1024
};

/* A descriptor of the namespace to return to; -EBADF: 'namespace_fd' is negative, and nothing needs
 * to be done; another -errno. */
static int enter_network_namespace(int namespace_fd) {
        cleanup_close int home = -EBADF;

        if (namespace_fd < 0)
                return -EBADF;
        home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (home < 0 || setns(namespace_fd, CLONE_NEWNET) < 0)
                return -errno;
        return TAKE_FD(home);
}

static void leave_network_namespace(int home) {
        if (home < 0 || setns(home, CLONE_NEWNET) >= 0)
                return;
        /* Aborts, because everything from here on would use the wrong namespace; the next process
         * starts in the correct one. */
        log_error("Cannot return to the network namespace of the node: %s", strerror(errno));
        abort();
}

/* A socket stays in the namespace in which it was created. */
static int make_tcp_socket_in(int namespace_fd, int family) {
        cleanup_close int home = enter_network_namespace(namespace_fd);
        int fd;

        if (home < 0 && namespace_fd >= 0)
                return home;
        fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                fd = -errno;
        leave_network_namespace(home);
        return fd;
}

static int connect_socket(int fd, const void *address, socklen_t length) {
        if (connect(fd, address, length) >= 0 || errno == EINPROGRESS)
                return 0;
        return -errno;
}

static int connect_by_ipv4(int namespace_fd, in_port_t port) {
        const struct sockaddr_in address = { .sin_family = AF_INET,
                                             .sin_port = port,
                                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        cleanup_close int fd = make_tcp_socket_in(namespace_fd, AF_INET);
        int r = fd < 0 ? fd : connect_socket(fd, &address, sizeof(address));

        return r < 0 ? r : TAKE_FD(fd);
}

static int connect_by_ipv6(int namespace_fd, in_port_t port) {
        const struct sockaddr_in6 address = { .sin6_family = AF_INET6,
                                              .sin6_port = port,
                                              .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        cleanup_close int fd = make_tcp_socket_in(namespace_fd, AF_INET6);
        int r = fd < 0 ? fd : connect_socket(fd, &address, sizeof(address));

        return r < 0 ? r : TAKE_FD(fd);
}

int connect_to_loopback_of_namespace(int namespace_fd, unsigned port, bool is_ipv6) {
        in_port_t number = htons((uint16_t) port);
        int fd, second;

        if (is_ipv6)
                return connect_by_ipv6(namespace_fd, number);
        fd = connect_by_ipv4(namespace_fd, number);
        if (fd != -ECONNREFUSED)
                return fd;
        second = connect_by_ipv6(namespace_fd, number);
        return second >= 0 ? second : fd; /* the first error is reported */
}

/* ---- usage of interfaces ---- */

/* The kernel shows this file of each process to every user. */
static int open_interface_table(pid_t pid) {
        char path[64] = "/proc/thread-self/net/dev";
        int fd;

        if (pid > 0)
                (void) snprintf(path, sizeof(path), "/proc/%d/net/dev", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* " eth0: bytes packets errs drop fifo frame compressed multicast", followed by the same for sent
 * data, with other names for the last four. */
static bool parse_interface_line(const char *line, NetworkInterfaceUsage *ret) {
        NetworkInterfaceUsage usage = { 0 };
        const char *colon = strchr(line, ':');
        size_t length;

        line += strspn(line, " ");
        length = colon && colon > line ? (size_t) (colon - line) : 0;
        if (length == 0 || length >= sizeof(usage.name))
                return false;
        memcpy(usage.name, line, length);
        if (streq(usage.name, "lo") ||
            sscanf(colon + 1,
                   "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%*u%*u%*u%*u%" SCNu64 "%" SCNu64
                   "%" SCNu64 "%" SCNu64,
                   &usage.rx_bytes, &usage.rx_packets, &usage.rx_errors, &usage.rx_dropped,
                   &usage.tx_bytes, &usage.tx_packets, &usage.tx_errors, &usage.tx_dropped) != 8)
                return false;
        *ret = usage;
        return true;
}

int network_usage(pid_t pid, NetworkInterfaceUsage *ret) {
        cleanup_close int fd = open_interface_table(pid);
        cleanup_free char *text = NULL;
        char *rest;
        int n = 0;
        int r = fd < 0 ? fd : read_stream(fd, INTERFACE_TABLE_MAX, &text, NULL);

        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &rest); line && n < NETWORK_INTERFACES_MAX;
             line = strtok_r(NULL, "\n", &rest))
                n += parse_interface_line(line, &ret[n]);
        return n;
}
