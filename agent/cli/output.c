/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/output.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/cli.h"
#include "agent/cli/words.h"
#include "agent/cli/yaml.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/utf8.h"

static const char *const format_names[N_FORMATS] = { "", "wide", "json", "yaml", "name" };

int parse_format(const char *text, Format *ret) {
        if (!text) {
                *ret = FORMAT_TABLE;
                return 0;
        }
        for (unsigned i = 1; i < N_FORMATS; i++)
                if (streq(text, format_names[i])) {
                        *ret = (Format) i;
                        return 0;
                }
        return fail_unknown("output format", text, format_names + 1, N_FORMATS - 1);
}

bool format_is_table(Format format) {
        return format == FORMAT_TABLE || format == FORMAT_WIDE;
}

/* Characters that must not reach a terminal can only be in strings, because jansson escapes C0
 * itself. */
static void write_json_text(const char *text, FILE *out) {
        for (size_t left = strlen(text); left > 0;) {
                size_t n = utf8_printable_length(text, left);

                if (n > 0 || *text == '\n') {
                        n = MAX(n, (size_t) 1);
                        fwrite(text, 1, n, out);
                } else {
                        n = MAX(utf8_character_length(text, left), (size_t) 1);
                        fprintf(out, "\\u%04x", utf8_decode(text, n));
                }
                text += n;
                left -= n;
        }
}

static int print_json(const json_t *object) {
        cleanup_free char *text = json_to_text(object, JSON_INDENT(4) | JSON_SORT_KEYS);

        if (!text)
                return -ENOMEM;
        write_json_text(text, stdout);
        putchar('\n');
        fflush(stdout);
        return 0;
}

int print_object(Format format, bool is_in_stream, json_t *object) {
        int r;

        if (format == FORMAT_JSON)
                return print_json(object);
        if (is_in_stream)
                printf("---\n");
        r = yaml_write(object, stdout);
        fflush(stdout);
        return r;
}

int print_list(Format format, bool is_by_name, json_t *objects) {
        cleanup_json json_t *list = NULL;

        if (is_by_name && json_array_size(objects) == 1)
                return print_object(format, false, json_array_get(objects, 0));
        list = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                         "resourceVersion", "", "items", objects);
        return list ? print_object(format, false, list) : -ENOMEM;
}

int print_object_names(const char *kind, const json_t *objects) {
        size_t i;
        json_t *object;

        json_array_foreach(objects, i, object)
                printf("%s/%s\n", kind, strna(json_text(object, "metadata", "name")));
        fflush(stdout);
        return 0;
}

int print_rows(Columns *columns, const char *headings, const json_t *objects, write_row_t write_row,
               void *userdata) {
        cleanup_free char *text = NULL;
        size_t length, i;
        json_t *object;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        fputs(strna(headings), out);
        json_array_foreach(objects, i, object)
                write_row(object, out, userdata);
        if (fclose(out) != 0)
                return -ENOMEM;
        r = columns_write(columns, text, stdout);
        fflush(stdout);
        return r;
}

void report_nothing_found(const char *namespace) {
        if (namespace)
                fprintf(stderr, "No resources found in %s namespace.\n", namespace);
        else
                fprintf(stderr, "No resources found\n");
}
