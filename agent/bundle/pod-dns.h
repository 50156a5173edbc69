/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod's host name, /etc/hosts and /etc/resolv.conf (dnsPolicy, dnsConfig, hostAliases), as the
 * kubelet makes them (pkg/kubelet/network/dns, util/hostname.go, kubelet_pods.go). Pure functions:
 * they return text, freed by the caller. */

#include "agent/bundle/bundle-settings.h"

enum {
        HOSTNAME_MAX = 64, /* HOST_NAME_MAX of the kernel */
        ETC_FILE_MAX = 1024 * 1024,
};

/* The host name of the pod's processes: in the host network the node's; else hostnameOverride
 * unchanged, or spec.hostname or the pod's name, cut to a DNS label, with the domain if
 * setHostnameAsFQDN is set. -EINVAL with a message if that is longer than the kernel accepts. */
int pod_hostname(const BundleConfig *config, const Pod *pod, char **ret, Error *reterr);

/* /etc/hosts of a pod with its own addresses, or (n = 0) a copy of the node's, whose content is
 * 'node_hosts'. NULL: out of memory. */
char *compose_hosts_file(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                         size_t n_addresses, const char *node_hosts);

/* /etc/resolv.conf by dnsPolicy and dnsConfig; 'node_resolv_conf' is the content of the node's.
 * Limited to 3 nameservers and 32 search domains of 2048 characters; the rest is left out. NULL:
 * out of memory. */
char *pod_resolv_conf(const BundleConfig *config, const Pod *pod, const char *node_resolv_conf);
