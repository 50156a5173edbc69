/* SPDX-License-Identifier: Apache-2.0 */
/* The data that mainstay-api sends about a handshake. The first byte is the version. Refused data
 * results in a message; the certificates and the nonce of accepted data are within the input. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/tls/handshake-proof.h"
#include "common/cleanup.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const SignerProof kind = { .is_tls13 = size > 0 && data[0] & 1, .hash = GNUTLS_DIG_SHA256 };
        cleanup_error Error error = ERROR_NULL;
        HandshakeProof proof = { .n = 0 };
        int r;

        if (size == 0)
                return 0;
        r = handshake_proof_verify(&kind, data + 1, size - 1, &proof, &error);
        assert(r == 0 || (r == -EACCES && error.message));
        if (r < 0)
                return 0;
        assert(proof.nonce >= data && proof.nonce + SIGNER_NONCE_SIZE <= data + size);
        assert(proof.n > 0 && proof.chain[0].data >= data &&
               proof.chain[0].data + proof.chain[0].size <= data + size);
        return 0;
}
