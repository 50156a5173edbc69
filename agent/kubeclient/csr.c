/* SPDX-License-Identifier: Apache-2.0 */
/* Creates keys and CertificateSigningRequests with GnuTLS, and reads the status of a request. */

#include "agent/kubeclient/csr.h"

#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/private-key.h"
#include "agent/kubeclient/tls-config.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

enum {
        CONDITIONS_MAX = 16,
        KEY_ID_BYTES = 32,
};

static void csr_key_deinitp(gnutls_x509_privkey_t *key) {
        gnutls_x509_privkey_deinit(*key);
}

static void request_deinitp(gnutls_x509_crq_t *request) {
        gnutls_x509_crq_deinit(*request);
}

static void datum_freep(gnutls_datum_t *datum) {
        gnutls_free(datum->data);
}

static int set_gnutls_error(int code, const char *what, Error *reterr) {
        return error_setf(reterr, EINVAL, "%s: %s", what, gnutls_strerror(code));
}

int csr_generate_key(char **ret_key, Error *reterr) {
        cleanup_with(csr_key_deinitp) gnutls_x509_privkey_t key = NULL;
        int code = private_key_generate(&key);

        if (code < 0)
                return set_gnutls_error(code, "cannot make a key", reterr);
        *ret_key = private_key_format(key);
        return *ret_key ? 0 : -ENOMEM;
}

/* Adds the names and addresses of a server as alternative names. */
static int add_server_names(gnutls_x509_crq_t request, const CsrServer *server) {
        unsigned char address[sizeof(struct in6_addr)];
        int code = 0;

        strv_foreach(name, server->names) {
                code = gnutls_x509_crq_set_subject_alt_name(request, GNUTLS_SAN_DNSNAME, *name,
                                                            (unsigned) strlen(*name),
                                                            GNUTLS_FSAN_APPEND);
                if (code < 0)
                        return code;
        }
        strv_foreach(text, server->addresses) {
                unsigned length = parse_alternative_address(*text, address);

                if (length == 0)
                        continue;
                code = gnutls_x509_crq_set_subject_alt_name(request, GNUTLS_SAN_IPADDRESS, address,
                                                            length, GNUTLS_FSAN_APPEND);
                if (code < 0)
                        return code;
        }
        return code;
}

static int sign_csr(gnutls_x509_crq_t request, gnutls_x509_privkey_t key, const char *common_name,
                    const CsrServer *server) {
        static const char organisation[] = "system:nodes";
        int r = gnutls_x509_crq_set_version(request, 1);

        if (r < 0)
                return r;
        r = gnutls_x509_crq_set_dn_by_oid(request, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
                                          organisation, sizeof(organisation) - 1);
        if (r < 0)
                return r;
        r = gnutls_x509_crq_set_dn_by_oid(request, GNUTLS_OID_X520_COMMON_NAME, 0, common_name,
                                          (unsigned) strlen(common_name));
        if (r < 0)
                return r;
        r = server ? add_server_names(request, server) : 0;
        if (r < 0)
                return r;
        r = gnutls_x509_crq_set_key(request, key);
        return r < 0 ? r : gnutls_x509_crq_sign2(request, key, GNUTLS_DIG_SHA256, 0);
}

/* The API server only accepts "CERTIFICATE REQUEST"; GnuTLS writes "NEW CERTIFICATE REQUEST". */
static int export_csr(gnutls_x509_crq_t request, gnutls_datum_t *ret_pem) {
        cleanup_with(datum_freep) gnutls_datum_t der = { 0 };
        int r = gnutls_x509_crq_export2(request, GNUTLS_X509_FMT_DER, &der);

        if (r < 0)
                return r;
        return gnutls_pem_base64_encode2("CERTIFICATE REQUEST", &der, ret_pem);
}

static int make_csr_pem(gnutls_x509_privkey_t key, const char *node_name, const CsrServer *server,
                        gnutls_datum_t *ret, Error *reterr) {
        cleanup_free char *common_name = NULL;
        cleanup_with(request_deinitp) gnutls_x509_crq_t request = NULL;
        int r;

        common_name = text_format("system:node:%s", node_name);
        if (!common_name)
                return -ENOMEM;
        r = gnutls_x509_crq_init(&request);
        if (r >= 0)
                r = sign_csr(request, key, common_name, server);
        if (r >= 0)
                r = export_csr(request, ret);
        return r < 0 ? set_gnutls_error(r, "cannot make a certificate signing request", reterr) : 0;
}

static int hash_server(const CsrServer *server, char hex[SHA256_HEX_SIZE]) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, hex, strlen(hex));
        strv_foreach(name, server->names)
                sha256_update(hash, *name, strlen(*name) + 1);
        strv_foreach(address, server->addresses)
                sha256_update(hash, *address, strlen(*address) + 1);
        sha256_finish(hash, hex);
        return 0;
}

/* The name is computed from the key and, for a server, from its names and addresses, so that a
 * restarted agent finds its request again unless it needs another one. */
static int make_csr_name(gnutls_x509_privkey_t key, const CsrServer *server, char **ret,
                         Error *reterr) {
        unsigned char id[KEY_ID_BYTES];
        size_t length = sizeof(id);
        char hex[SHA256_HEX_SIZE];
        int r = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id, &length);

        if (r < 0)
                return set_gnutls_error(r, "the key cannot be used", reterr);
        for (size_t i = 0; i < length; i++)
                (void) snprintf(hex + 2 * i, 3, "%02x", id[i]);
        r = server ? hash_server(server, hex) : 0;
        if (r < 0)
                return r;
        *ret = text_format("%s%s", server ? "csr-" : "node-csr-", hex);
        return *ret ? 0 : -ENOMEM;
}

static int make_csr_object(const char *name, bool is_server, const gnutls_datum_t *pem,
                           char **ret) {
        cleanup_free char *base64 = malloc((pem->size + 2) / 3 * 4 + 1);

        if (!base64)
                return -ENOMEM;
        base64_encode(pem->data, pem->size, base64);
        *ret = text_format("{\"apiVersion\":\"certificates.k8s.io/v1\","
                           "\"kind\":\"CertificateSigningRequest\",\"metadata\":{\"name\":\"%s\"},"
                           "\"spec\":{\"request\":\"%s\","
                           "\"signerName\":\"kubernetes.io/%s\","
                           "\"usages\":[\"digital signature\",\"%s auth\"]}}",
                           name, base64,
                           is_server ? "kubelet-serving" : "kube-apiserver-client-kubelet",
                           is_server ? "server" : "client");
        if (!*ret)
                return -ENOMEM;
        return 0;
}

int csr_build_object(const char *node_name, const CsrServer *server, const char *key,
                     char **ret_name, char **ret_json, Error *reterr) {
        cleanup_free char *name = NULL;
        cleanup_with(csr_key_deinitp) gnutls_x509_privkey_t imported = NULL;
        cleanup_with(datum_freep) gnutls_datum_t pem = { 0 };
        int r = private_key_import(key, TLS_FILE_MAX, &imported);

        if (r < 0)
                return set_gnutls_error(r, "the key cannot be used", reterr);
        r = make_csr_name(imported, server, &name, reterr);
        if (r < 0)
                return r;
        r = make_csr_pem(imported, node_name, server, &pem, reterr);
        if (r < 0)
                return r;
        r = make_csr_object(name, server, &pem, ret_json);
        if (r < 0)
                return r;
        *ret_name = TAKE_PTR(name);
        return 0;
}

static char *describe_csr_refusal(JsonView condition, const char *type) {
        cleanup_free char *reason = json_view_message(json_view_member(condition, "reason"));
        cleanup_free char *message = json_view_message(json_view_member(condition, "message"));

        return text_format("the certificate signing request was %s%s%s%s%s", type,
                           reason ? ": " : "", strna(reason), message ? ": " : "", strna(message));
}

CsrStatus csr_read_status(const char *json, size_t length, char **ret_text) {
        JsonView status = json_view_member((JsonView){ json, length }, "status");
        JsonView conditions = json_view_member(status, "conditions");
        cleanup_free char *base64 = json_view_dup(json_view_member(status, "certificate"));
        size_t size;

        *ret_text = NULL;
        for (size_t i = 0; i < CONDITIONS_MAX; i++) {
                JsonView condition = json_view_item(conditions, i);
                JsonView type = json_view_member(condition, "type");
                bool is_denied = json_view_equals(type, "Denied");

                if (!is_denied && !json_view_equals(type, "Failed"))
                        continue;
                *ret_text = describe_csr_refusal(condition, is_denied ? "denied" : "not fulfilled");
                return CSR_REFUSED;
        }
        if (!base64)
                return CSR_PENDING;
        if (base64_decode(base64, ret_text, &size) < 0 || size == 0) {
                (void) text_replace(ret_text, "the issued certificate is not base64");
                return CSR_REFUSED;
        }
        return CSR_ISSUED;
}
