/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The built-in network: a bridge, for a node without a network plugin. Its configuration is
 * generated for each pod that is attached, according to what is available on the node at that
 * moment: IPv6, iptables or nftables. */

#include <stdbool.h>

/* Strings are borrowed. */
typedef struct CniBuiltInNetwork {
        const char *ipv4;         /* the range of the pods: "10.189.0.0/16"; NULL: none */
        const char *ipv6;         /* the same: "fd12:…::/64"; NULL: none */
        bool is_ipv6_default;     /* the IPv6 range is the default one, which is silently omitted on
                                   * a node without IPv6 */
        bool is_ipv6_unusable;    /* plugins have failed because of it, see below */
        const char *sysctl_dir;   /* NULL: /proc/sys/net/ipv6/conf */
        const char *program_path; /* NULL: CNI_PROGRAM_PATH */
} CniBuiltInNetwork;

/* The directories in which plugins find programs such as iptables. */
#define CNI_PROGRAM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#define CNI_BUILT_IN_IPV4 "10.189.0.0/16"

/* The configuration list, as text that the caller frees; NULL: out of memory. 'network' may be NULL
 * for only the default IPv4 range, as in packaging/cni/99-mainstay.conflist.
 *
 * The IPv6 range is omitted if the kernel does not support IPv6 or it is disabled, unless it is the
 * only range. Without iptables, but with nft, the plugins are configured to use nftables, which
 * version 1.6 and later support; the plugin firewall does not, and is omitted. */
char *cni_built_in_config(const CniBuiltInNetwork *network);

/* Whether the kernel supports IPv6 and it is not disabled for the bridge. */
bool cni_built_in_has_ipv6(const CniBuiltInNetwork *network);

/* Handles an error from a plugin of this network. If the cause is the default IPv6 range, for
 * example on a kernel without NAT for IPv6, drops the range and returns true, once. */
bool cni_built_in_drop_ipv6(CniBuiltInNetwork *network, const char *message);
