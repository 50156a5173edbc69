/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/signature/signed-identity.h"
#include "tests/test.h"

#include <errno.h>

#define HEX    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "@sha256:" HEX

#define EXACT           "{\"type\":\"matchExact\"}"
#define DEFAULT         "null"
#define OR_EXACT        "{\"type\":\"matchRepoDigestOrExact\"}"
#define REPOSITORY      "{\"type\":\"matchRepository\"}"
#define REFERENCE(name) "{\"type\":\"exactReference\",\"dockerReference\":\"" name "\"}"
#define ONLY_REPO(name) "{\"type\":\"exactRepository\",\"dockerRepository\":\"" name "\"}"
#define REMAP(from, to) \
        "{\"type\":\"remapIdentity\",\"prefix\":\"" from "\",\"signedPrefix\":\"" to "\"}"

TEST(a_signature_must_be_for_the_name_that_the_policy_requires)
{
        static const struct {
                const char *identity, *image, *reference;
                bool is_accepted;
        } cases[] = {
                { EXACT, "example.com/app:1", "example.com/app:1", true },
                { EXACT, "example.com/app:1", "example.com/app:2", false },
                { EXACT, "example.com/app:1", "example.com/app", false },
                { EXACT, "example.com/app" DIGEST, "example.com/app:1", false },
                { EXACT, "example.com/app" DIGEST, "example.com/app" DIGEST, true },
                { EXACT, "docker.io/library/busybox:1", "busybox:1", true },
                { EXACT, "docker.io/team/app:1", "team/app:1", true },
                { EXACT, "localhost/app:1", "localhost/app:1", true },
                { EXACT, "example.com/app:1", NULL, false },
                { DEFAULT, "example.com/app:1", "example.com/app:1", true },
                { DEFAULT, "example.com/app:1", "example.com/app", false },
                { DEFAULT, "example.com/app:1", "example.com/other:1", false },
                { DEFAULT, "example.com/app:1", NULL, false },
                { DEFAULT, "example.com/app" DIGEST, "example.com/app:7", true },
                { OR_EXACT, "example.com/app:1", "example.com/app:1", true },
                { OR_EXACT, "example.com/app" DIGEST, "example.com/app:7", true },
                { OR_EXACT, "example.com/app:1" DIGEST, "example.com/app:7", true },
                { OR_EXACT, "example.com/app" DIGEST, "example.com/app", false },
                { OR_EXACT, "example.com/app" DIGEST, "example.com/other:7", false },
                { OR_EXACT, "example.com/app" DIGEST, NULL, true },
                { REPOSITORY, "example.com/app:1", "example.com/app", true },
                { REPOSITORY, "example.com/app:1", "example.com/app:2", true },
                { REPOSITORY, "example.com/app:1", "example.com/app/x", false },
                { REPOSITORY, "example.com:5000/app:1", "example.com:5000/app", true },
                { REPOSITORY, "example.com:5000/app:1", "example.com/app", false },
                { REPOSITORY, "example.com/app:1", NULL, true },
                { REFERENCE("vendor.com/x:3"), "example.com/app:1", "vendor.com/x:3", true },
                { REFERENCE("vendor.com/x:3"), "vendor.com/x:3", "vendor.com/x:4", false },
                { REFERENCE("vendor.com/x:3"), "vendor.com/x:3", NULL, false },
                { ONLY_REPO("vendor.com/x"), "example.com/app:1", "vendor.com/x:9", true },
                { ONLY_REPO("vendor.com/x"), "example.com/app:1", "vendor.com/x", true },
                { ONLY_REPO("vendor.com/x"), "example.com/app:1", "example.com/app:1", false },
                { ONLY_REPO("vendor.com/x"), "vendor.com/x:1", NULL, false },
                { REMAP("mirror:5000/v", "vendor.com"), "mirror:5000/v/x:1", "vendor.com/x:1",
                  true },
                { REMAP("mirror:5000/v", "vendor.com"), "mirror:5000/v/x:1", "vendor.com/x:2",
                  false },
                { REMAP("mirror:5000/v", "vendor.com"), "mirror:5000/vx:1", "mirror:5000/vx:1",
                  true },
                { REMAP("mirror:5000/v", "vendor.com"), "mirror:5000/v/x" DIGEST, "vendor.com/x:9",
                  true },
                { REMAP("mirror:5000", "vendor.com/a"), "mirror:5000/x:1", "vendor.com/a/x:1",
                  true },
                { REMAP("mirror:5000", "vendor.com"), "mirror:5000/x:1", NULL, false },
                { REMAP("MIRROR:05000/v", "Vendor.com:443"), "mirror:5000/v/x:1", "vendor.com/x:1",
                  true },
                { REMAP("127.1", "vendor.com"), "127.0.0.1/x:1", "vendor.com/x:1", false },
                { EXACT, "localhost:5000/app:1", "LOCALHOST:05000/app:1", true },
                { EXACT, "docker.io/library/app:1", "registry-1.docker.io/app:1", true },
                { EXACT, "example.com/app:1", "example.com:443/app:1", true },
                { EXACT, "example.com/app:1", "example.com:80/app:1", false },
                { EXACT, "example.com/app:1", "example.com/app:1 ", false },
                { EXACT, "127.0.0.1/app:1", "127.1/app:1", false },
                { REPOSITORY, "example.com/app:1", "EXAMPLE.COM/app", true },
                { REPOSITORY, "example.com/app:1", "example.com/App", false },
                { REPOSITORY, "example.com/app:1", "", false },
                { REFERENCE("VENDOR.com/x:3"), "example.com/app:1", "vendor.com/x:3", true },
                { ONLY_REPO("vendor.com:443/x"), "example.com/app:1", "vendor.com/x:9", true },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_json json_t *identity =
                        json_loads(cases[i].identity, JSON_DECODE_ANY, NULL);
                cleanup_error Error error = ERROR_NULL;
                int r = signed_identity_check(identity, cases[i].image, cases[i].reference, &error);

                REQUIRE(identity);
                if (r != (cases[i].is_accepted ? 0 : -EKEYREJECTED))
                        test_fail(__FILE__, __LINE__, cases[i].identity, "%s signed as %s gives %d",
                                  cases[i].image, strna(cases[i].reference), r);
                EXPECT_EQ(error.message != NULL, r < 0);
        }
}

TEST(the_message_names_the_signed_and_the_expected_identity)
{
        cleanup_error Error one = ERROR_NULL, other = ERROR_NULL;

        EXPECT_EQ(signed_identity_check(NULL, "example.com/app:1", "example.com/app", &one),
                  -EKEYREJECTED);
        EXPECT_STREQ(one.message, "it is signed as 'example.com/app', which matchRepoDigestOrExact "
                                  "does not accept for 'example.com/app:1'");
        EXPECT_EQ(signed_identity_check(NULL, "example.com/app:1", NULL, &other), -EKEYREJECTED);
        EXPECT_STREQ(other.message,
                     "it is signed by its digest and without a name, as cosign 3 does, but the "
                     "policy's signedIdentity is matchRepoDigestOrExact: name the image by its "
                     "digest, or use matchRepository");
}
