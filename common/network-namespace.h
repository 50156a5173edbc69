/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections from within another network namespace, and the traffic on its interfaces. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Connects to a TCP port on the loopback address of a network namespace: with IPv6 only, or with
 * IPv4 and, if that is refused at once, with IPv6; 'namespace_fd' < 0: this process's own
 * namespace. Does not block: the connection may still be in progress, and be refused later. Only
 * for single-threaded programs, because the process enters the namespace for a moment. Returns a
 * non-blocking socket or -errno. */
int connect_to_loopback_of_namespace(int namespace_fd, unsigned port, bool is_ipv6);

enum {
        NETWORK_INTERFACES_MAX = 32
};

/* The traffic on an interface since it was created. */
typedef struct NetworkInterfaceUsage {
        char name[IFNAMSIZ];
        uint64_t rx_bytes, rx_packets, rx_errors, rx_dropped;
        uint64_t tx_bytes, tx_packets, tx_errors, tx_dropped;
} NetworkInterfaceUsage;

/* The interfaces in the network namespace of a process (0: this process) except "lo", at most
 * NETWORK_INTERFACES_MAX. Needs no privileges. Returns their number, or -errno. */
int network_usage(pid_t pid, NetworkInterfaceUsage *ret);
