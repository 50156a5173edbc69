/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces common/http-client.c. */

#include "common/http-client.h"

#include "tests/unit/pods/worker/fakes.h"

FakeHttpAnswer fake_http = { .status = 200 };

struct HttpClient {
        sd_event *event;
};

struct HttpClientRequest {
        sd_event_source *end;
        http_client_done_t done;
        void *userdata;
};

int http_client_new(sd_event *event, HttpClient **ret, Error *reterr) {
        *ret = calloc(1, sizeof(**ret));
        REQUIRE(*ret);
        (*ret)->event = event;
        return 0;
}

HttpClient *http_client_free(HttpClient *http) {
        free(http);
        return NULL;
}

static int on_fake_response(sd_event_source *source, void *userdata) {
        HttpClientRequest *request = userdata;
        const FakeHttpAnswer *answer = &fake_http;
        const HttpClientResponse response = {
                .status = answer->status,
                .body = strna(answer->body),
                .body_length =
                        answer->body_length > 0 ? answer->body_length : strlen(strna(answer->body)),
                .location = answer->location,
                .grpc_status = answer->grpc_status,
                .grpc_message = answer->grpc_message,
        };
        http_client_done_t done = request->done;
        void *done_userdata = request->userdata;

        http_client_cancel(request);
        done(answer->error ? NULL : &response, answer->error, done_userdata);
        return 0;
}

int http_client_start(HttpClient *http, const HttpClientSpec *spec, http_client_done_t done,
                      void *userdata, HttpClientRequest **ret, Error *reterr) {
        HttpClientRequest *request = calloc(1, sizeof(*request));

        REQUIRE(request);
        fake_request("GET %s", spec->url);
        for (size_t i = 0; spec->headers && spec->headers[i]; i++)
                if (strncmp(spec->headers[i], "X-", 2) == 0)
                        fake_request("  %s", spec->headers[i]);
        request->done = done;
        request->userdata = userdata;
        if (!fake_http.hangs)
                REQUIRE(sd_event_add_defer(http->event, &request->end, on_fake_response, request) >=
                        0);
        *ret = request;
        return 0;
}

HttpClientRequest *http_client_cancel(HttpClientRequest *request) {
        if (!request)
                return NULL;
        sd_event_source_disable_unref(request->end);
        free(request);
        return NULL;
}

static size_t host_of_url(const char *url, const char **ret) {
        const char *host = strstr(url, "://");

        *ret = host ? host + 3 : url;
        return strcspn(*ret, ":/");
}

bool http_client_same_host(const char *url, const char *other) {
        const char *a, *b;
        size_t length = host_of_url(url, &a);

        return host_of_url(other, &b) == length && strncmp(a, b, length) == 0;
}
