/* SPDX-License-Identifier: Apache-2.0 */
/* The input is read as a payload with a signature, as a bundle, and as the payload in an envelope.
 * Extracted data is complete and belongs to an image. */

#include "tests/fuzz/fuzz.h"

#include "agent/image-helper/signature/sigstore-signature.h"
#include "common/cleanup.h"

#include <errno.h>

static void check_claims(const SignedContent *content) {
        cleanup_with(signature_claims_done) SignatureClaims claims = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = signature_claims_parse(content, &claims, &error);

        if (r < 0) {
                assert(r == -EBADMSG && error.message);
                return;
        }
        assert(digest_is_valid(claims.digest));
        assert(content->is_bundle ? !claims.reference || claims.reference[0]
                                  : claims.reference && claims.reference[0]);
}

static void check_signature(const SigstoreSignature *signature) {
        cleanup_with(signed_content_done) SignedContent content = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = sigstore_signature_open(signature, &content, &error);

        if (r < 0) {
                assert((r == -EBADMSG || r == -ENOTSUP) && error.message);
                return;
        }
        assert(content.bytes && content.signature);
        assert(content.is_bundle == !signature->signature);
        assert(!content.is_bundle || content.length > content.payload_length);
        check_claims(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = strndup((const char *) data, size), *document = malloc(size + 1);

        assert(text && document);
        memcpy(document, data, size);
        document[size] = '\0';
        check_signature(&(SigstoreSignature){ document, size, (char[]){ "c2lnbmF0dXJl" } });
        check_signature(&(SigstoreSignature){ document, size, text });
        check_signature(&(SigstoreSignature){ document, size, NULL });
        check_claims(&(SignedContent){ .is_bundle = true,
                                       .bytes = document,
                                       .length = size,
                                       .payload = document,
                                       .payload_length = size });
        free(document);
        free(text);
        return 0;
}
