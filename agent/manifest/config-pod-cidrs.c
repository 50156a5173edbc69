/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/config-pod-cidrs.h"

#include "common/cleanup.h"
#include "common/strv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        IPV4_BITS_MIN = 8, /* of a prefix */
        IPV4_BITS_MAX = 29,
        IPV6_BITS_MIN = 32,
        IPV6_BITS_MAX = 120,
};

typedef struct PodCidr {
        int family;
        unsigned char address[sizeof(struct in6_addr)];
        unsigned bits; /* of the prefix */
} PodCidr;

static bool parse_prefix_bits(const char *text, unsigned *ret) {
        size_t length = strspn(text, "0123456789");

        if (length == 0 || length > 3 || text[length] || (text[0] == '0' && length > 1))
                return false;
        *ret = (unsigned) strtoul(text, NULL, 10);
        return true;
}

static bool parse_pod_cidr(const char *text, PodCidr *ret) {
        const char *slash = strchr(text, '/');
        cleanup_free char *address = slash ? strndup(text, (size_t) (slash - text)) : NULL;

        *ret = (PodCidr){ .family = strchr(text, ':') ? AF_INET6 : AF_INET };
        return address && inet_pton(ret->family, address, ret->address) == 1 &&
               parse_prefix_bits(slash + 1, &ret->bits);
}

/* Whether the address has host bits set, which the plugin host-local refuses. */
static bool has_host_bits(const PodCidr *cidr, size_t n_bytes) {
        for (size_t i = cidr->bits; i < n_bytes * 8; i++)
                if (cidr->address[i / 8] & (0x80 >> i % 8))
                        return true;
        return false;
}

/* Unspecified, loopback, link-local and multicast addresses, and IPv4 addresses embedded in IPv6:
 * pods cannot have them. */
static bool is_special_range(const PodCidr *cidr) {
        struct in6_addr in6;

        if (cidr->family == AF_INET)
                return cidr->address[0] == 0 || cidr->address[0] == 127 ||
                       cidr->address[0] >= 224 ||
                       (cidr->address[0] == 169 && cidr->address[1] == 254);
        memcpy(&in6, cidr->address, sizeof(in6));
        return IN6_IS_ADDR_LINKLOCAL(&in6) || IN6_IS_ADDR_MULTICAST(&in6) || cidr->address[0] == 0;
}

static int check_pod_cidr(const char *text, int *ret_family, Error *reterr) {
        PodCidr cidr;
        bool is_ipv4;
        unsigned min, max;

        if (!parse_pod_cidr(text, &cidr))
                return error_setf(reterr, EINVAL,
                                  "must be a range of addresses such as 10.189.0.0/16 or "
                                  "fd12:3456:789a:1::/64, not '%.64s'",
                                  text);
        is_ipv4 = cidr.family == AF_INET;
        min = is_ipv4 ? IPV4_BITS_MIN : IPV6_BITS_MIN;
        max = is_ipv4 ? IPV4_BITS_MAX : IPV6_BITS_MAX;
        if (cidr.bits < min || cidr.bits > max)
                return error_setf(reterr, EINVAL,
                                  "must have a prefix of %u to %u bits in %s, not %u: '%.64s'", min,
                                  max, is_ipv4 ? "IPv4" : "IPv6", cidr.bits, text);
        if (has_host_bits(&cidr, is_ipv4 ? 4 : 16))
                return error_setf(reterr, EINVAL,
                                  "must be the address of a network: bits behind the prefix of %u "
                                  "are set in '%.64s'",
                                  cidr.bits, text);
        if (is_special_range(&cidr))
                return error_setf(reterr, EINVAL,
                                  "must have addresses that pods can use, not '%.64s'", text);
        *ret_family = cidr.family;
        return 0;
}

/* At most one per family. 'ret_i': index of the invalid one. */
static int check_pod_cidr_list(char *const *cidrs, size_t *ret_i, Error *reterr) {
        int first = AF_UNSPEC;

        for (size_t i = 0; cidrs && cidrs[i]; i++) {
                int family = AF_UNSPEC, r = check_pod_cidr(cidrs[i], &family, reterr);

                *ret_i = i;
                if (r < 0)
                        return r;
                if (i > 1 || family == first)
                        return error_setf(reterr, EINVAL,
                                          "must be at most one range of each family; '%.64s' is "
                                          "one more",
                                          cidrs[i]);
                first = family;
        }
        return 0;
}

/* The kubelet's form, with commas as separators. */
static int split_pod_cidr(const char *text, char ***ret) {
        cleanup_free char *copy = strdup(text);
        char *rest = copy, *item;

        if (!copy)
                return -ENOMEM;
        while ((item = strsep(&rest, ","))) {
                int r;

                item += strspn(item, " ");
                item[strcspn(item, " ")] = '\0';
                r = strv_append(ret, item);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_kubelet_pod_cidr(const Decoder *d, const YamlNode *root, Config *config) {
        const DecodePath path = { .key = "podCIDR" };
        cleanup_strv char **cidrs = NULL;
        size_t i;
        int r = split_pod_cidr(config->pod_cidr, &cidrs);

        if (r < 0)
                return r;
        r = check_pod_cidr_list(cidrs, &i, d->reterr);
        if (r >= 0 && config->mainstay.pod_cidrs && !strv_equal(config->mainstay.pod_cidrs, cidrs))
                r = error_setf(d->reterr, EINVAL, "contradicts mainstay.podCIDRs");
        if (r < 0)
                return decode_error_at(d, yaml_node_get(root, path.key), &path, r);
        if (!config->mainstay.pod_cidrs)
                config->mainstay.pod_cidrs = TAKE_PTR(cidrs);
        return 0;
}

int config_read_pod_cidrs(const Decoder *d, const YamlNode *root, Config *config) {
        const DecodePath mainstay = { .key = "mainstay" };
        const DecodePath list = { .parent = &mainstay, .key = "podCIDRs" };
        size_t i = 0;
        int r = check_pod_cidr_list(config->mainstay.pod_cidrs, &i, d->reterr);

        if (r < 0) {
                const DecodePath path = { .parent = &list, .index = i };
                const YamlNode *items = yaml_node_get(yaml_node_get(root, mainstay.key), list.key);

                return decode_error_at(d, items->items[i], &path, r);
        }
        return strna(config->pod_cidr)[0] ? read_kubelet_pod_cidr(d, root, config) : 0;
}
