/* SPDX-License-Identifier: Apache-2.0 */

/* A request consists of steps, which run one after another. A step may suspend the connection until
 * the agent has replied, and is then run again. libmicrohttpd accepts replies only from its
 * callback. */

#include "agent/node-api/kubernetes/status-object.h"
#include "agent/node-api/process/node-api-private.h"
#include "agent/node-api/session/session-protocol.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <stdarg.h>

#define BODY_USEC (10 * USEC_PER_SEC)

enum {
        BODY_MAX = 4 * 1024 * 1024,      /* limit for a request; an API server accepts 3 MiB */
        KUBERNETES_BODY_MAX = 64 * 1024, /* limit for a body of the Kubernetes API, which is
                                          * parsed */
};

static ApiStepResult (*const api_steps[])(ApiRequest *request) = {
        api_authorize,
        api_route,
};

static bool has_connection_option(struct MHD_Connection *http, const char *option) {
        cleanup_free char *list = api_header_list(http, MHD_HTTP_HEADER_CONNECTION);
        const char *rest = strna(list), *word;
        size_t length;

        while (next_protocol_word(&rest, &word, &length))
                if (length == strlen(option) && strncasecmp(word, option, length) == 0)
                        return true;
        return false;
}

static ApiRequest *api_request_new(NodeApi *server, struct MHD_Connection *http, const char *url,
                                   const char *method) {
        ApiRequest *request = calloc(1, sizeof(*request));

        if (!request)
                return NULL;
        request->server = server;
        request->http = http;
        request->connection = api_connection_of(http);
        request->reply_fd = -EBADF;
        request->method = strdup(method);
        if (server->settings.is_alone)
                request->path = api_node_proxy_path(url, strna(server->settings.node_name));
        request->is_kubernetes =
                server->settings.is_alone && !request->path && api_is_kubernetes_path(url);
        if (!request->path)
                request->path = strdup(url);
        request->is_upgrade = has_connection_option(http, "upgrade");
        if (request->connection && request->method && request->path)
                return request;
        api_request_free(request);
        return NULL;
}

void api_request_clear_reply(ApiRequest *request) {
        api_review_end(request);
        request->agent_request = agent_request_cancel(request->agent_request);
        request->has_reply = false;
        request->reply_fd = close_fd(request->reply_fd);
        free(TAKE_PTR(request->reply_type));
        free(TAKE_PTR(request->reply_body));
}

void api_request_free(ApiRequest *request) {
        api_request_clear_reply(request);
        api_run_free(request->run);
        api_user_done(&request->user);
        free(request->credential);
        free(request->token);
        free(request->method);
        free(request->path);
        free(request->container);
        free(request->body);
        json_decref(request->object);
        json_decref(request->manifest_pod);
        json_decref(request->labels);
        free(request);
}

static enum MHD_Result run_api_request(ApiRequest *request) {
        ApiStepResult result = API_STEP_NEXT;

        if (!request->connection->tls || request->connection->is_gone)
                return MHD_NO; /* the client is gone */
        while (result == API_STEP_NEXT && request->step < N_ELEMENTS(api_steps)) {
                result = api_steps[request->step](request);
                if (result == API_STEP_NEXT)
                        request->step++;
        }
        if (result == API_STEP_WAIT)
                api_connection_suspend(request->connection, request->http);
        return result == API_STEP_WAIT || result == API_STEP_REPLY ? MHD_YES : MHD_NO;
}

/* A body that is too large is read to its end, so that the client gets the reply. */
static int take_body_bytes(ApiRequest *request, const char *bytes, size_t length) {
        size_t n = request->n_body + length;

        if (n > BODY_MAX)
                return -EMSGSIZE;
        if (request->is_kubernetes && n <= KUBERNETES_BODY_MAX) {
                if (!ARRAY_RESERVE(request->body, request->n_body, length))
                        return -ENOMEM;
                memcpy(request->body + request->n_body, bytes, length);
        }
        request->is_body_too_large = request->is_kubernetes && n > KUBERNETES_BODY_MAX;
        request->n_body = n;
        return 0;
}

enum MHD_Result api_request_handle(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **context) {
        ApiRequest *request = *context;
        int r;

        if (!request) {
                *context = request = api_request_new(userdata, http, url, method);
                if (!request)
                        return MHD_NO;
                request->is_http_1_0 = streq(version, MHD_HTTP_VERSION_1_0);
                api_connection_set_deadline(request->connection, BODY_USEC);
                return MHD_YES;
        }
        if (*upload_size > 0) {
                r = take_body_bytes(request, upload, *upload_size);
                *upload_size = 0;
                return r < 0 ? MHD_NO : MHD_YES;
        }
        api_connection_clear_deadline(request->connection);
        return run_api_request(request);
}

/* ---- the agent ---- */

static void on_api_request_reply(const AgentReply *reply, void *userdata) {
        ApiRequest *request = userdata;

        request->agent_request = NULL;
        request->has_reply = true;
        request->reply_error = reply->error;
        request->reply_status = reply->status;
        request->reply_fd = reply->fd;
        request->reply_type = strdup(strna(reply->content_type));
        request->reply_body = calloc(1, reply->length + 1);
        request->reply_length = reply->length;
        if (request->reply_body && reply->length > 0)
                memcpy(request->reply_body, reply->body, reply->length);
        if (!request->reply_type || !request->reply_body)
                request->reply_error = -ENOMEM;
        api_connection_resume(request->connection);
}

ApiStepResult api_request_ask_agent(ApiRequest *request, const AgentRequestSpec *spec) {
        AgentRequestSpec full = *spec;
        int r;

        full.socket_path = request->server->agent_socket;
        full.credential = request->credential;
        full.waits_for_agent = true;
        r = agent_request_start(request->server->event, &full, on_api_request_reply, request,
                                &request->agent_request);
        return r < 0 ? api_replyf(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                                  "the agent cannot be reached: %s", strerror(-r))
                     : API_STEP_WAIT;
}

/* ---- replies ---- */

ApiStepResult api_queue_reply(ApiRequest *request, unsigned status,
                              struct MHD_Response *response_consume) {
        enum MHD_Result result;

        if (!response_consume)
                return API_STEP_ABORT;
        result = MHD_queue_response(request->http, status, response_consume);
        MHD_destroy_response(response_consume);
        return result == MHD_YES ? API_STEP_REPLY : API_STEP_ABORT;
}

/* Clients without access must not keep a connection. */
static bool ends_api_connection(unsigned status) {
        return status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN ||
               status == MHD_HTTP_TOO_MANY_REQUESTS;
}

ApiStepResult api_reply_typed(ApiRequest *request, unsigned status, const char *type,
                              const char *text) {
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(text), (void *) (uintptr_t) text, MHD_RESPMEM_MUST_COPY);

        if (!response)
                return API_STEP_ABORT;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        if (ends_api_connection(status))
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        if (status == MHD_HTTP_TOO_MANY_REQUESTS)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        return api_queue_reply(request, status, response);
}

ApiStepResult api_reply_text(ApiRequest *request, unsigned status, const char *text) {
        cleanup_free char *object = NULL;

        if (!request->is_kubernetes || status < MHD_HTTP_BAD_REQUEST)
                return api_reply_typed(request, status, "text/plain; charset=utf-8", text);
        object = status_object_format(status, text);
        return object ? api_reply_typed(request, status, "application/json", object)
                      : API_STEP_ABORT;
}

ApiStepResult api_replyf(ApiRequest *request, unsigned status, const char *format, ...) {
        cleanup_free char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = format_message(format, ap);
        va_end(ap);
        return text ? api_reply_text(request, status, text) : API_STEP_ABORT;
}

ApiStepResult api_reply_agent_error(ApiRequest *request) {
        if (request->reply_error < 0)
                return api_replyf(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                                  "the agent does not reply: %s", strerror(-request->reply_error));
        return api_reply_text(request, request->reply_status, request->reply_body);
}

/* ---- headers and parameters ---- */

static enum MHD_Result add_header_value(void *userdata, enum MHD_ValueKind kind, const char *name,
                                        const char *value) {
        void *const *context = userdata;

        if (strcasecmp(name, context[0]) == 0)
                fprintf(context[1], "%s,", strna(value));
        return MHD_YES;
}

char *api_header_list(struct MHD_Connection *http, const char *name) {
        char *text = NULL, wanted[64];
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void) snprintf(wanted, sizeof(wanted), "%s", name);
        (void) MHD_get_connection_values(http, MHD_HEADER_KIND, add_header_value,
                                         (void *[]){ wanted, out });
        if (fclose(out) != 0 || length == 0) {
                free(text);
                return NULL;
        }
        return text;
}

const char *api_header(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_HEADER_KIND, name);
}

const char *api_parameter(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_GET_ARGUMENT_KIND, name);
}

bool api_has_parameter(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value_n(http, MHD_GET_ARGUMENT_KIND, name, strlen(name), NULL,
                                             NULL) == MHD_YES;
}
