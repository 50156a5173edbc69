/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image signatures in the formats of cosign: a "simple signing" payload with a detached signature
 * (cosign 2), and a sigstore bundle with an in-toto statement in a DSSE envelope (cosign 3).
 * Everything is untrusted until it has been verified with a key. */

#include "agent/image-helper/pull/digest.h"
#include "common/error.h"

#define SIGSTORE_PAYLOAD_TYPE  "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIGSTORE_BUNDLE_PREFIX "application/vnd.dev.sigstore.bundle"
#define SIGSTORE_BUNDLE_TYPE   SIGSTORE_BUNDLE_PREFIX ".v0.3+json"

enum {
        SIGSTORE_DOCUMENT_SIZE_MAX = 256 * 1024, /* limit of a payload or a bundle */
        SIGSTORE_SIGNATURE_SIZE_MAX = 8 * 1024,  /* limit of a payload's signature, in base64 */
        SIGSTORE_SIGNATURES_MAX = 64,
        SIGSTORE_BYTES_MAX = 4 * 1024 * 1024 /* limit of all signatures of one image */
};

/* One signature as it arrived. */
typedef struct SigstoreSignature {
        char *document; /* the payload, or the bundle */
        size_t length;
        char *signature; /* signature of the payload, in base64; NULL: the document is a bundle */
} SigstoreSignature;

/* The signatures of one image. */
typedef struct SignatureSet {
        SigstoreSignature *items;
        size_t n;
        size_t n_bytes;
        bool is_cut; /* there were more than the limits allow */
} SignatureSet;

/* Adds a copy; if that would exceed the limits, only sets 'is_cut'. 0 or -ENOMEM. */
int signature_set_add(SignatureSet *set, const char *document, size_t length,
                      const char *signature);
void signature_set_done(SignatureSet *set);

/* A decoded signature: the signed bytes and the signature's bytes. */
typedef struct SignedContent {
        bool is_bundle;
        char *bytes; /* the bytes that the key signs */
        size_t length;
        char *payload; /* the document in the bytes; NULL: the document is 'bytes' */
        size_t payload_length;
        char *signature;
        size_t signature_length;
} SignedContent;

/* 0; -EBADMSG with a message; -ENOTSUP with a message for a bundle without a key. */
int sigstore_signature_open(const SigstoreSignature *signature, SignedContent *ret, Error *reterr);
void signed_content_done(SignedContent *content);

/* The subject of a signature. */
typedef struct SignatureClaims {
        char digest[DIGEST_SIZE]; /* digest of the manifest or the index */
        char *reference;          /* "example.com/app", "example.com/app:1"; NULL: not signed */
} SignatureClaims;

/* Parses a payload that has been verified with a key. 0, or -EBADMSG with a message. */
int signature_claims_parse(const SignedContent *content, SignatureClaims *ret, Error *reterr);
void signature_claims_done(SignatureClaims *claims);
