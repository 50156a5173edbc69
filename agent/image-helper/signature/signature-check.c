/* SPDX-License-Identifier: Apache-2.0 */

/* A signature meets a requirement if it was made with one of the rule's keys, and signs the image
 * under a name that the rule accepts. No part of a payload is parsed before it has been verified
 * with a key. */

#include "agent/image-helper/signature/signature-check.h"

#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/signature/signed-identity.h"
#include "common/json-text.h"
#include "common/public-key.h"
#include "common/text.h"

enum {
        KEYS_MAX = 64 /* limit of one rule */
};

/* The stage that the check of a signature reached; the message of the signature that got furthest
 * is reported. */
typedef enum SignatureProgress {
        SIGNATURE_UNREADABLE,
        SIGNATURE_KEYLESS,
        SIGNATURE_BY_OTHER_KEY,
        SIGNATURE_OF_OTHER_IMAGE,
        SIGNATURE_FOR_OTHER_NAME,
} SignatureProgress;

typedef struct RequirementCheck {
        const json_t *requirement;
        const char *reference; /* the name that the pod uses */
        const char *const *digests;
        PublicKey *keys[KEYS_MAX];
        size_t n_keys;
        SignatureProgress progress;
        Error closest; /* why the signature that got furthest was not accepted */
} RequirementCheck;

static void requirement_check_done(RequirementCheck *check) {
        for (size_t i = 0; i < check->n_keys; i++)
                public_key_free(check->keys[i]);
        error_done(&check->closest);
}

static int load_requirement_keys(RequirementCheck *check, Error *reterr) {
        const json_t *keys = json_object_get(check->requirement, "keys"), *key;
        size_t i;

        if (json_array_size(keys) > KEYS_MAX)
                return error_setf(reterr, E2BIG, "it has more than %d keys", KEYS_MAX);
        json_array_foreach(keys, i, key) {
                int r = public_key_parse(strna(json_text(key, "pem")), &check->keys[i], reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "%s", strna(json_text(key, "name")));
                check->n_keys++;
        }
        return 0;
}

/* Keeps the message if this signature got further than the earlier ones. */
static int note_signature_progress(RequirementCheck *check, SignatureProgress progress, int r,
                                   Error *error) {
        if (r == -ENOMEM)
                return r;
        if (progress < check->progress || (check->closest.message && progress == check->progress))
                return 0;
        check->progress = progress;
        error_done(&check->closest);
        check->closest = ERROR_NULL;
        error_move(&check->closest, error);
        return 0;
}

static bool is_signed_by_key(const RequirementCheck *check, const SignedContent *content) {
        for (size_t i = 0; i < check->n_keys; i++)
                if (public_key_verify(check->keys[i], content->bytes, content->length,
                                      content->signature, content->signature_length))
                        return true;
        return false;
}

/* Checks the payload that was verified with a key of the rule. 0: it is accepted. */
static int check_signed_claims(const RequirementCheck *check, const SignedContent *content,
                               SignatureProgress *ret_progress, Error *reterr) {
        cleanup_with(signature_claims_done) SignatureClaims claims = { 0 };
        int r;

        *ret_progress = SIGNATURE_OF_OTHER_IMAGE;
        r = signature_claims_parse(content, &claims, reterr);
        if (r < 0)
                return r;
        if (!text_is_one_of(claims.digest, check->digests))
                return error_setf(reterr, EKEYREJECTED, "the signature is of another image, %s",
                                  claims.digest);
        *ret_progress = SIGNATURE_FOR_OTHER_NAME;
        return signed_identity_check(json_object_get(check->requirement, "identity"),
                                     check->reference, claims.reference, reterr);
}

static int check_key_and_claims(const RequirementCheck *check, const SigstoreSignature *signature,
                                SignatureProgress *ret_progress, Error *reterr) {
        cleanup_with(signed_content_done) SignedContent content = { 0 };
        int r = sigstore_signature_open(signature, &content, reterr);

        *ret_progress = r == -ENOTSUP ? SIGNATURE_KEYLESS : SIGNATURE_UNREADABLE;
        if (r < 0)
                return r;
        if (!is_signed_by_key(check, &content)) {
                *ret_progress = SIGNATURE_BY_OTHER_KEY;
                return error_setf(reterr, EKEYREJECTED,
                                  "it is signed, but not by a key of this rule");
        }
        return check_signed_claims(check, &content, ret_progress, reterr);
}

/* 1: it is accepted; 0; -ENOMEM. */
static int check_one_signature(RequirementCheck *check, const SigstoreSignature *signature) {
        cleanup_error Error error = ERROR_NULL;
        SignatureProgress progress;
        int r = check_key_and_claims(check, signature, &progress, &error);

        return r < 0 ? note_signature_progress(check, progress, r, &error) : 1;
}

static int run_requirement_check(RequirementCheck *check, const SignatureSet *set, Error *reterr) {
        int r = load_requirement_keys(check, reterr);

        for (size_t i = 0; r == 0 && i < set->n; i++)
                r = check_one_signature(check, &set->items[i]);
        if (r != 0)
                return MIN(r, 0);
        return error_setf(
                reterr, EKEYREJECTED, "%s%s",
                set->n > 0 ? strna(check->closest.message) : "it is not signed",
                set->is_cut ? "; not all of its signatures were read, as they are too many" : "");
}

int signatures_check(const json_t *policy, const char *const *digests, const SignatureSet *set,
                     Error *reterr) {
        const json_t *requirements = json_object_get(policy, "requirements"), *requirement;
        size_t i;

        json_array_foreach(requirements, i, requirement) {
                cleanup_with(requirement_check_done) RequirementCheck check = {
                        .requirement = requirement,
                        .reference = strna(json_text(policy, "reference")),
                        .digests = digests,
                };
                cleanup_error Error error = ERROR_NULL;
                int r = run_requirement_check(&check, set, &error);

                if (r < 0 && r != -ENOMEM)
                        return error_setf(reterr, EKEYREJECTED,
                                          "SignatureValidationFailed: image %s: %s: %s", digests[0],
                                          strna(json_text(requirement, "rule")),
                                          error_message(&error, r));
                if (r < 0)
                        return r;
        }
        return 0;
}
