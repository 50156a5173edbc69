/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, caches and refreshes service account tokens. The lifetime arithmetic is in
 * token-refresh.c. */

#include "agent/apiserver/service-account-tokens.h"

#include "agent/apiserver/token-refresh.h"
#include "agent/kubeclient/work-queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/text.h"

enum {
        TOKEN_FILE_MAX_BYTES = 64 * 1024,
        TOKEN_HASH_DIGITS = 16,
        TOKEN_REQUESTS_MAX = 4, /* requests in flight */
};

typedef struct ServiceAccountToken ServiceAccountToken;
struct ServiceAccountToken {
        ServiceAccountToken *next;
        char *key; /* "<pod UID>_<hash>", which is also its file name in the cache */
        char *pod_uid;
        char *pod;
        char *namespace;
        char *account;
        char *audience; /* NULL: the API server's */
        int64_t seconds;
        char *token;         /* NULL: none yet */
        uint64_t expires_at; /* realtime; 0: unknown, because an earlier version cached it */
        uint64_t refresh_at; /* boot time; 0: a request is due or in flight */
        bool is_on_disk;     /* the pod's first token */
        char *last_error;    /* of the last request; NULL: it has succeeded */
        uint64_t lags_since; /* boot time of the first refusal that may be temporary; 0: none */
};

struct ServiceAccountTokens {
        ServiceAccountTokensSpec spec;
        ServiceAccountToken *first;
        KubeWorkQueue *requests; /* by key; NULL while there is no client */
        sd_event_source *refresh_timer;
};

/* ---- the cache ---- */

static void erase_text(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static void cache_token(const ServiceAccountTokens *tokens, ServiceAccountToken *token) {
        uint64_t delay = token->refresh_at - now_boottime_usec();
        char *text =
                token_cache_format(token->token, now_realtime_usec() + delay, token->expires_at);

        if (!text)
                return;
        apiserver_cache_write(tokens->spec.run_cache, cached_tokens_directory, token->key, text);
        if (!token->is_on_disk)
                apiserver_cache_write(tokens->spec.cache, cached_tokens_directory, token->key,
                                      text);
        token->is_on_disk = true;
        erase_text(text);
}

/* The token in memory is newer than the one on disk. It is written to disk only if there is none,
 * or one encrypted with a lost key, and not while the key is still being opened. */
static void load_cached_token(const ServiceAccountTokens *tokens, ServiceAccountToken *token) {
        char *on_disk = NULL, *text = NULL;
        uint64_t delay = 0;
        int r = apiserver_cache_read(tokens->spec.cache, cached_tokens_directory, token->key,
                                     TOKEN_FILE_MAX_BYTES, &on_disk);

        token->is_on_disk = r >= 0;
        if (apiserver_cache_read(tokens->spec.run_cache, cached_tokens_directory, token->key,
                                 TOKEN_FILE_MAX_BYTES, &text) >= 0) {
                erase_text(on_disk);
                if (r < 0 && r != -EAGAIN) {
                        apiserver_cache_write(tokens->spec.cache, cached_tokens_directory,
                                              token->key, text);
                        token->is_on_disk = true;
                }
        } else
                text = on_disk;
        if (text && !token->token &&
            token_cache_parse(text, now_realtime_usec(), &token->token, &delay,
                              &token->expires_at) >= 0 &&
            delay > 0)
                token->refresh_at = now_boottime_usec() + delay;
        erase_text(text);
}

/* ---- the set of tokens ---- */

static void service_account_token_free(ServiceAccountToken *token) {
        erase_text(token->token);
        free(token->key);
        free(token->pod_uid);
        free(token->pod);
        free(token->namespace);
        free(token->account);
        free(token->audience);
        free(token->last_error);
        free(token);
}

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
        *ret = text_format("%s_%.*s", pod->metadata.uid, TOKEN_HASH_DIGITS, digits);
        return *ret ? 0 : -ENOMEM;
}

static ServiceAccountToken *find_service_account_token(const ServiceAccountTokens *tokens,
                                                       const char *key) {
        for (ServiceAccountToken *token = tokens->first; token; token = token->next)
                if (streq(token->key, key))
                        return token;
        return NULL;
}

static int copy_optional_text(const char *text, char **ret) {
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

static ServiceAccountToken *add_service_account_token(ServiceAccountTokens *tokens, const Pod *pod,
                                                      const TokenProjection *projection,
                                                      const char *key, int64_t seconds) {
        const char *account = pod->spec.service_account_name;
        ServiceAccountToken *token = calloc(1, sizeof(*token));

        if (!token)
                return NULL;
        token->seconds = seconds;
        if (copy_optional_text(key, &token->key) < 0 ||
            copy_optional_text(pod->metadata.uid, &token->pod_uid) < 0 ||
            copy_optional_text(pod->metadata.name, &token->pod) < 0 ||
            copy_optional_text(pod->metadata.namespace, &token->namespace) < 0 ||
            copy_optional_text(account ? account : "default", &token->account) < 0 ||
            copy_optional_text(projection->audience, &token->audience) < 0) {
                service_account_token_free(token);
                return NULL;
        }
        token->next = tokens->first;
        tokens->first = token;
        load_cached_token(tokens, token);
        return token;
}

int service_account_tokens_new(const ServiceAccountTokensSpec *spec, ServiceAccountTokens **ret) {
        ServiceAccountTokens *tokens = calloc(1, sizeof(*tokens));

        if (!tokens)
                return -ENOMEM;
        tokens->spec = *spec;
        *ret = tokens;
        return 0;
}

ServiceAccountTokens *service_account_tokens_free(ServiceAccountTokens *tokens) {
        if (!tokens)
                return NULL;
        kube_work_queue_free(tokens->requests);
        sd_event_source_disable_unref(tokens->refresh_timer);
        while (tokens->first) {
                ServiceAccountToken *token = tokens->first;

                tokens->first = token->next;
                service_account_token_free(token);
        }
        free(tokens);
        return NULL;
}

void service_account_tokens_forget(ServiceAccountTokens *tokens, const char *pod_uid) {
        ServiceAccountToken **link = &tokens->first;

        while (*link) {
                ServiceAccountToken *token = *link;

                if (!streq(token->pod_uid, pod_uid)) {
                        link = &token->next;
                        continue;
                }
                *link = token->next;
                if (tokens->requests)
                        kube_work_queue_forget(tokens->requests, token->key);
                apiserver_cache_write(tokens->spec.cache, cached_tokens_directory, token->key,
                                      NULL);
                apiserver_cache_write(tokens->spec.run_cache, cached_tokens_directory, token->key,
                                      NULL);
                service_account_token_free(token);
        }
}

void service_account_tokens_forget_cached(ServiceAccountTokens *tokens) {
        while (tokens->first)
                service_account_tokens_forget(tokens, tokens->first->pod_uid);
        apiserver_cache_empty(tokens->spec.cache, cached_tokens_directory);
        apiserver_cache_empty(tokens->spec.run_cache, cached_tokens_directory);
}

/* ---- refresh ---- */

/* Without a client, the token stays due until there is one. */
static int request_token(const ServiceAccountTokens *tokens, const ServiceAccountToken *token) {
        return tokens->requests ? kube_work_queue_add(tokens->requests, token->key) : 0;
}

static void arm_token_timer(ServiceAccountTokens *tokens);

static int on_token_refresh_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ServiceAccountTokens *tokens = userdata;
        uint64_t now = now_boottime_usec();

        for (ServiceAccountToken *token = tokens->first; token; token = token->next)
                if (token->refresh_at > 0 && token->refresh_at <= now) {
                        token->refresh_at = 0;
                        (void) request_token(tokens, token);
                }
        arm_token_timer(tokens);
        return 0;
}

/* One timer, for the first token that is due. */
static void arm_token_timer(ServiceAccountTokens *tokens) {
        uint64_t first = UINT64_MAX;
        int r;

        for (const ServiceAccountToken *token = tokens->first; token; token = token->next)
                if (token->refresh_at > 0)
                        first = MIN(first, token->refresh_at);
        if (first == UINT64_MAX)
                return;
        r = tokens->refresh_timer
                    ? sd_event_source_set_time(tokens->refresh_timer, first)
                    : sd_event_add_time(tokens->spec.event, &tokens->refresh_timer, CLOCK_BOOTTIME,
                                        first, 0, on_token_refresh_timer, tokens);
        if (r >= 0)
                r = sd_event_source_set_enabled(tokens->refresh_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("Cannot set the timer that refreshes service account tokens: %s; they "
                          "are refreshed when a volume needs them",
                          strerror(-r));
}

/* A cached token whose expiry is unknown lasts at least until it is refreshed. */
static uint64_t token_expiry(const ServiceAccountToken *token) {
        uint64_t now = now_boottime_usec();

        if (token->expires_at > 0)
                return token->expires_at;
        return now_realtime_usec() + (token->refresh_at > now ? token->refresh_at - now : 0);
}

int service_account_tokens_find(ServiceAccountTokens *tokens, const Pod *pod,
                                const TokenProjection *projection, IssuedToken *ret,
                                Error *reterr) {
        int64_t seconds = projection->expiration_seconds.is_set
                                  ? projection->expiration_seconds.value
                                  : TOKEN_SECONDS_DEFAULT;
        cleanup_free char *key = NULL;
        ServiceAccountToken *token;

        if (format_token_key(pod, projection, seconds, &key) < 0)
                return -ENOMEM;
        token = find_service_account_token(tokens, key);
        if (!token) {
                token = add_service_account_token(tokens, pod, projection, key, seconds);
                if (!token)
                        return -ENOMEM;
                if (token->refresh_at > 0)
                        arm_token_timer(tokens);
                else
                        (void) request_token(tokens, token);
        }
        if (!token->token && token->last_error)
                return error_setf(reterr, EACCES, "failed to fetch token: %s", token->last_error);
        if (!token->token)
                return error_setf(reterr, EAGAIN, "the API server has not issued a token yet");
        *ret = (IssuedToken){ token->token, token_expiry(token) };
        return 0;
}

void service_account_tokens_reload_cached(ServiceAccountTokens *tokens) {
        for (ServiceAccountToken *token = tokens->first; token; token = token->next) {
                bool was_there = token->token;

                if (was_there && token->is_on_disk)
                        continue;
                load_cached_token(tokens, token);
                if (token->token && !was_there)
                        object_updates_schedule(tokens->spec.updates, token->pod_uid);
        }
        arm_token_timer(tokens);
}

/* ---- requests ---- */

static int build_token_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        const ServiceAccountTokens *tokens = userdata;
        const ServiceAccountToken *token = find_service_account_token(tokens, key);
        cleanup_free char *body = NULL, *path = NULL;

        if (!token)
                return 0;
        body = token_request_to_json(&(TokenIdentity){ .namespace = token->namespace,
                                                       .pod = token->pod,
                                                       .pod_uid = token->pod_uid,
                                                       .audience = token->audience,
                                                       .seconds = token->seconds });
        path = text_format("/api/v1/namespaces/%s/serviceaccounts/%s/token", token->namespace,
                           token->account);
        if (!body || !path)
                return -ENOMEM;
        *ret = (KubeRequestSpec){ .method = "POST",
                                  .path = TAKE_PTR(path),
                                  .body_length = strlen(body) };
        ret->body = TAKE_PTR(body);
        return 1;
}

/* A pod that waits for the token reports the error at once. */
static KubeWorkResult on_token_failed(const ServiceAccountTokens *tokens,
                                      ServiceAccountToken *token, const char *error) {
        if (!streq_ptr(token->last_error, error)) {
                log_warning("Cannot get a token of service account '%s/%s' for pod '%s': %s; %s, "
                            "retrying within a minute",
                            token->namespace, token->account, token->pod, error,
                            token->token ? "the last one stays in use" : "the pod waits for it");
                free(token->last_error);
                token->last_error = strdup(error);
                if (!token->token)
                        object_updates_schedule(tokens->spec.updates, token->pod_uid);
        }
        return KUBE_WORK_RETRY_LATER;
}

/* A new pod waits for a while, silently, until the server has processed its binding to this
 * node. */
static bool is_token_on_its_way(ServiceAccountToken *token, unsigned status, const char *error) {
        uint64_t now = now_boottime_usec();

        if (!token_refusal_may_pass(status, error))
                return false;
        if (token->lags_since == 0)
                token->lags_since = now;
        return now - token->lags_since < TOKEN_BINDING_SEC * USEC_PER_SEC;
}

static KubeWorkResult on_token_refused(const ServiceAccountTokens *tokens,
                                       ServiceAccountToken *token, const KubeResponse *response) {
        cleanup_free char *error = kube_response_describe_error(response);

        if (error && is_token_on_its_way(token, response->status, error)) {
                log_debug("The API server has not noticed yet that pod '%s' is bound here: %s",
                          token->pod, error);
                return KUBE_WORK_RETRY_SOON;
        }
        return on_token_failed(tokens, token, error ? error : "out of memory");
}

static int store_token_response(ServiceAccountToken *token, const KubeResponse *response) {
        uint64_t expires = 0;
        char *text = NULL;
        int r = token_response_parse(response->body, response->length, &text, &expires);

        if (r < 0)
                return r;
        erase_text(token->token);
        token->token = text;
        token->expires_at = expires;
        token->refresh_at = now_boottime_usec() +
                            token_refresh_delay(now_realtime_usec(), expires, token->seconds);
        return 0;
}

static KubeWorkResult on_token_response(const char *key, const KubeResponse *response,
                                        void *userdata) {
        ServiceAccountTokens *tokens = userdata;
        ServiceAccountToken *token = find_service_account_token(tokens, key);

        if (!token)
                return KUBE_WORK_DONE;
        if (response->error || response->status < 200 || response->status > 299)
                return on_token_refused(tokens, token, response);
        if (store_token_response(token, response) < 0)
                return on_token_failed(tokens, token,
                                       "the response of the API server contains no token");
        free(token->last_error);
        token->last_error = NULL;
        token->lags_since = 0;
        cache_token(tokens, token);
        arm_token_timer(tokens);
        object_updates_schedule(tokens->spec.updates, token->pod_uid);
        return KUBE_WORK_DONE;
}

int service_account_tokens_start(ServiceAccountTokens *tokens, KubeClient *client) {
        int r = kube_work_queue_new(tokens->spec.event,
                                    &(KubeWorkQueueSpec){ .client = client,
                                                          .max_parallel = TOKEN_REQUESTS_MAX,
                                                          .build_request = build_token_request,
                                                          .free_request = kube_request_spec_free,
                                                          .on_response = on_token_response,
                                                          .userdata = tokens },
                                    &tokens->requests);

        if (r < 0)
                return r;
        for (const ServiceAccountToken *token = tokens->first; token; token = token->next)
                if (token->refresh_at == 0 && request_token(tokens, token) < 0)
                        return -ENOMEM;
        return 0;
}

void service_account_tokens_dump(const ServiceAccountTokens *tokens, FILE *out) {
        char due[DUMP_DURATION_SIZE];

        for (const ServiceAccountToken *token = tokens->first; token; token = token->next) {
                dump_line(out, 1, "token: pod %s/%s, account %s, audience %s, %s, refresh %s",
                          token->namespace, token->pod, token->account,
                          token->audience ? token->audience : "of the API server",
                          token->token ? "present" : "none yet",
                          token->refresh_at > 0 ? dump_format_due(due, token->refresh_at)
                                                : "is requested");
                if (token->last_error)
                        dump_line(out, 2, "last error: %s", token->last_error);
        }
        if (tokens->requests)
                kube_work_queue_dump(tokens->requests, "tokens", out);
        dump_timer(out, 1, "next refresh of a token", tokens->refresh_timer);
}
