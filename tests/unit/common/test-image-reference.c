/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/registry-name.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <errno.h>

#define HEX    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DIGEST "sha256:" HEX
#define A64    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define T128   A64 A64
/* The name has 255 characters including "docker.io/library/". */
#define N237 A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define REFUSED "refused"

static void expect_normalised(const char *reference, const char *expected) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *normal = NULL, *again = NULL;
        bool is_refused = streq(expected, REFUSED);
        int r = image_reference_normalise(reference, &normal, &error);

        if (r != (is_refused ? -EINVAL : 0) ||
            !streq(is_refused ? REFUSED : strna(normal), expected))
                test_fail(__FILE__, __LINE__, reference, "gives %d, '%s', not '%s'", r,
                          strna(normal), expected);
        EXPECT_EQ(error.message != NULL, is_refused);
        if (is_refused || r < 0)
                return;
        EXPECT_EQ(image_reference_normalise(normal, &again, NULL), 0);
        EXPECT_STREQ(again, expected);
}

/* The second column is the result of ParseNormalizedNamed() and TagNameOnly() of
 * github.com/distribution/reference for the first column. The third column is set if this node
 * deviates: the node spells the registry in the form that is used for comparison, and refuses a
 * registry for which libcurl would connect to a host other than the one in the name. */
TEST(references_match_the_reference_implementation_with_a_normalized_registry)
{
        static const struct {
                const char *reference, *theirs, *ours;
        } cases[] = {
                /* clang-format off */
                { "busybox", "docker.io/library/busybox:latest" },
                { "busybox:1.36", "docker.io/library/busybox:1.36" },
                { "library/busybox", "docker.io/library/busybox:latest" },
                { "docker.io/busybox", "docker.io/library/busybox:latest" },
                { "docker.io/library/busybox", "docker.io/library/busybox:latest" },
                { "index.docker.io/busybox", "docker.io/library/busybox:latest" },
                { "index.docker.io/library/busybox:1", "docker.io/library/busybox:1" },
                { "registry-1.docker.io/library/busybox", "registry-1.docker.io/library/busybox:latest", "docker.io/library/busybox:latest" },
                { "docker.io:443/library/busybox", "docker.io:443/library/busybox:latest", "docker.io/library/busybox:latest" },
                { "DOCKER.IO/library/busybox", "DOCKER.IO/library/busybox:latest", "docker.io/library/busybox:latest" },
                { "DOCKER.IO:0443/busybox", "DOCKER.IO:0443/busybox:latest", "docker.io/library/busybox:latest" },
                { "docker.io:5000/busybox", "docker.io:5000/busybox:latest" },
                { "docker.io/docker.io/busybox", "docker.io/docker.io/busybox:latest" },
                { "127.0.0.1:5000/team/app", "127.0.0.1:5000/team/app:latest" },
                { "127.0.0.1:5000/library/app", "127.0.0.1:5000/library/app:latest" },
                { "127.0.0.1/app", "127.0.0.1/app:latest" },
                { "192.168.0.1/app", "192.168.0.1/app:latest" },
                { "192.168.0.1:80/app", "192.168.0.1:80/app:latest" },
                { "192.168.0.1:8/app", "192.168.0.1:8/app:latest" },
                { "192.168.0.1:25000/app", "192.168.0.1:25000/app:latest" },
                { "192.168.0.1", "docker.io/library/192.168.0.1:latest" },
                { "192.168.0.1:app", "docker.io/library/192.168.0.1:app" },
                { "::1/app", REFUSED },
                { "[::1]/app", "[::1]/app:latest" },
                { "[::1]:5000/app", "[::1]:5000/app:latest" },
                { "[::1]:5000/app:v1", "[::1]:5000/app:v1" },
                { "[::1]:5000/app@sha256:" HEX, "[::1]:5000/app@sha256:" HEX },
                { "[2001:db8::1]/app", "[2001:db8::1]/app:latest" },
                { "[2001:db8::1]:5000/app", "[2001:db8::1]:5000/app:latest" },
                { "[2001:db8::1]:5000/team/app:v1@sha256:" HEX, "[2001:db8::1]:5000/team/app:v1@sha256:" HEX },
                { "[2001:DB8::1]:5000/app", "[2001:DB8::1]:5000/app:latest", "[2001:db8::1]:5000/app:latest" },
                { "[2001:0db8:0:0:0:0:0:1]:5000/app", "[2001:0db8:0:0:0:0:0:1]:5000/app:latest", "[2001:db8::1]:5000/app:latest" },
                { "[0:0:0:0:0:0:0:1]:5000/app", "[0:0:0:0:0:0:0:1]:5000/app:latest", "[::1]:5000/app:latest" },
                { "[fe80::1%eth0]:5000/app", REFUSED },
                { "[fe80::1%25eth0]:5000/app", REFUSED },
                { "[::ffff:192.168.0.1]:5000/app", REFUSED },
                { "[::ffff:c0a8:1]:5000/app", "[::ffff:c0a8:1]:5000/app:latest", REFUSED },
                { "[::1:5]/app", "[::1:5]/app:latest", REFUSED },
                { "[::]:5000/app", "[::]:5000/app:latest" },
                { "[:::]/app", "[:::]/app:latest", REFUSED },
                { "[1]/app", REFUSED },
                { "[]/app", REFUSED },
                { "[::1/app", REFUSED },
                { "::1]/app", REFUSED },
                { "2001:db8::1:5000/app", REFUSED },
                { "localhost/app", "localhost/app:latest" },
                { "localhost:5000/app", "localhost:5000/app:latest" },
                { "localhost:5000/app:v1", "localhost:5000/app:v1" },
                { "localhost:http/app", REFUSED },
                { "localhost:05000/app", "localhost:05000/app:latest", "localhost:5000/app:latest" },
                { "localhost:443/app", "localhost:443/app:latest", "localhost/app:latest" },
                { "localhost:0443/app", "localhost:0443/app:latest", "localhost/app:latest" },
                { "localhost:80/app", "localhost:80/app:latest" },
                { "localhost:0/app", "localhost:0/app:latest", REFUSED },
                { "localhost:65535/app", "localhost:65535/app:latest" },
                { "localhost:65536/app", "localhost:65536/app:latest", REFUSED },
                { "localhost:99999999999999999999/app", "localhost:99999999999999999999/app:latest", REFUSED },
                { "localhost:/app", REFUSED },
                { "localhost:-1/app", REFUSED },
                { "localhost:+1/app", REFUSED },
                { "localhost:0x1388/app", REFUSED },
                { "localhost.:5000/app", REFUSED },
                { "LOCALHOST/app", "LOCALHOST/app:latest", "localhost/app:latest" },
                { "LOCALHOST:5000/app", "LOCALHOST:5000/app:latest", "localhost:5000/app:latest" },
                { "LocalHost:05000/team/app:v1", "LocalHost:05000/team/app:v1", "localhost:5000/team/app:v1" },
                { "localhost", "docker.io/library/localhost:latest" },
                { "localhost:5000", "docker.io/library/localhost:5000" },
                { "localhost/", REFUSED },
                { "Example.COM/app", "Example.COM/app:latest", "example.com/app:latest" },
                { "EXAMPLE.COM:5000/app", "EXAMPLE.COM:5000/app:latest", "example.com:5000/app:latest" },
                { "example.com./app", REFUSED },
                { ".example.com/app", REFUSED },
                { "example..com/app", REFUSED },
                { "-example.com/app", REFUSED },
                { "example-.com/app", REFUSED },
                { "exa_mple.com/app", "exa_mple.com/app:latest", REFUSED },
                { "exa%6Dple.com/app", REFUSED },
                { "example.com:443/a/b:v1", "example.com:443/a/b:v1", "example.com/a/b:v1" },
                { "example.com:0000443/a", "example.com:0000443/a:latest", "example.com/a:latest" },
                { "example.com:8080/a/b@sha256:" HEX, "example.com:8080/a/b@sha256:" HEX },
                { "xn--n3h.com/app", "xn--n3h.com/app:latest" },
                { "XN--N3H.com/app", "XN--N3H.com/app:latest", "xn--n3h.com/app:latest" },
                { "xn--7o8h.com/app:v1@sha256:" HEX, "xn--7o8h.com/app:v1@sha256:" HEX },
                { "b\xc3\xbc" "cher.example/app", REFUSED },
                { "\xe2\x98\x83.com/app", REFUSED },
                { "registry/app", "docker.io/registry/app:latest" },
                { "REGISTRY/app", "REGISTRY/app:latest", "registry:443/app:latest" },
                { "REGISTRY:0443/app", "REGISTRY:0443/app:latest", "registry:443/app:latest" },
                { "registry:5000/app", "registry:5000/app:latest" },
                { "registry:443/app", "registry:443/app:latest" },
                { "127.1/app", "127.1/app:latest", REFUSED },
                { "127.0.1:5000/app", "127.0.1:5000/app:latest", REFUSED },
                { "0177.0.0.1/app", "0177.0.0.1/app:latest", REFUSED },
                { "0x7f.0.0.1/app", "0x7f.0.0.1/app:latest", REFUSED },
                { "0x7f.1:5000/app", "0x7f.1:5000/app:latest", REFUSED },
                { "0x7f000001:5000/app", "0x7f000001:5000/app:latest", REFUSED },
                { "2130706433:5000/app", "2130706433:5000/app:latest", REFUSED },
                { "017700000001:5000/app", "017700000001:5000/app:latest", REFUSED },
                { "127.0.0.01/app", "127.0.0.01/app:latest", REFUSED },
                { "256.0.0.1/app", "256.0.0.1/app:latest", REFUSED },
                { "1.2.3.4.5/app", "1.2.3.4.5/app:latest", REFUSED },
                { "example.1/app", "example.1/app:latest", REFUSED },
                { "example.0x1/app", "example.0x1/app:latest", REFUSED },
                { "example.0x/app", "example.0x/app:latest", REFUSED },
                { "example.0xg/app", "example.0xg/app:latest" },
                { "1.example/app", "1.example/app:latest" },
                { "a.b/app", "a.b/app:latest" },
                { "user@example.com/app", REFUSED },
                { "user:password@example.com/app", REFUSED },
                { "https://example.com/app", REFUSED },
                { "//example.com/app", REFUSED },
                { "example.com//app", REFUSED },
                { "example.com/app?x=1", REFUSED },
                { "example.com/app#x", REFUSED },
                { "example.com\\app", REFUSED },
                { "team/app", "docker.io/team/app:latest" },
                { "a/b/c/d:x", "docker.io/a/b/c/d:x" },
                { "x/a.b-c__d---e/f", "docker.io/x/a.b-c__d---e/f:latest" },
                { "x/a_b", "docker.io/x/a_b:latest" },
                { "x/a___b", REFUSED },
                { "a..b", REFUSED },
                { "-app", REFUSED },
                { "app-", REFUSED },
                { "app--x", "docker.io/library/app--x:latest" },
                { "_app", REFUSED },
                { "app_", REFUSED },
                { "app/", REFUSED },
                { "/app", REFUSED },
                { "a//b", REFUSED },
                { "app:V1_2-3.4", "docker.io/library/app:V1_2-3.4" },
                { "app:_x", "docker.io/library/app:_x" },
                { "app:", REFUSED },
                { "app:-x", REFUSED },
                { "app:.x", REFUSED },
                { "app:a:b", REFUSED },
                { "app:a/b", REFUSED },
                { "app@sha256:" HEX, "docker.io/library/app@sha256:" HEX },
                { "app:v1@sha256:" HEX, "docker.io/library/app:v1@sha256:" HEX },
                { "app@sha256:" HEX ":v1", REFUSED },
                { "quay.io/a/b@sha256:" HEX, "quay.io/a/b@sha256:" HEX },
                { "app@", REFUSED },
                { "app@sha256:abc", REFUSED },
                { "app@sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", REFUSED },
                { "app@sha512:" HEX HEX, "docker.io/library/app@sha512:" HEX HEX, REFUSED },
                { "app@md5:e3b0c44298fc1c149afbf4c8996fb924", REFUSED },
                { "app@sha256:" HEX "@sha256:" HEX, REFUSED },
                { "app:v1@sha256:" HEX "x", REFUSED },
                { "Busybox", REFUSED },
                { "example.com/Team/app", REFUSED },
                { "docker.io/Library/busybox", REFUSED },
                { HEX, REFUSED },
                { "x/" HEX, "docker.io/x/" HEX ":latest" },
                { HEX ":v1", "docker.io/library/" HEX ":v1" },
                { A64, REFUSED },
                { "app name", REFUSED },
                { "b\xc3\xbcro", REFUSED },
                { "app:" A64 A64, "docker.io/library/app:" A64 A64 },
                { "app:" A64 A64 "a", REFUSED },
                { A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "docker.io/library/" A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:latest" },
                { A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "docker.io/library/" A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:latest", REFUSED },
                { "*.example.com/app", REFUSED },
                { "*/app", REFUSED },
                { "..", REFUSED },
                { "./app", REFUSED },
                { "../app", REFUSED },
                /* clang-format on */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_normalised(cases[i].reference,
                                  cases[i].ours ? cases[i].ours : cases[i].theirs);
}

TEST(an_invalid_reference_is_refused_with_its_reason)
{
        static const struct {
                const char *reference, *reason;
        } cases[] = {
                { "", "invalid reference format" },
                { ":latest", "invalid reference format" },
                { "/app", "invalid reference format" },
                { "app/", "invalid reference format" },
                { "a//b", "invalid reference format" },
                { "-app", "invalid reference format" },
                { "app-", "invalid reference format" },
                { "a..b", "invalid reference format" },
                { "x/a___b", "invalid reference format" },
                { "app name", "invalid reference format" },
                { "app\n", "invalid reference format" },
                { "b\xc3\xbcro", "invalid reference format" },
                { "https://example.com/app",
                  "'https:' is not a registry: the port is not a number" },
                { "Busybox", "the repository name must be lower case" },
                { "docker.io/Library/busybox", "the repository name must be lower case" },
                { "-x.com/app", "'-x.com' is not a registry: it must be a host or an address, and "
                                "optionally a port" },
                { "example.com:/app",
                  "'example.com:' is not a registry: the port is not a number" },
                { "example.com:x/app",
                  "'example.com:x' is not a registry: the port is not a number" },
                { "example.com:70000/app",
                  "'example.com:70000' is not a registry: the port must be 1 to 65535" },
                { "127.0.1:5000/app", "'127.0.1:5000' is not a registry: an IPv4 address must be "
                                      "four decimal numbers, like 127.0.0.1" },
                { "[::ffff:127.0.0.1]/app", "'[::ffff:127.0.0.1]' is not a registry: the brackets "
                                            "must hold an IPv6 address without a zone" },
                { "[::ffff:7f00:1]/app", "'[::ffff:7f00:1]' is not a registry: it embeds an IPv4 "
                                         "address, which must be written as such" },
                { "app:", "'' is not a tag" },
                { "app:-x", "'-x' is not a tag" },
                { "app:a b", "'a b' is not a tag" },
                { "app:a:b", "'a:b' is not a tag" },
                { "app:" T128 "a", "'" T128 "a' is not a tag" },
                { "app@", "'' is not a sha256 digest" },
                { "app@sha256:abc", "'sha256:abc' is not a sha256 digest" },
                { "app@" DIGEST "0", "'" DIGEST "0' is not a sha256 digest" },
                { "app@sha512:" HEX HEX, "'sha512:" HEX HEX "' is not a sha256 digest" },
                { "app@sha256:../../../../etc", "'sha256:../../../../etc' is not a sha256 digest" },
                { HEX, "an image ID is not a name" },
                { N237 "a", "the name is longer than 255 characters" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *normal = NULL, *expected = NULL;

                REQUIRE(asprintf(&expected, "couldn't parse image name '%s': %s",
                                 cases[i].reference, cases[i].reason) > 0);
                EXPECT_EQ(image_reference_normalise(cases[i].reference, &normal, &error), -EINVAL);
                EXPECT_STREQ(error.message, expected);
                EXPECT_STREQ(normal, NULL);
        }
}

TEST(the_digest_of_a_reference_follows_the_at_sign)
{
        EXPECT_STREQ(image_reference_digest("docker.io/library/app@" DIGEST), DIGEST);
        EXPECT_STREQ(image_reference_digest("docker.io/library/app:v1@" DIGEST), DIGEST);
        EXPECT_STREQ(image_reference_digest("docker.io/library/app:v1"), NULL);
}

TEST(a_registry_name_is_normalized_to_one_spelling)
{
        static const struct {
                const char *text, *normal;
        } cases[] = {
                { "example.com", "example.com" },
                { "EXAMPLE.com:0443", "example.com" },
                { "example.com:80", "example.com:80" },
                { "localhost", "localhost" },
                { "LOCALHOST:05000", "localhost:5000" },
                { "registry", "registry:443" },
                { "Registry:00443", "registry:443" },
                { "registry:5000", "registry:5000" },
                { "index.docker.io", "docker.io" },
                { "REGISTRY-1.docker.io:443", "docker.io" },
                { "docker.io:5000", "docker.io:5000" },
                { "[::1]:443", "[::1]" },
                { "[0:0::0001]:05000", "[::1]:5000" },
                { "[FE80::A]", "[fe80::a]" },
                { "10.0.0.1:65535", "10.0.0.1:65535" },
                { "", NULL },
                { ":5000", NULL },
                { "host:", NULL },
                { "host:0", NULL },
                { "host:65536", NULL },
                { "host:+5", NULL },
                { "host:5000:5000", NULL },
                { "host/path", NULL },
                { "host.", NULL },
                { "localhost.:5000", NULL },
                { "127.1", NULL },
                { "127.0.0.1.", NULL },
                { "0x7f.0.0.1", NULL },
                { "0X7F000001", NULL },
                { "010.0.0.1", NULL },
                { "2130706433", NULL },
                { "[fe80::1%1]", NULL },
                { "[::127.0.0.1]", NULL },
                { "[::7f00:1]", NULL },
                { "[::1]x", NULL },
                { "[::1", NULL },
                { "ho\xc3\xa9t", NULL },
                { "user@host", NULL },
                { "ho st", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *normal = NULL, *again = NULL;
                struct in_addr address;

                EXPECT_EQ(registry_name_normalise(cases[i].text, &normal, NULL),
                          cases[i].normal ? 0 : -EINVAL);
                EXPECT_STREQ(normal, cases[i].normal);
                if (!normal)
                        continue;
                EXPECT_EQ(registry_name_normalise(normal, &again, NULL), 0);
                EXPECT_STREQ(again, normal);
                EXPECT(registry_name_equals(cases[i].text, normal));
                normal[strcspn(normal, ":")] = '\0';
                if (inet_aton(normal, &address))
                        EXPECT_STREQ(inet_ntoa(address), normal);
        }
}

TEST(only_names_and_addresses_of_this_machine_are_loopback)
{
        static const struct {
                const char *host;
                bool is_loopback;
        } cases[] = {
                { "localhost", true },
                { "LOCALHOST:5000", true },
                { "127.0.0.1:5000", true },
                { "127.9.9.9", true },
                { "[::1]:5000", true },
                { "[0::1]", true },
                { "128.0.0.1", false },
                { "localhost.example.com", false },
                { "127.0.0.1.nip.io", false },
                { "[::2]", false },
                { "127.1", false },
                { "", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ((int) registry_is_loopback(cases[i].host), (int) cases[i].is_loopback);
}

TEST(a_prefix_of_names_starts_with_a_registry)
{
        static const struct {
                const char *prefix, *normal;
        } cases[] = {
                { "EXAMPLE.com:0443", "example.com" },
                { "LOCALHOST:05000/team", "localhost:5000/team" },
                { "docker.io/busybox", "docker.io/busybox" },
                { "index.docker.io/library", "docker.io/library" },
                { "REGISTRY/a/b", "registry:443/a/b" },
                { "registry/a", NULL },
                { "busybox", NULL },
                { "", NULL },
                { "example.com/", NULL },
                { "example.com/A", NULL },
                { "example.com/a:1", NULL },
                { "127.1/a", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *normal = NULL;

                EXPECT_EQ(image_reference_normalise_prefix(cases[i].prefix, &normal, &error),
                          cases[i].normal ? 0 : -EINVAL);
                EXPECT_STREQ(normal, cases[i].normal);
                EXPECT_EQ(error.message == NULL, normal != NULL);
        }
}
