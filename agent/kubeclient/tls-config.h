/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The TLS files of a kubeconfig: CA, certificate and key. They are read once, verified, and kept in
 * memory files, so that libcurl uses the verified content even if the files change. */

#include "agent/model/kubeconfig.h"
#include "common/error.h"
#include "common/hash.h"

enum {
        TLS_FILE_MAX = 1024 * 1024,
};

typedef struct KubeTlsConfig {
        int authority_fd; /* PEM; -EBADF: none */
        int certificate_fd;
        int key_fd;
        char hash[SHA256_HEX_SIZE]; /* hash of all three */
        /* The expiry of the client certificate, realtime microseconds; 0: none. */
        uint64_t not_before, not_after;
} KubeTlsConfig;

#define KUBE_TLS_CONFIG_NULL \
        ((KubeTlsConfig){ .authority_fd = -EBADF, .certificate_fd = -EBADF, .key_fd = -EBADF })

/* Reads the files of the kubeconfig. -EINVAL if a certificate is invalid or the key does not match
 * it; -errno of a file; with a message that contains no secret. */
int kube_tls_config_load(const Kubeconfig *kubeconfig, KubeTlsConfig *ret, Error *reterr);
void kube_tls_config_done(KubeTlsConfig *tls_config);

/* Checks a certificate in PEM and its key, in one text: -EINVAL with a message if one of them is
 * unusable or the key does not match. Returns the validity in realtime microseconds. */
int kube_pair_check(const char *pair, uint64_t *ret_not_before, uint64_t *ret_not_after,
                    Error *reterr);

/* Whether the certificate covers all of these DNS names and numeric addresses. */
bool kube_pair_is_for(const char *pair, char *const *names, char *const *addresses);

/* Reads a bearer token: visible ASCII; surrounding blanks are removed. 0; -EINVAL, -EFBIG or -errno
 * with a message. */
int kube_token_read(const char *path, char **ret, Error *reterr);

/* explicit_bzero() and free(). */
char *secret_free(char *secret);
DEFINE_CLEANUP(char *, secret_free)
