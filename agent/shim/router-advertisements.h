/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The plugin bridge makes the node forward IPv6 (net.ipv6.conf.all.forwarding). From then on the
 * kernel ignores router advertisements on interfaces with accept_ra=1, the default, and a node that
 * has its address and default route from them loses both after some minutes. */

/* To be called before forwarding is enabled: sets accept_ra=2, which accepts them in any case, for
 * interfaces on which they are accepted now, and for new interfaces. Does nothing if forwarding is
 * already enabled. 'directory' is /proc/sys/net/ipv6/conf. A failure is logged. */
void keep_router_advertisements(const char *directory);
