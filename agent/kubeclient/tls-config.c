/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and verifies the TLS files of a kubeconfig and its token file. */

#include "agent/kubeclient/tls-config.h"

#include "common/certificate-time.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/memfd.h"
#include "common/strv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <strings.h>

enum {
        TOKEN_FILE_MAX = 64 * 1024,
};

char *secret_free(char *secret) {
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
        return NULL;
}

/* ---- reading ---- */

typedef struct TlsPems {
        char *authority, *certificate, *key;
} TlsPems;

static void tls_pems_done(TlsPems *pems) {
        free(pems->authority);
        free(pems->certificate);
        secret_free(pems->key);
}

/* Inline data takes precedence over the file. */
static int read_pem(const char *data, const char *path, char **ret, Error *reterr) {
        size_t length;
        int r;

        if (data) {
                *ret = strdup(data);
                return *ret ? 0 : -ENOMEM;
        }
        if (!path)
                return 0;
        r = read_file_at(AT_FDCWD, path, TLS_FILE_MAX, ret, &length);
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}

static int read_tls_pems(const Kubeconfig *config, TlsPems *ret, Error *reterr) {
        int r = read_pem(config->authority_data, config->authority_file, &ret->authority, reterr);

        if (r < 0)
                return r;
        r = read_pem(config->certificate_data, config->certificate_file, &ret->certificate, reterr);
        if (r < 0)
                return r;
        r = read_pem(config->key_data, config->key_file, &ret->key, reterr);
        return r;
}

/* ---- verifying ---- */

static const char *source_path(const Kubeconfig *config, const char *path) {
        return path ? path : config->path;
}

static int check_certificate_authority(const Kubeconfig *config, const char *text, Error *reterr) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        const char *path = config->authority_data ? NULL : config->authority_file;
        gnutls_x509_crt_t *certificates = NULL;
        unsigned n = 0;
        int r = gnutls_x509_crt_list_import2(&certificates, &n, &pem, GNUTLS_X509_FMT_PEM, 0);

        for (unsigned i = 0; r >= 0 && i < n; i++)
                gnutls_x509_crt_deinit(certificates[i]);
        if (r >= 0)
                gnutls_free(certificates);
        if (r >= 0 && n > 0)
                return 0;
        return error_setf(reterr, EINVAL,
                          "%s: the certificate authority is not a certificate in PEM",
                          source_path(config, path));
}

enum {
        KEY_ID_SIZE = 64,
};

static void certificate_deinitp(gnutls_x509_crt_t *certificate) {
        gnutls_x509_crt_deinit(*certificate);
}

static void private_key_deinitp(gnutls_x509_privkey_t *key) {
        gnutls_x509_privkey_deinit(*key);
}

static int certificate_key_id(const char *text, unsigned char *ret, size_t *ret_length) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        cleanup_with(certificate_deinitp) gnutls_x509_crt_t certificate = NULL;
        int r = gnutls_x509_crt_init(&certificate);

        if (r < 0)
                return r;
        r = gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM);
        if (r < 0)
                return r;
        return gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, ret, ret_length);
}

static int private_key_id(const char *text, unsigned char *ret, size_t *ret_length) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        cleanup_with(private_key_deinitp) gnutls_x509_privkey_t key = NULL;
        int r = gnutls_x509_privkey_init(&key);

        if (r < 0)
                return r;
        r = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN);
        if (r < 0)
                return r;
        return gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, ret, ret_length);
}

static int compare_key_pair(const char *certificate, const char *certificate_path, const char *key,
                            const char *key_path, Error *reterr) {
        unsigned char id[KEY_ID_SIZE], key_id[KEY_ID_SIZE];
        size_t length = sizeof(id), key_length = sizeof(key_id);
        int r = certificate_key_id(certificate, id, &length);

        if (r < 0)
                return error_setf(reterr, EINVAL, "%s: the certificate cannot be used: %s",
                                  certificate_path, gnutls_strerror(r));
        r = private_key_id(key, key_id, &key_length);
        if (r < 0)
                return error_setf(reterr, EINVAL, "%s: the key cannot be used: %s", key_path,
                                  gnutls_strerror(r));
        if (length == key_length && memcmp(id, key_id, length) == 0)
                return 0;
        return error_setf(reterr, EINVAL, "%s: the key is not that of the certificate",
                          certificate_path);
}

static int check_key_pair(const Kubeconfig *config, const TlsPems *pems, Error *reterr) {
        const char *path = config->certificate_data ? NULL : config->certificate_file;
        const char *key_path = config->key_data ? NULL : config->key_file;

        return compare_key_pair(pems->certificate, source_path(config, path), pems->key,
                                source_path(config, key_path), reterr);
}

static uint64_t certificate_time_usec(int64_t seconds) {
        return seconds > 0 ? (uint64_t) seconds * USEC_PER_SEC : 0;
}

static void read_certificate_validity(const char *text, uint64_t *ret_not_before,
                                      uint64_t *ret_not_after) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        gnutls_x509_crt_t certificate = NULL;
        CertificateTimes times;

        *ret_not_before = *ret_not_after = 0;
        if (gnutls_x509_crt_init(&certificate) < 0)
                return;
        if (gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM) >= 0 &&
            certificate_read_times(certificate, &times) >= 0) {
                *ret_not_before = certificate_time_usec(times.not_before);
                *ret_not_after = certificate_time_usec(times.not_after);
        }
        gnutls_x509_crt_deinit(certificate);
}

static int check_tls_pems(const Kubeconfig *config, const TlsPems *pems, Error *reterr) {
        int r = pems->authority ? check_certificate_authority(config, pems->authority, reterr) : 0;

        if (r < 0)
                return r;
        if (pems->certificate && pems->key)
                return check_key_pair(config, pems, reterr);
        return 0;
}

int kube_pair_check(const char *pair, uint64_t *ret_not_before, uint64_t *ret_not_after,
                    Error *reterr) {
        static const char name[] = "the issued certificate";
        int r = compare_key_pair(pair, name, pair, name, reterr);

        if (r < 0)
                return r;
        read_certificate_validity(pair, ret_not_before, ret_not_after);
        return 0;
}

static bool is_certificate_for(gnutls_x509_crt_t certificate, char *const *names,
                               char *const *addresses) {
        strv_foreach(name, (char **) (uintptr_t) names)
                if (!gnutls_x509_crt_check_hostname(certificate, *name))
                        return false;
        strv_foreach(text, (char **) (uintptr_t) addresses) {
                unsigned char address[sizeof(struct in6_addr)];
                bool is_ipv6 = strchr(*text, ':');

                if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, *text, address) == 1 &&
                    !gnutls_x509_crt_check_ip(certificate, address, is_ipv6 ? 16 : 4, 0))
                        return false;
        }
        return true;
}

bool kube_pair_is_for(const char *pair, char *const *names, char *const *addresses) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) pair, (unsigned) strlen(pair) };
        cleanup_with(certificate_deinitp) gnutls_x509_crt_t certificate = NULL;

        return gnutls_x509_crt_init(&certificate) >= 0 &&
               gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM) >= 0 &&
               is_certificate_for(certificate, names, addresses);
}

/* ---- memory files ---- */

static int store_in_memfd(const char *name, const char *text, int *ret_fd) {
        int fd;

        if (!text)
                return 0;
        fd = memfd_open(name, text, strlen(text));
        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}

/* Hashes each text with its NUL, which separates it from the next one. */
static int hash_tls_pems(const TlsPems *pems, char ret_hex[SHA256_HEX_SIZE]) {
        const char *const all[] = { pems->authority, pems->certificate, pems->key };
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(all); i++)
                sha256_update(hash, strna(all[i]), strlen(strna(all[i])) + 1);
        sha256_finish(hash, ret_hex);
        return 0;
}

int kube_tls_config_load(const Kubeconfig *config, KubeTlsConfig *ret, Error *reterr) {
        cleanup_with(kube_tls_config_done) KubeTlsConfig tls_config = KUBE_TLS_CONFIG_NULL;
        cleanup_with(tls_pems_done) TlsPems pems = { 0 };
        int r = read_tls_pems(config, &pems, reterr);

        if (r < 0)
                return r;
        r = check_tls_pems(config, &pems, reterr);
        if (r < 0)
                return r;
        r = hash_tls_pems(&pems, tls_config.hash);
        if (r < 0)
                return r;
        r = store_in_memfd("kube-authority", pems.authority, &tls_config.authority_fd);
        if (r < 0)
                return r;
        r = store_in_memfd("kube-certificate", pems.certificate, &tls_config.certificate_fd);
        if (r < 0)
                return r;
        r = store_in_memfd("kube-key", pems.key, &tls_config.key_fd);
        if (r < 0)
                return r;
        if (pems.certificate)
                read_certificate_validity(pems.certificate, &tls_config.not_before,
                                          &tls_config.not_after);
        *ret = tls_config;
        tls_config = KUBE_TLS_CONFIG_NULL;
        return 0;
}

void kube_tls_config_done(KubeTlsConfig *tls_config) {
        tls_config->authority_fd = close_fd(tls_config->authority_fd);
        tls_config->certificate_fd = close_fd(tls_config->certificate_fd);
        tls_config->key_fd = close_fd(tls_config->key_fd);
}

/* ---- tokens ---- */

static bool is_bearer_token(const char *text) {
        for (const char *c = text; *c; c++)
                if (*c <= ' ' || *c >= 0x7f)
                        return false;
        return text[0] != '\0';
}

int kube_token_read(const char *path, char **ret, Error *reterr) {
        static const char blanks[] = " \t\r\n";
        cleanup_with(secret_freep) char *text = NULL;
        size_t length, start;
        int r = read_file_at(AT_FDCWD, path, TOKEN_FILE_MAX, &text, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        start = strspn(text, blanks);
        while (length > start && strchr(blanks, text[length - 1]))
                text[--length] = '\0';
        if (start + strlen(text + start) != length || !is_bearer_token(text + start))
                return error_setf(reterr, EINVAL, "%s: holds no token", path);
        *ret = strdup(text + start);
        return *ret ? 0 : -ENOMEM;
}
