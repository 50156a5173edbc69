/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/report-sender.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/process/parent-check.h"
#include "agent/image-helper/source/report-file.h"
#include "agent/image-helper/source/source-fetcher.h"
#include "agent/model/source-index.h"
#include "common/curl-library.h"

#include <unistd.h>

enum {
        ANSWER_BYTES_MAX = 1024 * 1024,
        REPORT_TIMEOUT_SEC = 120
};

static int ignore_answer(const void *data, size_t length, uint64_t position, void *userdata) {
        return 0;
}

static int judge_report_answer(const TransportResponse *response, Error *reterr) {
        if (response->status >= 200 && response->status < 300)
                return 0;
        if (response->status >= 300 && response->status < 400)
                return error_setf(reterr, EREMOTEIO,
                                  "the server answered with status %ld; a report is not redirected",
                                  response->status);
        return error_setf(reterr, EREMOTEIO, "the server answered with status %ld",
                          response->status);
}

static int post_report(HttpTransport *http, const SourceSettings *settings,
                       const Endpoint *endpoint, Error *reterr) {
        cleanup_with(transport_response_done) TransportResponse response = { 0 };
        TransportFault fault;
        int r = http_transport_perform(
                http,
                &(TransportRequest){ .url = settings->url,
                                     .endpoint = endpoint,
                                     .headers = (const char *const *) settings->headers,
                                     .form = strna(settings->body),
                                     .timeout_sec = REPORT_TIMEOUT_SEC,
                                     .body_max = ANSWER_BYTES_MAX,
                                     .on_data = ignore_answer },
                &response, &fault, reterr);

        return r < 0 ? r : judge_report_answer(&response, reterr);
}

static int send_report(const SourceSettings *settings, Error *reterr) {
        cleanup_with(http_transport_freep) HttpTransport *http = NULL;
        cleanup_close int authorities = -EBADF;
        Endpoint endpoint = { .certificate_fd = -EBADF, .key_fd = -EBADF };
        const Endpoints proxies = { .proxy_http = settings->proxy_http,
                                    .proxy_https = settings->proxy_https,
                                    .proxy_none_for = settings->proxy_none_for,
                                    .stall_seconds = settings->stall_seconds };
        int r = copy_authorities(settings->authority_file, &authorities, reterr);

        if (r < 0)
                return r;
        if (!curl_library(reterr)) /* must be loaded before the process is confined */
                return -ELIBACC;
        endpoint.authorities_fd = authorities;
        parent_check_set_parent(getppid());
        r = confine_fetcher(reterr);
        if (r < 0)
                return r;
        r = http_transport_new(&proxies, &http);
        return r < 0 ? r : post_report(http, settings, &endpoint, reterr);
}

int deliver_report(const SourceSettings *settings, Error *reterr) {
        return source_stick_path(settings->url) ? write_report_file(settings, reterr)
                                                : send_report(settings, reterr);
}
