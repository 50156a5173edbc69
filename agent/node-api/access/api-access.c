/* SPDX-License-Identifier: Apache-2.0 */

/* Each request to the agent contains the client's credential: the signer's ticket for its
 * certificate, or its bearer token. The agent authorizes each request before it is answered, and
 * each action once more. */

#include "agent/model/request-attributes.h"
#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/session/session-protocol.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/text.h"

static ApiStepResult reply_unauthorized(ApiRequest *request) {
        return api_reply_text(request, MHD_HTTP_UNAUTHORIZED, "Unauthorized");
}

/* ---- tokens ---- */

/* Clients in a browser cannot set a header, and pass the token as a subprotocol. The alphabet is
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

/* NULL: the client has sent none. */
static char *find_bearer_token(struct MHD_Connection *http) {
        static const char prefix[] = "Bearer ";
        const char *value = api_header(http, MHD_HTTP_HEADER_AUTHORIZATION);

        if (!value || strncasecmp(value, prefix, sizeof(prefix) - 1) != 0)
                return find_subprotocol_token(http);
        value += sizeof(prefix) - 1;
        value += strspn(value, " ");
        return *value ? strdup(value) : NULL;
}

/* The token becomes a header of a request to the agent. */
static bool is_token_text(const char *token) {
        for (; *token; token++)
                if (*token <= ' ' || *token > '~')
                        return false;
        return true;
}

/* ---- credentials ---- */

/* 0; -EACCES: the client has presented credentials, and none of them is valid. */
static int take_credential(ApiRequest *request) {
        const TlsStream *tls = request->connection->tls;
        const char *ticket = tls_stream_ticket(tls);
        bool has_authorization = api_header(request->http, MHD_HTTP_HEADER_AUTHORIZATION);
        bool is_refused = tls_stream_has_refused_certificate(tls);

        if (request->credential)
                return 0;
        request->token = find_bearer_token(request->http);
        if (request->token && !is_token_text(request->token))
                return -EACCES;
        if (!ticket && !request->token && (is_refused || has_authorization))
                return -EACCES;
        request->credential = text_format("Mainstay-Client: %s\r\n%s%s%s", strna(ticket),
                                          request->token ? "Mainstay-Token: " : "",
                                          strna(request->token), request->token ? "\r\n" : "");
        return request->credential ? 0 : -ENOMEM;
}

/* ---- granted requests ---- */

static char *format_grant_key(const ApiRequest *request) {
        RequestAttributes attributes =
                request_attributes(request->method, request->path, request->is_upgrade);

        return text_format("%s\n%s\n%s", request->credential, attributes.verb,
                           attributes.subresources[0]);
}

/* The agent decides again when it receives a request for an action. */
static bool find_grant(ApiRequest *request, const char *key) {
        const ApiUser *user = review_cache_find(request->server->granted, key, now_boottime_usec());

        return user && api_user_copy(user, &request->user) >= 0;
}

static void keep_grant(const ApiRequest *request, const char *key) {
        const NodeApi *server = request->server;
        uint64_t now = now_boottime_usec();
        uint64_t usec = MIN(server->settings.allowed_usec, server->settings.token_cache_usec);
        ApiUser *copy = calloc(1, sizeof(*copy));

        if (copy && api_user_copy(&request->user, copy) >= 0)
                review_cache_put(server->granted, key, copy, now, now + usec);
        else
                free(copy);
}

/* A token that belongs to no user gives 401; all other answers concern a known user. */
static void note_token(const ApiRequest *request) {
        const NodeApi *server = request->server;
        uint64_t now = now_boottime_usec();
        char *mark = NULL;

        if (request->token &&
            (request->reply_status == MHD_HTTP_OK || request->reply_status == MHD_HTTP_FORBIDDEN))
                mark = strdup("");
        if (mark)
                review_cache_put(server->known_tokens, request->token, mark, now,
                                 now + server->settings.token_cache_usec);
}

static ReviewKind review_kind_of(const ApiRequest *request) {
        if (tls_stream_ticket(request->connection->tls))
                return REVIEW_OF_USER;
        return request->token && review_cache_find(request->server->known_tokens, request->token,
                                                   now_boottime_usec())
                       ? REVIEW_OF_USER
                       : REVIEW_OF_STRANGER;
}

/* ---- the decision ---- */

static char *format_access_path(const ApiRequest *request) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fputs("/nodeapi/access?", out);
        url_write_argument(out, "method", request->method);
        url_write_argument(out, "path", request->path);
        fprintf(out, "session=%d", request->is_upgrade);
        return memstream_finish(out, &text);
}

static int read_granted_user(ApiRequest *request) {
        cleanup_json json_t *object = json_loads(request->reply_body, 0, NULL);

        return object ? api_user_from_json(object, &request->user) : -EBADMSG;
}

static ApiStepResult take_decision(ApiRequest *request, const char *key) {
        cleanup_free char *text = strdup(strna(request->reply_body));
        unsigned status = request->reply_status;
        int r = request->reply_error;

        if (r < 0) {
                ApiStepResult result = api_reply_agent_error(request);

                api_request_clear_reply(request);
                return result;
        }
        note_token(request);
        if (status == MHD_HTTP_OK)
                r = read_granted_user(request);
        api_request_clear_reply(request);
        if (r < 0 || !text)
                return API_STEP_ABORT;
        if (status == MHD_HTTP_OK) {
                keep_grant(request, key);
                return API_STEP_NEXT;
        }
        if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
                status = streq(text, "Unauthorized") ? MHD_HTTP_UNAUTHORIZED
                                                     : MHD_HTTP_INTERNAL_SERVER_ERROR;
        return api_reply_text(request, status, text);
}

ApiStepResult api_authorize(ApiRequest *request) {
        cleanup_free char *key = NULL, *path = NULL;
        int r = take_credential(request);

        if (r == -EACCES)
                return reply_unauthorized(request);
        key = r < 0 ? NULL : format_grant_key(request);
        if (!key)
                return API_STEP_ABORT;
        if (request->has_reply)
                return take_decision(request, key);
        if (find_grant(request, key)) {
                api_review_end(request);
                return API_STEP_NEXT;
        }
        path = format_access_path(request);
        return path ? api_request_review(request, review_kind_of(request), path) : API_STEP_ABORT;
}
