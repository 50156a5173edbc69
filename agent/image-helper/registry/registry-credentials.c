/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/registry-credentials.h"

#include "agent/image-helper/pull/document.h"
#include "common/array.h"
#include "common/base64.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/registry-name.h"
#include "common/text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>

enum {
        CREDENTIALS_MAX = 16,
        KEY_LENGTH_MAX = 512
};

#define HUB_SERVER "https://index.docker.io/v1/"

static void wipe_string(char **text) {
        if (*text)
                explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = NULL;
}

void credential_done(Credential *credential) {
        wipe_string(&credential->user);
        wipe_string(&credential->password);
        wipe_string(&credential->identity_token);
        wipe_string(&credential->registry_token);
}

void credentials_done(Credentials *credentials) {
        for (size_t i = 0; i < credentials->n; i++)
                credential_done(&credentials->items[i]);
        free(credentials->items);
        *credentials = (Credentials){ 0 };
}

/* The number of labels must be equal, and each must match: "*.example.com" does not match
 * "a.b.example.com". */
static bool labels_match(const char *pattern, const char *host) {
        for (;;) {
                size_t n = strcspn(pattern, "."), m = strcspn(host, ".");
                char label[KEY_LENGTH_MAX], text[KEY_LENGTH_MAX];

                (void) snprintf(label, sizeof(label), "%.*s", (int) n, pattern);
                (void) snprintf(text, sizeof(text), "%.*s", (int) m, host);
                if (fnmatch(label, text, 0) != 0)
                        return false;
                if (!pattern[n] || !host[m])
                        return pattern[n] == host[m];
                pattern += n + 1;
                host += m + 1;
        }
}

/* Removes the port. "": none, or the port of https. */
static const char *take_port(char *host) {
        char *colon = strrchr(host, ':');
        const char *port;

        if (!colon || colon[1 + strspn(colon + 1, "0123456789")])
                return "";
        *colon = '\0';
        port = colon + 1 + strspn(colon + 1, "0");
        return streq(port, "443") ? "" : port;
}

/* Like the kubelet: '*', '?' and '[…]' match within a label, and the port must be the same. */
static bool host_matches_pattern(const char *pattern, const char *registry) {
        char copy[KEY_LENGTH_MAX], host[KEY_LENGTH_MAX];

        if (registry[0] == '[')
                return false;
        (void) snprintf(host, sizeof(host), "%s", registry);
        (void) snprintf(copy, sizeof(copy), "%s", pattern);
        for (char *p = copy; *p; p++)
                *p = (char) tolower((unsigned char) *p);
        return streq(take_port(copy), take_port(host)) && labels_match(copy, host);
}

/* 'registry' is normalised. */
static bool host_matches(const char *key, const char *registry) {
        cleanup_free char *name = NULL;

        if (registry_name_normalise(key, &name, NULL) >= 0)
                return streq(name, registry);
        return strpbrk(key, "*?[") && host_matches_pattern(key, registry);
}

static bool path_matches(const char *path, const char *repository) {
        size_t n = strlen(path);

        return n == 0 || (strncmp(path, repository, n) == 0 &&
                          (repository[n] == '\0' || repository[n] == '/'));
}

unsigned credentials_match(const char *key, const char *registry, const char *repository) {
        char host[KEY_LENGTH_MAX];
        const char *scheme = strstr(key, "://"), *path;
        cleanup_free char *name = NULL;
        size_t n;

        if (scheme)
                key = scheme + 3;
        n = strcspn(key, "/");
        if (n == 0 || strlen(key) >= sizeof(host))
                return 0;
        memcpy(host, key, strlen(key) + 1);
        for (size_t end = strlen(host); end > 0 && host[end - 1] == '/'; end--)
                host[end - 1] = '\0';
        host[n] = '\0';
        path = strlen(key) > n ? host + n + 1 : "";
        if (streq(path, "v1") || streq(path, "v2"))
                path = "";
        if (registry_name_normalise(registry, &name, NULL) < 0 || !host_matches(host, name) ||
            !path_matches(path, repository))
                return 0;
        return 1 + (unsigned) strlen(path) + (strpbrk(host, "*?[") ? 0 : KEY_LENGTH_MAX);
}

static int copy_credential_string(const json_t *entry, const char *key, char **ret) {
        const char *text = json_text(entry, key);

        if (!text || !text[0])
                return 0;
        return text_replace(ret, text);
}

/* "auth" is user and password, separated by a colon, in base64. As in the kubelet, it replaces a
 * user and a password that are specified separately. */
static int decode_auth_field(const json_t *entry, Credential *ret) {
        const char *auth = json_text(entry, "auth");
        char *text = NULL, *colon;
        size_t length;
        int r;

        if (!auth || !auth[0])
                return 0;
        r = base64_decode_unpadded(auth, &text, &length);
        if (r < 0)
                return r;
        colon = strchr(text, ':');
        if (colon) {
                *colon = '\0';
                wipe_string(&ret->user);
                wipe_string(&ret->password);
                ret->user = strdup(text);
                ret->password = strdup(colon + 1);
                r = ret->user && ret->password ? 0 : -ENOMEM;
        }
        explicit_bzero(text, length);
        free(text);
        return r;
}

static bool is_credential_empty(const Credential *credential) {
        return !credential->user && !credential->identity_token && !credential->registry_token;
}

static int read_credential_entry(const json_t *entry, Credential *ret) {
        int r = copy_credential_string(entry, "username", &ret->user);

        if (r < 0)
                return r;
        r = copy_credential_string(entry, "password", &ret->password);
        if (r < 0)
                return r;
        r = decode_auth_field(entry, ret);
        if (r < 0)
                return r;
        r = copy_credential_string(entry, "identitytoken", &ret->identity_token);
        if (r < 0)
                return r;
        r = copy_credential_string(entry, "registrytoken", &ret->registry_token);
        if (r < 0)
                return r;
        return is_credential_empty(ret) ? -ENOENT : 0;
}

static int append_credential_take(Credentials *credentials, Credential *credential) {
        if (credentials->n >= CREDENTIALS_MAX) {
                credential_done(credential);
                return 0;
        }
        if (!ARRAY_RESERVE(credentials->items, credentials->n, 1)) {
                credential_done(credential);
                return -ENOMEM;
        }
        credentials->items[credentials->n++] = *credential;
        return 0;
}

int credentials_append_take(Credentials *credentials, Credentials *from) {
        int r = 0;

        for (size_t i = 0; i < from->n; i++) {
                int q = append_credential_take(credentials, &from->items[i]);

                r = q < 0 ? q : r;
        }
        free(from->items);
        *from = (Credentials){ 0 };
        return r;
}

/* The best match among the entries that match less closely than 'below'. */
static const json_t *next_best_entry(const json_t *auths, const char *registry,
                                     const char *repository, unsigned *below) {
        const json_t *best = NULL;
        unsigned best_match = 0;
        const char *key;
        json_t *entry;
        void *at;

        for (at = json_object_iter((json_t *) (uintptr_t) auths); at;
             at = json_object_iter_next((json_t *) (uintptr_t) auths, at)) {
                unsigned match;

                key = json_object_iter_key(at);
                entry = json_object_iter_value(at);
                match = credentials_match(key, registry, repository);
                if (match == 0 || match >= *below || match <= best_match)
                        continue;
                best = entry;
                best_match = match;
        }
        *below = best_match;
        return best;
}

static int add_entries(Credentials *credentials, const json_t *auths, const char *registry,
                       const char *repository) {
        unsigned below = UINT_MAX;
        const json_t *entry;

        while ((entry = next_best_entry(auths, registry, repository, &below))) {
                Credential one = { 0 };
                int r = read_credential_entry(entry, &one);

                if (r >= 0)
                        r = append_credential_take(credentials, &one);
                else
                        credential_done(&one);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

/* The credential helper of a registry, with the key under which the helper stores the registry. */
static const char *find_credential_helper(const json_t *document, const char *registry,
                                          const char **server) {
        const json_t *helpers = json_object_get(document, "credHelpers"), *helper;
        cleanup_free char *normal = NULL;
        const char *key;

        if (registry_name_normalise(registry, &normal, NULL) < 0)
                return NULL;
        if (streq(normal, "docker.io"))
                *server = HUB_SERVER;
        json_object_foreach((json_t *) (uintptr_t) helpers, key, helper) {
                if (!registry_name_equals(key, normal) || !json_is_string(helper))
                        continue;
                if (*server == registry)
                        *server = key;
                return json_string_value(helper);
        }
        return NULL;
}

/* The helper of a registry has precedence over the common helper. */
static int add_from_helpers(Credentials *credentials, const json_t *document,
                            const char *registry) {
        const char *server = registry;
        const char *name = find_credential_helper(document, registry, &server);
        cleanup_error Error error = ERROR_NULL;
        Credential one = { 0 };
        int r;

        if (!name)
                name = json_text(document, "credsStore");
        if (!name || !name[0])
                return 0;
        r = credential_ask_helper(name, server, &one, &error);
        if (r >= 0)
                return append_credential_take(credentials, &one);
        if (r != -ENOENT)
                log_warning("Cannot get credentials for '%s' from credential helper '%s': %s",
                            server, name, error_message(&error, r));
        return r == -ENOMEM ? r : 0;
}

int credentials_add(Credentials *credentials, const json_t *document, const char *registry,
                    const char *repository, bool with_helpers) {
        const json_t *auths = json_object_get(document, "auths");
        int r = 0;

        if (with_helpers)
                r = add_from_helpers(credentials, document, registry);
        return r < 0 ? r : add_entries(credentials, auths ? auths : document, registry, repository);
}
