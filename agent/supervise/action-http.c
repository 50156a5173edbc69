/* SPDX-License-Identifier: Apache-2.0 */
/* A GET. Redirections are followed as the kubelet follows them: ten, and none to another host. */

#include "agent/supervise/action-internal.h"
#include "common/cleanup.h"
#include "common/strv.h"

static void request(Action *action);

const char *action_http_late(const Action *action) {
        static char sentence[512];

        (void) snprintf(sentence, sizeof(sentence),
                        "Get \"%.300s\": context deadline exceeded (Client.Timeout exceeded while "
                        "awaiting headers)",
                        strna(action->url));
        return sentence;
}

static bool leads_elsewhere(long status) {
        return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* A server that speaks HTTP where a hook asks for HTTPS is asked again without, and without telling
 * it any secret. The words are those of GnuTLS, and of OpenSSL. */
static bool speaks_no_tls(const Action *action, const char *error) {
        return action->spec.is_hook && !action->is_downgraded &&
               strncmp(action->url, "https://", 8) == 0 &&
               (strstr(error, "unexpected TLS packet") || strstr(error, "wrong version number"));
}

static void try_without_tls(Action *action) {
        char *url = NULL;

        if (asprintf(&url, "http://%s", action->url + strlen("https://")) < 0)
                url = NULL;
        free(action->url);
        action->url = url;
        action->is_downgraded = true;
        if (url)
                request(action);
        else
                action_finish(action, ACTION_BROKEN, "out of memory");
}

static void follow(Action *action, const char *location) {
        char *url = strdup(location);

        free(action->url);
        action->url = url;
        if (!url)
                action_finish(action, ACTION_BROKEN, "out of memory");
        else if (++action->n_redirects > ACTION_REDIRECTS_MAX)
                action_finish(action, ACTION_FAILED, "Get \"%s\": stopped after %d redirects", url,
                              ACTION_REDIRECTS_MAX);
        else
                request(action);
}

static void judge(Action *action, const HttpResponse *response) {
        if (leads_elsewhere(response->status) && response->location &&
            http_same_host(action->url, response->location))
                follow(action, response->location);
        else if (action->spec.is_hook || (response->status >= 200 && response->status < 400))
                action_finish(action, ACTION_SUCCEEDED, "%.*s", ACTION_OUTPUT_MAX,
                              (const char *) response->body);
        else
                action_finish(action, ACTION_FAILED, "HTTP probe failed with statuscode: %ld",
                              response->status);
}

static void on_answer(const HttpResponse *response, const char *error, void *userdata) {
        Action *action = userdata;

        action->request = NULL;
        if (response)
                judge(action, response);
        else if (speaks_no_tls(action, error))
                try_without_tls(action);
        else
                action_finish(action, ACTION_FAILED, "Get \"%s\": %s", action->url, error);
}

static int add_header(char ***headers, const HttpHeader *header) {
        if (!header->value || !header->value[0])
                return strv_appendf(headers, "%s;", header->name);
        return strv_appendf(headers, "%s: %s", header->name, header->value);
}

static bool has_header(const HttpGetAction *http, const char *name) {
        for (size_t i = 0; i < http->http_headers.n; i++)
                if (strcasecmp(http->http_headers.items[i].name, name) == 0)
                        return true;
        return false;
}

static int make_headers(const Action *action, char ***ret) {
        const HttpGetAction *http = action->spec.handler->http_get;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < http->http_headers.n; i++) {
                const HttpHeader *header = &http->http_headers.items[i];

                if (!action->is_downgraded || strcasecmp(header->name, "Authorization") != 0)
                        r = add_header(ret, header);
        }
        if (r >= 0 && !has_header(http, "User-Agent"))
                r = strv_append(ret, "User-Agent: " ACTION_USER_AGENT);
        if (r >= 0 && !has_header(http, "Connection"))
                r = strv_append(ret, "Connection: close");
        return r;
}

static void request(Action *action) {
        cleanup_strv char **headers = NULL;
        cleanup_error Error error = ERROR_NULL;
        Http *http = action_http(action);
        int r;

        if (!http)
                return;
        r = make_headers(action, &headers);
        if (r >= 0)
                r = http_begin(http,
                               &(HttpSpec){ .url = action->url,
                                            .headers = (const char *const *) headers,
                                            .response_max = ACTION_OUTPUT_MAX },
                               on_answer, action, &action->request, &error);
        if (r < 0)
                action_finish_soon(action, ACTION_BROKEN, "%s", error_message(&error, r));
}

void action_begin_http(Action *action) {
        const HttpGetAction *http = action->spec.handler->http_get;

        action->url = action_url(http->scheme == URI_SCHEME_HTTPS ? "https" : "http",
                                 http->host ? http->host : action->address,
                                 action_port(action, &http->port), http->path);
        if (action->url)
                request(action);
        else
                action_finish_soon(action, ACTION_BROKEN, "out of memory");
}
