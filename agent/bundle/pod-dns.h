/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod's host name, /etc/hosts and /etc/resolv.conf (dnsPolicy, dnsConfig, hostAliases), as in
 * the kubelet (pkg/kubelet/network/dns, util/hostname.go, kubelet_pods.go). Pure functions: they
 * return text, freed by the caller. */

#include "agent/bundle/bundle-settings.h"

enum {
        HOSTNAME_MAX = 64, /* the kernel's HOST_NAME_MAX */
        ETC_FILE_MAX = 1024 * 1024,
};

/* The host name of the pod's processes: the node's in the host network; otherwise hostnameOverride
 * unchanged, or spec.hostname or the pod's name, truncated to a DNS label, with the domain if
 * setHostnameAsFQDN is set. -EINVAL with a message if it is longer than the kernel accepts. */
int pod_hostname(const BundleConfig *config, const Pod *pod, char **ret, Error *reterr);

/* /etc/hosts for a pod with its own addresses, or (n = 0) a copy of the node's, whose content is
 * 'node_hosts'. NULL: out of memory. */
char *compose_hosts_file(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                         size_t n_addresses, const char *node_hosts);

/* /etc/resolv.conf according to dnsPolicy and dnsConfig; 'node_resolv_conf' is the content of the
 * node's file. Limited to 3 nameservers and 32 search domains with 2048 characters; the rest is
 * omitted. NULL: out of memory. */
char *pod_resolv_conf(const BundleConfig *config, const Pod *pod, const char *node_resolv_conf);
