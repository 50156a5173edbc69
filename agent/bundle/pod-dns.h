/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who a pod is on the network: its host name, its /etc/hosts, its /etc/resolv.conf, as the kubelet
 * makes them (pkg/kubelet/network/dns, util/hostname.go, kubelet_pods.go). Pure functions: text
 * out, freed by the caller. */

#include "agent/bundle/bundle.h"

enum {
        HOSTNAME_MAX = 64, /* the kernel's */
        ETC_FILE_MAX = 1024 * 1024,
};

/* What the pod's processes are told as their host name: the node's in its network; else
 * hostnameOverride as it is, or spec.hostname or the pod's name, cut to a DNS label, with the
 * domain where setHostnameAsFQDN asks for it. -EINVAL with the sentence where that is longer than
 * the kernel takes. */
int pod_hostname(const BundleConfig *config, const Pod *pod, char **ret, Error *reterr);

/* /etc/hosts of a pod with addresses of its own, or (none) with the node's, whose text is
 * 'node_hosts'. NULL: no memory. */
char *pod_hosts(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                size_t n_addresses, const char *node_hosts);

/* /etc/resolv.conf by dnsPolicy and dnsConfig; 'node_resolv_conf' is the node's. Never more than 3
 * nameservers and 32 search domains of 2048 characters: what is beyond is left out. NULL: no
 * memory. */
char *pod_resolv_conf(const BundleConfig *config, const Pod *pod, const char *node_resolv_conf);
