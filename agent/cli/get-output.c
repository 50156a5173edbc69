/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/get-output.h"

#include "agent/cli/words.h"
#include "agent/model/label-text.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"

#include <ctype.h>

void get_output_done(GetOutput *output) {
        json_decref(output->listed);
}

/* ---- tables ---- */

static bool has_namespace_column(const GetOutput *output) {
        return output->request->options->all_namespaces && !output->kind->is_cluster_wide;
}

static bool shows_column(const GetOutput *output, const TableColumn *column) {
        return column->priority == 0 || output->request->format == FORMAT_WIDE;
}

static bool has_extra_column(const GetOutput *output) {
        return output->kind->extra_heading && output->request->format == FORMAT_WIDE;
}

static void write_heading(const char *name, const char **separator, FILE *out) {
        fputs(*separator, out);
        for (; *name; name++)
                fputc(toupper((unsigned char) *name), out);
        *separator = "\t";
}

static void write_headings(const GetOutput *output, FILE *out) {
        const char *separator = "";

        if (has_namespace_column(output))
                write_heading("namespace", &separator, out);
        for (const TableColumn *column = output->kind->table->columns; column->name; column++)
                if (shows_column(output, column))
                        write_heading(column->name, &separator, out);
        if (has_extra_column(output))
                write_heading(output->kind->extra_heading, &separator, out);
        if (output->request->options->show_labels)
                write_heading("labels", &separator, out);
        fputc('\n', out);
}

static void write_cell(const json_t *cell, FILE *out) {
        if (json_is_integer(cell))
                fprintf(out, "%lld", (long long) json_integer_value(cell));
        else if (json_is_boolean(cell))
                fputs(json_is_true(cell) ? "true" : "false", out);
        else
                write_quoted(strna(json_string_value(cell)), out);
}

static void write_row(const json_t *object, FILE *out, void *userdata) {
        const GetOutput *output = userdata;
        cleanup_json json_t *cells = json_array();
        cleanup_free char *labels = NULL;
        const char *separator = "", *extra;
        size_t i = 0;

        output->kind->table->write_cells(object, now_realtime_usec(), cells);
        if (output->kind->replace_cells)
                output->kind->replace_cells(object, cells);
        if (has_namespace_column(output)) {
                fputs(strna(json_text(object, "metadata", "namespace")), out);
                separator = "\t";
        }
        for (const TableColumn *column = output->kind->table->columns; column->name;
             column++, i++) {
                if (!shows_column(output, column))
                        continue;
                fputs(separator, out);
                write_cell(json_array_get(cells, i), out);
                separator = "\t";
        }
        if (has_extra_column(output)) {
                extra = output->kind->extra_cell(object);
                fputs("\t", out);
                write_quoted(extra ? extra : "<none>", out);
        }
        if (output->request->options->show_labels) {
                labels = format_pairs(json_at(object, "metadata", "labels"));
                fprintf(out, "\t%s", strna(labels));
        }
        fputc('\n', out);
}

static int print_table(GetOutput *output, const json_t *objects) {
        cleanup_free char *headings = NULL;
        size_t length;
        FILE *out = open_memstream(&headings, &length);

        if (!out)
                return -ENOMEM;
        if (!output->has_headings && !output->request->options->no_headers)
                write_headings(output, out);
        output->has_headings = true;
        if (!memstream_finish(out, &headings))
                return -ENOMEM;
        return print_rows(&output->columns, headings, objects, write_row, output);
}

/* ---- all formats ---- */

int get_output_list(GetOutput *output, json_t *objects) {
        const GetRequest *request = output->request;

        json_decref(output->listed);
        output->listed = json_incref(objects);
        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, objects);
        case FORMAT_NAME:
                return print_object_names(output->kind->word, objects);
        default:
                return json_array_size(objects) > 0 ? print_table(output, objects) : 0;
        }
}

/* A watch starts with all objects. */
static bool was_listed(const GetOutput *output, const json_t *object) {
        size_t i;
        json_t *listed;

        json_array_foreach(output->listed, i, listed)
                if (json_equal(listed, object))
                        return true;
        return false;
}

int get_output_event(GetOutput *output, const char *type, json_t *object) {
        const GetRequest *request = output->request;
        cleanup_json json_t *one = NULL;

        if (streq(type, "ADDED") && was_listed(output, object))
                return 0;
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                return print_object(request->format, /* is_in_stream= */ true, object);
        one = json_pack("[O]", object);
        if (!one)
                return -ENOMEM;
        return request->format == FORMAT_NAME ? print_object_names(output->kind->word, one)
                                              : print_table(output, one);
}
