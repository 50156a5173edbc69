/* SPDX-License-Identifier: Apache-2.0 */

/* The signatures that are found next to the image in an OCI layout, and the limits of the
 * search. */

#include "tests/component/image-world.h"

#include "agent/image-helper/signature/signature-collect.h"

#include <errno.h>

#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define IMAGE "sha256:" HEX

static json_t *describe_last_blob(const Layout *layout, const char *type) {
        return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", layout->last, "size",
                         (json_int_t) layout->last_length);
}

static void layout_add_json(Layout *layout, json_t *value) {
        cleanup_free char *text = json_dumps(value, JSON_COMPACT);

        REQUIRE(text);
        layout_add(layout, text, strlen(text));
        json_decref(value);
}

/* Adds a signature image whose 'n' layers are the same payload; the blob of a NULL payload is
 * missing in the layout. Returns the descriptor of the image. */
static json_t *layout_add_signatures(Layout *layout, const char *payload, const char *signature,
                                     size_t n) {
        json_t *layers = json_array(), *layer;

        if (payload)
                layout_add(layout, payload, strlen(payload));
        else
                digest_text("missing", strlen("missing"), layout->last);
        layer = describe_last_blob(layout, SIGSTORE_PAYLOAD_TYPE);
        REQUIRE(json_object_set_new(
                        layer, "annotations",
                        json_pack("{s:s}", "dev.cosignproject.cosign/signature", signature)) == 0);
        for (size_t i = 0; i < n; i++)
                REQUIRE(json_array_append(layers, layer) == 0);
        json_decref(layer);
        layout_add_json(layout, json_pack("{s:i, s:o}", "schemaVersion", 2, "layers", layers));
        return describe_last_blob(layout, "application/vnd.oci.image.manifest.v1+json");
}

/* Collects the signatures of an archive with these manifests, and takes ownership of
 * 'manifests'. */
static void collect_signatures(Layout *layout, json_t *manifests, SignatureSet *set,
                               Error *ret_unreadable) {
        cleanup_free char *path = in_test_directory("signatures.tar"), *index = NULL;
        cleanup_with(image_archive_freep) ImageArchive *archive = NULL;
        cleanup_json json_t *json =
                json_pack("{s:i, s:o}", "schemaVersion", 2, "manifests", manifests);
        cleanup_close int fd = -EBADF, spool = -EBADF;

        index = json_dumps(json, JSON_COMPACT);
        REQUIRE(index);
        layout_end(layout, index, path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        spool = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0 && spool >= 0);
        REQUIRE(image_archive_open(fd, spool, &archive, NULL) == 0);
        EXPECT_EQ(signatures_collect_archived(archive, (const char *[]){ IMAGE, NULL }, set,
                                              ret_unreadable),
                  0);
}

TEST(only_well_formed_signatures_are_read_from_an_archive)
{
        static char long_signature[SIGSTORE_SIGNATURE_SIZE_MAX + 5];
        const struct {
                const char *signature, *unreadable;
        } cases[] = {
                { "c2lnbmF0dXJl", NULL },
                { "c2lnbmF0dXJl\n", NULL },
                { "signature\x01", "signature: it is not base64" },
                { "c2lnbmF0dXJ", "signature: it is not base64" },
                { long_signature, "signature: it is longer than 8192 bytes" },
        };

        memset(long_signature, 'A', sizeof(long_signature) - 1);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(signature_set_done) SignatureSet set = { 0 };
                cleanup_error Error unreadable = ERROR_NULL;
                Layout layout = { 0 };
                json_t *manifest =
                        layout_add_signatures(&layout, "of " IMAGE, cases[i].signature, 1);

                collect_signatures(&layout, json_pack("[o]", manifest), &set, &unreadable);
                EXPECT_EQ(set.n, cases[i].unreadable ? 0U : 1U);
                EXPECT_STREQ(unreadable.message, cases[i].unreadable);
                EXPECT(!set.is_cut);
        }
}

TEST(the_number_of_documents_that_are_read_is_limited)
{
        enum {
                LAYERS = 2800,
                MANIFESTS = 3,
        };
        cleanup_with(signature_set_done) SignatureSet set = { 0 };
        cleanup_error Error unreadable = ERROR_NULL;
        json_t *manifests = json_array(), *others;
        Layout layout = { 0 };

        others = layout_add_signatures(&layout, NULL, "c2lnbmF0dXJl", LAYERS);
        for (size_t i = 0; i < MANIFESTS; i++)
                REQUIRE(json_array_append(manifests, others) == 0);
        json_decref(others);
        REQUIRE(json_array_append_new(manifests, layout_add_signatures(&layout, "of " IMAGE,
                                                                       "c2lnbmF0dXJl", 1)) == 0);
        collect_signatures(&layout, manifests, &set, &unreadable);
        EXPECT_EQ(set.n, 0U);
        EXPECT(set.is_cut);
}
