/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Signatures of images in the formats of cosign: a payload of "simple signing" with a signature
 * next to it (cosign 2), and a bundle of sigstore with an in-toto statement in a DSSE envelope
 * (cosign 3). All of it is untrusted until a key has verified it. */

#include "agent/image-helper/pull/digest.h"
#include "common/error.h"

#define SIGSTORE_PAYLOAD_TYPE  "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIGSTORE_BUNDLE_PREFIX "application/vnd.dev.sigstore.bundle"
#define SIGSTORE_BUNDLE_TYPE   SIGSTORE_BUNDLE_PREFIX ".v0.3+json"

enum {
        SIGSTORE_DOCUMENT_SIZE_MAX = 256 * 1024, /* of a payload or a bundle */
        SIGSTORE_SIGNATURE_SIZE_MAX = 8 * 1024,  /* of a payload, in base64 */
        SIGSTORE_SIGNATURES_MAX = 64,
        SIGSTORE_BYTES_MAX = 4 * 1024 * 1024 /* of all of one image */
};

/* One signature as it arrived. */
typedef struct SigstoreSignature {
        char *document; /* the payload, or the bundle */
        size_t length;
        char *signature; /* of the payload, in base64; NULL: the document is a bundle */
} SigstoreSignature;

/* The signatures of one image. */
typedef struct SignatureSet {
        SigstoreSignature *items;
        size_t n;
        size_t n_bytes;
        bool is_cut; /* there were more than the limits permit */
} SignatureSet;

/* Adds a copy; beyond the limits it only sets 'is_cut'. 0 or -ENOMEM. */
int signature_set_add(SignatureSet *set, const char *document, size_t length,
                      const char *signature);
void signature_set_done(SignatureSet *set);

/* A signature taken apart: the signed bytes, and the signature's bytes. */
typedef struct SignedContent {
        bool is_bundle;
        char *bytes; /* the bytes that the key signs */
        size_t length;
        char *payload; /* the document in it; NULL: it is 'bytes' */
        size_t payload_length;
        char *signature;
        size_t signature_length;
} SignedContent;

/* 0; -EBADMSG with a message; -ENOTSUP with one for a bundle without a key. */
int sigstore_signature_open(const SigstoreSignature *signature, SignedContent *ret, Error *reterr);
void signed_content_done(SignedContent *content);

/* The subject of a signature. */
typedef struct SignatureClaims {
        char digest[DIGEST_SIZE]; /* of the manifest or the index */
        char *reference;          /* "example.com/app", "example.com/app:1"; NULL: not signed */
} SignatureClaims;

/* Reads a payload that a key has verified. 0, or -EBADMSG with a message. */
int signature_claims_parse(const SignedContent *content, SignatureClaims *ret, Error *reterr);
void signature_claims_done(SignatureClaims *claims);
