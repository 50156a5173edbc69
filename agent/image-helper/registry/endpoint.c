/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/endpoint.h"

#include "agent/image-helper/pull/document.h"
#include "common/file.h"
#include "common/log.h"
#include "common/registry-name.h"
#include "common/text.h"

#include <fcntl.h>

enum {
        ENDPOINTS_MAX = 16,
        AUTH_FILE_BYTES_MAX = 4 * 1024 * 1024
};

#define HUB        "docker.io"
#define HUB_SERVER "registry-1.docker.io"

/* Characters that need no escape in the path of a URL. */
static bool is_plain_url_text(const char *text) {
        return text[0] && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-._/:[]")] == '\0';
}

int pull_reference_parse(const char *text, ImageReference *ret, Error *reterr) {
        cleanup_with(image_reference_done) ImageReference reference = { 0 };
        cleanup_free char *normal = NULL;
        int r = image_reference_parse(text, &reference, reterr);

        if (r < 0)
                return r;
        normal = image_reference_format(&reference);
        if (!normal)
                return -ENOMEM;
        if (!streq(text, normal) || (!reference.tag && !reference.digest))
                return error_setf(reterr, EINVAL, "'%.256s' is not a complete reference", text);
        *ret = reference;
        reference = (ImageReference){ 0 };
        return 0;
}

static void endpoint_done(Endpoint *endpoint) {
        free(endpoint->origin);
        free(endpoint->host);
        free(endpoint->repository);
        free(endpoint->display);
        credentials_done(&endpoint->credentials);
        close_fd(endpoint->authorities_fd);
        close_fd(endpoint->certificate_fd);
        close_fd(endpoint->key_fd);
}

void endpoints_done(Endpoints *endpoints) {
        for (size_t i = 0; i < endpoints->n; i++)
                endpoint_done(&endpoints->items[i]);
        free(endpoints->items);
        *endpoints = (Endpoints){ 0 };
}

static bool is_insecure(const json_t *insecure, const char *registry) {
        const json_t *item;
        size_t i;

        json_array_foreach(insecure, i, item)
                if (registry_name_equals(strna(json_string_value(item)), registry))
                        return true;
        return false;
}

/* Adds an endpoint with the given URL scheme. */
static int add_endpoint(Endpoints *endpoints, const char *scheme, const char *host,
                        const char *prefix, const char *repository, Endpoint **ret) {
        Endpoint *endpoint;

        if (endpoints->n == ENDPOINTS_MAX)
                return -E2BIG;
        if (!endpoints->items)
                endpoints->items = calloc(ENDPOINTS_MAX, sizeof(*endpoints->items));
        if (!endpoints->items)
                return -ENOMEM;
        endpoint = &endpoints->items[endpoints->n++];
        *endpoint =
                (Endpoint){ .authorities_fd = -EBADF, .certificate_fd = -EBADF, .key_fd = -EBADF };
        endpoint->host = strdup(host);
        endpoint->display = strdup(host);
        if (!endpoint->host || !endpoint->display)
                return -ENOMEM;
        endpoint->origin = text_format("%s://%s", scheme, host);
        endpoint->repository = text_format("%s%s%s", prefix, prefix[0] ? "/" : "", repository);
        if (!endpoint->origin || !endpoint->repository)
                return -ENOMEM;
        endpoint->may_be_plain = streq(scheme, "http");
        *ret = endpoint;
        return 0;
}

/* Adds an endpoint with TLS, and one without TLS for a server that does not support it. */
static int add_loopback(Endpoints *endpoints, const char *host, const char *prefix,
                        const char *repository) {
        Endpoint *endpoint;
        int r = add_endpoint(endpoints, "https", host, prefix, repository, &endpoint);

        if (r < 0)
                return r;
        endpoint->is_loopback = true;
        r = add_endpoint(endpoints, "http", host, prefix, repository, &endpoint);
        if (r < 0)
                return r;
        endpoint->is_second_try = endpoint->is_loopback = true;
        return 0;
}

static int add_insecure(Endpoints *endpoints, const char *host, const char *prefix,
                        const char *repository) {
        Endpoint *endpoint;
        int r;

        r = add_endpoint(endpoints, "https", host, prefix, repository, &endpoint);
        if (r < 0)
                return r;
        endpoint->is_unverified = endpoint->may_be_plain = true;
        r = add_endpoint(endpoints, "http", host, prefix, repository, &endpoint);
        if (r < 0)
                return r;
        endpoint->is_second_try = true;
        return 0;
}

/* "https://mirror.example.com:5000/prefix", "http://…", or without a scheme. */
static int add_mirror(Endpoints *endpoints, const PullSettings *settings, const char *url,
                      const char *repository, Error *reterr) {
        const char *scheme = strncmp(url, "http://", 7) == 0 ? "http" : "https";
        cleanup_free char *host = NULL, *registry = NULL;
        const char *rest = strstr(url, "://");
        char *slash;
        Endpoint *endpoint;
        int r;

        host = strdup(rest ? rest + 3 : url);
        if (!host)
                return -ENOMEM;
        while (host[0] && host[strlen(host) - 1] == '/')
                host[strlen(host) - 1] = '\0';
        if (!is_plain_url_text(host))
                return error_setf(reterr, EINVAL, "'%.256s' is not a mirror", url);
        slash = strchr(host, '/');
        if (slash)
                *slash++ = '\0';
        r = registry_name_normalise(host, &registry, reterr);
        if (r < 0)
                return r;
        if (streq(scheme, "https") && is_insecure(settings->insecure, registry))
                return add_insecure(endpoints, host, strna(slash), repository);
        if (!rest && registry_is_loopback(host))
                return add_loopback(endpoints, host, strna(slash), repository);
        return add_endpoint(endpoints, scheme, host, strna(slash), repository, &endpoint);
}

static int add_registry(Endpoints *endpoints, const PullSettings *settings,
                        const ImageReference *reference) {
        bool is_hub = streq(reference->registry, HUB);
        const char *host = is_hub ? HUB_SERVER : reference->registry;
        Endpoint *endpoint;
        int r;

        if (is_insecure(settings->insecure, reference->registry))
                return add_insecure(endpoints, host, "", reference->repository);
        if (registry_is_loopback(host))
                return add_loopback(endpoints, host, "", reference->repository);
        r = add_endpoint(endpoints, "https", host, "", reference->repository, &endpoint);
        if (r < 0 || !is_hub)
                return r;
        return text_replace(&endpoint->display, HUB);
}

/* The pod's Secrets are preferred over the node's file. A damaged document is logged and
 * ignored. */
static int find_credentials(const PullSettings *settings, const json_t *auth_file,
                            Endpoint *endpoint) {
        const json_t *document;
        size_t i, n = 0;
        int r;

        json_array_foreach(settings->auths, i, document) {
                r = credentials_add(&endpoint->credentials, document, endpoint->host,
                                    endpoint->repository, /* with_helpers= */ false);
                if (r < 0)
                        return r;
                for (; n < endpoint->credentials.n; n++)
                        endpoint->credentials.items[n].secret = (int) i;
        }
        r = auth_file ? credentials_add(&endpoint->credentials, auth_file, endpoint->host,
                                        endpoint->repository, /* with_helpers= */ true)
                      : 0;
        for (; n < endpoint->credentials.n; n++)
                endpoint->credentials.items[n].secret = -1;
        return r;
}

static json_t *load_auth_file(const char *path) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *text = NULL;
        json_t *json = NULL;
        size_t length;
        int r;

        if (!path)
                return NULL;
        r = read_file_at(AT_FDCWD, path, AUTH_FILE_BYTES_MAX, &text, &length);
        if (r >= 0)
                r = document_parse(text, length, &json, &error);
        if (text)
                explicit_bzero(text, length);
        if (r < 0 && r != -ENOENT)
                log_warning("Cannot read registryAuthFile '%s': %s; continuing without it", path,
                            error_message(&error, r));
        return json;
}

static int load_endpoint_secrets(Endpoints *endpoints, const PullSettings *settings,
                                 Error *reterr) {
        cleanup_json json_t *auth_file = load_auth_file(settings->auth_file);

        for (size_t i = 0; i < endpoints->n; i++) {
                Endpoint *endpoint = &endpoints->items[i];
                int r = find_credentials(settings, auth_file, endpoint);

                if (r < 0)
                        return r;
                if (strncmp(endpoint->origin, "https:", 6) == 0)
                        r = endpoint_load_certificates(settings->certificate_directories, endpoint,
                                                       reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_all_endpoints(Endpoints *endpoints, const PullSettings *settings,
                             const ImageReference *reference, Error *reterr) {
        const json_t *mirror;
        size_t i;

        json_array_foreach(settings->mirrors, i, mirror) {
                int r = add_mirror(endpoints, settings, strna(json_string_value(mirror)),
                                   reference->repository, reterr);

                if (r < 0)
                        return r;
        }
        return add_registry(endpoints, settings, reference);
}

int endpoints_find(const ImageReference *reference, const PullSettings *settings, Endpoints *ret,
                   Error *reterr) {
        cleanup_with(endpoints_done) Endpoints endpoints = {
                .stall_seconds = settings->stall_seconds,
                .pull_secrets = settings->pull_secrets,
                .proxy_http = settings->proxy_http,
                .proxy_https = settings->proxy_https,
                .proxy_none_for = settings->proxy_none_for,
        };
        int r = add_all_endpoints(&endpoints, settings, reference, reterr);

        if (r == -E2BIG)
                return error_setf(reterr, E2BIG, "the registry has more than %d mirrors",
                                  ENDPOINTS_MAX / 2);
        if (r < 0)
                return r;
        r = load_endpoint_secrets(&endpoints, settings, reterr);
        if (r < 0)
                return r;
        *ret = endpoints;
        endpoints = (Endpoints){ 0 };
        return 0;
}
