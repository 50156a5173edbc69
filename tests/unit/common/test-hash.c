/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"
#include "tests/test.h"

#define cleanup_sha256 cleanup_with(sha256_freep)

/* The vectors of FIPS 180-2. */
static const struct {
        const char *text, *hex;
} vectors[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

TEST(hashing_in_one_call_matches_the_test_vectors)
{
        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                char hex[SHA256_HEX_SIZE];

                sha256_hex(vectors[i].text, strlen(vectors[i].text), hex);
                EXPECT_STREQ(hex, vectors[i].hex);
        }
}

TEST(hashing_in_pieces_matches_and_finishing_resets_the_hash)
{
        cleanup_sha256 Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        REQUIRE(hash);
        for (size_t i = 0; i < N_ELEMENTS(vectors); i++) {
                for (const char *p = vectors[i].text; *p; p++)
                        sha256_update(hash, p, 1);
                sha256_finish(hash, hex);
                EXPECT_STREQ(hex, vectors[i].hex);
        }
}

TEST(nul_bytes_are_hashed)
{
        char one[SHA256_HEX_SIZE], two[SHA256_HEX_SIZE];

        sha256_hex("\0", 1, one);
        sha256_hex("\0\0", 2, two);
        EXPECT(!streq(one, two));
}
