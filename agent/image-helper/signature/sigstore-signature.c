/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/sigstore-signature.h"

#include "agent/image-helper/pull/document.h"
#include "common/base64.h"
#include "common/json-text.h"

#define PAYLOAD_KIND   "cosign container image signature"
#define STATEMENT_KIND "application/vnd.in-toto+json"
#define PREDICATE_KIND "https://sigstore.dev/cosign/sign/v1"

/* ---- a set of them ---- */

static void sigstore_signature_done(SigstoreSignature *signature) {
        free(signature->document);
        free(signature->signature);
}

void signature_set_done(SignatureSet *set) {
        for (size_t i = 0; i < set->n; i++)
                sigstore_signature_done(&set->items[i]);
        free(set->items);
        *set = (SignatureSet){ 0 };
}

int signature_set_add(SignatureSet *set, const char *document, size_t length,
                      const char *signature) {
        size_t n_bytes = length + (signature ? strlen(signature) : 0);
        SigstoreSignature added = { .length = length };

        if (set->n == SIGSTORE_SIGNATURES_MAX || n_bytes > SIGSTORE_BYTES_MAX - set->n_bytes) {
                set->is_cut = true;
                return 0;
        }
        if (!set->items)
                set->items = calloc(SIGSTORE_SIGNATURES_MAX, sizeof(*set->items));
        added.document = calloc(1, length + 1);
        added.signature = signature ? strdup(signature) : NULL;
        if (!set->items || !added.document || (signature && !added.signature)) {
                sigstore_signature_done(&added);
                return -ENOMEM;
        }
        memcpy(added.document, document, length);
        set->items[set->n++] = added;
        set->n_bytes += n_bytes;
        return 0;
}

/* ---- signed payload ---- */

void signed_content_done(SignedContent *content) {
        free(content->bytes);
        free(content->payload);
        free(content->signature);
        *content = (SignedContent){ 0 };
}

static int decode_base64_member(const json_t *object, const char *key, char **ret,
                                size_t *ret_length, Error *reterr) {
        const char *text = json_text(object, key);
        int r = text ? base64_decode(text, ret, ret_length) : -EINVAL;

        return r == -EINVAL ? error_setf(reterr, EBADMSG, "'%s' is not base64", key) : r;
}

static int open_signed_payload(const SigstoreSignature *signature, SignedContent *content,
                               Error *reterr) {
        int r = base64_decode(signature->signature, &content->signature,
                              &content->signature_length);

        if (r < 0)
                return r == -EINVAL ? error_setf(reterr, EBADMSG, "the signature is not base64")
                                    : r;
        content->bytes = calloc(1, signature->length + 1);
        if (!content->bytes)
                return -ENOMEM;
        memcpy(content->bytes, signature->document, signature->length);
        content->length = signature->length;
        return 0;
}

/* The pre-authentication encoding of DSSE. */
static int encode_dsse_bytes(SignedContent *content, const char *type) {
        char head[256];
        int n = snprintf(head, sizeof(head), "DSSEv1 %zu %s %zu ", strlen(type), type,
                         content->payload_length);

        if (n < 0 || (size_t) n >= sizeof(head))
                return -EBADMSG;
        content->length = (size_t) n + content->payload_length;
        content->bytes = calloc(1, content->length + 1);
        if (!content->bytes)
                return -ENOMEM;
        memcpy(content->bytes, head, (size_t) n);
        memcpy(content->bytes + n, content->payload, content->payload_length);
        return 0;
}

static int check_bundle_material(const json_t *bundle, Error *reterr) {
        const json_t *material = json_object_get(bundle, "verificationMaterial");
        const char *type = json_text(bundle, "mediaType");

        if (!type || strncmp(type, SIGSTORE_BUNDLE_PREFIX, strlen(SIGSTORE_BUNDLE_PREFIX)) != 0)
                return error_setf(reterr, EBADMSG, "it is not a bundle of sigstore");
        if (json_object_get(material, "certificate") ||
            json_object_get(material, "x509CertificateChain"))
                return error_setf(reterr, ENOTSUP,
                                  "it was made without a key (Fulcio, Rekor), which is not "
                                  "supported");
        return 0;
}

static int open_signed_bundle(const SigstoreSignature *signature, SignedContent *content,
                              Error *reterr) {
        cleanup_json json_t *bundle = NULL;
        const json_t *envelope, *signatures;
        const char *type;
        int r = document_parse(signature->document, signature->length, &bundle, reterr);

        if (r < 0)
                return r;
        r = check_bundle_material(bundle, reterr);
        if (r < 0)
                return r;
        envelope = json_object_get(bundle, "dsseEnvelope");
        signatures = json_object_get(envelope, "signatures");
        type = json_text(envelope, "payloadType");
        if (!type || !streq(type, STATEMENT_KIND) || json_array_size(signatures) != 1)
                return error_setf(reterr, EBADMSG,
                                  "it has no envelope with one statement and one signature");
        r = decode_base64_member(envelope, "payload", &content->payload, &content->payload_length,
                                 reterr);
        if (r < 0)
                return r;
        r = decode_base64_member(json_array_get(signatures, 0), "sig", &content->signature,
                                 &content->signature_length, reterr);
        return r < 0 ? r : encode_dsse_bytes(content, type);
}

int sigstore_signature_open(const SigstoreSignature *signature, SignedContent *ret, Error *reterr) {
        cleanup_with(signed_content_done)
                SignedContent content = { .is_bundle = !signature->signature };
        int r = content.is_bundle ? open_signed_bundle(signature, &content, reterr)
                                  : open_signed_payload(signature, &content, reterr);

        if (r < 0)
                return r;
        *ret = content;
        content = (SignedContent){ 0 };
        return 0;
}

/* ---- claims ---- */

void signature_claims_done(SignatureClaims *claims) {
        free(claims->reference);
        *claims = (SignatureClaims){ 0 };
}

static bool has_exactly(const json_t *object, size_t n) {
        return json_is_object(object) && json_object_size(object) == n;
}

/* {"critical": {"identity": {"docker-reference"}, "image": {"docker-manifest-digest"}, "type"},
 * "optional"}: every critical member must be understood. */
static int parse_payload_claims(const json_t *payload, SignatureClaims *claims, Error *reterr) {
        const json_t *critical = json_object_get(payload, "critical");
        const json_t *identity = json_object_get(critical, "identity");
        const json_t *image = json_object_get(critical, "image");
        const char *digest = json_text(image, "docker-manifest-digest");
        const char *reference = json_text(identity, "docker-reference");
        const char *type = json_text(critical, "type");

        if (!has_exactly(critical, 3) || !has_exactly(identity, 1) || !has_exactly(image, 1) ||
            !type || !streq(type, PAYLOAD_KIND))
                return error_setf(reterr, EBADMSG, "the payload is not a signature of an image");
        if (!digest || digest_parse(digest, claims->digest) < 0)
                return error_setf(reterr, EBADMSG, "the payload has no digest of an image");
        if (!reference || !reference[0])
                return error_setf(reterr, EBADMSG, "the payload has no name of an image");
        claims->reference = strdup(reference);
        return claims->reference ? 0 : -ENOMEM;
}

static int parse_statement_digest(const json_t *subject, SignatureClaims *claims) {
        const char *hex = json_text(subject, "digest", "sha256");
        char digest[sizeof(DIGEST_PREFIX) + SHA256_HEX_SIZE];

        if (!hex || strlen(hex) != SHA256_HEX_SIZE - 1)
                return -EBADMSG;
        (void) snprintf(digest, sizeof(digest), DIGEST_PREFIX "%s", hex);
        return digest_parse(digest, claims->digest);
}

/* A statement with another predicate is an attestation, not a signature. */
static int parse_statement_claims(const json_t *statement, SignatureClaims *claims, Error *reterr) {
        const json_t *subjects = json_object_get(statement, "subject");
        const json_t *subject = json_array_get(subjects, 0);
        const char *kind = json_text(statement, "_type"), *name;
        const char *predicate = json_text(statement, "predicateType");

        if (!kind || strncmp(kind, "https://in-toto.io/Statement/v", 30) != 0)
                return error_setf(reterr, EBADMSG, "the payload is not a statement of in-toto");
        if (!predicate || !streq(predicate, PREDICATE_KIND))
                return error_setf(reterr, EBADMSG, "its predicate is '%.128s', not a signature",
                                  strna(predicate));
        if (json_array_size(subjects) != 1 || parse_statement_digest(subject, claims) < 0)
                return error_setf(reterr, EBADMSG, "the statement has no digest of one image");
        name = json_text(subject, "name");
        claims->reference = name && name[0] ? strdup(name) : NULL;
        return !name || !name[0] || claims->reference ? 0 : -ENOMEM;
}

int signature_claims_parse(const SignedContent *content, SignatureClaims *ret, Error *reterr) {
        cleanup_with(signature_claims_done) SignatureClaims claims = { 0 };
        cleanup_json json_t *json = NULL;
        int r = content->is_bundle
                        ? document_parse(content->payload, content->payload_length, &json, reterr)
                        : document_parse(content->bytes, content->length, &json, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "the payload");
        r = content->is_bundle ? parse_statement_claims(json, &claims, reterr)
                               : parse_payload_claims(json, &claims, reterr);
        if (r < 0)
                return r;
        *ret = claims;
        claims = (SignatureClaims){ 0 };
        return 0;
}
