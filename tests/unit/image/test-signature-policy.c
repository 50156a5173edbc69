/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/signature-policy.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <errno.h>

#define HEX    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REJECT "[{\"type\":\"reject\"}]"
#define ACCEPT "[{\"type\":\"insecureAcceptAnything\"}]"
#define SIGNED "[{\"type\":\"sigstoreSigned\",\"keyPath\":\"/k\"}]"

static const char policy_text[] = "{\"default\":" REJECT ",\"transports\":{"
                                  "\"docker\":{"
                                  "\"example.com\":" ACCEPT ","
                                  "\"example.com/team\":" SIGNED ","
                                  "\"example.com/team/app\":" REJECT ","
                                  "\"example.com/team/app:1\":" ACCEPT ","
                                  "\"example.com/team/app@sha256:" HEX "\":" SIGNED ","
                                  "\"example.com:5000\":" SIGNED ","
                                  "\"docker.io/library/busybox\":" ACCEPT ","
                                  "\"localhost:5000/a/b\":" SIGNED ","
                                  "\"*.example.org\":" SIGNED ","
                                  "\"*.deep.example.org\":" ACCEPT ","
                                  "\"*.org\":" REJECT "},"
                                  "\"oci-archive\":{"
                                  "\"\":" SIGNED ","
                                  "\"/srv/images\":" ACCEPT ","
                                  "\"/srv/images/a.tar\":" REJECT ","
                                  "\"/srv/images/c.tar:EXAMPLE.com:443/app:1\":" SIGNED ","
                                  "\"/srv/images/a.tar:example.com/app:1\":" SIGNED "},"
                                  "\"docker-archive\":{\"\":" ACCEPT "}}}";

#define DOCKER(scope) "transports.docker.\"" scope "\""
#define OCI(scope)    "transports.oci-archive.\"" scope "\""

TEST(the_most_specific_scope_of_an_image_applies)
{
        static const struct {
                const char *transport, *path, *reference, *place, *type;
        } cases[] = {
                { "docker", NULL, "example.com/x:1", DOCKER("example.com"),
                  "insecureAcceptAnything" },
                { "docker", NULL, "example.com/a/b/c:1", DOCKER("example.com"),
                  "insecureAcceptAnything" },
                { "docker", NULL, "example.com/team/x:1", DOCKER("example.com/team"),
                  "sigstoreSigned" },
                { "docker", NULL, "example.com/team/x/y:1", DOCKER("example.com/team"),
                  "sigstoreSigned" },
                { "docker", NULL, "example.com/team/app:2", DOCKER("example.com/team/app"),
                  "reject" },
                { "docker", NULL, "example.com/team/app:1", DOCKER("example.com/team/app:1"),
                  "insecureAcceptAnything" },
                { "docker", NULL, "example.com/team/app@sha256:" HEX,
                  DOCKER("example.com/team/app@sha256:" HEX), "sigstoreSigned" },
                { "docker", NULL, "example.com/team/app:1@sha256:" HEX,
                  DOCKER("example.com/team/app@sha256:" HEX), "sigstoreSigned" },
                { "docker", NULL, "example.com/team/x@sha256:" HEX, DOCKER("example.com/team"),
                  "sigstoreSigned" },
                { "docker", NULL, "example.com/team/app/sub:1", DOCKER("example.com/team/app"),
                  "reject" },
                { "docker", NULL, "example.com/team/apple:1", DOCKER("example.com/team"),
                  "sigstoreSigned" },
                { "docker", NULL, "example.com/teams/app:1", DOCKER("example.com"),
                  "insecureAcceptAnything" },
                { "docker", NULL, "example.com:5000/team/x:1", DOCKER("example.com:5000"),
                  "sigstoreSigned" },
                { "docker", NULL, "example.com:5001/team/x:1", "default", "reject" },
                { "docker", NULL, "docker.io/library/busybox:latest",
                  DOCKER("docker.io/library/busybox"), "insecureAcceptAnything" },
                { "docker", NULL, "docker.io/library/alpine:latest", "default", "reject" },
                { "docker", NULL, "localhost:5000/a/b:1", DOCKER("localhost:5000/a/b"),
                  "sigstoreSigned" },
                { "docker", NULL, "localhost:5000/a/c:1", "default", "reject" },
                { "docker", NULL, "a.example.org/x:1", DOCKER("*.example.org"), "sigstoreSigned" },
                { "docker", NULL, "a.b.example.org/x:1", DOCKER("*.example.org"),
                  "sigstoreSigned" },
                { "docker", NULL, "a.example.org:5000/x:1", DOCKER("*.example.org"),
                  "sigstoreSigned" },
                { "docker", NULL, "a.deep.example.org/x:1", DOCKER("*.deep.example.org"),
                  "insecureAcceptAnything" },
                { "docker", NULL, "example.org/x:1", DOCKER("*.org"), "reject" },
                { "docker", NULL, "notexample.org/x:1", DOCKER("*.org"), "reject" },
                { "docker", NULL, "org/x:1", "default", "reject" },
                { "docker", NULL, "[2001:db8::1]:5000/x:1", "default", "reject" },
                { "oci-archive", "/srv/other/a.tar", "example.com/app:1", OCI(""),
                  "sigstoreSigned" },
                { "oci-archive", "/srv/images/b.tar", "example.com/app:1", OCI("/srv/images"),
                  "insecureAcceptAnything" },
                { "oci-archive", "/srv/images/sub/b.tar", "example.com/app:1", OCI("/srv/images"),
                  "insecureAcceptAnything" },
                { "oci-archive", "/srv/images/a.tar", "example.com/app:2", OCI("/srv/images/a.tar"),
                  "reject" },
                { "oci-archive", "/srv/images/a.tar", "example.com/app:1",
                  OCI("/srv/images/a.tar:example.com/app:1"), "sigstoreSigned" },
                { "oci-archive", "/srv/images2/a.tar", "example.com/app:1", OCI(""),
                  "sigstoreSigned" },
                { "docker-archive", "/srv/images/a.tar", "example.com/app:1",
                  "transports.docker-archive.\"\"", "insecureAcceptAnything" },
                { "oci-archive", "/srv/images/c.tar", "example.com/app:1",
                  OCI("/srv/images/c.tar:EXAMPLE.com:443/app:1"), "sigstoreSigned" },
                { "oci", "/srv/images", "example.com/app:1", "default", "reject" },
        };
        cleanup_json json_t *policy = NULL;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(signature_policy_parse(policy_text, strlen(policy_text), &policy, &error), 0);
        EXPECT_STREQ(error.message, NULL);
        REQUIRE(policy);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const ImageOrigin origin = { cases[i].transport, cases[i].path };
                cleanup_free char *place = NULL;
                const json_t *rules = NULL;

                EXPECT_EQ(
                        signature_policy_find(policy, &origin, cases[i].reference, &rules, &place),
                        0);
                EXPECT_STREQ(place, cases[i].place);
                EXPECT_STREQ(json_string_value(json_object_get(json_array_get(rules, 0), "type")),
                             cases[i].type);
        }
}

#define SIGSTORE(members) "{\"default\":[{\"type\":\"sigstoreSigned\"," members "}]}"
#define IDENTITY(members) SIGSTORE("\"keyPath\":\"/k\",\"signedIdentity\":{" members "}")
#define SCOPE(transport, scope) \
        "{\"default\":" REJECT ",\"transports\":{\"" transport "\":{\"" scope "\":" ACCEPT "}}}"

#define TWICE(one, other)                                                                     \
        "{\"default\":" REJECT ",\"transports\":{\"docker\":{\"" one "\":" ACCEPT ",\"" other \
        "\":" REJECT "}}}"

TEST(a_scope_is_found_in_each_spelling_of_it)
{
        static const struct {
                const char *scope, *reference, *place;
        } cases[] = {
                { "LOCALHOST:5000", "localhost:5000/a:1", "localhost:5000" },
                { "localhost:05000/a", "localhost:5000/a:1", "localhost:5000/a" },
                { "Example.COM:443", "example.com/a/b:1", "example.com" },
                { "example.com:0443/a", "example.com/a/b:1", "example.com/a" },
                { "[0:0:0:0:0:0:0:1]:5000", "[::1]:5000/a:1", "[::1]:5000" },
                { "index.docker.io", "docker.io/library/busybox:1", "docker.io" },
                { "registry-1.docker.io/library", "docker.io/library/busybox:1",
                  "docker.io/library" },
                { "docker.io/busybox", "docker.io/library/busybox:1", "docker.io/busybox" },
                { "docker.io/busybox:1", "docker.io/library/busybox:1",
                  "docker.io/library/busybox:1" },
                { "docker.io/busybox:7@sha256:" HEX, "docker.io/library/busybox:1@sha256:" HEX,
                  "docker.io/library/busybox@sha256:" HEX },
                { "*.EXAMPLE.com", "a.example.com:5000/x:1", "*.example.com" },
                { "registry:443", "registry:443/x:1", "registry:443" },
                { "localhost:5000", "LOCALHOST:05000/a:1", "localhost:5000" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const ImageOrigin origin = { "docker", NULL };
                cleanup_free char *text = NULL, *place = NULL, *expected = NULL;
                cleanup_json json_t *policy = NULL;
                cleanup_error Error error = ERROR_NULL;
                const json_t *rules = NULL;

                REQUIRE(asprintf(&text, SCOPE("docker", "%s"), cases[i].scope) > 0);
                REQUIRE(asprintf(&expected, "transports.docker.\"%s\"", cases[i].place) > 0);
                EXPECT_EQ(signature_policy_parse(text, strlen(text), &policy, &error), 0);
                EXPECT_STREQ(error.message, NULL);
                REQUIRE(policy);
                EXPECT_EQ(
                        signature_policy_find(policy, &origin, cases[i].reference, &rules, &place),
                        0);
                EXPECT_STREQ(place, expected);
        }
}

TEST(scopes_of_other_names_of_a_server_apply_as_well)
{
        static const struct {
                const char *scope, *reference, *place;
        } cases[] = {
                { "localhost:80", "localhost/a:1", "localhost:80" },
                { "localhost", "localhost:80/a:1", "localhost" },
                { "localhost:443/a", "localhost:80/a:1", "localhost/a" },
                { "127.0.0.1:080/a:1", "127.0.0.1/a:1", "127.0.0.1:80/a:1" },
                { "[::1]", "[::1]:80/a/b:1", "[::1]" },
                { "[::1]:80", "[::1]/a/b:1", "[::1]:80" },
                { "registry:80", "registry:443/a:1", "registry:80" },
                { "REGISTRY", "registry:80/a:1", "registry:443" },
                { "example.com", "example.com:80/a:1", "example.com" },
                { "localhost:5000", "127.0.0.1:5000/a:1", "localhost:5000" },
                { "localhost:5000/a", "127.9.9.9:5000/a:1", "localhost:5000/a" },
                { "[::1]:5000", "localhost:5000/a:1", "[::1]:5000" },
                { "127.0.0.1:5000", "[::1]:5000/a:1", "127.0.0.1:5000" },
                { "localhost:80", "127.0.0.1/a:1", "localhost:80" },
                { "localhost", "localhost/a:1", NULL },
                { "localhost:80", "localhost:5000/a:1", NULL },
                { "localhost:5000", "127.0.0.1:5001/a:1", NULL },
                { "localhost:5000/b", "127.0.0.1:5000/a:1", NULL },
                { "localhost:5000", "192.0.2.1:5000/a:1", NULL },
                { "*.example.com", "a.example.com:80/a:1", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const ImageOrigin origin = { "docker", NULL };
                cleanup_free char *text = NULL, *expected = NULL;
                cleanup_json json_t *policy = NULL, *aliases = NULL;

                REQUIRE(asprintf(&text, SCOPE("docker", "%s"), cases[i].scope) > 0);
                REQUIRE(asprintf(&expected, "transports.docker.\"%s\"", strna(cases[i].place)) > 0);
                REQUIRE(signature_policy_parse(text, strlen(text), &policy, NULL) == 0);
                EXPECT_EQ(signature_policy_find_aliases(policy, &origin, cases[i].reference,
                                                        &aliases),
                          0);
                EXPECT_EQ(json_object_size(aliases), cases[i].place ? 1 : 0);
                EXPECT_EQ(json_object_get(aliases, expected) != NULL, cases[i].place != NULL);
        }
}

TEST(a_policy_with_only_known_members_is_valid)
{
        static const char *const texts[] = {
                "{\"default\":" ACCEPT "}",
                "{\"default\":" REJECT ",\"transports\":{}}",
                SIGSTORE("\"keyPath\":\"/k\""),
                SIGSTORE("\"keyPaths\":[\"/k\",\"/l\"]"),
                SIGSTORE("\"keyData\":\"eA==\""),
                SIGSTORE("\"keyDatas\":[\"eA==\"]"),
                SIGSTORE("\"fulcio\":{\"caPath\":\"/x\"},\"rekorPublicKeyPath\":\"/y\""),
                IDENTITY("\"type\":\"matchExact\""),
                IDENTITY("\"type\":\"matchRepoDigestOrExact\""),
                IDENTITY("\"type\":\"matchRepository\""),
                IDENTITY("\"type\":\"exactReference\",\"dockerReference\":\"a/b:1\""),
                IDENTITY("\"type\":\"exactRepository\",\"dockerRepository\":\"a/b\""),
                IDENTITY("\"type\":\"remapIdentity\",\"prefix\":\"a.example\","
                         "\"signedPrefix\":\"b.example\""),
                "{\"default\":[{\"type\":\"signedBy\",\"keyType\":\"GPGKeys\",\"keyPath\":\"/"
                "k\"}]}",
                SCOPE("docker", "*.example.com"),
                SCOPE("oci", "/srv"),
                SCOPE("docker-archive", ""),
                SCOPE("atomic", "x"),
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_json json_t *policy = NULL;
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(signature_policy_parse(texts[i], strlen(texts[i]), &policy, &error), 0);
                EXPECT_STREQ(error.message, NULL);
        }
}

TEST(an_invalid_policy_is_refused_with_the_place)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "", "line 1, column 0: '[' or '{' expected near end of file" },
                { "{\n\"default\":\n]", "line 3, column 1: unexpected token near ']'" },
                { "{\"default\":[],\"default\":[]}",
                  "line 1, column 23: duplicate object key near '\"default\"'" },
                { "[]", "must be an object" },
                { "{}", "default is missing" },
                { "{\"default\":{}}", "default: must be a list of requirements" },
                { "{\"default\":[]}", "default: must have at least one requirement" },
                { "{\"default\":[1]}", "default: [0]: must be an object" },
                { "{\"default\":[{}]}", "default: [0]: type is missing" },
                { "{\"default\":[{\"type\":\"accept\"}]}",
                  "default: [0]: type: 'accept' is unknown" },
                { "{\"default\":[{\"type\":\"reject\",\"x\":1}]}",
                  "default: [0]: 'x' is not a member of reject" },
                { "{\"default\":" ACCEPT ",\"x\":1}", "'x' is unknown" },
                { "{\"default\":" ACCEPT ",\"transports\":[]}", "transports must be an object" },
                { "{\"default\":" ACCEPT ",\"transports\":{\"docker\":[]}}",
                  "transports.docker: must be an object" },
                { "{\"default\":" ACCEPT ",\"transports\":{\"docker\":{\"a\":[]}}}",
                  "transports.docker.\"a\": must have at least one requirement" },
                { "{\"default\":[{\"type\":\"sigstoreSigned\"}]}",
                  "default: [0]: sigstoreSigned needs exactly one of keyPath, keyPaths, keyData, "
                  "keyDatas, fulcio, pki" },
                { SIGSTORE("\"keyPath\":\"/k\",\"keyData\":\"eA==\""),
                  "default: [0]: sigstoreSigned needs exactly one of keyPath, keyPaths, keyData, "
                  "keyDatas, fulcio, pki" },
                { SIGSTORE("\"keyPath\":1"), "default: [0]: keyPath must be a string" },
                { SIGSTORE("\"keyPaths\":[]"),
                  "default: [0]: keyPaths must be a list that is not empty" },
                { SIGSTORE("\"keyPaths\":[\"/k\",1]"),
                  "default: [0]: keyPaths[1] must be a string" },
                { SIGSTORE("\"fulcio\":true"), "default: [0]: fulcio must be an object" },
                { IDENTITY("\"type\":\"matchAnything\""),
                  "default: [0]: signedIdentity: type: 'matchAnything' is unknown" },
                { IDENTITY("\"type\":\"exactReference\""),
                  "default: [0]: signedIdentity: exactReference needs exactly one of "
                  "dockerReference" },
                { IDENTITY("\"type\":\"matchExact\",\"dockerReference\":\"a\""),
                  "default: [0]: signedIdentity: 'dockerReference' is not a member of matchExact" },
                { IDENTITY("\"type\":\"remapIdentity\",\"prefix\":\"a.example\""),
                  "default: [0]: signedIdentity: remapIdentity needs prefix and signedPrefix" },
                { IDENTITY("\"type\":\"remapIdentity\",\"prefix\":\"127.1\",\"signedPrefix\":\"b:"
                           "1\""),
                  "default: [0]: signedIdentity: prefix: '127.1' is not a registry: an IPv4 "
                  "address must be four decimal numbers, like 127.0.0.1" },
                { IDENTITY("\"type\":\"exactReference\",\"dockerReference\":\"a\""),
                  "default: [0]: signedIdentity: dockerReference: must have a tag or a digest" },
                { IDENTITY("\"type\":\"exactRepository\",\"dockerRepository\":\"a:1\""),
                  "default: [0]: signedIdentity: dockerRepository: must have neither a tag nor a "
                  "digest" },
                { IDENTITY("\"type\":\"exactRepository\",\"dockerRepository\":\"A\""),
                  "default: [0]: signedIdentity: dockerRepository: couldn't parse image name 'A': "
                  "the repository name must be lower case" },
                { SCOPE("dockers", "example.com"), "transports.dockers: is unknown; images here "
                                                   "come from docker, docker-archive and "
                                                   "oci-archive" },
                { SCOPE("docker", "busybox"),
                  "transports.docker.\"busybox\": 'busybox' must start with a registry, such as "
                  "docker.io or busybox:443" },
                { SCOPE("docker", "localhost:5000/App"),
                  "transports.docker.\"localhost:5000/App\": 'App' is not the path of a "
                  "repository" },
                { SCOPE("docker", "*.example.com:5000"),
                  "transports.docker.\"*.example.com:5000\": '*' is followed by a domain: "
                  "*.example.com" },
                { TWICE("localhost:5000", "LOCALHOST:05000"),
                  "transports.docker.\"LOCALHOST:05000\": occurs twice, in two spellings of "
                  "\"localhost:5000\"" },
                { TWICE("docker.io/library/busybox:1", "index.docker.io/busybox:1"),
                  "transports.docker.\"index.docker.io/busybox:1\": occurs twice, in two "
                  "spellings of \"docker.io/library/busybox:1\"" },
                { TWICE("*.example.com", "*.Example.com"),
                  "transports.docker.\"*.Example.com\": occurs twice, in two spellings of "
                  "\"*.example.com\"" },
                { SCOPE("oci-archive", "images"),
                  "transports.oci-archive.\"images\": must be an absolute path, and not '/'" },
                { SCOPE("oci", "/"),
                  "transports.oci.\"/\": must be an absolute path, and not '/'" },
                { SCOPE("docker-archive", "/srv"),
                  "transports.docker-archive.\"/srv\": the only scope of docker-archive is \"\"" },
                { SCOPE("docker", "a*.example.com"), "transports.docker.\"a*.example.com\": '*' is "
                                                     "followed by a domain: *.example.com" },
                { SCOPE("docker", "*.example.com/x"), "transports.docker.\"*.example.com/x\": '*' "
                                                      "is followed by a domain: *.example.com" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_json json_t *policy = NULL;
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(signature_policy_parse(cases[i].text, strlen(cases[i].text), &policy,
                                                 &error),
                          -EINVAL);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}
