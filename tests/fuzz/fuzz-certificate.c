/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys in PEM: those of the node's own authority, those of a client, and the
 * certificate in the status of a CertificateSigningRequest. */

#include "tests/fuzz/fuzz.h"

#include "agent/kubeclient/csr.h"
#include "agent/kubeclient/tls-config.h"
#include "agent/node/node-authority.h"
#include "common/cleanup.h"

static void check_authority(const char *pem) {
        cleanup_with(node_authority_freep) NodeAuthority *authority = NULL;
        cleanup_error Error error = ERROR_NULL;

        if (node_authority_parse(pem, UINT64_C(1800000000000000), &authority, &error) < 0)
                assert(error.message);
        else
                assert(node_authority_certificate(authority));
        (void) is_self_signed(pem);
}

static void check_pair(const char *pem) {
        static char name[] = "node1", address[] = "10.0.0.1";
        cleanup_error Error error = ERROR_NULL;
        uint64_t not_before, not_after;

        if (kube_pair_check(pem, &not_before, &not_after, &error) < 0)
                assert(error.message);
        (void) kube_pair_is_for(pem, (char *[]){ name, NULL }, (char *[]){ address, NULL });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size), *answer = NULL;

        assert(text);
        check_authority(text);
        check_pair(text);
        if (csr_read_status(text, strlen(text), &answer) == CSR_ISSUED)
                assert(answer);
        return 0;
}
