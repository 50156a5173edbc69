/* SPDX-License-Identifier: Apache-2.0 */

/* Three loops, one in the other. registry_get() goes through the endpoints until one has the
 * object. get_from() tries one endpoint again while that may help, waiting longer each time unless
 * bytes came. attempt() follows one attempt through challenges and redirects: what is ours to show
 * is shown to the endpoint's own origin and to nobody else. */

#include "agent/fetch/registry.h"

#include "agent/fetch/document.h"
#include "agent/fetch/orphan.h"
#include "agent/fetch/token.h"
#include "common/clock.h"

#include <sys/random.h>
#include <time.h>

enum {
        REDIRECTS_MAX = 5,
        TOKENS_MAX = 2,    /* in one attempt, for one credential */
        FRUITLESS_MAX = 4, /* attempts in a row that brought next to nothing */
        FRUIT_BYTES = 4096,
        ATTEMPTS_MAX = 64,
        PATIENCE_SEC = 30, /* no longer than this for one wait; the pod has its own back-off */
        WORDS_LENGTH_MAX = 200
};

#define BACK_OFF_USEC (400 * USEC_PER_MSEC)

#define ACCEPT_MANIFESTS                                              \
        "application/vnd.oci.image.index.v1+json, "                   \
        "application/vnd.oci.image.manifest.v1+json, "                \
        "application/vnd.docker.distribution.manifest.list.v2+json, " \
        "application/vnd.docker.distribution.manifest.v2+json"

/* What we have learned of an endpoint. */
typedef struct Session {
        size_t credential; /* of those that it has; beyond them: none */
        bool uses_basic;
        char *token;
} Session;

struct Registry {
        const Endpoints *endpoints;
        Session *sessions; /* one for each */
        Http *http;
};

/* One object from one endpoint. */
typedef struct Transfer {
        Registry *registry;
        const Endpoint *endpoint;
        Session *session;
        const RegistryObject *object;
        uint64_t have; /* bytes that were handed on, with those that were there before */
        bool without_range;
        unsigned tokens; /* that were asked for in this attempt */
        HttpFault fault;
        uint64_t retry_after_sec;
        char *media_type; /* of 128 bytes */
} Transfer;

static int on_data(const void *data, size_t length, uint64_t position, void *userdata) {
        Transfer *transfer = userdata;
        int r = transfer->object->on_data(data, length, position, transfer->object->userdata);

        if (r >= 0)
                transfer->have = position + length;
        return r;
}

static const Credential *credential_of(const Transfer *transfer) {
        const Credentials *all = &transfer->endpoint->credentials;

        return transfer->session->credential < all->n ? &all->items[transfer->session->credential]
                                                      : NULL;
}

static const char *bearer_of(const Transfer *transfer) {
        const Credential *credential = credential_of(transfer);

        if (transfer->session->token)
                return transfer->session->token;
        return credential ? credential->registry_token : NULL;
}

static void forget_token(Session *session) {
        if (session->token)
                explicit_bzero(session->token, strlen(session->token));
        free(session->token);
        session->token = NULL;
}

/* ---- who we are ---- */

/* The next of what we could show; the last try is with nothing at all. -EACCES where that was it.
 */
static int next_credential(Transfer *transfer, Error *reterr) {
        const Credentials *all = &transfer->endpoint->credentials;
        Session *session = transfer->session;

        forget_token(session);
        session->uses_basic = false;
        transfer->tokens = 0;
        if (session->credential < all->n) {
                session->credential++;
                return 0;
        }
        session->credential = 0;
        if (all->n > 0)
                return error_setf(reterr, EACCES,
                                  "it refuses the password that we have for it, or has no such "
                                  "image: check imagePullSecrets and registryAuthFile");
        return error_setf(reterr, EACCES,
                          "it wants a password, or has no such image: name a Secret in "
                          "imagePullSecrets, or log in to the registryAuthFile");
}

static int answer_bearer(Transfer *transfer, const Challenge *challenge, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        Session *session = transfer->session;
        char *token = NULL;
        int r;

        /* A token may have been good until a moment ago. One that is refused as soon as it is given
         * tells of the credential. */
        if (transfer->tokens >= TOKENS_MAX ||
            (transfer->tokens > 0 && !streq(strna(challenge->error), "invalid_token")))
                return next_credential(transfer, reterr);
        transfer->tokens++;
        forget_token(session);
        r = token_get(transfer->registry->http, transfer->endpoint, challenge,
                      credential_of(transfer), &token, &error);
        if (r == -EACCES && session->credential < transfer->endpoint->credentials.n)
                return next_credential(transfer, reterr);
        if (r < 0) {
                error_move(reterr, &error);
                return r;
        }
        session->token = token;
        return 0;
}

/* 0: try again with what there is now. */
static int answer_challenge(Transfer *transfer, const Challenge *challenge, Error *reterr) {
        const Credential *credential = credential_of(transfer);
        Session *session = transfer->session;

        if (challenge->scheme == CHALLENGE_BEARER)
                return answer_bearer(transfer, challenge, reterr);
        if (challenge->scheme == CHALLENGE_BASIC && credential && credential->user &&
            !session->uses_basic) {
                session->uses_basic = true;
                return 0;
        }
        return next_credential(transfer, reterr);
}

/* ---- one attempt ---- */

/* What a registry says in {"errors": [{"message": …}]}. */
static void quote_words(const HttpReply *reply, char ret[static WORDS_LENGTH_MAX + 16]) {
        cleanup_json json_t *json = NULL;
        const json_t *first;
        const char *message = NULL;

        ret[0] = '\0';
        if (document_parse(reply->words, strlen(reply->words), &json, NULL) < 0)
                return;
        first = json_array_get(json_object_get(json, "errors"), 0);
        message = document_string(first, "message");
        if (message && message[0])
                (void) snprintf(ret, WORDS_LENGTH_MAX + 16, " (\"%.*s\")", WORDS_LENGTH_MAX,
                                message);
}

static int refuse(Transfer *transfer, const HttpReply *reply, Error *reterr) {
        const RegistryObject *object = transfer->object;
        char words[WORDS_LENGTH_MAX + 16];

        quote_words(reply, words);
        transfer->fault = HTTP_WRONG;
        if (reply->status == 404)
                return error_setf(reterr, ENOENT, "it has no %s '%s' in '%s'%s",
                                  object->is_blob ? "blob" : "image", object->name,
                                  transfer->endpoint->repository, words);
        if (reply->status == 429 || reply->status >= 500 || reply->status == 408) {
                transfer->fault = HTTP_BROKEN;
                transfer->retry_after_sec = reply->retry_after_sec;
                return error_setf(reterr, EAGAIN, "%s%s",
                                  reply->status == 429 ? "it says that we ask too often"
                                                       : "it has a fault of its own",
                                  words);
        }
        return error_setf(reterr, EPROTO, "it answers %ld%s", reply->status, words);
}

/* Looks at an answer. 1: that was all; 0: ask again, '*url' may be another; -errno. */
static int take_answer(Transfer *transfer, const HttpReply *reply, char **url, bool is_own,
                       Error *reterr) {
        char *next = NULL;
        int r;

        if (reply->status == 200 || reply->status == 206) {
                (void) snprintf(transfer->media_type, HTTP_TYPE_SIZE, "%s", reply->media_type);
                return 1;
        }
        if (reply->status == 416 && transfer->have > 0 && !transfer->without_range) {
                transfer->without_range = true;
                return 0;
        }
        if (is_own && reply->status == 401)
                return answer_challenge(transfer, &reply->challenge, reterr);
        if (is_own && reply->status == 403)
                return next_credential(transfer, reterr);
        if (reply->status < 300 || reply->status > 308 || reply->status == 304 || !reply->location)
                return refuse(transfer, reply, reterr);
        r = http_resolve(*url, reply->location, transfer->endpoint->may_be_plain, &next, reterr);
        if (r < 0)
                return r;
        free(*url);
        *url = next;
        return 0;
}

static int ask(Transfer *transfer, const char *url, bool is_own, bool was_redirected,
               HttpReply *reply, Error *reterr) {
        const RegistryObject *object = transfer->object;
        const Credential *credential = credential_of(transfer);
        bool shows_password = is_own && transfer->session->uses_basic && credential;

        return http_perform(
                transfer->registry->http,
                &(HttpRequest){
                        .url = url,
                        .endpoint = transfer->endpoint,
                        .is_own_host = is_own,
                        .was_redirected = was_redirected,
                        .user = shows_password ? credential->user : NULL,
                        .password = shows_password ? credential->password : NULL,
                        .bearer = is_own && !shows_password ? bearer_of(transfer) : NULL,
                        .accept = object->is_blob ? NULL : ACCEPT_MANIFESTS,
                        .from = transfer->have,
                        .without_range = transfer->without_range || !object->is_blob,
                        .body_max = object->size_max,
                        .on_data = on_data,
                        .userdata = transfer,
                },
                reply, &transfer->fault, reterr);
}

static int attempt(Transfer *transfer, Error *reterr) {
        const RegistryObject *object = transfer->object;
        unsigned redirects = 0;
        char *url;
        int r;

        if (asprintf(&url, "%s/v2/%s/%s/%s", transfer->endpoint->origin,
                     transfer->endpoint->repository, object->is_blob ? "blobs" : "manifests",
                     object->name) < 0)
                return -ENOMEM;
        transfer->tokens = 0;
        transfer->retry_after_sec = UINT64_MAX;
        do {
                cleanup_with(http_reply_done) HttpReply reply = { 0 };
                bool is_own = http_same_origin(url, transfer->endpoint->origin);
                cleanup_free char *before = strdup(url);

                r = ask(transfer, url, is_own, redirects > 0, &reply, reterr);
                if (r < 0 && reply.range_is_wrong && !transfer->without_range)
                        transfer->without_range = true;
                if (r >= 0) {
                        transfer->fault = HTTP_WRONG;
                        r = take_answer(transfer, &reply, &url, is_own, reterr);
                }
                if (r == 0 && before && !streq(before, url) && ++redirects > REDIRECTS_MAX)
                        r = error_setf(reterr, ELOOP, "it leads on more than %d times",
                                       REDIRECTS_MAX);
        } while (r == 0);
        free(url);
        return r;
}

/* ---- again and again ---- */

/* Half of it is chance, so that a thousand nodes do not come back at once. */
static uint64_t jitter(uint64_t usec) {
        uint32_t chance = 0;

        (void) !getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
        return usec / 2 + usec / 2 * (chance % 1024) / 1024;
}

static void wait_for(uint64_t usec) {
        const uint64_t slice = USEC_PER_SEC / 2;

        for (; usec > 0; usec -= MIN(usec, slice)) {
                struct timespec time = { .tv_nsec = (long) MIN(usec, slice) * 1000 };

                while (nanosleep(&time, &time) < 0 && errno == EINTR)
                        ;
                orphan_check();
        }
}

static bool may_go_better(const Transfer *transfer, int r) {
        if (r == -EAGAIN)
                return transfer->retry_after_sec == UINT64_MAX ||
                       transfer->retry_after_sec <= PATIENCE_SEC;
        return transfer->fault == HTTP_BROKEN;
}

static int get_from(Transfer *transfer, Error *reterr) {
        unsigned fruitless = 0;

        for (unsigned attempts = 1;; attempts++) {
                cleanup_error Error error = ERROR_NULL;
                uint64_t had = transfer->have, delay;
                int r = attempt(transfer, &error);

                if (r > 0)
                        return 0;
                fruitless = transfer->have >= had + FRUIT_BYTES ? 0 : fruitless + 1;
                if (!may_go_better(transfer, r) || fruitless >= FRUITLESS_MAX ||
                    attempts >= ATTEMPTS_MAX) {
                        error_move(reterr, &error);
                        return r;
                }
                delay = transfer->retry_after_sec != UINT64_MAX
                                ? transfer->retry_after_sec * USEC_PER_SEC + BACK_OFF_USEC
                                : BACK_OFF_USEC << fruitless;
                wait_for(jitter(delay));
        }
}

/* ---- one endpoint after the other ---- */

/* With what to do about it. */
static int explain(const Transfer *transfer, int r, Error *error) {
        const Endpoint *endpoint = transfer->endpoint;
        cleanup_free char *said = error->message ? strdup(error->message) : NULL;

        if (transfer->fault == HTTP_INSECURE) {
                error_done(error);
                *error = ERROR_NULL;
                (void) error_setf(error, EACCES,
                                  "it cannot be trusted: %s: put the authority that signed its "
                                  "certificate into /etc/containers/certs.d/%s/ca.crt",
                                  strna(said), endpoint->host);
                r = -EACCES;
        } else if (transfer->fault == HTTP_UNREACHABLE)
                r = -EHOSTUNREACH;
        return error_prefixf(error, r, "registry '%s'", endpoint->display);
}

/* Of several failures the sentences stand side by side. */
static int join(Error *all, const Error *one) {
        cleanup_error Error before = ERROR_NULL;

        if (!all->message) {
                (void) error_setf(all, EIO, "%s", strna(one->message));
                return 0;
        }
        error_move(&before, all);
        (void) error_setf(all, EIO, "%s; %s", before.message, strna(one->message));
        return 0;
}

/* A failure to speak at all, which another way of speaking may avoid. */
static bool is_deaf(const Transfer *transfer) {
        return transfer->fault == HTTP_UNREACHABLE || transfer->fault == HTTP_INSECURE ||
               transfer->fault == HTTP_BROKEN;
}

/* What tells most of several failures. */
static int worse(int a, int b) {
        static const int order[] = { -ENOMEM, -EACCES, -ENOENT };

        for (size_t i = 0; i < N_ELEMENTS(order); i++)
                if (a == order[i] || b == order[i])
                        return order[i];
        return a < 0 ? a : b;
}

int registry_get(Registry *registry, const RegistryObject *object, char media_type[static 128],
                 size_t *ret_endpoint, Error *reterr) {
        const Endpoints *endpoints = registry->endpoints;
        cleanup_error Error all = ERROR_NULL;
        Transfer transfer = { .registry = registry,
                              .object = object,
                              .have = object->from,
                              .media_type = media_type };
        bool was_deaf = false;
        int worst = 0;

        for (size_t k = 0; k < endpoints->n; k++) {
                size_t i = (object->first + k) % endpoints->n;
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (k > 0 && endpoints->items[i].is_second_try && !was_deaf)
                        continue;
                transfer.endpoint = &endpoints->items[i];
                transfer.session = &registry->sessions[i];
                transfer.without_range = false;
                r = get_from(&transfer, &error);
                if (r >= 0) {
                        *ret_endpoint = i;
                        return 0;
                }
                /* What was tried for want of better counts for both. */
                if (endpoints->items[i].is_second_try && was_deaf)
                        error_done(&all), all = ERROR_NULL;
                was_deaf = is_deaf(&transfer);
                worst = worse(worst, explain(&transfer, r, &error));
                (void) join(&all, &error);
                if (transfer.fault == HTTP_OURS)
                        break;
        }
        if (reterr)
                error_move(reterr, &all);
        return worst < 0 ? worst : -EIO;
}

int registry_new(const Endpoints *endpoints, Registry **ret) {
        cleanup_with(registry_freep) Registry *registry = calloc(1, sizeof(*registry));
        int r;

        if (!registry)
                return -ENOMEM;
        registry->endpoints = endpoints;
        registry->sessions = calloc(endpoints->n, sizeof(*registry->sessions));
        if (!registry->sessions)
                return -ENOMEM;
        r = http_new(endpoints, &registry->http);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(registry);
        return 0;
}

Registry *registry_free(Registry *registry) {
        if (!registry)
                return NULL;
        for (size_t i = 0; registry->sessions && i < registry->endpoints->n; i++)
                forget_token(&registry->sessions[i]);
        free(registry->sessions);
        http_free(registry->http);
        free(registry);
        return NULL;
}
