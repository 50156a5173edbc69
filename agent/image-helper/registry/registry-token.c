/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/registry-token.h"

#include "agent/image-helper/pull/document.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/url-escape.h"

enum {
        ANSWER_BYTES_MAX = 1024 * 1024,
        TOKEN_LENGTH_MAX = 60 * 1024
};

#define CLIENT_ID "mainstay"

static int on_token_data(const void *data, size_t length, uint64_t position, void *userdata) {
        return buffer_append(userdata, data, length, SIZE_MAX);
}

static bool is_subdomain_of(const char *name, const char *domain) {
        size_t n = strlen(name), m = strlen(domain);

        if (n == m)
                return strcasecmp(name, domain) == 0;
        return n > m && name[n - m - 1] == '.' && strcasecmp(name + n - m, domain) == 0;
}

static bool is_ip_literal(const char *host) {
        return strchr(host, ':') || strspn(host, "0123456789.") == strlen(host);
}

bool token_server_is_trusted(const char *server, const char *registry) {
        const char *dot = strchr(registry, '.');

        if (strcasecmp(server, registry) == 0)
                return true;
        if (is_ip_literal(server) || is_ip_literal(registry) || !dot)
                return false;
        if (is_subdomain_of(server, registry))
                return true;
        /* The parent must be a registered domain: "io" is not. */
        return strchr(dot + 1, '.') ? is_subdomain_of(server, dot + 1) : streq(server, dot + 1);
}

/* A parameter of a query or of a form, escaped. */
static int add_parameter(FILE *out, const char *name, const char *value) {
        cleanup_free char *escaped = NULL;

        if (!value)
                return 0;
        escaped = url_escape(value);
        if (!escaped)
                return -ENOMEM;
        (void) fprintf(out, "&%s=%s", name, escaped);
        return 0;
}

/* "service=…&scope=…", and the credential in the form itself. */
static int format_parameters(const Endpoint *endpoint, const Challenge *challenge,
                             const Credential *credential, char **ret) {
        bool is_form = credential && credential->identity_token;
        cleanup_free char *scope = NULL;
        char *text = NULL;
        size_t length;
        FILE *out;
        int r;

        scope = text_format("repository:%s:pull", endpoint->repository);
        if (!scope)
                return -ENOMEM;
        out = open_memstream(&text, &length);
        if (!out)
                return -ENOMEM;
        (void) fputs(is_form ? "grant_type=refresh_token&client_id=" CLIENT_ID
                             : "client_id=" CLIENT_ID,
                     out);
        r = add_parameter(out, "service", challenge->service);
        if (r >= 0)
                r = add_parameter(out, "scope", challenge->scope ? challenge->scope : scope);
        if (r >= 0 && is_form)
                r = add_parameter(out, "refresh_token", credential->identity_token);
        if (fclose(out) != 0 || r < 0) {
                free(text);
                return -ENOMEM;
        }
        *ret = text;
        return 0;
}

static int check_token_server(const Endpoint *endpoint, const char *realm,
                              const Credential *credential, Error *reterr) {
        cleanup_free char *server = url_get_host(realm), *registry = url_get_host(endpoint->origin);

        if (!server || !registry)
                return error_setf(reterr, EINVAL, "the URL of its token server is invalid");
        if (credential && !token_server_is_trusted(server, registry))
                return error_setf(
                        reterr, EACCES,
                        "it redirects to the token server '%.256s', which does not belong to it: "
                        "the password is not sent there",
                        server);
        return 0;
}

static int parse_token_response(const Buffer *answer, char **ret, Error *reterr) {
        cleanup_json json_t *json = NULL;
        const char *token;
        int r;

        r = document_parse(strna(answer->data), answer->length, &json, NULL);
        token = r < 0 ? NULL : json_text(json, "token");
        if (!token && r >= 0)
                token = json_text(json, "access_token");
        if (!token || !token[0] || strlen(token) > TOKEN_LENGTH_MAX || strpbrk(token, "\r\n"))
                return error_setf(reterr, EBADMSG, "the token server sent no token");
        *ret = strdup(token);
        return *ret ? 0 : -ENOMEM;
}

static int check_token_status(const TransportResponse *reply, const Credential *credential,
                              Error *reterr) {
        if (reply->status == 200)
                return 0;
        if (reply->status == 401 || reply->status == 403)
                return error_setf(reterr, EACCES, "%s",
                                  credential ? "the password is refused"
                                             : "it requires a password for a token");
        return error_setf(reterr, reply->status == 429 || reply->status >= 500 ? EAGAIN : EPROTO,
                          "the token server answered with status %ld", reply->status);
}

int registry_token_get(HttpTransport *http, const Endpoint *endpoint, const Challenge *challenge,
                       const Credential *credential, char **ret, Error *reterr) {
        cleanup_free char *realm = NULL, *parameters = NULL, *url = NULL;
        cleanup_with(buffer_erase) Buffer answer = { 0 };
        cleanup_with(transport_response_done) TransportResponse reply = { 0 };
        bool is_form = credential && credential->identity_token;
        TransportFault fault;
        int r;

        r = url_resolve_for_endpoint(endpoint, endpoint->origin, challenge->realm, &realm, reterr);
        if (r < 0)
                return r;
        r = check_token_server(endpoint, realm, credential, reterr);
        if (r < 0)
                return r;
        r = format_parameters(endpoint, challenge, credential, &parameters);
        if (r < 0)
                return r;
        url = text_format("%s%s%s", realm,
                          is_form              ? ""
                          : strchr(realm, '?') ? "&"
                                               : "?",
                          is_form ? "" : parameters);
        if (!url)
                return -ENOMEM;
        r = http_transport_perform(
                http,
                &(TransportRequest){ .url = url,
                                     .endpoint = endpoint,
                                     .is_own_host = url_same_origin(url, endpoint->origin),
                                     .was_redirected = true,
                                     .user = credential ? credential->user : NULL,
                                     .password = credential ? credential->password : NULL,
                                     .form = is_form ? parameters : NULL,
                                     .body_max = ANSWER_BYTES_MAX,
                                     .on_data = on_token_data,
                                     .userdata = &answer },
                &reply, &fault, reterr);
        explicit_bzero(parameters, strlen(parameters));
        if (r < 0)
                return error_prefixf(reterr, fault == TRANSPORT_INTERRUPTED ? -EAGAIN : r,
                                     "token server");
        r = check_token_status(&reply, credential, reterr);
        return r < 0 ? r : parse_token_response(&answer, ret, reterr);
}
