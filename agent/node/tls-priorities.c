/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/tls-priorities.h"

#include "agent/model/tls-names.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <inttypes.h>
#include <sys/auxv.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#endif

/* Whether the processor has AES instructions, without which ChaCha20 is faster. */
static bool has_aes_instructions(void) {
#if defined(__aarch64__)
        return getauxval(AT_HWCAP) & HWCAP_AES;
#elif defined(__x86_64__) || defined(__i386__)
        return __builtin_cpu_supports("aes");
#else
        return false;
#endif
}

static const char *aead_ciphers(void) {
        return has_aes_instructions() ? ":+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305"
                                      : ":+CHACHA20-POLY1305:+AES-128-GCM:+AES-256-GCM";
}

/* 1; 0: no suite supports such a key. */
static int print_suites(FILE *out, const Config *config, const char *key_exchange) {
        int n = 0;

        strv_foreach(name, config->tls_cipher_suites) {
                const TlsCipherSuite *suite = tls_cipher_suite_find(*name);

                if (!suite || !streq_ptr(suite->key_exchange, key_exchange))
                        continue;
                (void) fprintf(out, ":+%s:+%s", suite->cipher, suite->mac);
                n++;
        }
        return n > 0;
}

static int print_groups(FILE *out, const Config *config, Error *reterr) {
        const IntList *curves = &config->tls_curve_preferences;
        size_t n = 0;

        /* The order is that of Go: nearly all clients send a key share for X25519, and another
         * group would require a second ClientHello. */
        if (curves->n == 0) {
                (void) fputs(":-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1"
                             ":+GROUP-SECP521R1",
                             out);
                return 0;
        }
        (void) fputs(":-GROUP-ALL", out);
        for (size_t i = 0; i < curves->n; i++) {
                const char *group = tls_group_find(curves->items[i]);

                if (!group)
                        continue;
                (void) fprintf(out, ":+%s", group);
                n++;
        }
        return n > 0 ? 0
                     : error_setf(reterr, EINVAL,
                                  "tlsCurvePreferences: none of them is supported; 23 (P-256), 24 "
                                  "(P-384), 25 (P-521) and 29 (X25519) are");
}

static int print_priorities(FILE *out, const Config *config, const char *key_exchange,
                            Error *reterr) {
        bool has_tls12 = !streq_ptr(config->tls_min_version, "VersionTLS13");
        int r = 1;

        (void) fprintf(out, "NORMAL:%%SERVER_PRECEDENCE:-VERS-ALL:+VERS-TLS1.3%s",
                       has_tls12 ? ":+VERS-TLS1.2" : "");
        (void) fprintf(out, ":-KX-ALL:+%s:-CIPHER-ALL:-MAC-ALL",
                       key_exchange ? key_exchange : "ECDHE-ECDSA:+ECDHE-RSA");
        if (key_exchange)
                r = print_suites(out, config, key_exchange);
        else
                (void) fprintf(out, "%s:+AEAD", aead_ciphers());
        return r > 0 ? print_groups(out, config, reterr) : -ENOENT;
}

static int add_tls_priorities(json_t *settings, const char *name, const Config *config,
                              const char *key_exchange, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r = out ? print_priorities(out, config, key_exchange, reterr) : -ENOMEM;

        if (out && fclose(out) != 0)
                return -ENOMEM;
        if (r < 0 && r != -ENOENT)
                return r;
        return json_object_set_new(settings, name, json_string(r < 0 ? "" : text)) < 0 ? -ENOMEM
                                                                                       : 0;
}

int tls_priorities_add_settings(const Config *config, json_t *settings, Error *reterr) {
        int r = add_tls_priorities(settings, "tlsPriorities", config, NULL, reterr);

        if (r < 0 || !config->tls_cipher_suites)
                return r;
        r = add_tls_priorities(settings, "tls12EcdsaPriorities", config, "ECDHE-ECDSA", reterr);
        if (r < 0)
                return r;
        return add_tls_priorities(settings, "tls12RsaPriorities", config, "ECDHE-RSA", reterr);
}
