/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/source-report.h"

#include "agent/cli/output.h"
#include "agent/cli/words.h"
#include "agent/model/pod-summary.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>

#define REPORT_BYTES_MAX (64 * MIB)

typedef struct Reports {
        json_t *pods, *logs;
} Reports;

static void reports_done(Reports *reports) {
        json_decref(reports->pods);
        json_decref(reports->logs);
}

/* A pod that is gone has no status. */
static void add_report_line(Reports *reports, const char *node, json_t *line) {
        const char *kind = strna(json_text(line, "kind"));
        json_t *to = streq(kind, "Pod") && json_object_get(line, "status") ? reports->pods
                     : streq(kind, "ContainerLog")                         ? reports->logs
                                                                           : NULL;

        if (!to)
                return;
        (void) json_object_set_new(line, "node", json_string(strna(node)));
        (void) json_array_append(to, line);
}

static int read_report(Reports *reports, const char *path, Error *reterr) {
        cleanup_free char *text = NULL, *node = NULL;
        size_t length, number = 0;
        char *rest, *next;
        int r = read_file_at(AT_FDCWD, path, REPORT_BYTES_MAX, &text, &length);

        if (r < 0)
                return error_setf(reterr, -r, "%s: %s", path, strerror(-r));
        rest = text;
        while ((next = strsep(&rest, "\n"))) {
                cleanup_json json_t *line = NULL;

                number++;
                if (!*next)
                        continue;
                r = json_parse_text(next, strlen(next), 0, &line, NULL);
                if (r == -ENOMEM)
                        return r;
                if (r < 0 || !json_is_object(line))
                        return error_setf(reterr, EBADMSG, "%s:%zu: is not an object in JSON", path,
                                          number);
                if (streq_ptr(json_text(line, "kind"), "Report")) {
                        r = json_copy_text(json_object_get(line, "metadata"), "name", &node);
                        if (r < 0)
                                return r;
                }
                add_report_line(reports, node, line);
        }
        return 0;
}

static void write_report_row(const json_t *pod, FILE *out, void *userdata) {
        PodSummary row;

        pod_summarize(pod, now_realtime_usec(), &row);
        write_quoted(strna(json_text(pod, "node")), out);
        fputc('\t', out);
        write_quoted(row.namespace, out);
        fputc('\t', out);
        write_quoted(row.name, out);
        fprintf(out, "\t%s\t", row.ready);
        write_quoted(row.status, out);
        fprintf(out, "\t%s\n", row.restarts);
}

static void print_report_log(const json_t *log) {
        json_t *line;
        size_t i;

        putchar('\n');
        write_quoted(strna(json_text(log, "node")), stdout);
        fputs(": ", stdout);
        write_quoted(strna(json_text(log, "metadata", "namespace")), stdout);
        putchar('/');
        write_quoted(strna(json_text(log, "metadata", "name")), stdout);
        fputs(", container ", stdout);
        write_quoted(strna(json_text(log, "container")), stdout);
        fputs(":\n", stdout);
        json_array_foreach(json_object_get(log, "lines"), i, line) {
                write_quoted(strna(json_string_value(line)), stdout);
                putchar('\n');
        }
}

int show_reports(const Options *options) {
        cleanup_with(reports_done) Reports reports = { json_array(), json_array() };
        cleanup_error Error error = ERROR_NULL;
        Columns columns = COLUMNS_TABLE;
        json_t *log;
        size_t i;
        int r = 0;

        if (options->n_words < 2)
                return fail_usage("report needs files that nodes have written");
        for (size_t n = 1; n < options->n_words && r >= 0; n++)
                r = read_report(&reports, options->words[n], &error);
        if (r >= 0)
                r = print_rows(&columns, "NODE\tNAMESPACE\tNAME\tREADY\tSTATUS\tRESTARTS\n",
                               reports.pods, write_report_row, NULL);
        if (r < 0)
                return fail_with_error(r, &error);
        json_array_foreach(reports.logs, i, log)
                print_report_log(log);
        return STATUS_OK;
}
