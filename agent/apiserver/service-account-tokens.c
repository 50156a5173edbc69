/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of service accounts (TokenRequest), one for each pod, audience and time: asked for when a
 * volume needs one, renewed at four fifths of their time, kept on the disk until the pod is gone. A
 * token that could not be renewed stays until there is another. */

#include "agent/apiserver/apiserver-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum {
        TOKEN_FILE_MAX_BYTES = 64 * 1024,
        TOKEN_SECONDS_DEFAULT = 3600,
        TOKEN_RENEW_SECONDS_MAX = 24 * 3600,
        TOKEN_HASH_DIGITS = 16,
};

struct ApiServerToken {
        ApiServerToken *next;
        char *key; /* "<pod UID>_<hash>": its file, too */
        char *uid;
        char *pod;
        char *namespace;
        char *account;
        char *audience; /* NULL: the server's */
        int64_t seconds;
        char *token;       /* NULL: not had yet */
        uint64_t renew_at; /* boot time; 0: is under way, or due */
        char *last_error;  /* why there is none */
};

/* ---- on the disk ---- */

static const char tokens_directory[] = "tokens";

/* When it is to be renewed, in real time, and the token. */
static void cache_token(ApiServerSync *api, const ApiServerToken *token) {
        uint64_t left = token->renew_at - now_boottime_usec();
        char *text;

        if (asprintf(&text, "%" PRIu64 "\n%s\n", now_realtime_usec() + left, token->token) < 0)
                return;
        apiserver_cache_write(api, tokens_directory, token->key, text);
        explicit_bzero(text, strlen(text));
        free(text);
}

/* One whose time is over, by whatever the clock says, is renewed at once. */
static void parse_cached_token(ApiServerToken *token, const char *text) {
        const char *start = strchr(text, '\n'), *end = start ? strchr(start + 1, '\n') : NULL;
        uint64_t renew_at = strtoull(text, NULL, 10), now = now_realtime_usec();

        if (!end)
                return;
        token->token = strndup(start + 1, (size_t) (end - start - 1));
        if (renew_at > now && renew_at - now <= TOKEN_RENEW_SECONDS_MAX * USEC_PER_SEC)
                token->renew_at = now_boottime_usec() + (renew_at - now);
}

static void load_cached_token(const ApiServerSync *api, ApiServerToken *token) {
        cleanup_free char *text = NULL;

        if (apiserver_cache_read(api, tokens_directory, token->key, TOKEN_FILE_MAX_BYTES, &text) <
            0)
                return;
        parse_cached_token(token, text);
        explicit_bzero(text, strlen(text));
}

static void apiserver_token_free(ApiServerToken *token) {
        if (token->token)
                explicit_bzero(token->token, strlen(token->token));
        free(token->token);
        free(token->key);
        free(token->uid);
        free(token->pod);
        free(token->namespace);
        free(token->account);
        free(token->audience);
        free(token->last_error);
        free(token);
}

/* ---- which ones ---- */

static int format_token_key(const Pod *pod, const TokenProjection *projection, int64_t seconds,
                            char **ret) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        const char *audience = strna(projection->audience);
        char digits[SHA256_HEX_SIZE];

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, audience, strlen(audience) + 1);
        sha256_update(hash, &seconds, sizeof(seconds));
        sha256_finish(hash, digits);
        return asprintf(ret, "%s_%.*s", pod->metadata.uid, TOKEN_HASH_DIGITS, digits) < 0 ? -ENOMEM
                                                                                          : 0;
}

static ApiServerToken *find_cached_token(const ApiServerSync *api, const char *key) {
        for (ApiServerToken *token = api->tokens; token; token = token->next)
                if (streq(token->key, key))
                        return token;
        return NULL;
}

static int copy_optional_text(const char *text, char **ret) {
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

static ApiServerToken *add_apiserver_token(ApiServerSync *api, const Pod *pod,
                                           const TokenProjection *projection, const char *key,
                                           int64_t seconds) {
        const char *account = pod->spec.service_account_name;
        ApiServerToken *token = calloc(1, sizeof(*token));

        if (!token)
                return NULL;
        token->seconds = seconds;
        if (copy_optional_text(key, &token->key) < 0 ||
            copy_optional_text(pod->metadata.uid, &token->uid) < 0 ||
            copy_optional_text(pod->metadata.name, &token->pod) < 0 ||
            copy_optional_text(pod->metadata.namespace, &token->namespace) < 0 ||
            copy_optional_text(account ? account : "default", &token->account) < 0 ||
            copy_optional_text(projection->audience, &token->audience) < 0) {
                apiserver_token_free(token);
                return NULL;
        }
        token->next = api->tokens;
        api->tokens = token;
        load_cached_token(api, token);
        return token;
}

/* Without a client it stays due until there is one. */
static int request_token(const ApiServerSync *api, const ApiServerToken *token) {
        return api->token_writer ? kube_work_queue_add(api->token_writer, token->key) : 0;
}

int apiserver_request_due_tokens(ApiServerSync *api) {
        int r = 0;

        for (const ApiServerToken *token = api->tokens; token && r >= 0; token = token->next)
                if (token->renew_at == 0)
                        r = request_token(api, token);
        return r;
}

int apiserver_find_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                         Error *reterr, void *userdata) {
        ApiServerSync *api = userdata;
        int64_t seconds = projection->expiration_seconds.is_set
                                  ? projection->expiration_seconds.value
                                  : TOKEN_SECONDS_DEFAULT;
        cleanup_free char *key = NULL;
        ApiServerToken *token;

        if (format_token_key(pod, projection, seconds, &key) < 0)
                return -ENOMEM;
        token = find_cached_token(api, key);
        if (!token) {
                token = add_apiserver_token(api, pod, projection, key, seconds);
                if (!token)
                        return -ENOMEM;
                if (token->renew_at > 0)
                        apiserver_arm_token_timer(api);
                else
                        (void) request_token(api, token);
        }
        if (!token->token)
                return error_setf(reterr, EAGAIN, "failed to fetch token: %s",
                                  token->last_error ? token->last_error
                                                    : "the API server has not given one yet");
        *ret_token = token->token;
        return 0;
}

void apiserver_forget_tokens(ApiServerSync *api, const char *uid) {
        ApiServerToken **link = &api->tokens;

        while (*link) {
                ApiServerToken *token = *link;

                if (uid && !streq(token->uid, uid)) {
                        link = &token->next;
                        continue;
                }
                *link = token->next;
                if (api->token_writer)
                        kube_work_queue_forget(api->token_writer, token->key);
                if (uid)
                        apiserver_cache_write(api, tokens_directory, token->key, NULL);
                apiserver_token_free(token);
        }
}

/* ---- renewal ---- */

static int on_token_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerSync *api = userdata;
        uint64_t now = now_boottime_usec();

        for (ApiServerToken *token = api->tokens; token; token = token->next)
                if (token->renew_at > 0 && token->renew_at <= now) {
                        token->renew_at = 0;
                        (void) request_token(api, token);
                }
        apiserver_arm_token_timer(api);
        return 0;
}

/* One timer, for the first that is due. */
void apiserver_arm_token_timer(ApiServerSync *api) {
        uint64_t first = UINT64_MAX;
        int r = 0;

        for (const ApiServerToken *token = api->tokens; token; token = token->next)
                if (token->renew_at > 0)
                        first = MIN(first, token->renew_at);
        if (first == UINT64_MAX)
                return;
        if (!api->token_timer)
                r = sd_event_add_time(api->config.event, &api->token_timer, CLOCK_BOOTTIME, first,
                                      0, on_token_timer, api);
        else
                r = sd_event_source_set_time(api->token_timer, first);
        if (r >= 0)
                r = sd_event_source_set_enabled(api->token_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of tokens");
}

static json_t *build_token_request(const ApiServerToken *token) {
        json_t *audiences = token->audience ? json_pack("[s]", token->audience) : json_null();

        return json_pack("{s:s, s:s, s:{s:o, s:I, s:{s:s, s:s, s:s, s:s}}}", "kind", "TokenRequest",
                         "apiVersion", "authentication.k8s.io/v1", "spec", "audiences", audiences,
                         "expirationSeconds", (json_int_t) token->seconds, "boundObjectRef", "kind",
                         "Pod", "apiVersion", "v1", "name", token->pod, "uid", token->uid);
}

static int make_token_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        ApiServerSync *api = userdata;
        const ApiServerToken *token = find_cached_token(api, key);
        cleanup_with(json_decrefp) json_t *request = token ? build_token_request(token) : NULL;
        char *path, *body;

        if (!token)
                return 0;
        body = request ? json_dumps(request, JSON_COMPACT) : NULL;
        if (!body || asprintf(&path, "/api/v1/namespaces/%s/serviceaccounts/%s/token",
                              token->namespace, token->account) < 0) {
                free(body);
                return -ENOMEM;
        }
        *ret = (KubeRequestSpec){
                .method = "POST", .path = path, .body = body, .body_length = strlen(body)
        };
        return 1;
}

static int read_token_answer(ApiServerSync *api, ApiServerToken *token,
                             const KubeResponse *answer) {
        cleanup_with(json_decrefp) json_t *object =
                json_loadb(answer->body, answer->length, 0, NULL);
        json_t *status = json_object_get(object, "status");
        const char *text = json_string_value(json_object_get(status, "token"));
        const char *expires = json_string_value(json_object_get(status, "expirationTimestamp"));
        uint64_t now = now_realtime_usec(), end = 0;
        char *given;

        if (!text || !text[0] || !expires || parse_rfc3339(expires, &end) < 0)
                return -EBADMSG;
        given = strdup(text);
        if (!given)
                return -ENOMEM;
        if (token->token)
                explicit_bzero(token->token, strlen(token->token));
        free(token->token);
        token->token = given;
        /* By the server's word of its end, or by what was asked for where the clocks differ. */
        end = end > now ? end - now : (uint64_t) token->seconds * USEC_PER_SEC;
        end = MIN(end / 10 * 8, TOKEN_RENEW_SECONDS_MAX * USEC_PER_SEC);
        token->renew_at = now_boottime_usec() + MAX(end, 10 * USEC_PER_SEC);
        return 0;
}

static KubeWorkResult on_token_refused(ApiServerSync *api, ApiServerToken *token, const char *why) {
        bool has_changed = !streq_ptr(token->last_error, why);

        if (has_changed) {
                log_warning("No token of service account '%s/%s' for pod '%s': %s",
                            token->namespace, token->account, token->pod, why);
                free(token->last_error);
                token->last_error = strdup(why);
        }
        return KUBE_WORK_RETRY_LATER;
}

static KubeWorkResult on_token_answer(const char *key, const KubeResponse *answer, void *userdata) {
        ApiServerSync *api = userdata;
        ApiServerToken *token = find_cached_token(api, key);
        char why[64];

        if (!token)
                return KUBE_WORK_DONE;
        if (answer->error)
                return on_token_refused(api, token, answer->error);
        if (answer->status < 200 || answer->status > 299) {
                (void) snprintf(why, sizeof(why), "the API server answers %u", answer->status);
                return on_token_refused(api, token, why);
        }
        if (read_token_answer(api, token, answer) < 0)
                return on_token_refused(api, token, "the API server's answer has none");
        free(token->last_error);
        token->last_error = NULL;
        cache_token(api, token);
        apiserver_arm_token_timer(api);
        apiserver_schedule_object_update(api, token->uid);
        return KUBE_WORK_DONE;
}

const KubeWorkQueueSpec apiserver_token_writer = {
        .max_parallel = 4,
        .build_request = make_token_request,
        .free_request = apiserver_free_call,
        .on_response = on_token_answer,
};
