/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-settings.h"

#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#define SOURCE_SETTINGS_BYTES_MAX (16 * MIB) /* with a report as a string */

static uint64_t get_settings_number(const json_t *document, const char *key) {
        json_int_t value = json_integer_value(json_object_get(document, key));

        return value > 0 ? (uint64_t) value : 0;
}

int source_settings_parse(json_t *document, SourceSettings *ret, Error *reterr) {
        cleanup_with(source_settings_done) SourceSettings settings = { .document = document };
        int r = document_strv(settings.document, "headers", &settings.headers, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "settings on standard input");
        r = document_strv(settings.document, "keys", &settings.keys, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "settings on standard input");
        settings.fleet = json_text(settings.document, "fleet");
        settings.body = json_text(settings.document, "body");
        settings.node = json_text(settings.document, "node");
        settings.log_directory = json_text(settings.document, "logDirectory");
        settings.logs = json_object_get(settings.document, "logs");
        settings.log_lines = (unsigned) get_settings_number(settings.document, "logLines");
        settings.n_dropped = get_settings_number(settings.document, "dropped");
        settings.url = strna(json_text(settings.document, "url"));
        settings.directory = json_text(settings.document, "directory");
        settings.authority_file = json_text(settings.document, "caFile");
        settings.proxy_http = json_text(settings.document, "httpProxy");
        settings.proxy_https = json_text(settings.document, "httpsProxy");
        settings.proxy_none_for = json_text(settings.document, "noProxy");
        settings.rate_max = get_settings_number(settings.document, "rate");
        settings.file_max = get_settings_number(settings.document, "fileMax");
        settings.stall_seconds = (unsigned) get_settings_number(settings.document, "stallSeconds");
        settings.was_refused = json_is_true(json_object_get(settings.document, "refused"));
        *ret = settings;
        settings = (SourceSettings){ 0 };
        return 0;
}

int source_settings_read(int fd, SourceSettings *ret, Error *reterr) {
        cleanup_free char *text = NULL;
        json_t *document = NULL;
        size_t length;
        int r = read_stream(fd, SOURCE_SETTINGS_BYTES_MAX, &text, &length);

        if (r >= 0)
                r = document_parse(text, length, &document, reterr);
        if (text)
                explicit_bzero(text, length);
        if (r < 0)
                return error_prefixf(reterr, r, "settings on standard input");
        return source_settings_parse(document, ret, reterr);
}

void source_settings_done(SourceSettings *settings) {
        strv_foreach(header, settings->headers)
                explicit_bzero(*header, strlen(*header));
        strv_free(settings->headers);
        strv_free(settings->keys);
        json_decref(settings->document);
        *settings = (SourceSettings){ 0 };
}
