/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/identity.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <strings.h>
#include <sys/mman.h>

enum {
        TOKEN_FILE_MAX = 64 * 1024,
};

char *secret_free(char *secret) {
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
        return NULL;
}

const char *memory_path(int fd, char buffer[MEMORY_PATH_SIZE]) {
        (void) snprintf(buffer, MEMORY_PATH_SIZE, "/proc/self/fd/%d", fd);
        return buffer;
}

/* ---- reading ---- */

typedef struct Texts {
        char *authority, *certificate, *key;
} Texts;

static void texts_done(Texts *texts) {
        free(texts->authority);
        free(texts->certificate);
        secret_free(texts->key);
}

/* Data come before the file. */
static int read_text(const char *data, const char *path, char **ret, Error *reterr) {
        size_t length;
        int r;

        if (data) {
                *ret = strdup(data);
                return *ret ? 0 : -ENOMEM;
        }
        if (!path)
                return 0;
        r = read_file_at(AT_FDCWD, path, IDENTITY_FILE_MAX, ret, &length);
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}

static int read_texts(const Kubeconfig *config, Texts *ret, Error *reterr) {
        int r = read_text(config->authority_data, config->authority_file, &ret->authority, reterr);

        if (r >= 0)
                r = read_text(config->certificate_data, config->certificate_file, &ret->certificate,
                              reterr);
        if (r >= 0)
                r = read_text(config->key_data, config->key_file, &ret->key, reterr);
        return r;
}

/* ---- verifying ---- */

static const char *place(const Kubeconfig *config, const char *path) {
        return path ? path : config->path;
}

static int check_authority(const Kubeconfig *config, const char *text, Error *reterr) {
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
        return error_setf(reterr, EINVAL, "%s: the certificate authority is no certificate in PEM",
                          place(config, path));
}

enum {
        KEY_ID_SIZE = 64,
};

static int certificate_key_id(const char *text, unsigned char *ret, size_t *ret_length) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        gnutls_x509_crt_t certificate = NULL;
        int r = gnutls_x509_crt_init(&certificate);

        if (r >= 0)
                r = gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM);
        if (r >= 0)
                r = gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, ret,
                                               ret_length);
        gnutls_x509_crt_deinit(certificate);
        return r;
}

static int private_key_id(const char *text, unsigned char *ret, size_t *ret_length) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        gnutls_x509_privkey_t key = NULL;
        int r = gnutls_x509_privkey_init(&key);

        if (r >= 0)
                r = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL,
                                                GNUTLS_PKCS_PLAIN);
        if (r >= 0)
                r = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, ret, ret_length);
        gnutls_x509_privkey_deinit(key);
        return r;
}

static int check_key(const Kubeconfig *config, const Texts *texts, Error *reterr) {
        const char *path = config->certificate_data ? NULL : config->certificate_file;
        const char *key_path = config->key_data ? NULL : config->key_file;
        unsigned char id[KEY_ID_SIZE], key_id[KEY_ID_SIZE];
        size_t length = sizeof(id), key_length = sizeof(key_id);
        int r = certificate_key_id(texts->certificate, id, &length);

        if (r < 0)
                return error_setf(reterr, EINVAL, "%s: the certificate cannot be used: %s",
                                  place(config, path), gnutls_strerror(r));
        r = private_key_id(texts->key, key_id, &key_length);
        if (r < 0)
                return error_setf(reterr, EINVAL, "%s: the key cannot be used: %s",
                                  place(config, key_path), gnutls_strerror(r));
        if (length == key_length && memcmp(id, key_id, length) == 0)
                return 0;
        return error_setf(reterr, EINVAL, "%s: the key is not that of the certificate",
                          place(config, path));
}

static void read_times(const char *text, KubeIdentity *identity) {
        gnutls_datum_t pem = { (unsigned char *) (uintptr_t) text, (unsigned) strlen(text) };
        gnutls_x509_crt_t certificate = NULL;

        if (gnutls_x509_crt_init(&certificate) < 0)
                return;
        if (gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM) >= 0) {
                time_t begins = gnutls_x509_crt_get_activation_time(certificate);
                time_t expires = gnutls_x509_crt_get_expiration_time(certificate);

                identity->begins = begins > 0 ? (uint64_t) begins * USEC_PER_SEC : 0;
                identity->expires = expires > 0 ? (uint64_t) expires * USEC_PER_SEC : 0;
        }
        gnutls_x509_crt_deinit(certificate);
}

static int check_texts(const Kubeconfig *config, const Texts *texts, Error *reterr) {
        int r = texts->authority ? check_authority(config, texts->authority, reterr) : 0;

        if (r >= 0 && texts->certificate && texts->key)
                r = check_key(config, texts, reterr);
        return r;
}

/* ---- keeping ---- */

static int keep(const char *name, const char *text, int *ret_fd) {
        cleanup_close int fd = -EBADF;
        int r;

        if (!text)
                return 0;
        fd = memfd_create(name, MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, strlen(text));
        if (r >= 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

/* The end of each is told by its NUL. */
static int hash_texts(const Texts *texts, char ret_hex[SHA256_HEX_SIZE]) {
        const char *const all[] = { texts->authority, texts->certificate, texts->key };
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(all); i++)
                sha256_update(hash, strna(all[i]), strlen(strna(all[i])) + 1);
        sha256_finish(hash, ret_hex);
        return 0;
}

int kube_identity_load(const Kubeconfig *config, KubeIdentity *ret, Error *reterr) {
        cleanup_with(kube_identity_done) KubeIdentity identity = KUBE_IDENTITY_NULL;
        cleanup_with(texts_done) Texts texts = { 0 };
        int r = read_texts(config, &texts, reterr);

        if (r >= 0)
                r = check_texts(config, &texts, reterr);
        if (r >= 0)
                r = hash_texts(&texts, identity.hash);
        if (r >= 0)
                r = keep("kube-authority", texts.authority, &identity.authority_fd);
        if (r >= 0)
                r = keep("kube-certificate", texts.certificate, &identity.certificate_fd);
        if (r >= 0)
                r = keep("kube-key", texts.key, &identity.key_fd);
        if (r < 0)
                return r;
        if (texts.certificate)
                read_times(texts.certificate, &identity);
        *ret = identity;
        identity = KUBE_IDENTITY_NULL;
        return 0;
}

void kube_identity_done(KubeIdentity *identity) {
        identity->authority_fd = close_fd(identity->authority_fd);
        identity->certificate_fd = close_fd(identity->certificate_fd);
        identity->key_fd = close_fd(identity->key_fd);
}

/* ---- tokens ---- */

static bool is_token(const char *text) {
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
        if (start + strlen(text + start) != length || !is_token(text + start))
                return error_setf(reterr, EINVAL, "%s: holds no token", path);
        *ret = strdup(text + start);
        return *ret ? 0 : -ENOMEM;
}
