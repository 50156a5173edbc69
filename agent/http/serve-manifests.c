/* SPDX-License-Identifier: Apache-2.0 */

/* /manifests: the pods, DaemonSets, errors and warnings of each file of the manifest directory, and
 * the image archives that cannot be used. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <jansson.h>

struct HttpManifestReport {
        json_t *root;
        json_t *items;
        json_t *archives;
};

static json_t *json_string_or_null(const char *text) {
        return text ? json_string(text) : json_null();
}

static json_t *strv_to_json_array(char *const *strv) {
        json_t *array = json_array();

        for (; strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

void http_report_manifest_directory(HttpManifestReport *report, const char *directory,
                                    const char *error, const char *warning) {
        (void) json_object_set_new(report->root, "directory", json_string_or_null(directory));
        (void) json_object_set_new(report->root, "error", json_string_or_null(error));
        (void) json_object_set_new(report->root, "warning", json_string_or_null(warning));
}

void http_report_manifest(HttpManifestReport *report, const HttpManifestStatus *manifest) {
        json_t *item = json_object();
        char since[RFC3339_SIZE];

        (void) json_object_set_new(item, "file", json_string(manifest->file));
        (void) json_object_set_new(item, "pods", strv_to_json_array(manifest->pods));
        (void) json_object_set_new(item, "daemonsets", strv_to_json_array(manifest->daemonsets));
        (void) json_object_set_new(item, "error", json_string_or_null(manifest->error));
        if (manifest->error)
                (void) json_object_set_new(
                        item, "errorSince",
                        json_string(format_rfc3339(since, manifest->error_since)));
        (void) json_object_set_new(item, "warnings", strv_to_json_array(manifest->warnings));
        (void) json_array_append_new(report->items, item);
}

void http_report_archive_error(HttpManifestReport *report, const char *archive,
                               const char *message) {
        (void) json_array_append_new(
                report->archives, json_pack("{s:s, s:s}", "archive", archive, "message", message));
}

enum MHD_Result http_handle_get_manifests(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        cleanup_free char *text = NULL;
        HttpManifestReport report = { .root = json_object(),
                                      .items = json_array(),
                                      .archives = json_array() };

        http_report_manifest_directory(&report, NULL, NULL, NULL);
        http_handlers_of(server)->report(http_userdata_of(server), &report);
        (void) json_object_set_new(report.root, "items", report.items);
        (void) json_object_set_new(report.root, "archives", report.archives);
        text = json_to_text(report.root, JSON_COMPACT);
        json_decref(report.root);
        return text ? http_reply_text(http, MHD_HTTP_OK, "application/json", text) : MHD_NO;
}
