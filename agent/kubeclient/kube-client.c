/* SPDX-License-Identifier: Apache-2.0 */
/* The client object: server address, token file, reachability, reconnect listeners. request.c
 * handles requests, connections.c connections. */

#include "agent/kubeclient/kube-client-private.h"

#include "agent/kubeclient/json-view.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The reason phrases in RFC 9110 for the statuses that an API server uses. */
static const char *http_status_phrase(unsigned status) {
        static const struct {
                unsigned status;
                const char *phrase;
        } phrases[] = {
                { 400, "Bad Request" },
                { 401, "Unauthorized" },
                { 403, "Forbidden" },
                { 404, "Not Found" },
                { 405, "Method Not Allowed" },
                { 408, "Request Timeout" },
                { 409, "Conflict" },
                { 410, "Gone" },
                { 413, "Content Too Large" },
                { 415, "Unsupported Media Type" },
                { 422, "Unprocessable Entity" },
                { 429, "Too Many Requests" },
                { 500, "Internal Server Error" },
                { 502, "Bad Gateway" },
                { 503, "Service Unavailable" },
                { 504, "Gateway Timeout" },
        };

        for (size_t i = 0; i < N_ELEMENTS(phrases); i++)
                if (phrases[i].status == status)
                        return phrases[i].phrase;
        return "HTTP status";
}

char *kube_response_describe_error(const KubeResponse *response) {
        JsonView body = { response->body, response->length };
        cleanup_free char *message = NULL;

        if (response->error)
                return strdup(response->error);
        message = json_view_message(json_view_member(body, "message"));
        return text_format("%u %s%s%s", response->status, http_status_phrase(response->status),
                           message ? ": " : "", strna(message));
}

/* ---- reachability ---- */

void kube_client_mark_reachable(KubeClient *client) {
        if (client->is_reached)
                return;
        client->is_reached = true;
        kube_back_off_reset(&client->back_off);
        client->next_attempt_at = 0;
        client->since = now_realtime_usec();
        client->is_state_changed = true;
        client->is_reconnected = client->was_unreachable;
}

void kube_client_mark_unreachable(KubeClient *client, const char *error) {
        kube_gate_close(client);
        if (!client->is_reached && client->last_error && streq_ptr(client->last_error, error))
                return;
        if (client->is_reached || client->since == 0)
                client->since = now_realtime_usec();
        client->is_reached = false;
        client->was_unreachable = true;
        (void) text_replace(&client->last_error, strna(error));
        client->is_state_changed = true;
}

void kube_client_mark_down(KubeClient *client) {
        client->was_down = true;
}

uint64_t kube_client_claim_retry(KubeClient *client) {
        uint64_t now = now_boottime_usec();

        if (client->is_reached || !client->last_error)
                return 0;
        if (now < client->next_attempt_at)
                return client->next_attempt_at - now;
        client->next_attempt_at =
                now + kube_back_off_next(&client->back_off, &kube_back_off_default, now, 0,
                                         back_off_random());
        return 0;
}

void kube_client_add_listener(KubeClient *client, KubeReconnectListener *listener) {
        LIST_PREPEND(client->listeners, listener);
}

void kube_client_remove_listener(KubeClient *client, KubeReconnectListener *listener) {
        KubeReconnectListener **at = &client->listeners;

        while (*at && *at != listener)
                at = &(*at)->next;
        if (*at)
                *at = listener->next;
        if (client->next_listener == listener)
                client->next_listener = listener->next;
}

/* A listener only sets a timer, so the client still exists after each call. */
static void notify_listeners(KubeClient *client, bool was_down) {
        KubeReconnectListener *listener = client->listeners;

        for (; listener; listener = client->next_listener) {
                client->next_listener = listener->next;
                listener->on_reached(was_down, listener->userdata);
        }
}

void kube_client_discard_versions(KubeClient *client) {
        notify_listeners(client, true);
}

void kube_client_notify_state(KubeClient *client) {
        bool is_news = client->is_state_changed, is_reached = client->is_reconnected;

        client->is_state_changed = client->is_reconnected = false;
        if (is_reached) {
                bool was_down = client->was_down;

                client->was_down = false;
                notify_listeners(client, was_down);
        }
        if (is_news && client->on_state_changed)
                client->on_state_changed(client->state_userdata);
}

KubeClientState kube_client_state(const KubeClient *client) {
        return (KubeClientState){
                .server = client->server,
                .is_reached = client->is_reached,
                .since = client->since,
                .last_error = client->is_reached ? NULL : client->last_error,
                .last_unreachable_error = client->last_error,
                .credentials_error = client->token_error,
                .n_requests = client->n_requests,
                .not_before = client->connections->tls_config.not_before,
                .not_after = client->connections->tls_config.not_after,
        };
}

void kube_client_set_state_callback(KubeClient *client, void (*on_state)(void *userdata),
                                    void *userdata) {
        client->on_state_changed = on_state;
        client->state_userdata = userdata;
}

/* ---- the token ---- */

static void set_bearer_token(KubeClient *client, char *token) {
        secret_free(client->token);
        client->token = token;
}

static void set_token_error(KubeClient *client, char *error) {
        if (!streq_ptr(client->token_error, error))
                client->is_state_changed = true;
        free(client->token_error);
        client->token_error = error;
}

static bool is_token_file_changed(KubeClient *client) {
        struct stat st = { 0 };
        FileStamp stamp;
        bool is_same;

        /* A missing file has a stamp of zeros, and is read again when it exists. */
        (void) stat(client->token_file, &st);
        stamp = file_stamp_of(&st);
        is_same = file_stamps_match(&stamp, &client->token_stamp);
        client->token_stamp = stamp;
        return !is_same;
}

/* If the token file is unreadable, the old token stays in use. */
void kube_client_refresh_token(KubeClient *client, bool must) {
        cleanup_error Error error = ERROR_NULL;
        char *token = NULL;
        int r;

        if (!client->token_file || (!is_token_file_changed(client) && !must))
                return;
        r = kube_token_read(client->token_file, &token, &error);
        if (r >= 0)
                set_bearer_token(client, token);
        set_token_error(client, r < 0 ? strdup(error_message(&error, r)) : NULL);
}

/* As in client-go: the token from the token file, or the literal token if the file is missing. */
static int load_bearer_token(KubeClient *client, const Kubeconfig *config) {
        cleanup_free char *file = config->token_file ? strdup(config->token_file) : NULL;

        if (config->token_file && !file)
                return -ENOMEM;
        if (!streq_ptr(client->token_file, file) || !file) {
                char *token = config->token ? strdup(config->token) : NULL;

                if (config->token && !token)
                        return -ENOMEM;
                set_bearer_token(client, token);
                set_token_error(client, NULL);
        }
        free(client->token_file);
        client->token_file = TAKE_PTR(file);
        kube_client_refresh_token(client, true);
        return 0;
}

/* ---- connection generations ---- */

void kube_client_remove_connections(KubeClient *client, const KubeConnections *connections) {
        KubeConnections **at = &client->draining;

        while (*at && *at != connections)
                at = &(*at)->next;
        if (*at)
                *at = connections->next;
}

/* Requests held by the gate are sent by the current generation. */
static void move_waiting_requests(KubeConnections *from, KubeConnections *to) {
        list_foreach_safe(request, from->requests)
                if (!request->is_started && !request->is_cancelled && kube_gate_holds(request))
                        kube_request_move_to(request, to);
}

static void replace_connections(KubeClient *client, KubeConnections *connections) {
        KubeConnections *old = client->connections;

        client->connections = connections;
        if (!old)
                return;
        kube_gate_close(client); /* its connection may go to another server */
        move_waiting_requests(old, connections);
        LIST_PREPEND(client->draining, old);
        kube_connections_drain(old, false);
}

static int duplicate_fd(int fd, int *ret) {
        if (fd < 0)
                return 0;
        *ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return *ret < 0 ? -errno : 0;
}

void kube_client_renew_connections(KubeClient *client) {
        const KubeTlsConfig *old = &client->connections->tls_config;
        cleanup_with(kube_tls_config_done) KubeTlsConfig tls_config = *old;
        KubeConnections *connections = NULL;

        tls_config.authority_fd = tls_config.certificate_fd = tls_config.key_fd = -EBADF;
        if (duplicate_fd(old->authority_fd, &tls_config.authority_fd) < 0 ||
            duplicate_fd(old->certificate_fd, &tls_config.certificate_fd) < 0 ||
            duplicate_fd(old->key_fd, &tls_config.key_fd) < 0 ||
            kube_connections_new(client, &tls_config, &connections, NULL) < 0)
                return; /* the old one stays in use */
        replace_connections(client, connections);
}

/* ---- construction ---- */

static int copy_server_settings(KubeClient *client, const Kubeconfig *config) {
        int r = kube_server_address_init(&client->address, config->server, config->tls_server_name);

        if (r < 0)
                return r;
        client->server = strdup(config->server);
        client->proxy = strdup(strna(config->proxy_url));
        client->is_insecure = config->insecure;
        client->is_plain = strncmp(config->server, "http:", 5) == 0;
        return client->server && client->proxy ? 0 : -ENOMEM;
}

static void free_server_settings(KubeClient *client) {
        kube_server_address_done(&client->address);
        free(client->server);
        free(client->proxy);
}

/* Certificates that failed because of the time may be valid now. */
static void on_client_clock_set(void *userdata) {
        KubeClient *client = userdata;

        if (client->is_reached || !client->last_error)
                return;
        log_info("The clock was set; connecting to %s", client->server);
        kube_back_off_reset(&client->back_off);
        client->next_attempt_at = 0;
        notify_listeners(client, false);
}

int kube_client_new(sd_event *event, const Kubeconfig *config, KubeClient **ret, Error *reterr) {
        cleanup_with(kube_tls_config_done) KubeTlsConfig tls_config = KUBE_TLS_CONFIG_NULL;
        cleanup_with(kube_client_freep) KubeClient *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return -ENOMEM;
        client->event = event;
        r = copy_server_settings(client, config);
        if (r < 0)
                return r;
        r = kube_tls_config_load(config, &tls_config, reterr);
        if (r < 0)
                return r;
        r = load_bearer_token(client, config);
        if (r < 0)
                return r;
        r = kube_connections_new(client, &tls_config, &client->connections, reterr);
        if (r < 0)
                return r;
        r = clock_watch_new(event, on_client_clock_set, client, &client->clock_watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(client);
        return 0;
}

KubeClient *kube_client_free(KubeClient *client) {
        if (!client)
                return NULL;
        clock_watch_free(client->clock_watch);
        kube_gate_done(&client->gate);
        while (client->draining) {
                KubeConnections *connections = client->draining;

                client->draining = connections->next;
                kube_connections_drain(connections, true);
        }
        if (client->connections)
                kube_connections_drain(client->connections, true);
        free_server_settings(client);
        secret_free(client->token);
        free(client->token_file);
        free(client->token_error);
        free(client->last_error);
        free(client);
        return NULL;
}

static bool is_same_server(const KubeClient *client, const Kubeconfig *config) {
        KubeServerAddress address = { 0 };
        bool is_same;

        if (kube_server_address_init(&address, config->server, config->tls_server_name) < 0)
                return true;
        is_same = streq(client->server, config->server) &&
                  streq(client->address.base, address.base) &&
                  streq(client->proxy, strna(config->proxy_url)) &&
                  client->is_insecure == config->insecure;
        kube_server_address_done(&address);
        return is_same;
}

static int change_api_server(KubeClient *client, const Kubeconfig *config) {
        KubeClient place = { 0 };
        int r = copy_server_settings(&place, config);

        if (r < 0) {
                free_server_settings(&place);
                return r;
        }
        free_server_settings(client);
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
        cleanup_with(kube_tls_config_done) KubeTlsConfig tls_config = KUBE_TLS_CONFIG_NULL;
        bool is_moved = !is_same_server(client, config), is_another;
        cleanup_with(secret_freep) char *token = client->token ? strdup(client->token) : NULL;
        KubeConnections *connections = NULL;
        int r = kube_tls_config_load(config, &tls_config, reterr);

        if (r < 0)
                return r;
        r = check_token_file(config, reterr);
        if (r < 0)
                return r;
        r = load_bearer_token(client, config);
        is_another = is_moved || !streq(tls_config.hash, client->connections->tls_config.hash);
        if (r < 0)
                return r;
        if (is_moved)
                r = change_api_server(client, config);
        if (r < 0)
                return r;
        if (is_another)
                r = kube_connections_new(client, &tls_config, &connections, reterr);
        if (r < 0)
                return r;
        if (connections)
                replace_connections(client, connections);
        if (is_another) {
                client->next_attempt_at = 0;
                kube_gate_ask_again(client);
        }
        return is_another || !streq_ptr(token, client->token);
}
