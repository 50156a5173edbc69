/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/signed-identity.h"

#include "agent/image-helper/pull/document.h"
#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/text.h"

static bool is_same_repository(const ImageReference *a, const ImageReference *b) {
        return streq(a->registry, b->registry) && streq(a->repository, b->repository);
}

static bool is_same_reference(const ImageReference *a, const ImageReference *b) {
        return is_same_repository(a, b) && streq_ptr(a->tag, b->tag) &&
               streq_ptr(a->digest, b->digest);
}

static bool is_name_only(const ImageReference *name) {
        return !name->tag && !name->digest;
}

static bool matches_exactly(const ImageReference *image, const ImageReference *signed_name) {
        return !is_name_only(image) && !is_name_only(signed_name) &&
               is_same_reference(image, signed_name);
}

/* The digest in a name has already been compared with the signed one. */
static bool matches_digest_or_exactly(const ImageReference *image,
                                      const ImageReference *signed_name) {
        if (is_name_only(signed_name))
                return false;
        if (!image->tag && image->digest)
                return is_same_repository(image, signed_name);
        return matches_exactly(image, signed_name);
}

/* The rest of a name after a prefix of whole components: "example.com/a" is not a prefix of
 * "example.com/ab". NULL: the name starts differently. */
static const char *skip_name_prefix(const char *name, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(name, prefix, n) == 0 && (name[n] == '\0' || name[n] == '/') ? name + n
                                                                                    : NULL;
}

static int remap_name(const json_t *identity, ImageReference *image, Error *reterr) {
        cleanup_free char *prefix = NULL, *signed_prefix = NULL, *name = NULL, *remapped = NULL;
        const char *rest;
        int r;

        r = image_reference_normalise_prefix(strna(json_text(identity, "prefix")), &prefix, reterr);
        if (r >= 0)
                r = image_reference_normalise_prefix(strna(json_text(identity, "signedPrefix")),
                                                     &signed_prefix, reterr);
        if (r < 0)
                return r;
        name = image_reference_format(image);
        if (!name)
                return -ENOMEM;
        name[strlen(image->registry) + 1 + strlen(image->repository)] = '\0';
        rest = skip_name_prefix(name, prefix);
        if (!rest)
                return 0;
        remapped = text_format("%s%s%s%s%s%s", signed_prefix, rest, image->tag ? ":" : "",
                               strna(image->tag), image->digest ? "@" : "", strna(image->digest));
        if (!remapped)
                return -ENOMEM;
        image_reference_done(image);
        return image_reference_parse(remapped, image, reterr);
}

/* The name that is compared according to the policy: that of the image, or the one that the image
 * claims. */
static int find_expected_name(const json_t *identity, const char *kind, const char *image,
                              ImageReference *ret, Error *reterr) {
        const char *text = image;
        int r;

        if (streq(kind, "exactReference"))
                text = json_text(identity, "dockerReference");
        else if (streq(kind, "exactRepository"))
                text = json_text(identity, "dockerRepository");
        r = image_reference_parse(strna(text), ret, reterr);
        if (r < 0)
                return r;
        if (ret->digest) { /* a tag next to a digest has no meaning */
                free(ret->tag);
                ret->tag = NULL;
        }
        return streq(kind, "remapIdentity") ? remap_name(identity, ret, reterr) : 0;
}

static bool matches_kind(const char *kind, const ImageReference *expected,
                         const ImageReference *signed_name) {
        if (streq(kind, "matchRepository") || streq(kind, "exactRepository"))
                return is_same_repository(expected, signed_name);
        if (streq(kind, "matchExact") || streq(kind, "exactReference"))
                return matches_exactly(expected, signed_name);
        return matches_digest_or_exactly(expected, signed_name);
}

/* Only a digest is signed. */
static int check_without_name(const char *kind, const ImageReference *image, Error *reterr) {
        if (streq(kind, "matchRepository") ||
            (streq(kind, "matchRepoDigestOrExact") && image->digest))
                return 0;
        return error_setf(
                reterr, EKEYREJECTED,
                "it is signed by its digest and without a name, as cosign 3 does, but the "
                "policy's signedIdentity is %s: name the image by its digest, or use "
                "matchRepository",
                kind);
}

/* An invalid name, in the policy or in the signed payload, is not accepted. */
static int refuse_signed_name(int r) {
        return r == -ENOMEM ? r : -EKEYREJECTED;
}

int signed_identity_check(const json_t *identity, const char *image, const char *reference,
                          Error *reterr) {
        const char *type = json_text(identity, "type");
        const char *kind = type ? type : "matchRepoDigestOrExact";
        cleanup_with(image_reference_done) ImageReference expected = { 0 }, signed_name = { 0 };
        int r = find_expected_name(identity, kind, image, &expected, reterr);

        if (r < 0)
                return refuse_signed_name(error_prefixf(reterr, r, "signedIdentity"));
        if (!reference)
                return check_without_name(kind, &expected, reterr);
        r = image_reference_parse(reference, &signed_name, reterr);
        if (r < 0)
                return refuse_signed_name(
                        error_prefixf(reterr, r, "it is signed for something else"));
        if (matches_kind(kind, &expected, &signed_name))
                return 0;
        return error_setf(
                reterr, EKEYREJECTED,
                "it is signed as '%.300s', which %s does not accept for '%.300s/%.300s%s%.128s'",
                reference, kind, expected.registry, expected.repository, expected.tag ? ":" : "",
                strna(expected.tag));
}
