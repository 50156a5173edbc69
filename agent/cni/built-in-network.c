/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cni/built-in-network.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/macros.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BRIDGE "mainstay0"

static bool is_ipv6_disabled(const CniBuiltInNetwork *network, const char *interface) {
        cleanup_free char *path = NULL, *text = NULL;

        path = text_format("%s/%s/disable_ipv6",
                           network->sysctl_dir ? network->sysctl_dir : "/proc/sys/net/ipv6/conf",
                           interface);
        return !path || read_file_at(AT_FDCWD, path, 16, &text, NULL) < 0 || text[0] != '0';
}

static bool has_bridge(const CniBuiltInNetwork *network) {
        cleanup_free char *path = NULL;

        path = text_format("%s/" BRIDGE,
                           network->sysctl_dir ? network->sysctl_dir : "/proc/sys/net/ipv6/conf");
        return path && access(path, F_OK) >= 0;
}

/* A new interface inherits the value of "default". */
bool cni_built_in_has_ipv6(const CniBuiltInNetwork *network) {
        return !is_ipv6_disabled(network, "all") &&
               !is_ipv6_disabled(network, has_bridge(network) ? BRIDGE : "default");
}

static bool has_program(const CniBuiltInNetwork *network, const char *name) {
        cleanup_free char *path = NULL;
        char *rest, *directory;

        path = strdup(network->program_path ? network->program_path : CNI_PROGRAM_PATH);
        rest = path;
        while ((directory = strsep(&rest, ":"))) {
                cleanup_free char *program = path_join(directory, name);

                if (program && access(program, X_OK) >= 0)
                        return true;
        }
        return false;
}

/* ---- the plugins ---- */

static json_t *make_ipam(const char *ipv4, const char *ipv6) {
        const struct {
                const char *subnet, *everywhere;
        } families[] = { { ipv4, "0.0.0.0/0" }, { ipv6, "::/0" } };
        json_t *ranges = json_array(), *routes = json_array();

        for (size_t i = 0; i < N_ELEMENTS(families); i++) {
                if (!families[i].subnet)
                        continue;
                (void) json_array_append_new(ranges,
                                             json_pack("[{s:s}]", "subnet", families[i].subnet));
                (void) json_array_append_new(routes,
                                             json_pack("{s:s}", "dst", families[i].everywhere));
        }
        return json_pack("{s:s, s:o, s:o}", "type", "host-local", "ranges", ranges, "routes",
                         routes);
}

static json_t *make_bridge(const char *ipv4, const char *ipv6, const char *backend) {
        return json_pack("{s:s, s:s, s:b, s:b, s:b, s:s*, s:o}", "type", "bridge", "bridge", BRIDGE,
                         "isGateway", 1, "ipMasq", 1, "hairpinMode", 1, "ipMasqBackend", backend,
                         "ipam", make_ipam(ipv4, ipv6));
}

/* The kernel does not route packets from ::1 to another interface. Without this condition, a
 * connection to [::1]:<hostPort> would hang; with it, the connection is refused as if there were no
 * IPv6, and clients of "localhost" fall back to 127.0.0.1. */
static json_t *make_portmap(bool has_ipv6, const char *backend) {
        json_t *condition = NULL;

        if (has_ipv6 && backend)
                condition = json_pack("[s, s, s, s]", "ip6", "daddr", "!=", "::1");
        else if (has_ipv6)
                condition = json_pack("[s, s, s]", "!", "-d", "::1/128");
        return json_pack("{s:s, s:{s:b}, s:s*, s:o*}", "type", "portmap", "capabilities",
                         "portMappings", 1, "backend", backend, "conditionsV6", condition);
}

char *cni_built_in_config(const CniBuiltInNetwork *network) {
        static const CniBuiltInNetwork ipv4_only = { .ipv4 = CNI_BUILT_IN_IPV4 };
        const CniBuiltInNetwork *n = network ? network : &ipv4_only;
        bool has_ipv6 = n->ipv6 && !n->is_ipv6_unusable && (!n->ipv4 || cni_built_in_has_ipv6(n));
        bool has_iptables = has_program(n, "iptables") || !has_program(n, "nft");
        const char *backend = has_iptables ? NULL : "nftables";
        cleanup_json json_t *list = NULL;
        json_t *plugins = json_array();

        (void) json_array_append_new(plugins,
                                     make_bridge(n->ipv4, has_ipv6 ? n->ipv6 : NULL, backend));
        (void) json_array_append_new(plugins, make_portmap(has_ipv6, backend));
        if (has_iptables)
                (void) json_array_append_new(plugins, json_pack("{s:s}", "type", "firewall"));
        (void) json_array_append_new(plugins, json_pack("{s:s, s:{s:b}}", "type", "bandwidth",
                                                        "capabilities", "bandwidth", 1));
        if (json_array_size(plugins) != (has_iptables ? 4 : 3)) {
                json_decref(plugins);
                return NULL;
        }
        list = json_pack("{s:s, s:s, s:o}", "cniVersion", "1.0.0", "name", "mainstay", "plugins",
                         plugins);
        return list ? json_to_text(list, JSON_COMPACT) : NULL;
}

bool cni_built_in_drop_ipv6(CniBuiltInNetwork *network, const char *message) {
        if (!network || !network->is_ipv6_default || network->is_ipv6_unusable || !network->ipv4 ||
            !strstr(message, "ip6tables"))
                return false;
        network->is_ipv6_unusable = true;
        return true;
}
