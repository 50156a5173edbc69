/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

/* /manifests: what the files of the manifest directory gave, and which archives cannot be used. */

struct ServeReport {
        json_t *root;
        json_t *items;
        json_t *archives;
};

static json_t *string_or_null(const char *text) {
        return text ? json_string(text) : json_null();
}

static json_t *strings(char *const *strv) {
        json_t *array = json_array();

        for (; strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

void serve_report_directory(ServeReport *report, const char *directory, const char *trouble) {
        (void) json_object_set_new(report->root, "directory", string_or_null(directory));
        (void) json_object_set_new(report->root, "trouble", string_or_null(trouble));
}

void serve_report_manifest(ServeReport *report, const ServeManifest *manifest) {
        json_t *item = json_object();
        char since[RFC3339_SIZE];

        (void) json_object_set_new(item, "file", json_string(manifest->file));
        (void) json_object_set_new(item, "pods", strings(manifest->pods));
        (void) json_object_set_new(item, "daemonsets", strings(manifest->daemonsets));
        (void) json_object_set_new(item, "error", string_or_null(manifest->error));
        if (manifest->error)
                (void) json_object_set_new(
                        item, "errorSince",
                        json_string(format_rfc3339(since, manifest->error_since)));
        (void) json_object_set_new(item, "warnings", strings(manifest->warnings));
        (void) json_array_append_new(report->items, item);
}

void serve_report_archive(ServeReport *report, const char *archive, const char *message) {
        (void) json_array_append_new(
                report->archives, json_pack("{s:s, s:s}", "archive", archive, "message", message));
}

enum MHD_Result serve_manifests(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_free char *text = NULL;
        ServeReport report = { .root = json_object(),
                               .items = json_array(),
                               .archives = json_array() };

        serve_report_directory(&report, NULL, NULL);
        serve->handlers->report(serve->userdata, &report);
        (void) json_object_set_new(report.root, "items", report.items);
        (void) json_object_set_new(report.root, "archives", report.archives);
        text = json_dumps(report.root, JSON_COMPACT);
        json_decref(report.root);
        return text ? serve_answer(http, MHD_HTTP_OK, "application/json", text) : MHD_NO;
}
