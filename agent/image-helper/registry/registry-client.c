/* SPDX-License-Identifier: Apache-2.0 */

/* Three nested loops. registry_client_get() tries the endpoints until one has the object.
 * get_from_endpoint() retries one endpoint while that may help, with a back-off that grows unless
 * bytes arrived. attempt_transfer() follows one attempt through challenges and redirects:
 * credentials are sent only to the endpoint's own origin. */

#include "agent/image-helper/registry/registry-client.h"

#include "agent/image-helper/process/parent-check.h"
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/registry/registry-token.h"
#include "common/back-off.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"

#include <time.h>

enum {
        REDIRECTS_MAX = 5,
        TOKENS_MAX = 2,    /* in one attempt, for one credential */
        FRUITLESS_MAX = 4, /* consecutive attempts that transferred next to nothing */
        FRUIT_BYTES = 4096,
        ATTEMPTS_MAX = 64,
        RETRY_WAIT_MAX_SEC = 30, /* limit of one wait; the pod has its own back-off */
        WORDS_LENGTH_MAX = 200
};

static const BackOffLimits retry_limits = { 400 * USEC_PER_MSEC, 6400 * USEC_PER_MSEC };

#define ACCEPT_MANIFESTS                                              \
        "application/vnd.oci.image.index.v1+json, "                   \
        "application/vnd.oci.image.manifest.v1+json, "                \
        "application/vnd.docker.distribution.manifest.list.v2+json, " \
        "application/vnd.docker.distribution.manifest.v2+json"

/* The kinds of objects in URLs and in messages. */
static const struct {
        const char *path, *query, *word;
} registry_object_words[] = {
        [REGISTRY_MANIFEST] = { "manifests", "", "image" },
        [REGISTRY_BLOB] = { "blobs", "", "blob" },
        [REGISTRY_REFERRERS] = { "referrers", "", "list of referrers of" },
        [REGISTRY_DELTAS] = { "referrers", "?artifactType=" ARTIFACT_TYPE_DELTA,
                              "list of deltas of" },
};

/* The state of an endpoint. */
typedef struct EndpointSession {
        size_t credential; /* index of the endpoint's credential in use; beyond the end of the list:
                            * none */
        bool uses_basic;
        char *token;
} EndpointSession;

struct RegistryClient {
        const Endpoints *endpoints;
        EndpointSession *sessions; /* one for each */
        HttpTransport *http;
};

/* One object from one endpoint. */
typedef struct RegistryTransfer {
        RegistryClient *registry;
        const Endpoint *endpoint;
        EndpointSession *session;
        const RegistryObject *object;
        uint64_t have; /* number of bytes passed on, including those that were already present */
        bool without_range;
        unsigned tokens;    /* tokens requested in this attempt */
        unsigned redirects; /* followed in this attempt */
        TransportFault fault;
        uint64_t retry_after_sec;
        char *media_type; /* buffer of 128 bytes */
} RegistryTransfer;

static int on_registry_data(const void *data, size_t length, uint64_t position, void *userdata) {
        RegistryTransfer *transfer = userdata;
        int r = transfer->object->on_data(data, length, position, transfer->object->userdata);

        if (r < 0)
                return r;
        transfer->have = position + length;
        return 0;
}

static const Credential *credential_of(const RegistryTransfer *transfer) {
        const Credentials *all = &transfer->endpoint->credentials;

        return transfer->session->credential < all->n ? &all->items[transfer->session->credential]
                                                      : NULL;
}

static const char *bearer_of(const RegistryTransfer *transfer) {
        const Credential *credential = credential_of(transfer);

        if (transfer->session->token)
                return transfer->session->token;
        return credential ? credential->registry_token : NULL;
}

/* A registry that requires no credentials gets none. */
static int used_secret(const RegistryTransfer *transfer) {
        const Credential *credential = credential_of(transfer);

        if (!credential || (!transfer->session->uses_basic && !bearer_of(transfer)))
                return -1;
        return credential->secret;
}

static void forget_token(EndpointSession *session) {
        if (session->token)
                explicit_bzero(session->token, strlen(session->token));
        free(session->token);
        session->token = NULL;
}

/* ---- authentication ---- */

/* Selects the next credential; the last attempt is anonymous. -EACCES after that. */
static int next_credential(RegistryTransfer *transfer, Error *reterr) {
        const Credentials *all = &transfer->endpoint->credentials;
        EndpointSession *session = transfer->session;

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
                                  "authentication failed, or the image does not exist: "
                                  "check imagePullSecrets and registryAuthFile");
        return error_setf(
                reterr, EACCES,
                "authentication is required, or the image does not exist: name a Secret in "
                "imagePullSecrets, or log in to the registryAuthFile");
}

static int answer_bearer_challenge(RegistryTransfer *transfer, const Challenge *challenge,
                                   Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        EndpointSession *session = transfer->session;
        char *token = NULL;
        int r;

        /* A token may have just expired. If a new token is refused at once, the credential is
         * wrong. */
        if (transfer->tokens >= TOKENS_MAX ||
            (transfer->tokens > 0 && !streq(strna(challenge->error), "invalid_token")))
                return next_credential(transfer, reterr);
        transfer->tokens++;
        forget_token(session);
        r = registry_token_get(transfer->registry->http, transfer->endpoint, challenge,
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

/* 0: the caller retries with the current credential. */
static int answer_challenge(RegistryTransfer *transfer, const Challenge *challenge, Error *reterr) {
        const Credential *credential = credential_of(transfer);
        EndpointSession *session = transfer->session;

        if (challenge->scheme == CHALLENGE_BEARER)
                return answer_bearer_challenge(transfer, challenge, reterr);
        if (challenge->scheme == CHALLENGE_BASIC && credential && credential->user &&
            !session->uses_basic) {
                session->uses_basic = true;
                return 0;
        }
        return next_credential(transfer, reterr);
}

/* ---- one attempt ---- */

/* Quotes the message in {"errors": [{"message": …}]}. */
static void quote_words(const TransportResponse *reply, char ret[static WORDS_LENGTH_MAX + 16]) {
        cleanup_json json_t *json = NULL;
        const json_t *first;
        const char *message = NULL;

        ret[0] = '\0';
        if (document_parse(reply->error_text, strlen(reply->error_text), &json, NULL) < 0)
                return;
        first = json_array_get(json_object_get(json, "errors"), 0);
        message = json_text(first, "message");
        if (message && message[0])
                (void) snprintf(ret, WORDS_LENGTH_MAX + 16, " (\"%.*s\")", WORDS_LENGTH_MAX,
                                message);
}

static int refuse_registry_response(RegistryTransfer *transfer, const TransportResponse *reply,
                                    Error *reterr) {
        const RegistryObject *object = transfer->object;
        char words[WORDS_LENGTH_MAX + 16];

        quote_words(reply, words);
        transfer->fault = TRANSPORT_BAD_RESPONSE;
        if (reply->status == 404)
                return error_setf(reterr, ENOENT, "%s '%s' does not exist in repository '%s'%s",
                                  registry_object_words[object->kind].word, object->name,
                                  transfer->endpoint->repository, words);
        if (reply->status == 429 || reply->status >= 500 || reply->status == 408) {
                transfer->fault = TRANSPORT_INTERRUPTED;
                transfer->retry_after_sec = reply->retry_after_sec;
                return error_setf(reterr, EAGAIN, "%s%s",
                                  reply->status == 429 ? "too many requests"
                                                       : "the server has an internal error",
                                  words);
        }
        return error_setf(reterr, EPROTO, "the server answered with status %ld%s", reply->status,
                          words);
}

/* Handles a response. 1: the object is complete; 0: repeat the request, '*url' may have changed;
 * -errno. */
static int handle_registry_response(RegistryTransfer *transfer, const TransportResponse *reply,
                                    char **url, bool is_own, Error *reterr) {
        char *next = NULL;
        int r;

        if (reply->status == 200 || reply->status == 206) {
                (void) snprintf(transfer->media_type, TRANSPORT_MEDIA_TYPE_SIZE, "%s",
                                reply->media_type);
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
                return refuse_registry_response(transfer, reply, reterr);
        if (++transfer->redirects > REDIRECTS_MAX)
                return error_setf(reterr, ELOOP, "it redirects more than %d times", REDIRECTS_MAX);
        r = url_resolve_for_endpoint(transfer->endpoint, *url, reply->location, &next, reterr);
        if (r < 0)
                return r;
        free(*url);
        *url = next;
        return 0;
}

static int send_registry_request(RegistryTransfer *transfer, const char *url, bool is_own,
                                 TransportResponse *reply, Error *reterr) {
        const RegistryObject *object = transfer->object;
        const Credential *credential = credential_of(transfer);
        bool shows_password = is_own && transfer->session->uses_basic && credential;

        return http_transport_perform(
                transfer->registry->http,
                &(TransportRequest){
                        .url = url,
                        .endpoint = transfer->endpoint,
                        .is_own_host = is_own,
                        .was_redirected = transfer->redirects > 0,
                        .user = shows_password ? credential->user : NULL,
                        .password = shows_password ? credential->password : NULL,
                        .bearer = is_own && !shows_password ? bearer_of(transfer) : NULL,
                        .accept = object->kind == REGISTRY_BLOB ? NULL : ACCEPT_MANIFESTS,
                        .from = transfer->have,
                        .without_range = transfer->without_range || object->kind != REGISTRY_BLOB,
                        .body_max = object->size_max,
                        .on_data = on_registry_data,
                        .userdata = transfer,
                },
                reply, &transfer->fault, reterr);
}

static int attempt_transfer(RegistryTransfer *transfer, Error *reterr) {
        const RegistryObject *object = transfer->object;
        int r;
        char *url = text_format("%s/v2/%s/%s/%s%s", transfer->endpoint->origin,
                                transfer->endpoint->repository,
                                registry_object_words[object->kind].path, object->name,
                                registry_object_words[object->kind].query);

        if (!url)
                return -ENOMEM;
        transfer->tokens = transfer->redirects = 0;
        transfer->retry_after_sec = UINT64_MAX;
        do {
                cleanup_with(transport_response_done) TransportResponse reply = { 0 };
                bool is_own = url_same_origin(url, transfer->endpoint->origin);

                r = send_registry_request(transfer, url, is_own, &reply, reterr);
                if (r < 0 && reply.range_is_wrong && !transfer->without_range)
                        transfer->without_range = true;
                if (r >= 0) {
                        transfer->fault = TRANSPORT_BAD_RESPONSE;
                        r = handle_registry_response(transfer, &reply, &url, is_own, reterr);
                }
        } while (r == 0);
        free(url);
        return r;
}

/* ---- retrying one endpoint ---- */

static void sleep_before_retry(uint64_t usec) {
        const uint64_t slice = USEC_PER_SEC / 2;

        for (; usec > 0; usec -= MIN(usec, slice)) {
                struct timespec time = { .tv_nsec = (long) MIN(usec, slice) * 1000 };

                while (nanosleep(&time, &time) < 0 && errno == EINTR)
                        ;
                parent_check_exit_if_orphaned();
        }
}

static bool is_worth_retrying(const RegistryTransfer *transfer, int r) {
        if (transfer->object->kind == REGISTRY_DELTAS)
                return false;
        if (r == -EAGAIN)
                return transfer->retry_after_sec == UINT64_MAX ||
                       transfer->retry_after_sec <= RETRY_WAIT_MAX_SEC;
        return transfer->fault == TRANSPORT_INTERRUPTED;
}

static int get_from_endpoint(RegistryTransfer *transfer, Error *reterr) {
        uint64_t back_off = retry_limits.initial_usec;
        unsigned fruitless = 0;

        for (unsigned attempts = 1;; attempts++) {
                cleanup_error Error error = ERROR_NULL;
                uint64_t had = transfer->have, delay;
                int r = attempt_transfer(transfer, &error);

                if (r > 0)
                        return 0;
                if (transfer->have >= had + FRUIT_BYTES) {
                        fruitless = 0;
                        back_off = retry_limits.initial_usec;
                } else {
                        fruitless++;
                        back_off = back_off_next_delay(back_off, &retry_limits);
                }
                if (!is_worth_retrying(transfer, r) || fruitless >= FRUITLESS_MAX ||
                    attempts >= ATTEMPTS_MAX) {
                        error_move(reterr, &error);
                        return r;
                }
                delay = back_off;
                if (transfer->retry_after_sec != UINT64_MAX)
                        delay = transfer->retry_after_sec * USEC_PER_SEC +
                                retry_limits.initial_usec;
                /* Half of the delay is random, so that a thousand nodes do not retry at once. */
                sleep_before_retry(back_off_add_jitter(delay / 2, 100, back_off_random()));
        }
}

/* ---- one endpoint after the other ---- */

/* Adds the remedy for the failure. */
static int explain_registry_failure(const RegistryTransfer *transfer, int r, Error *error) {
        const Endpoint *endpoint = transfer->endpoint;
        cleanup_free char *said = error->message ? strdup(error->message) : NULL;

        if (transfer->fault == TRANSPORT_UNTRUSTED) {
                error_done(error);
                *error = ERROR_NULL;
                (void) error_setf(
                        error, EACCES,
                        "its certificate is not trusted: %s: put the authority that signed its "
                        "certificate into /etc/containers/certs.d/%s/ca.crt",
                        strna(said), endpoint->host);
        }
        if (transfer->fault == TRANSPORT_UNTRUSTED || transfer->fault == TRANSPORT_TLS_FAILED)
                r = -EACCES;
        else if (transfer->fault == TRANSPORT_UNREACHABLE)
                r = -EHOSTUNREACH;
        return error_prefixf(error, r, "registry '%s'", endpoint->display);
}

/* Joins the messages of several failures. */
static int join_registry_errors(Error *all, const Error *one) {
        cleanup_error Error before = ERROR_NULL;

        if (!all->message) {
                (void) error_setf(all, EIO, "%s", strna(one->message));
                return 0;
        }
        error_move(&before, all);
        (void) error_setf(all, EIO, "%s; %s", before.message, strna(one->message));
        return 0;
}

static bool names_port(const char *host) {
        const char *bracket = strchr(host, ']');

        return strchr(bracket ? bracket : host, ':');
}

/* Whether the connection failed in a way that another scheme may avoid: on a loopback address, only
 * if the server does not speak TLS, or nothing is listening on the HTTPS port. */
static bool may_second_try_help(const RegistryTransfer *transfer, const Endpoint *next) {
        if (next && next->is_loopback)
                return transfer->fault == TRANSPORT_TLS_FAILED ||
                       (transfer->fault == TRANSPORT_UNREACHABLE && !names_port(next->host));
        return transfer->fault == TRANSPORT_UNREACHABLE ||
               transfer->fault == TRANSPORT_TLS_FAILED || transfer->fault == TRANSPORT_UNTRUSTED ||
               transfer->fault == TRANSPORT_NOT_IN_TIME || transfer->fault == TRANSPORT_INTERRUPTED;
}

/* The most informative of several errors. */
static int more_telling_error(int a, int b) {
        static const int order[] = { -ENOMEM, -EACCES, -ENOENT };

        for (size_t i = 0; i < N_ELEMENTS(order); i++)
                if (a == order[i] || b == order[i])
                        return order[i];
        return a < 0 ? a : b;
}

int registry_client_get(RegistryClient *registry, const RegistryObject *object,
                        char media_type[static 128], size_t *ret_endpoint, int *ret_secret,
                        Error *reterr) {
        const Endpoints *endpoints = registry->endpoints;
        cleanup_error Error all = ERROR_NULL;
        RegistryTransfer transfer = { .registry = registry,
                                      .object = object,
                                      .have = object->from,
                                      .media_type = media_type };
        bool was_unreachable = false;
        int worst = 0;

        for (size_t k = 0; k < endpoints->n; k++) {
                size_t i = (object->first + k) % endpoints->n;
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (k > 0 && endpoints->items[i].is_second_try && !was_unreachable)
                        continue;
                transfer.endpoint = &endpoints->items[i];
                transfer.session = &registry->sessions[i];
                transfer.without_range = false;
                r = get_from_endpoint(&transfer, &error);
                if (r >= 0) {
                        *ret_endpoint = i;
                        *ret_secret = used_secret(&transfer);
                        return 0;
                }
                /* The server supports another TLS version, but not plain HTTP. */
                if (endpoints->items[i].is_loopback && endpoints->items[i].is_second_try &&
                    (transfer.fault == TRANSPORT_INTERRUPTED ||
                     transfer.fault == TRANSPORT_NOT_HTTP))
                        continue;
                /* The attempt without TLS replaces the error of the one with TLS. */
                if (endpoints->items[i].is_second_try && was_unreachable)
                        error_done(&all), all = ERROR_NULL;
                was_unreachable = may_second_try_help(
                        &transfer, i + 1 < endpoints->n ? &endpoints->items[i + 1] : NULL);
                worst = more_telling_error(worst, explain_registry_failure(&transfer, r, &error));
                (void) join_registry_errors(&all, &error);
                if (transfer.fault == TRANSPORT_LOCAL_ERROR)
                        break;
        }
        if (reterr)
                error_move(reterr, &all);
        return worst < 0 ? worst : -EIO;
}

int registry_client_new(const Endpoints *endpoints, RegistryClient **ret) {
        cleanup_with(registry_client_freep) RegistryClient *registry = calloc(1, sizeof(*registry));
        int r;

        if (!registry)
                return -ENOMEM;
        registry->endpoints = endpoints;
        registry->sessions = calloc(endpoints->n, sizeof(*registry->sessions));
        if (!registry->sessions)
                return -ENOMEM;
        r = http_transport_new(endpoints, &registry->http);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(registry);
        return 0;
}

RegistryClient *registry_client_free(RegistryClient *registry) {
        if (!registry)
                return NULL;
        for (size_t i = 0; registry->sessions && i < registry->endpoints->n; i++)
                forget_token(&registry->sessions[i]);
        free(registry->sessions);
        http_transport_free(registry->http);
        free(registry);
        return NULL;
}
