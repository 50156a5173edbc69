/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/kubeconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

static void free_secret(char *secret) {
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
}

void kubeconfig_done(Kubeconfig *kubeconfig) {
        free(kubeconfig->path);
        free(kubeconfig->server);
        free(kubeconfig->tls_server_name);
        free(kubeconfig->authority_file);
        free(kubeconfig->authority_data);
        free(kubeconfig->certificate_file);
        free(kubeconfig->certificate_data);
        free(kubeconfig->key_file);
        free_secret(kubeconfig->key_data);
        free_secret(kubeconfig->token);
        free(kubeconfig->token_file);
        free(kubeconfig->proxy_url);
        free(kubeconfig->namespace);
        *kubeconfig = (Kubeconfig){ 0 };
}

int kubeconfig_copy(const Kubeconfig *from, Kubeconfig *ret) {
        Kubeconfig to = { .insecure = from->insecure };
        const struct {
                const char *from;
                char **to;
        } texts[] = {
                { from->path, &to.path },
                { from->server, &to.server },
                { from->tls_server_name, &to.tls_server_name },
                { from->authority_file, &to.authority_file },
                { from->authority_data, &to.authority_data },
                { from->certificate_file, &to.certificate_file },
                { from->certificate_data, &to.certificate_data },
                { from->key_file, &to.key_file },
                { from->key_data, &to.key_data },
                { from->token, &to.token },
                { from->token_file, &to.token_file },
                { from->proxy_url, &to.proxy_url },
                { from->namespace, &to.namespace },
        };

        _Static_assert(sizeof(Kubeconfig) == (N_ELEMENTS(texts) + 1) * sizeof(char *),
                       "every string is copied");
        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                *texts[i].to = texts[i].from ? strdup(texts[i].from) : NULL;
                if (texts[i].from && !*texts[i].to) {
                        kubeconfig_done(&to);
                        return -ENOMEM;
                }
        }
        *ret = to;
        return 0;
}
