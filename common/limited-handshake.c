/* SPDX-License-Identifier: Apache-2.0 */

/* Limits libcurl's handshakes (tls-limits.h). libcurl's sessions are not accessible, so the program
 * exports this function, which the loader finds before the one in libgnutls. libcurl with OpenSSL
 * does not call it, but OpenSSL has its own limits. All TLS sessions of these programs belong to
 * libcurl. */

#include "common/macros.h"
#include "common/tls-limits.h"

#include <dlfcn.h>

int gnutls_handshake(gnutls_session_t session) {
        static int (*shake_hands)(gnutls_session_t session);
        void *next;

        if (!shake_hands) {
                next = dlsym(RTLD_NEXT, "gnutls_handshake");
                if (!next)
                        return GNUTLS_E_UNIMPLEMENTED_FEATURE;
                memcpy(&shake_hands, &next, sizeof(next));
        }
        tls_limit_peer(session);
        return shake_hands(session);
}
