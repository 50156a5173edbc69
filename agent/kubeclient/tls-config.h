/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificates of one moment: whom we trust, who we are. Read once, looked at, and kept in
 * memory files, so that what libcurl opens for each connection is what was verified, whatever
 * happens to the files meanwhile. */

#include "agent/model/kubeconfig.h"
#include "common/error.h"
#include "common/hash.h"

enum {
        TLS_FILE_MAX = 1024 * 1024,
        MEMFD_PATH_SIZE = sizeof("/proc/self/fd/2147483647"),
};

typedef struct KubeTlsConfig {
        int authority_fd; /* PEM; -EBADF: none */
        int certificate_fd;
        int key_fd;
        char hash[SHA256_HEX_SIZE]; /* of all three */
        uint64_t begins, expires;   /* of our certificate, realtime microseconds; 0: none */
} KubeTlsConfig;

#define KUBE_TLS_CONFIG_NULL \
        ((KubeTlsConfig){ .authority_fd = -EBADF, .certificate_fd = -EBADF, .key_fd = -EBADF })

/* Reads what the kubeconfig names. -EINVAL where the certificates are none, or the key is not that
 * of the certificate; -errno of a file; with a sentence that shows none of it. */
int kube_tls_config_load(const Kubeconfig *kubeconfig, KubeTlsConfig *ret, Error *reterr);
void kube_tls_config_done(KubeTlsConfig *tls_config);

/* The name by which a memory file can be opened in our process. Returns the buffer. */
const char *memfd_path(int fd, char buffer[MEMFD_PATH_SIZE]);

/* A bearer token: visible ASCII, blanks around it are not counted. 0; -EINVAL, -EFBIG, -errno with
 * a sentence. */
int kube_token_read(const char *path, char **ret, Error *reterr);

/* explicit_bzero() and free(). */
char *secret_free(char *secret);
DEFINE_CLEANUP(char *, secret_free)
