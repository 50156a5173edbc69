/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the built-in network, depending on the features of the node. */

#include "agent/cni/built-in-network.h"
#include "agent/cni/network-config.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN "fd12:3456:789a:1::/64"

static char *place(const char *name) {
        static char paths[8][256];
        static unsigned n;
        char *path = paths[n++ % N_ELEMENTS(paths)];

        (void) snprintf(path, sizeof(paths[0]), "%s/%s", test_directory(), name);
        return path;
}

static void write_file(const char *name, const char *text, mode_t mode) {
        cleanup_close int fd = -EBADF;
        cleanup_free char *parent = strdup(place(name));

        *strrchr(parent, '/') = '\0';
        REQUIRE(mkdir_parents_at(AT_FDCWD, parent, 0755) >= 0);
        fd = open(place(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text) &&
                fchmod(fd, mode) == 0);
}

/* A node with IPv6 and iptables. */
static CniBuiltInNetwork make_network(void) {
        write_file("sysctl/all/disable_ipv6", "0\n", 0644);
        write_file("sysctl/default/disable_ipv6", "0\n", 0644);
        write_file("bin/iptables", "", 0755);
        return (CniBuiltInNetwork){ .ipv4 = CNI_BUILT_IN_IPV4,
                                    .ipv6 = OWN,
                                    .is_ipv6_default = true,
                                    .sysctl_dir = place("sysctl"),
                                    .program_path = place("bin") };
}

/* Parses the configuration like the attachment of a pod does. */
static json_t *load(const CniBuiltInNetwork *network) {
        cleanup_free char *text = cni_built_in_config(network);
        json_t *list = NULL;

        REQUIRE(text && cni_config_list_parse(text, &list, NULL) == 0);
        return list;
}

#define EXPECT_HAS(text, part)   EXPECT((text) && strstr((text), (part)))
#define EXPECT_LACKS(text, part) EXPECT((text) && !strstr((text), (part)))

TEST(ipv4_network_equals_the_packaged_configuration)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *file = NULL;
        cleanup_json json_t *packaged = NULL, *ours = NULL;

        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/packaging/cni/99-mainstay.conflist", MIB, &file,
                             NULL) == 0);
        REQUIRE(cni_config_list_parse(file, &packaged, NULL) == 0);
        network.ipv6 = NULL;
        ours = load(&network);
        EXPECT(json_equal(packaged, ours));
}

TEST(network_has_both_families_if_the_kernel_has_ipv6)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *text = cni_built_in_config(&network);

        EXPECT_HAS(text, "\"ranges\":[[{\"subnet\":\"" CNI_BUILT_IN_IPV4 "\"}],[{\"subnet\":\"" OWN
                         "\"}]]");
        EXPECT_HAS(text, "\"routes\":[{\"dst\":\"0.0.0.0/0\"},{\"dst\":\"::/0\"}]");
        EXPECT_HAS(text, "\"conditionsV6\":[\"!\",\"-d\",\"::1/128\"]");
}

TEST(network_has_only_ipv4_if_ipv6_is_missing_or_disabled)
{
        static const char *const disabled[] = { "sysctl/all/disable_ipv6",
                                                "sysctl/default/disable_ipv6",
                                                "sysctl/mainstay0/disable_ipv6" };
        CniBuiltInNetwork network = make_network();
        cleanup_free char *none = NULL;

        for (size_t i = 0; i < N_ELEMENTS(disabled); i++) {
                cleanup_free char *text = NULL;

                write_file(disabled[i], "1\n", 0644);
                text = cni_built_in_config(&network);
                EXPECT_LACKS(text, OWN);
                EXPECT_LACKS(text, "::");
                EXPECT_HAS(text, CNI_BUILT_IN_IPV4);
                write_file(disabled[i], "0\n", 0644);
        }
        network.sysctl_dir = place("nowhere");
        none = cni_built_in_config(&network);
        EXPECT_LACKS(none, "::");
}

TEST(existing_bridge_decides_about_ipv6_before_the_default_of_new_interfaces)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *text = NULL;

        write_file("sysctl/default/disable_ipv6", "1\n", 0644);
        write_file("sysctl/mainstay0/disable_ipv6", "0\n", 0644);
        text = cni_built_in_config(&network);
        EXPECT_HAS(text, OWN);
}

TEST(ipv6_only_range_is_kept_if_the_kernel_has_no_ipv6)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *text = NULL;

        network.ipv4 = NULL;
        network.sysctl_dir = place("nowhere");
        text = cni_built_in_config(&network);
        EXPECT_HAS(text, "\"ranges\":[[{\"subnet\":\"" OWN "\"}]]");
        EXPECT_HAS(text, "\"routes\":[{\"dst\":\"::/0\"}]");
}

TEST(nftables_is_used_only_without_iptables)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *both = NULL, *only = NULL, *none = NULL;

        write_file("bin/nft", "", 0755);
        both = cni_built_in_config(&network);
        EXPECT_LACKS(both, "nftables");
        REQUIRE(unlink(place("bin/iptables")) == 0);
        only = cni_built_in_config(&network);
        EXPECT_HAS(only, "\"ipMasqBackend\":\"nftables\"");
        EXPECT_HAS(only, "\"backend\":\"nftables\"");
        EXPECT_HAS(only, "\"conditionsV6\":[\"ip6\",\"daddr\",\"!=\",\"::1\"]");
        EXPECT_LACKS(only, "\"firewall\"");
        EXPECT_HAS(only, "\"bandwidth\"");
        /* The configuration stays valid: the plugin reports what is missing. */
        REQUIRE(unlink(place("bin/nft")) == 0);
        none = cni_built_in_config(&network);
        EXPECT_LACKS(none, "nftables");
        EXPECT_HAS(none, "\"firewall\"");
}

TEST(default_ipv6_range_is_dropped_once_if_ip6tables_fails)
{
        CniBuiltInNetwork network = make_network();
        cleanup_free char *text = NULL;

        EXPECT(!cni_built_in_drop_ipv6(&network, "plugin type=\"bridge\" failed (add): no space"));
        EXPECT(cni_built_in_drop_ipv6(&network, "running [/usr/sbin/ip6tables -t nat -N X]: 3"));
        EXPECT(!cni_built_in_drop_ipv6(&network, "running [/usr/sbin/ip6tables -t nat -N X]: 3"));
        text = cni_built_in_config(&network);
        EXPECT_LACKS(text, "::");
}

TEST(configured_ipv6_range_is_never_dropped)
{
        CniBuiltInNetwork network = make_network();

        network.is_ipv6_default = false;
        EXPECT(!cni_built_in_drop_ipv6(&network, "running [/usr/sbin/ip6tables -t nat -N X]: 3"));
        EXPECT(!cni_built_in_drop_ipv6(NULL, "ip6tables"));
}
