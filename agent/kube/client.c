/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client-private.h"

#include "agent/kube/scan.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <fcntl.h>
#include <sys/stat.h>

/* 2026-01-01; whatever this says, it was built later. */
#define BUILT_USEC (UINT64_C(1767225600) * USEC_PER_SEC)

bool kube_clock_is_set(uint64_t realtime_usec) {
        return realtime_usec >= BUILT_USEC;
}

const char *kube_clock_words(char buffer[CLOCK_WORDS_SIZE], uint64_t realtime_usec) {
        char text[RFC3339_SIZE];

        format_rfc3339(text, realtime_usec);
        (void) snprintf(buffer, CLOCK_WORDS_SIZE, "the clock of this machine %ssays %.*s",
                        kube_clock_is_set(realtime_usec) ? "" : "is not set, it ",
                        (int) sizeof("2036-01-31") - 1, text);
        return buffer;
}

char *kube_answer_explain(const KubeAnswer *answer) {
        JsonText body = { answer->body, answer->length };
        cleanup_free char *message = NULL;
        char *sentence = NULL;

        if (answer->error)
                return strdup(answer->error);
        message = json_text_sentence(json_text_member(body, "message"));
        if (asprintf(&sentence, "the server said %u%s%s", answer->status, message ? ": " : "",
                     strna(message)) < 0)
                return NULL;
        return sentence;
}

/* ---- what is known of the server ---- */

void kube_client_heard(KubeClient *client) {
        if (client->is_reached)
                return;
        client->is_reached = true;
        backoff_reset(&client->backoff);
        client->turn_at = 0;
        client->since = now_realtime_usec();
        client->is_state_news = true;
        client->is_reached_news = client->was_unheard;
}

void kube_client_unheard(KubeClient *client, const char *trouble) {
        if (!client->is_reached && client->trouble && streq_ptr(client->trouble, trouble))
                return;
        if (client->is_reached || client->since == 0)
                client->since = now_realtime_usec();
        client->is_reached = false;
        client->was_unheard = true;
        free(client->trouble);
        client->trouble = strdup(strna(trouble));
        client->is_state_news = true;
}

uint64_t kube_client_take_turn(KubeClient *client) {
        uint64_t now = now_boottime_usec();

        if (client->is_reached || !client->trouble)
                return 0;
        if (now < client->turn_at)
                return client->turn_at - now;
        client->turn_at = now + backoff_next(&client->backoff, &backoff_pace, now, 0, chance_now());
        return 0;
}

void kube_client_listen(KubeClient *client, KubeListener *listener) {
        listener->next = client->listeners;
        client->listeners = listener;
}

void kube_client_ignore(KubeClient *client, KubeListener *listener) {
        KubeListener **at = &client->listeners;

        while (*at && *at != listener)
                at = &(*at)->next;
        if (*at)
                *at = listener->next;
        if (client->next_listener == listener)
                client->next_listener = listener->next;
}

/* Who listens sets a timer, so the client is still there after each. */
static void tell_listeners(KubeClient *client) {
        KubeListener *listener = client->listeners;

        for (; listener; listener = client->next_listener) {
                client->next_listener = listener->next;
                listener->on_reached(listener->userdata);
        }
}

void kube_client_tell_state(KubeClient *client) {
        bool is_news = client->is_state_news, is_reached = client->is_reached_news;

        client->is_state_news = client->is_reached_news = false;
        if (is_reached)
                tell_listeners(client);
        if (is_news && client->on_state)
                client->on_state(client->state_userdata);
}

KubeClientState kube_client_state(const KubeClient *client) {
        return (KubeClientState){
                .server = client->server,
                .is_reached = client->is_reached,
                .since = client->since,
                .trouble = client->is_reached ? NULL : client->trouble,
                .last_trouble = client->trouble,
                .identity_trouble = client->token_trouble,
                .n_requests = client->n_requests,
                .begins = client->lane->identity.begins,
                .expires = client->lane->identity.expires,
        };
}

void kube_client_on_state(KubeClient *client, void (*on_state)(void *userdata), void *userdata) {
        client->on_state = on_state;
        client->state_userdata = userdata;
}

/* ---- the token ---- */

static void take_token(KubeClient *client, char *token) {
        secret_free(client->token);
        client->token = token;
}

static void say_token_trouble(KubeClient *client, char *trouble) {
        if (!streq_ptr(client->token_trouble, trouble))
                client->is_state_news = true;
        free(client->token_trouble);
        client->token_trouble = trouble;
}

static bool is_token_file_another(KubeClient *client) {
        struct stat st = { 0 };
        bool is_same;

        /* One that is gone has no time, and is read again only when it is there. */
        (void) stat(client->token_file, &st);
        is_same = st.st_ino == client->token_inode &&
                  st.st_mtim.tv_sec == client->token_time.tv_sec &&
                  st.st_mtim.tv_nsec == client->token_time.tv_nsec;
        client->token_inode = st.st_ino;
        client->token_time = st.st_mtim;
        return !is_same;
}

/* One that cannot be read leaves the old one in place. */
void kube_client_refresh_token(KubeClient *client, bool must) {
        cleanup_error Error error = ERROR_NULL;
        char *token = NULL;
        int r;

        if (!client->token_file || (!is_token_file_another(client) && !must))
                return;
        r = kube_token_read(client->token_file, &token, &error);
        if (r >= 0)
                take_token(client, token);
        say_token_trouble(client, r < 0 ? strdup(error_message(&error, r)) : NULL);
}

/* As client-go has it: the file's token, and where that is not there, the one beside it. */
static int load_token(KubeClient *client, const Kubeconfig *config) {
        cleanup_free char *file = config->token_file ? strdup(config->token_file) : NULL;

        if (config->token_file && !file)
                return -ENOMEM;
        if (!streq_ptr(client->token_file, file) || !file) {
                char *token = config->token ? strdup(config->token) : NULL;

                if (config->token && !token)
                        return -ENOMEM;
                take_token(client, token);
                say_token_trouble(client, NULL);
        }
        free(client->token_file);
        client->token_file = TAKE_PTR(file);
        kube_client_refresh_token(client, true);
        return 0;
}

/* ---- lanes ---- */

void kube_client_forget_lane(KubeClient *client, const KubeLane *lane) {
        KubeLane **at = &client->left;

        while (*at && *at != lane)
                at = &(*at)->next;
        if (*at)
                *at = lane->next;
}

static void use_lane(KubeClient *client, KubeLane *lane) {
        KubeLane *old = client->lane;

        client->lane = lane;
        if (!old)
                return;
        old->next = client->left;
        client->left = old;
        kube_lane_leave(old, false);
}

static int duplicate(int fd, int *ret) {
        if (fd < 0)
                return 0;
        *ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return *ret < 0 ? -errno : 0;
}

void kube_client_change_lane(KubeClient *client) {
        const KubeIdentity *old = &client->lane->identity;
        cleanup_with(kube_identity_done) KubeIdentity identity = *old;
        KubeLane *lane = NULL;

        identity.authority_fd = identity.certificate_fd = identity.key_fd = -EBADF;
        if (duplicate(old->authority_fd, &identity.authority_fd) < 0 ||
            duplicate(old->certificate_fd, &identity.certificate_fd) < 0 ||
            duplicate(old->key_fd, &identity.key_fd) < 0 ||
            kube_lane_new(client, &identity, &lane, NULL) < 0)
                return; /* the old one will do */
        use_lane(client, lane);
}

/* ---- life ---- */

static int take_place(KubeClient *client, const Kubeconfig *config) {
        int r = kube_address_init(&client->address, config->server, config->tls_server_name);

        if (r < 0)
                return r;
        client->server = strdup(config->server);
        client->proxy = strdup(strna(config->proxy_url));
        client->is_insecure = config->insecure;
        client->is_plain = strncmp(config->server, "http:", 5) == 0;
        return client->server && client->proxy ? 0 : -ENOMEM;
}

static void drop_place(KubeClient *client) {
        kube_address_done(&client->address);
        free(client->server);
        free(client->proxy);
}

int kube_client_new(sd_event *event, const Kubeconfig *config, KubeClient **ret, Error *reterr) {
        cleanup_with(kube_identity_done) KubeIdentity identity = KUBE_IDENTITY_NULL;
        cleanup_with(kube_client_freep) KubeClient *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return -ENOMEM;
        client->event = event;
        r = take_place(client, config);
        if (r >= 0)
                r = kube_identity_load(config, &identity, reterr);
        if (r >= 0)
                r = load_token(client, config);
        if (r >= 0)
                r = kube_lane_new(client, &identity, &client->lane, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(client);
        return 0;
}

KubeClient *kube_client_free(KubeClient *client) {
        if (!client)
                return NULL;
        while (client->left) {
                KubeLane *lane = client->left;

                client->left = lane->next;
                kube_lane_leave(lane, true);
        }
        if (client->lane)
                kube_lane_leave(client->lane, true);
        drop_place(client);
        secret_free(client->token);
        free(client->token_file);
        free(client->token_trouble);
        free(client->trouble);
        free(client);
        return NULL;
}

static bool is_same_place(const KubeClient *client, const Kubeconfig *config) {
        KubeAddress address = { 0 };
        bool is_same;

        if (kube_address_init(&address, config->server, config->tls_server_name) < 0)
                return true;
        is_same = streq(client->server, config->server) &&
                  streq(client->address.base, address.base) &&
                  streq(client->proxy, strna(config->proxy_url)) &&
                  client->is_insecure == config->insecure;
        kube_address_done(&address);
        return is_same;
}

static int move(KubeClient *client, const Kubeconfig *config) {
        KubeClient place = { 0 };
        int r = take_place(&place, config);

        if (r < 0) {
                drop_place(&place);
                return r;
        }
        drop_place(client);
        client->address = place.address;
        client->server = place.server;
        client->proxy = place.proxy;
        client->is_insecure = place.is_insecure;
        client->is_plain = place.is_plain;
        return 0;
}

static int check_token_file(const Kubeconfig *config, Error *reterr) {
        cleanup_with(secret_freep) char *token = NULL;

        return config->token_file ? kube_token_read(config->token_file, &token, reterr) : 0;
}

int kube_client_reload(KubeClient *client, const Kubeconfig *config, Error *reterr) {
        cleanup_with(kube_identity_done) KubeIdentity identity = KUBE_IDENTITY_NULL;
        bool is_moved = !is_same_place(client, config), is_another;
        cleanup_with(secret_freep) char *token = client->token ? strdup(client->token) : NULL;
        KubeLane *lane = NULL;
        int r = kube_identity_load(config, &identity, reterr);

        if (r >= 0)
                r = check_token_file(config, reterr);
        if (r < 0)
                return r;
        r = load_token(client, config);
        is_another = is_moved || !streq(identity.hash, client->lane->identity.hash);
        if (r >= 0 && is_moved)
                r = move(client, config);
        if (r >= 0 && is_another)
                r = kube_lane_new(client, &identity, &lane, reterr);
        if (r < 0)
                return r;
        if (lane)
                use_lane(client, lane);
        if (is_another)
                client->turn_at = 0;
        return is_another || !streq_ptr(token, client->token);
}
