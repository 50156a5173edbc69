/* SPDX-License-Identifier: Apache-2.0 */
/* The httpGet handler. It follows redirects as the kubelet does: at most ten, and none to another
 * host. */

#include "agent/pods/probe/handler-run-private.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <ctype.h>

static void send_handler_request(HandlerRun *run);

const char *http_timeout_message(const HandlerRun *run) {
        static char sentence[512];

        (void) snprintf(sentence, sizeof(sentence),
                        "Get \"%.300s\": context deadline exceeded (Client.Timeout exceeded while "
                        "awaiting headers)",
                        strna(run->url));
        return sentence;
}

static bool is_redirect_status(long status) {
        return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* As in the kubelet, a hook with scheme HTTPS falls back to HTTP, without its Authorization header,
 * if the server does not support TLS. The error texts are those of GnuTLS and of OpenSSL. */
static bool should_retry_without_tls(const HandlerRun *run, const char *error) {
        return run->spec.is_hook && !run->is_downgraded && strncmp(run->url, "https://", 8) == 0 &&
               (strstr(error, "unexpected TLS packet") || strstr(error, "wrong version number"));
}

static void retry_without_tls(HandlerRun *run) {
        char *url = text_format("http://%s", run->url + strlen("https://"));

        free(run->url);
        run->url = url;
        run->is_downgraded = true;
        if (url)
                send_handler_request(run);
        else
                handler_run_finish(run, HANDLER_ERROR, "out of memory");
}

static void follow_handler_redirect(HandlerRun *run, const char *location) {
        char *url = strdup(location);

        free(run->url);
        run->url = url;
        if (!url)
                handler_run_finish(run, HANDLER_ERROR, "out of memory");
        else if (++run->n_redirects > HANDLER_REDIRECTS_MAX)
                handler_run_finish(run, HANDLER_FAILED, "Get \"%s\": stopped after %d redirects",
                                   url, HANDLER_REDIRECTS_MAX);
        else
                send_handler_request(run);
}

static void judge_http_response(HandlerRun *run, const HttpClientResponse *response) {
        if (is_redirect_status(response->status) && response->location &&
            http_client_same_host(run->url, response->location))
                follow_handler_redirect(run, response->location);
        else if (!run->spec.is_hook && is_redirect_status(response->status) && response->location)
                handler_run_finish(run, HANDLER_WARNING,
                                   "Probe terminated redirects, Response body: %.*s",
                                   HANDLER_OUTPUT_MAX, (const char *) response->body);
        else if (run->spec.is_hook || (response->status >= 200 && response->status < 400))
                handler_run_finish(run, HANDLER_SUCCEEDED, "%.*s", HANDLER_OUTPUT_MAX,
                                   (const char *) response->body);
        else
                handler_run_finish(run, HANDLER_FAILED, "HTTP probe failed with statuscode: %ld",
                                   response->status);
}

static void on_handler_response(const HttpClientResponse *response, const char *error,
                                void *userdata) {
        HandlerRun *run = userdata;

        run->request = NULL;
        if (response)
                judge_http_response(run, response);
        else if (should_retry_without_tls(run, error))
                retry_without_tls(run);
        else
                handler_run_finish(run, HANDLER_FAILED, "Get \"%s\": %s", run->url, error);
}

/* The value of the first header with this name; NULL: none. */
static const char *first_handler_header(const HttpGetAction *http, const char *name) {
        for (size_t i = 0; i < http->http_headers.n; i++)
                if (strcasecmp(http->http_headers.items[i].name, name) == 0)
                        return strna(http->http_headers.items[i].value);
        return NULL;
}

/* Go's HTTP client sends no request with such a value; libcurl would send the rest of the value
 * verbatim, as another header, a body, or another request. */
static const HttpHeader *find_invalid_header(const HttpGetAction *http) {
        for (size_t i = 0; i < http->http_headers.n; i++)
                for (const char *p = strna(http->http_headers.items[i].value); *p; p++)
                        if (((unsigned char) *p < ' ' && *p != '\t') || *p == 0x7f)
                                return &http->http_headers.items[i];
        return NULL;
}

/* Names are sent as the kubelet sends them: x-forwarded-for as X-Forwarded-For. */
static void canonicalize_header_name(char *name) {
        bool is_first = true;

        for (; *name; name++) {
                *name = (char) (is_first ? toupper((unsigned char) *name)
                                         : tolower((unsigned char) *name));
                is_first = *name == '-';
        }
}

static int append_handler_header(char ***headers, const HttpHeader *header) {
        cleanup_free char *name = strdup(header->name);

        if (!name)
                return -ENOMEM;
        canonicalize_header_name(name);
        if (!header->value || !header->value[0])
                return strv_appendf(headers, "%s;", name);
        return strv_appendf(headers, "%s: %s", name, header->value);
}

/* Go's HTTP client, which the kubelet uses, sends only the first Host and the first User-Agent, and
 * never sends headers that describe a body if the request has none. An empty Accept removes all
 * Accept headers. */
static bool is_handler_header_sent(const HandlerRun *run, const HttpHeader *header) {
        static const char *const others[] = { "Host", "User-Agent", "Content-Length",
                                              "Transfer-Encoding", "Trailer" };

        for (size_t i = 0; i < N_ELEMENTS(others); i++)
                if (strcasecmp(header->name, others[i]) == 0)
                        return false;
        if (strcasecmp(header->name, "Authorization") == 0)
                return !run->is_downgraded;
        if (strcasecmp(header->name, "Accept") == 0)
                return first_handler_header(run->spec.handler->http_get, "Accept")[0] != '\0';
        return true;
}

/* "name: value"; an empty value removes the header that libcurl would send. */
static int append_first_header(char ***headers, const HttpGetAction *http, const char *name,
                               const char *fallback) {
        const char *value = first_handler_header(http, name);

        if (!value)
                value = fallback;
        return strv_appendf(headers, value[0] ? "%s: %s" : "%s:", name, value);
}

static int build_handler_headers(const HandlerRun *run, char ***ret) {
        const HttpGetAction *http = run->spec.handler->http_get;
        const char *host = first_handler_header(http, "Host");
        int r = 0;

        if (host && host[0])
                r = strv_appendf(ret, "Host: %s", host);
        if (r >= 0)
                r = append_first_header(ret, http, "User-Agent",
                                        run->spec.is_hook ? HOOK_USER_AGENT : HANDLER_USER_AGENT);
        for (size_t i = 0; i < http->http_headers.n && r >= 0; i++)
                if (is_handler_header_sent(run, &http->http_headers.items[i]))
                        r = append_handler_header(ret, &http->http_headers.items[i]);
        if (r >= 0 && strna(first_handler_header(http, "Accept"))[0] == '\0')
                r = append_first_header(ret, http, "Accept", "*/*");
        if (r >= 0 && !first_handler_header(http, "Connection"))
                r = strv_append(ret, "Connection: close");
        return r;
}

static void send_handler_request(HandlerRun *run) {
        cleanup_strv char **headers = NULL;
        cleanup_error Error error = ERROR_NULL;
        HttpClient *http = handler_run_http_client(run);
        int r;

        if (!http)
                return;
        r = build_handler_headers(run, &headers);
        if (r >= 0)
                r = http_client_start(http,
                                      &(HttpClientSpec){ .url = run->url,
                                                         .headers = (const char *const *) headers,
                                                         .response_max = HANDLER_OUTPUT_MAX },
                                      on_handler_response, run, &run->request, &error);
        if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "%s", error_message(&error, r));
}

void handler_begin_http(HandlerRun *run) {
        const HttpGetAction *http = run->spec.handler->http_get;
        const HttpHeader *invalid = find_invalid_header(http);
        int64_t port = handler_run_find_port(run, &http->port);

        if (port == 0)
                return;
        if (http->scheme == URI_SCHEME_OTHER) {
                handler_run_finish_deferred(run, HANDLER_FAILED,
                                            "unsupported protocol scheme: this version of Mainstay "
                                            "knows HTTP and HTTPS");
                return;
        }
        run->url = format_handler_url(http->scheme == URI_SCHEME_HTTPS ? "https" : "http",
                                      http->host ? http->host : run->address, port, http->path);
        if (!run->url)
                handler_run_finish_deferred(run, HANDLER_ERROR, "out of memory");
        else if (invalid)
                handler_run_finish_deferred(
                        run, HANDLER_FAILED,
                        "Get \"%s\": net/http: invalid header field value for \"%s\"", run->url,
                        invalid->name);
        else
                send_handler_request(run);
}
