/* SPDX-License-Identifier: Apache-2.0 */

/* Authentication and authorization of a request, as by the kubelet: client certificates (x509),
 * verified here; bearer tokens (TokenReview); system:anonymous; then SubjectAccessReview. The API
 * server reviews, which the agent asks, because only it has the node's key. */

#include "agent/node-api/node-api-private.h"
#include "agent/node-api/review-objects.h"
#include "agent/node-api/session-protocol.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"

static ApiStepResult reply_unauthorized(ApiRequest *request) {
        return api_reply_text(request, MHD_HTTP_UNAUTHORIZED, "Unauthorized");
}

/* ---- tokens ---- */

/* Clients in a browser cannot set a header, and offer the token as a subprotocol. The alphabet is
 * base64url, without padding. */
static char *decode_subprotocol_token(const char *word, size_t length) {
        cleanup_free char *text = calloc(1, length + 4);
        char *token;
        size_t n;

        if (!text)
                return NULL;
        for (size_t i = 0; i < length; i++)
                text[i] = word[i];
        for (char *c = text; *c; c++)
                *c = (char) (*c == '-' ? '+' : *c == '_' ? '/' : *c);
        while (length % 4 != 0)
                text[length++] = '=';
        if (base64_decode(text, &token, &n) < 0)
                return NULL;
        if (strlen(token) == n && n > 0)
                return token;
        free(token);
        return NULL;
}

static char *find_subprotocol_token(struct MHD_Connection *http) {
        static const char prefix[] = "base64url.bearer.authorization.k8s.io.";
        cleanup_free char *list = api_header_list(http, "Sec-WebSocket-Protocol");
        const char *rest = strna(list), *word;
        size_t length;

        while (next_protocol_word(&rest, &word, &length))
                if (length > sizeof(prefix) - 1 && memcmp(word, prefix, sizeof(prefix) - 1) == 0)
                        return decode_subprotocol_token(word + sizeof(prefix) - 1,
                                                        length - (sizeof(prefix) - 1));
        return NULL;
}

/* NULL: none is offered. */
static char *find_bearer_token(struct MHD_Connection *http) {
        static const char prefix[] = "Bearer ";
        const char *value = api_header(http, MHD_HTTP_HEADER_AUTHORIZATION);

        if (!value || strncasecmp(value, prefix, sizeof(prefix) - 1) != 0)
                return find_subprotocol_token(http);
        value += sizeof(prefix) - 1;
        value += strspn(value, " ");
        return *value ? strdup(value) : NULL;
}

static void cache_valid_token(NodeApi *server, const char *token, const ApiUser *user) {
        ApiUser *copy = calloc(1, sizeof(*copy));
        uint64_t now = now_boottime_usec();

        if (!copy || api_user_copy(user, copy) < 0)
                free(copy);
        else
                review_cache_put(server->tokens, token, copy, now,
                                 now + server->settings.token_cache_usec);
}

static void cache_invalid_token(NodeApi *server, const char *token) {
        char *mark = strdup("");
        uint64_t now = now_boottime_usec();

        if (mark)
                review_cache_put(server->invalid_tokens, token, mark, now,
                                 now + server->settings.token_cache_usec);
}

/* The API server's reply. Errors are not kept. */
static ApiStepResult take_token_review(ApiRequest *request, const char *token) {
        cleanup_error Error error = ERROR_NULL;
        int r = request->reply_error;

        if (r >= 0 && request->reply_status / 100 != 2)
                r = error_setf(&error, EIO, "%u %s", request->reply_status, request->reply_body);
        if (r >= 0)
                r = token_review_parse(request->reply_body, &request->user, &error);
        api_request_clear_reply(request);
        if (r < 0) {
                log_warning("Cannot review a token: %s", error_message(&error, r));
                return reply_unauthorized(request);
        }
        if (r > 0)
                cache_valid_token(request->server, token, &request->user);
        else
                cache_invalid_token(request->server, token);
        return r > 0 ? API_STEP_NEXT : reply_unauthorized(request);
}

/* 1 with the request's user; 0: the token is invalid; -EAGAIN: it is not known yet. */
static int find_reviewed_token(ApiRequest *request, const char *token) {
        const NodeApi *server = request->server;
        uint64_t now = now_boottime_usec();
        const ApiUser *user = review_cache_find(server->tokens, token, now);

        if (user)
                return api_user_copy(user, &request->user) >= 0;
        return review_cache_find(server->invalid_tokens, token, now) ? 0 : -EAGAIN;
}

static ApiStepResult authenticate_by_token(ApiRequest *request, const char *token) {
        cleanup_free char *review = NULL;
        int r;

        if (request->has_reply)
                return take_token_review(request, token);
        if (!request->server->settings.has_token_reviews)
                return reply_unauthorized(request);
        r = find_reviewed_token(request, token);
        if (r != -EAGAIN) {
                api_review_end(request);
                return r > 0 ? API_STEP_NEXT : reply_unauthorized(request);
        }
        review = token_review_format(token);
        return review ? api_request_review(request, REVIEW_OF_STRANGER, "/nodeapi/tokenreview",
                                           review)
                      : reply_unauthorized(request); /* not UTF-8 */
}

/* ---- authentication ---- */

static int set_anonymous_user(ApiUser *user) {
        user->name = strdup("system:anonymous");
        return user->name ? strv_append(&user->groups, "system:unauthenticated") : -ENOMEM;
}

ApiStepResult api_authenticate(ApiRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *token = find_bearer_token(request->http);
        ApiStepResult result = API_STEP_NEXT;
        int r = tls_stream_authenticate(request->connection->tls, request->server->credentials,
                                        &request->user, &error);

        if (r < 0)
                log_debug("A client was refused: %s", error_message(&error, r));
        if (r <= 0 && token)
                result = authenticate_by_token(request, token);
        else if (r == 0 && request->server->settings.has_anonymous &&
                 !api_header(request->http, MHD_HTTP_HEADER_AUTHORIZATION))
                return set_anonymous_user(&request->user) < 0 ? API_STEP_ABORT : API_STEP_NEXT;
        else if (r <= 0)
                result = reply_unauthorized(request);
        if (result != API_STEP_NEXT)
                return result;
        if (!strv_contains(request->user.groups, "system:authenticated") &&
            strv_append(&request->user.groups, "system:authenticated") < 0)
                return API_STEP_ABORT;
        return API_STEP_NEXT;
}

/* ---- authorization ---- */

/* Names may contain anything but control characters, which separate here. */
static char *format_access_key(const ApiRequest *request, const char *subresource) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fprintf(out, "%s\n%s\n%zu:%s\n%zu:%s\n%s\n", request->attributes.verb, subresource,
                strlen(request->user.name), request->user.name, strlen(strna(request->user.uid)),
                strna(request->user.uid), strna(request->user.extra));
        strv_foreach(group, request->user.groups) {
                fprintf(out, "%zu:%s\n", strlen(*group), *group);
        }
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

static ApiStepResult reply_forbidden(ApiRequest *request) {
        cleanup_free char *text = format_forbidden(request->user.name, &request->attributes);

        return text ? api_reply_text(request, MHD_HTTP_FORBIDDEN, text) : API_STEP_ABORT;
}

static ApiStepResult reply_authorization_error(ApiRequest *request, const char *message) {
        cleanup_free char *text = format_forbidden(request->user.name, &request->attributes);

        log_warning("Cannot review access: %s", message);
        if (!text)
                return API_STEP_ABORT;
        return api_replyf(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "Authorization error %s",
                          text + strlen("Forbidden "));
}

/* 1: allowed, 0: denied, -EAGAIN: it is not known yet; another -errno with a message. */
static int find_access(ApiRequest *request, const char *key, Error *reterr) {
        NodeApi *server = request->server;
        const ApiSettings *settings = &server->settings;
        uint64_t now = now_boottime_usec();
        const char *known = review_cache_find(server->accesses, key, now);
        char *word;
        int r;

        if (known) {
                /* Maybe by another request, while this one asked. */
                api_request_clear_reply(request);
                return streq(known, "yes");
        }
        if (!request->has_reply)
                return -EAGAIN;
        r = request->reply_error;
        if (r >= 0 && request->reply_status / 100 != 2)
                r = error_setf(reterr, EIO, "%u %s", request->reply_status, request->reply_body);
        if (r >= 0)
                r = access_review_parse(request->reply_body, reterr);
        api_request_clear_reply(request);
        if (r < 0)
                return r == -EAGAIN ? -EIO : r;
        word = strdup(r > 0 ? "yes" : "no");
        if (word)
                review_cache_put(server->accesses, key, word, now,
                                 now + (r > 0 ? settings->allowed_usec : settings->denied_usec));
        return r;
}

static ApiStepResult review_access(ApiRequest *request, const char *subresource) {
        cleanup_free char *review =
                access_review_format(&request->user, request->attributes.verb,
                                     request->server->settings.node_name, subresource);
        ReviewKind kind = strv_contains(request->user.groups, "system:unauthenticated")
                                  ? REVIEW_OF_STRANGER
                                  : REVIEW_OF_USER;

        return review ? api_request_review(request, kind, "/nodeapi/accessreview", review)
                      : reply_forbidden(request); /* not UTF-8 */
}

/* As at an API server, which a lone node cannot ask. */
static bool is_administrator(const ApiRequest *request) {
        return request->server->settings.is_alone &&
               strv_contains(request->user.groups, "system:masters");
}

ApiStepResult api_authorize(ApiRequest *request) {
        RequestAttributes *attributes = &request->attributes;

        if (!request->server->settings.has_access_reviews || is_administrator(request))
                return API_STEP_NEXT;
        *attributes = request_attributes(request->method, request->path, request->is_upgrade);
        for (; request->n_denied < attributes->n_subresources; request->n_denied++) {
                const char *subresource = attributes->subresources[request->n_denied];
                cleanup_free char *key = format_access_key(request, subresource);
                cleanup_error Error error = ERROR_NULL;
                int r = key ? find_access(request, key, &error) : -ENOMEM;

                if (r > 0)
                        return API_STEP_NEXT;
                if (r == -EAGAIN)
                        return review_access(request, subresource);
                if (r < 0)
                        return reply_authorization_error(request, error_message(&error, r));
        }
        return reply_forbidden(request);
}
