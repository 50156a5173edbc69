/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of a kubeconfig. Authentication methods that need a program, a plugin or a password
 * are refused: an agent cannot prompt. */

#include "agent/model/kubeconfig-schema.h"

#include "agent/model/kubeconfig.h"
#include "agent/model/names.h"

#include <errno.h>
#include <stdio.h>

#define AGENT_HAS "an agent has a certificate, a token or a token file"

static int check_url(const char *value, const char *const *schemes, const char *expected,
                     Error *reterr) {
        for (size_t i = 0; schemes[i]; i++) {
                size_t n = strlen(schemes[i]);

                if (strncmp(value, schemes[i], n) != 0 || !value[n] || value[n] == '/')
                        continue;
                /* The value may contain a password, so it is not shown. */
                if (strpbrk(value + n, "@?# \t\r\n\"<>\\^`{|}"))
                        return error_setf(reterr, EINVAL,
                                          "must be a URL without user, query or blanks");
                return 0;
        }
        return error_setf(reterr, EINVAL, "must be %s", expected);
}

static int check_kubeconfig_server_url(const char *value, Error *reterr) {
        static const char *const schemes[] = { "https://", "http://", NULL };

        return check_url(value, schemes, "a URL such as https://10.0.0.1:6443", reterr);
}

/* A proxy URL may contain a user and a password. */
static int check_kubeconfig_proxy_url(const char *value, Error *reterr) {
        static const char *const schemes[] = { "http://", "https://", "socks5://", NULL };
        const char *at = strrchr(value, '@'), *host = strstr(value, "://");
        char bare[512];

        if (at && host && host < at && (size_t) (host - value) < sizeof("socks5"))
                (void) snprintf(bare, sizeof(bare), "%.*s%s", (int) (host - value + 3), value,
                                at + 1);
        else
                (void) snprintf(bare, sizeof(bare), "%s", value);
        return check_url(bare, schemes, "a URL such as http://10.0.0.1:3128", reterr);
}

static int check_server_name(const char *value, Error *reterr) {
        if (strspn(value, "0123456789.:abcdefABCDEF") == strlen(value) && strpbrk(value, ".:"))
                return 0; /* for an IP address */
        return check_dns_subdomain(value, reterr);
}

static const Field document_fields[] = {
        FIELD("current-context", STRING, KubeconfigDocument, current_context, .is_required = true),
        IGNORED("apiVersion"),
        IGNORED("kind"),
        IGNORED("preferences"),
        IGNORED("clusters"),
        IGNORED("users"),
        IGNORED("contexts"),
        IGNORED("extensions"),
};
const Schema kubeconfig_document_schema = { .name = "Config",
                                            .size = sizeof(KubeconfigDocument),
                                            .fields = document_fields,
                                            .n_fields = N_ELEMENTS(document_fields) };

static const Field context_fields[] = {
        FIELD("cluster", STRING, KubeconfigContext, cluster, .is_required = true),
        FIELD("user", STRING, KubeconfigContext, user),
        FIELD("namespace", STRING, KubeconfigContext, namespace, .check = check_dns_label),
        IGNORED("extensions"),
};
const Schema kubeconfig_context_schema = { .name = "Context",
                                           .size = sizeof(KubeconfigContext),
                                           .fields = context_fields,
                                           .n_fields = N_ELEMENTS(context_fields) };

static const Field cluster_fields[] = {
        FIELD("server", STRING, KubeconfigCluster, server, .is_required = true,
              .check = check_kubeconfig_server_url),
        FIELD("tls-server-name", STRING, KubeconfigCluster, tls_server_name,
              .check = check_server_name),
        FIELD("insecure-skip-tls-verify", BOOL, KubeconfigCluster, insecure),
        FIELD("certificate-authority", STRING, KubeconfigCluster, authority),
        FIELD("certificate-authority-data", STRING, KubeconfigCluster, authority_data,
              .is_secret = true),
        FIELD("proxy-url", STRING, KubeconfigCluster, proxy_url, .is_secret = true,
              .check = check_kubeconfig_proxy_url),
        IGNORED("disable-compression"), /* compression is never used */
        IGNORED("extensions"),
};
const Schema kubeconfig_cluster_schema = { .name = "Cluster",
                                           .size = sizeof(KubeconfigCluster),
                                           .fields = cluster_fields,
                                           .n_fields = N_ELEMENTS(cluster_fields) };

static const Field user_fields[] = {
        FIELD("client-certificate", STRING, KubeconfigUser, certificate),
        FIELD("client-certificate-data", STRING, KubeconfigUser, certificate_data,
              .is_secret = true),
        FIELD("client-key", STRING, KubeconfigUser, key),
        FIELD("client-key-data", STRING, KubeconfigUser, key_data, .is_secret = true),
        FIELD("token", STRING, KubeconfigUser, token, .is_secret = true),
        FIELD("tokenFile", STRING, KubeconfigUser, token_file),
        REFUSED_FOR("exec", "would run a program to log in; " AGENT_HAS),
        REFUSED_FOR("auth-provider", "would need a plugin to log in; " AGENT_HAS),
        REFUSED_FOR("username", "is for users; " AGENT_HAS),
        REFUSED_FOR("password", "is for users; " AGENT_HAS),
        REFUSED_FOR("as", "a node cannot impersonate other users"),
        REFUSED_FOR("as-uid", "a node cannot impersonate other users"),
        REFUSED_FOR("as-groups", "a node cannot impersonate other users"),
        REFUSED_FOR("as-user-extra", "a node cannot impersonate other users"),
        IGNORED("extensions"),
};
const Schema kubeconfig_user_schema = { .name = "AuthInfo",
                                        .size = sizeof(KubeconfigUser),
                                        .fields = user_fields,
                                        .n_fields = N_ELEMENTS(user_fields) };
