/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/fetch-settings.h"

#include "agent/model/json-memfd.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* The header lines of a request, one for each value. */
static json_t *list_header_lines(const StaticPodUrlHeader *headers, size_t n) {
        json_t *lines = json_array();

        for (size_t i = 0; lines && i < n; i++) {
                const StaticPodUrlHeader *header = &headers[i];

                for (char *const *value = header->values; value && *value; value++)
                        (void) json_array_append_new(
                                lines, (*value)[0] ? json_sprintf("%s: %s", header->name, *value)
                                                   : json_sprintf("%s;", header->name));
        }
        return lines;
}

/* Members that both settings have; values of other members are copied. */
static int write_common_settings(const Config *config, size_t file_max, bool was_refused,
                                 json_t *json) {
        const MainstayConfig *own = &config->mainstay;
        cleanup_json json_t *settings = json;
        cleanup_json json_t *common =
                json_pack("{s:I, s:b, s:s*, s:s*, s:s*}", "fileMax", (json_int_t) file_max,
                          "refused", was_refused, "httpProxy", own->http_proxy, "httpsProxy",
                          own->https_proxy, "noProxy", own->no_proxy);

        if (!settings || !common || json_object_update(settings, common) < 0)
                return -ENOMEM;
        return json_memfd_open(settings, "source");
}

int fetch_settings_of_url(const Config *config, size_t file_max, bool was_refused) {
        return write_common_settings(
                config, file_max, was_refused,
                json_pack("{s:s, s:o}", "url", config->static_pod_url, "headers",
                          list_header_lines(config->static_pod_url_header.items,
                                            config->static_pod_url_header.n)));
}

static json_t *list_strings(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

int fetch_settings_of_index(const Config *config, size_t file_max, bool was_refused) {
        const SourceConfig *source = config->mainstay.source;

        return write_common_settings(config, file_max, was_refused,
                                     json_pack("{s:s, s:o, s:s, s:s*, s:I}", "url", source->url,
                                               "keys", list_strings(source->keys), "fleet",
                                               source->fleet, "caFile", source->ca_file, "rate",
                                               (json_int_t) source->rate_bytes));
}

int fetch_settings_of_report(const Config *config, const ReportContent *content) {
        const ReportConfig *report = config->mainstay.report;
        json_t *headers = list_header_lines(report->headers.items, report->headers.n);
        json_t *logs = content->logs ? json_loads(content->logs, 0, NULL) : NULL;

        (void) json_array_append_new(headers, json_string("Content-Type: application/x-ndjson"));
        (void) json_array_append_new(headers,
                                     json_sprintf("Mainstay-Node: %s", content->node_name));
        (void) json_array_append_new(
                headers,
                json_sprintf("Mainstay-Dropped: %llu", (unsigned long long) content->n_dropped));
        return write_common_settings(
                config, 0, false,
                json_pack("{s:s, s:o, s:s*, s:s, s:s, s:I, s:s*, s:o*, s:i}", "url", report->url,
                          "headers", headers, "caFile", report->ca_file, "body", content->body,
                          "node", content->node_name, "dropped", (json_int_t) content->n_dropped,
                          "logDirectory", content->log_directory, "logs", logs, "logLines",
                          (int) report->log_lines.value));
}
