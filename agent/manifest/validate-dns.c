/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' rules for dnsPolicy, dnsConfig, hostname and subdomain. */

#include "agent/manifest/pod-rules.h"
#include "common/strv.h"

#include <errno.h>

/* Kubernetes' limits (pkg/apis/core/validation). */
enum {
        NAMESERVERS_MAX = 3,
        SEARCHES_MAX = 32,
        SEARCH_CHARACTERS_MAX = 2048,
};

static size_t search_length(char *const *searches) {
        size_t length = 0;

        for (size_t i = 0; searches && searches[i]; i++)
                length += strlen(searches[i]) + (i > 0);
        return length;
}

int pod_validate_dns(const PodSpec *spec, const char **ret_field, Error *reterr) {
        const PodDnsConfig *config = spec->dns_config;
        size_t n = config ? strv_length(config->nameservers) : 0;

        *ret_field = "dnsConfig";
        if (!config && spec->dns_policy == DNS_POLICY_NONE)
                return error_setf(reterr, EINVAL, "must be provided when dnsPolicy is None");
        if (!config)
                return 0;
        *ret_field = "dnsConfig.nameservers";
        if (spec->dns_policy == DNS_POLICY_NONE && n == 0)
                return error_setf(reterr, EINVAL,
                                  "must provide at least one DNS nameserver when dnsPolicy is "
                                  "None");
        if (n > NAMESERVERS_MAX)
                return error_setf(reterr, EINVAL, "must not have more than %d nameservers",
                                  NAMESERVERS_MAX);
        *ret_field = "dnsConfig.searches";
        if (strv_length(config->searches) > SEARCHES_MAX)
                return error_setf(reterr, EINVAL, "must not have more than %d search paths",
                                  SEARCHES_MAX);
        if (search_length(config->searches) > SEARCH_CHARACTERS_MAX)
                return error_setf(reterr, EINVAL,
                                  "must not have more than %d characters (including spaces) in "
                                  "the search list",
                                  SEARCH_CHARACTERS_MAX);
        return 0;
}

int pod_validate_hostname(const PodSpec *spec, const char **ret_field, Error *reterr) {
        if (!strna(spec->hostname_override)[0])
                return 0;
        *ret_field = "setHostnameAsFQDN";
        if (spec->set_hostname_as_fqdn)
                return error_setf(reterr, EINVAL, "may not be true when `hostnameOverride` is set");
        *ret_field = "hostNetwork";
        if (spec->host_network)
                return error_setf(reterr, EINVAL, "may not be true when `hostnameOverride` is set");
        return 0;
}
