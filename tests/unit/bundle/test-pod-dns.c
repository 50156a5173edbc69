/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-dns.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

static char *cluster_dns[] = { (char[]){ "10.96.0.10" }, NULL };
static const BundleConfig config = {
        .hostname = "node1",
        .cluster_domain = "k.example",
        .cluster_dns = cluster_dns,
};
static const BundleConfig alone = { .hostname = "node1", .cluster_domain = "k.example" };

static ManifestObjects parse_pod(const char *name, const char *spec) {
        cleanup_free char *text = NULL;
        cleanup_error Error error = ERROR_NULL;
        ManifestObjects objects = { 0 };

        REQUIRE(asprintf(&text,
                         "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop}, spec: "
                         "{containers: [{name: c, image: i}]%s}}",
                         name, spec) > 0);
        (void) manifest_parse("f", text, strlen(text), "node1", &objects, &error);
        EXPECT_STREQ(error.message, NULL);
        REQUIRE(objects.pods.n == 1);
        return objects;
}

#define X63 "x23456789-x23456789-x23456789-x23456789-x23456789-x23456789-x23"

TEST(host_name_follows_spec_and_network)
{
        static const struct {
                const char *name, *spec, *hostname;
        } cases[] = {
                { "web", "", "web-node1" },
                { "web", ", hostname: www", "www" },
                { "web", ", hostname: www, subdomain: s", "www" },
                { "web", ", hostname: www, subdomain: s, setHostnameAsFQDN: true",
                  "www.s.shop.svc.k.example" },
                { "web", ", hostname: www, setHostnameAsFQDN: true", "www" },
                { "web", ", hostname: www, hostNetwork: true", "node1" },
                { "web", ", hostname: www, subdomain: s, hostnameOverride: a.b.example",
                  "a.b.example" },
                /* cut to 63 characters, without a trailing '-' or '.' */
                { X63 "abc", "", X63 },
                { "x23456789-x23456789-x23456789-x23456789-x23456789-x23456789-xx.yyyyyy", "",
                  "x23456789-x23456789-x23456789-x23456789-x23456789-x23456789-xx" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects = parse_pod(cases[i].name, cases[i].spec);
                cleanup_free char *hostname = NULL;

                EXPECT_EQ(pod_hostname(&config, objects.pods.items[0], &hostname, NULL), 0);
                EXPECT_STREQ(hostname, cases[i].hostname);
                manifest_objects_done(&objects);
        }
}

TEST(too_long_fqdn_is_an_error)
{
        ManifestObjects objects =
                parse_pod("web", ", hostname: " X63 ", subdomain: s, setHostnameAsFQDN: true");
        cleanup_error Error error = ERROR_NULL;
        char *hostname = NULL;

        EXPECT_EQ(pod_hostname(&config, objects.pods.items[0], &hostname, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "failed to construct FQDN from pod hostname and cluster domain, FQDN " X63
                     ".s.shop.svc.k.example is too long (64 characters is the max, 84 characters "
                     "requested)");
        manifest_objects_done(&objects);
}

TEST(hosts_file_has_pod_addresses_and_aliases)
{
        static const char *const addresses[] = { "10.1.2.3", "fd00::3" };
        ManifestObjects objects = parse_pod(
                "web", ", subdomain: s, hostAliases: [{ip: 192.0.2.1, hostnames: [a, b.c]}, "
                       "{ip: '::9', hostnames: [d]}]");
        cleanup_free char *own =
                compose_hosts_file(&config, objects.pods.items[0], addresses, 2, NULL);
        cleanup_free char *node =
                compose_hosts_file(&config, objects.pods.items[0], NULL, 0, "127.0.0.1\tx\n");

        EXPECT_STREQ(own, "# Kubernetes-managed hosts file.\n"
                          "127.0.0.1\tlocalhost\n"
                          "::1\tlocalhost ip6-localhost ip6-loopback\n"
                          "fe00::0\tip6-localnet\n"
                          "fe00::0\tip6-mcastprefix\n"
                          "fe00::1\tip6-allnodes\n"
                          "fe00::2\tip6-allrouters\n"
                          "10.1.2.3\tweb-node1.s.shop.svc.k.example\tweb-node1\n"
                          "fd00::3\tweb-node1.s.shop.svc.k.example\tweb-node1\n"
                          "\n# Entries added by HostAliases.\n"
                          "192.0.2.1\ta\tb.c\n"
                          "::9\td\n");
        EXPECT_STREQ(node, "# Kubernetes-managed hosts file (host network).\n"
                           "127.0.0.1\tx\n"
                           "\n# Entries added by HostAliases.\n"
                           "192.0.2.1\ta\tb.c\n"
                           "::9\td\n");
        manifest_objects_done(&objects);
}

#define NODE                                                                    \
        "# by hand\nsearch old\nsearch lan  home ; x\nnameserver \t192.0.2.53 " \
        "192.0.2.54\t\nnameserver ::1\n"                                        \
        "domain ignored\noptions rotate timeout:1\n"
#define NODE_CLEAN \
        "search lan home\nnameserver 192.0.2.53\nnameserver ::1\noptions rotate timeout:1\n"
#define CLUSTER                                                                               \
        "search shop.svc.k.example svc.k.example k.example lan home\nnameserver 10.96.0.10\n" \
        "options ndots:5\n"

TEST(resolv_conf_follows_policy_and_configuration)
{
        static const struct {
                const BundleConfig *config;
                const char *spec, *node, *expected;
        } cases[] = {
                { &config, "", NODE, CLUSTER },
                { &config, ", dnsPolicy: Default", NODE, NODE_CLEAN },
                { &config, ", hostNetwork: true", NODE, NODE_CLEAN },
                { &config, ", hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet", NODE,
                  CLUSTER },
                { &alone, "", NODE, NODE_CLEAN },
                { &alone, ", dnsPolicy: ClusterFirstWithHostNet", NODE, NODE_CLEAN },
                { &alone, "", "", "" },
                { &alone, "", "search . lan. lan home\n", "search lan home\n" },
                { &alone, "", "search .\n", "" },
                { &config, "", "search .\n",
                  "search shop.svc.k.example svc.k.example k.example\nnameserver 10.96.0.10\n"
                  "options ndots:5\n" },
                { &config, ", dnsPolicy: None, dnsConfig: {nameservers: [1.1.1.1]}", NODE,
                  "nameserver 1.1.1.1\n" },
                { &config,
                  ", dnsConfig: {nameservers: [10.96.0.10, 1.1.1.1], searches: [lan, z], options: "
                  "[{name: ndots, value: '2'}, {name: edns0}]}",
                  NODE,
                  "search shop.svc.k.example svc.k.example k.example lan home z\n"
                  "nameserver 10.96.0.10\nnameserver 1.1.1.1\noptions ndots:2 edns0\n" },
                { &config, ", dnsPolicy: Default, dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2]}",
                  "nameserver 9.9.9.9\nnameserver 8.8.8.8\nnameserver 7.7.7.7\nnameserver "
                  "6.6.6.6\n",
                  "nameserver 9.9.9.9\nnameserver 8.8.8.8\nnameserver 7.7.7.7\n" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects = parse_pod("web", cases[i].spec);
                cleanup_free char *text =
                        pod_resolv_conf(cases[i].config, objects.pods.items[0], cases[i].node);

                EXPECT_STREQ(text, cases[i].expected);
                manifest_objects_done(&objects);
        }
}

TEST(a_search_list_that_is_too_long_is_cut)
{
        ManifestObjects objects = parse_pod("web", ", dnsPolicy: Default");
        char node[4096] = "search";
        cleanup_free char *text = NULL;
        size_t words = 0;

        for (unsigned i = 0; i < 40; i++)
                (void) snprintf(node + strlen(node), sizeof(node) - strlen(node), " d%02u.%s", i,
                                X63);
        text = pod_resolv_conf(&alone, objects.pods.items[0], node);
        REQUIRE(text);
        for (const char *c = text; *c; c++)
                words += *c == ' ';
        EXPECT(words < 32 && words > 25);
        EXPECT(strlen(text) <= strlen("search ") + 2048 + 1);
        manifest_objects_done(&objects);
}
