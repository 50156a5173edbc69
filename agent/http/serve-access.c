/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/serve-access.h"

#include "agent/http/handlers.h"
#include "common/cleanup.h"

#include <stdlib.h>

struct HttpAccess {
        HttpServer *server;
        struct MHD_Connection *http;
        HttpConnection *connection;
        HttpAccess *previous, *next; /* in the list of waiting requests */
        void *check;                 /* of the agent; NULL: none is in progress */
        bool is_waiting;             /* the connection is suspended */
        unsigned status;             /* status of the decision; 0: not known yet */
        char *message, *user;
};

static const char ticket_header[] = "Mainstay-Client";
static const char token_header[] = "Mainstay-Token";

static const char *find_header(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_HEADER_KIND, name);
}

bool http_is_clients_request(const HttpServer *server, struct MHD_Connection *http) {
        return http_is_api_peer(server, http) || find_header(http, ticket_header) ||
               find_header(http, token_header);
}

static void stop_waiting(HttpAccess *access) {
        HttpAccess **first = http_accesses_of(access->server);

        if (!access->is_waiting)
                return;
        access->is_waiting = false;
        if (access->previous)
                access->previous->next = access->next;
        else
                *first = access->next;
        if (access->next)
                access->next->previous = access->previous;
        http_connection_set_deadline(access->connection);
        MHD_resume_connection(access->http);
        http_server_schedule_run(access->server);
}

static void start_waiting(HttpAccess *access) {
        HttpAccess **first = http_accesses_of(access->server);

        access->is_waiting = true;
        access->previous = NULL;
        access->next = *first;
        if (access->next)
                access->next->previous = access;
        *first = access;
        http_connection_clear_deadline(access->connection);
        MHD_suspend_connection(access->http);
}

static void free_http_access(HttpAccess *access) {
        if (access->check)
                http_handlers_of(access->server)->cancel_access(access->check);
        free(access->message);
        free(access->user);
        free(access);
}

void http_access_done(HttpAccess *access, unsigned status, const char *message, const char *user) {
        access->check = NULL;
        access->status = status;
        access->message = strdup(strna(message));
        access->user = strdup(strna(user));
        if (!access->message || !access->user)
                access->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        stop_waiting(access);
}

void http_abort_accesses(HttpServer *server) {
        for (HttpAccess *access; (access = *http_accesses_of(server));) {
                http_handlers_of(server)->cancel_access(TAKE_PTR(access->check));
                http_access_done(access, MHD_HTTP_SERVICE_UNAVAILABLE, "the agent ends", NULL);
        }
}

static int start_check(HttpAccess *access, const char *method, const char *path, bool is_session) {
        const HttpAccessQuestion question = { .ticket = find_header(access->http, ticket_header),
                                              .token = find_header(access->http, token_header),
                                              .method = method,
                                              .path = path,
                                              .is_session = is_session };

        return http_handlers_of(access->server)
                ->check_access(http_userdata_of(access->server), &question, access, &access->check);
}

HttpAccessResult http_check_access(HttpServer *server, struct MHD_Connection *http,
                                   const char *method, const char *path, bool is_session,
                                   enum MHD_Result *ret) {
        HttpConnection *connection = http_connection_of(http);
        HttpAccess *access = http_connection_access(connection);

        *ret = MHD_NO;
        if (!access) {
                access = calloc(1, sizeof(*access));
                if (!access)
                        return HTTP_ACCESS_OVER;
                access->server = server;
                access->http = http;
                access->connection = connection;
                http_connection_set_access_take(connection, access, free_http_access);
                if (start_check(access, method, path, is_session) < 0)
                        return HTTP_ACCESS_OVER;
        }
        if (access->status == 0) {
                start_waiting(access);
                *ret = MHD_YES;
                return HTTP_ACCESS_OVER;
        }
        if (access->status == MHD_HTTP_OK)
                return HTTP_ACCESS_GRANTED;
        *ret = http_reply_error(http, access->status, "%s", access->message);
        return HTTP_ACCESS_OVER;
}

const char *http_granted_user(struct MHD_Connection *http) {
        return http_connection_access(http_connection_of(http))->user;
}
