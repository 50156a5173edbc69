/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections from within another network namespace, and the traffic of its interfaces. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Connects to a TCP port of the loopback address of a network namespace, with IPv6, or with IPv4
 * and then, if that is refused at once, IPv6; 'namespace_fd' < 0: the own one. Does not wait: the
 * connection may still be in progress, and be refused later. Only for programs with one thread,
 * because the namespace is entered for an instant. A non-blocking socket; or -errno. */
int connect_to_loopback_of_namespace(int namespace_fd, unsigned port, bool is_ipv6);

enum {
        NETWORK_INTERFACES_MAX = 32
};

/* The traffic of an interface since it was created. */
typedef struct NetworkInterfaceUsage {
        char name[IFNAMSIZ];
        uint64_t rx_bytes, rx_packets, rx_errors, rx_dropped;
        uint64_t tx_bytes, tx_packets, tx_errors, tx_dropped;
} NetworkInterfaceUsage;

/* The interfaces of the network namespace of a process (0: the own one) but "lo", at most
 * NETWORK_INTERFACES_MAX. Needs no privilege. Their number, or -errno. */
int network_usage(pid_t pid, NetworkInterfaceUsage *ret);
