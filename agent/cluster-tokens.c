/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of service accounts (TokenRequest), one for each pod, audience and time: asked for when a
 * volume needs one, renewed at four fifths of their time, kept on the disk until the pod is gone. A
 * token that could not be renewed stays until there is another. */

#include "agent/cluster-private.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum {
        TOKEN_FILE_MAX = 64 * 1024,
        SECONDS_DEFAULT = 3600,
        RENEW_SECONDS_MAX = 24 * 3600,
        HASH_DIGITS = 16,
};

struct ClusterToken {
        ClusterToken *following;
        char *key; /* "<pod UID>_<hash>": its file, too */
        char *uid;
        char *pod;
        char *namespace;
        char *account;
        char *audience; /* NULL: the server's */
        int64_t seconds;
        char *token;       /* NULL: not had yet */
        uint64_t renew_at; /* boot time; 0: is under way, or due */
        char *trouble;     /* why there is none */
};

/* ---- on the disk ---- */

static const char directory[] = "tokens";

/* When it is to be renewed, in real time, and the token. */
static void store(Cluster *cluster, const ClusterToken *token) {
        uint64_t left = token->renew_at - now_boottime_usec();
        char *text;

        if (asprintf(&text, "%" PRIu64 "\n%s\n", now_realtime_usec() + left, token->token) < 0)
                return;
        cluster_keep(cluster, directory, token->key, text);
        explicit_bzero(text, strlen(text));
        free(text);
}

/* One whose time is over, by whatever the clock says, is renewed at once. */
static void read_text(ClusterToken *token, const char *text) {
        const char *start = strchr(text, '\n'), *end = start ? strchr(start + 1, '\n') : NULL;
        uint64_t renew_at = strtoull(text, NULL, 10), now = now_realtime_usec();

        if (!end)
                return;
        token->token = strndup(start + 1, (size_t) (end - start - 1));
        if (renew_at > now && renew_at - now <= RENEW_SECONDS_MAX * USEC_PER_SEC)
                token->renew_at = now_boottime_usec() + (renew_at - now);
}

static void load(const Cluster *cluster, ClusterToken *token) {
        cleanup_free char *text = NULL;

        if (cluster_read_kept(cluster, directory, token->key, TOKEN_FILE_MAX, &text) < 0)
                return;
        read_text(token, text);
        explicit_bzero(text, strlen(text));
}

static void token_free(ClusterToken *token) {
        if (token->token)
                explicit_bzero(token->token, strlen(token->token));
        free(token->token);
        free(token->key);
        free(token->uid);
        free(token->pod);
        free(token->namespace);
        free(token->account);
        free(token->audience);
        free(token->trouble);
        free(token);
}

/* ---- which ones ---- */

static int print_key(const Pod *pod, const TokenProjection *projection, int64_t seconds,
                     char **ret) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        const char *audience = strna(projection->audience);
        char digits[SHA256_HEX_SIZE];

        if (!hash)
                return -ENOMEM;
        sha256_update(hash, audience, strlen(audience) + 1);
        sha256_update(hash, &seconds, sizeof(seconds));
        sha256_finish(hash, digits);
        return asprintf(ret, "%s_%.*s", pod->metadata.uid, HASH_DIGITS, digits) < 0 ? -ENOMEM : 0;
}

static ClusterToken *find(const Cluster *cluster, const char *key) {
        for (ClusterToken *token = cluster->tokens; token; token = token->following)
                if (streq(token->key, key))
                        return token;
        return NULL;
}

static int copy(const char *text, char **ret) {
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

static ClusterToken *add(Cluster *cluster, const Pod *pod, const TokenProjection *projection,
                         const char *key, int64_t seconds) {
        const char *account = pod->spec.service_account_name;
        ClusterToken *token = calloc(1, sizeof(*token));

        if (!token)
                return NULL;
        token->seconds = seconds;
        if (copy(key, &token->key) < 0 || copy(pod->metadata.uid, &token->uid) < 0 ||
            copy(pod->metadata.name, &token->pod) < 0 ||
            copy(pod->metadata.namespace, &token->namespace) < 0 ||
            copy(account ? account : "default", &token->account) < 0 ||
            copy(projection->audience, &token->audience) < 0) {
                token_free(token);
                return NULL;
        }
        token->following = cluster->tokens;
        cluster->tokens = token;
        load(cluster, token);
        return token;
}

/* Without a client it stays due until there is one. */
static int ask(const Cluster *cluster, const ClusterToken *token) {
        return cluster->token_writer ? kube_writer_mark(cluster->token_writer, token->key) : 0;
}

int cluster_ask_tokens(Cluster *cluster) {
        int r = 0;

        for (const ClusterToken *token = cluster->tokens; token && r >= 0; token = token->following)
                if (token->renew_at == 0)
                        r = ask(cluster, token);
        return r;
}

int cluster_find_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                       Error *reterr, void *userdata) {
        Cluster *cluster = userdata;
        int64_t seconds = projection->expiration_seconds.is_set
                                  ? projection->expiration_seconds.value
                                  : SECONDS_DEFAULT;
        cleanup_free char *key = NULL;
        ClusterToken *token;

        if (print_key(pod, projection, seconds, &key) < 0)
                return -ENOMEM;
        token = find(cluster, key);
        if (!token) {
                token = add(cluster, pod, projection, key, seconds);
                if (!token)
                        return -ENOMEM;
                if (token->renew_at > 0)
                        cluster_arm_tokens(cluster);
                else
                        (void) ask(cluster, token);
        }
        if (!token->token)
                return error_setf(reterr, EAGAIN, "failed to fetch token: %s",
                                  token->trouble ? token->trouble
                                                 : "the API server has not given one yet");
        *ret_token = token->token;
        return 0;
}

void cluster_forget_tokens(Cluster *cluster, const char *uid) {
        ClusterToken **link = &cluster->tokens;

        while (*link) {
                ClusterToken *token = *link;

                if (uid && !streq(token->uid, uid)) {
                        link = &token->following;
                        continue;
                }
                *link = token->following;
                if (cluster->token_writer)
                        kube_writer_forget(cluster->token_writer, token->key);
                if (uid)
                        cluster_keep(cluster, directory, token->key, NULL);
                token_free(token);
        }
}

/* ---- renewal ---- */

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Cluster *cluster = userdata;
        uint64_t now = now_boottime_usec();

        for (ClusterToken *token = cluster->tokens; token; token = token->following)
                if (token->renew_at > 0 && token->renew_at <= now) {
                        token->renew_at = 0;
                        (void) ask(cluster, token);
                }
        cluster_arm_tokens(cluster);
        return 0;
}

/* One timer, for the first that is due. */
void cluster_arm_tokens(Cluster *cluster) {
        uint64_t first = UINT64_MAX;
        int r = 0;

        for (const ClusterToken *token = cluster->tokens; token; token = token->following)
                if (token->renew_at > 0)
                        first = MIN(first, token->renew_at);
        if (first == UINT64_MAX)
                return;
        if (!cluster->token_timer)
                r = sd_event_add_time(cluster->config.event, &cluster->token_timer, CLOCK_BOOTTIME,
                                      first, 0, on_timer, cluster);
        else
                r = sd_event_source_set_time(cluster->token_timer, first);
        if (r >= 0)
                r = sd_event_source_set_enabled(cluster->token_timer, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of tokens");
}

static json_t *print_request(const ClusterToken *token) {
        json_t *audiences = token->audience ? json_pack("[s]", token->audience) : json_null();

        return json_pack("{s:s, s:s, s:{s:o, s:I, s:{s:s, s:s, s:s, s:s}}}", "kind", "TokenRequest",
                         "apiVersion", "authentication.k8s.io/v1", "spec", "audiences", audiences,
                         "expirationSeconds", (json_int_t) token->seconds, "boundObjectRef", "kind",
                         "Pod", "apiVersion", "v1", "name", token->pod, "uid", token->uid);
}

static int make(const char *key, KubeCall *ret, void *userdata) {
        Cluster *cluster = userdata;
        const ClusterToken *token = find(cluster, key);
        cleanup_with(json_decrefp) json_t *request = token ? print_request(token) : NULL;
        char *path, *body;

        if (!token)
                return 0;
        body = request ? json_dumps(request, JSON_COMPACT) : NULL;
        if (!body || asprintf(&path, "/api/v1/namespaces/%s/serviceaccounts/%s/token",
                              token->namespace, token->account) < 0) {
                free(body);
                return -ENOMEM;
        }
        *ret = (KubeCall){
                .method = "POST", .path = path, .body = body, .body_length = strlen(body)
        };
        return 1;
}

static int take_token(Cluster *cluster, ClusterToken *token, const KubeAnswer *answer) {
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
        end = MIN(end / 10 * 8, RENEW_SECONDS_MAX * USEC_PER_SEC);
        token->renew_at = now_boottime_usec() + MAX(end, 10 * USEC_PER_SEC);
        return 0;
}

static KubeVerdict on_refusal(Cluster *cluster, ClusterToken *token, const char *why) {
        bool is_news = !streq_ptr(token->trouble, why);

        if (is_news) {
                log_warning("No token of service account '%s/%s' for pod '%s': %s",
                            token->namespace, token->account, token->pod, why);
                free(token->trouble);
                token->trouble = strdup(why);
        }
        return KUBE_LATER;
}

static KubeVerdict on_answer(const char *key, const KubeAnswer *answer, void *userdata) {
        Cluster *cluster = userdata;
        ClusterToken *token = find(cluster, key);
        char why[64];

        if (!token)
                return KUBE_WRITTEN;
        if (answer->error)
                return on_refusal(cluster, token, answer->error);
        if (answer->status < 200 || answer->status > 299) {
                (void) snprintf(why, sizeof(why), "the API server answers %u", answer->status);
                return on_refusal(cluster, token, why);
        }
        if (take_token(cluster, token, answer) < 0)
                return on_refusal(cluster, token, "the API server's answer has none");
        free(token->trouble);
        token->trouble = NULL;
        store(cluster, token);
        cluster_arm_tokens(cluster);
        cluster_schedule_objects(cluster, token->uid);
        return KUBE_WRITTEN;
}

const KubeWriterSpec cluster_token_writer = {
        .parallel = 4,
        .make = make,
        .unmake = cluster_unmake_call,
        .on_answer = on_answer,
};
