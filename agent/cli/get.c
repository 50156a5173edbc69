/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/pods.h"

#include "agent/cli/client.h"
#include "agent/cli/columns.h"
#include "agent/cli/summary.h"
#include "agent/cli/yaml.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* get pods: a table, or the objects themselves; once, or going on with what changes. */

enum {
        EVENT_MAX = 16 * 1024 * 1024 /* one event of a watch */
};

typedef enum Format {
        FORMAT_TABLE,
        FORMAT_WIDE,
        FORMAT_JSON,
        FORMAT_YAML,
        FORMAT_NAME,
        N_FORMATS,
} Format;

static const char *const format_names[N_FORMATS] = { "", "wide", "json", "yaml", "name" };

/* The part of a watch's answer that is no whole line yet. */
typedef struct LineBuffer {
        char *data;
        size_t length;
        size_t room;
} LineBuffer;

typedef struct Get {
        const Options *options;
        PodFilter filter;
        Format format;
        Columns columns;
        bool has_headings; /* printed already */
        json_t *listed;    /* what a watch need not tell again; NULL: nothing was told */
        LineBuffer events;
} Get;

static int parse_format(const char *text, Format *ret) {
        for (unsigned i = 1; i < N_FORMATS; i++) {
                if (streq(text, format_names[i])) {
                        *ret = (Format) i;
                        return 0;
                }
        }
        return fail_unknown("output format", text, format_names + 1, N_FORMATS - 1);
}

static void write_headings(const Get *get, FILE *out) {
        fprintf(out,
                "%sNAME\tREADY\tSTATUS\tRESTARTS\t"
                "AGE%s\n",
                get->options->all_namespaces ? "NAMESPACE\t" : "",
                get->format == FORMAT_WIDE ? "\tIP\tNODE\tNOMINATED NODE\tREADINESS GATES" : "");
}

static void write_row(const Get *get, const json_t *pod, FILE *out) {
        PodSummary row;

        pod_summarize(pod, now_realtime_usec(), &row);
        if (get->options->all_namespaces)
                fprintf(out, "%s\t", row.namespace);
        fprintf(out, "%s\t%s\t%s\t%s\t%s", row.name, row.ready, row.status, row.restarts, row.age);
        if (get->format == FORMAT_WIDE)
                fprintf(out, "\t%s\t%s\t%s\t%s", row.ip, row.node, row.nominated_node,
                        row.readiness_gates);
        fputc('\n', out);
}

static int print_table(Get *get, const json_t *pods) {
        cleanup_free char *text = NULL;
        size_t length, i;
        json_t *pod;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        if (!get->has_headings && !get->options->no_headers)
                write_headings(get, out);
        get->has_headings = true;
        json_array_foreach(pods, i, pod)
                write_row(get, pod, out);
        if (fclose(out) != 0)
                return -ENOMEM;
        r = columns_write(&get->columns, text, stdout);
        fflush(stdout);
        return r;
}

static int print_json(const json_t *object) {
        if (json_dumpf(object, stdout, JSON_INDENT(4) | JSON_SORT_KEYS) < 0)
                return -EIO;
        putchar('\n');
        fflush(stdout);
        return 0;
}

static int print_object(const Get *get, json_t *object) {
        int r;

        if (get->format == FORMAT_JSON)
                return print_json(object);
        if (get->options->watch)
                printf("---\n");
        r = yaml_write(object, stdout);
        fflush(stdout);
        return r;
}

static int print_names(const json_t *pods) {
        size_t i;
        json_t *pod;

        json_array_foreach(pods, i, pod)
                printf("pod/%s\n", strna(json_text(pod, "metadata", "name")));
        fflush(stdout);
        return 0;
}

/* Many pods are a List, as kubectl prints them; the one that was asked for by name is itself. */
static int print_list(const Get *get, json_t *pods) {
        cleanup_json json_t *list = NULL;

        if (get->filter.n_names == 1 && json_array_size(pods) == 1)
                return print_object(get, json_array_get(pods, 0));
        list = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                         "resourceVersion", "", "items", pods);
        return list ? print_object(get, list) : -ENOMEM;
}

static int print_pods(Get *get, json_t *pods) {
        switch (get->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(get, pods);
        case FORMAT_NAME:
                return print_names(pods);
        default:
                return json_array_size(pods) > 0 ? print_table(get, pods) : 0;
        }
}

static bool is_table(const Get *get) {
        return get->format == FORMAT_TABLE || get->format == FORMAT_WIDE;
}

/* What was asked for by name and is not there; where it is elsewhere, that is said. */
static int fail_missing(const Get *get, const char *name) {
        cleanup_json json_t *elsewhere = NULL;
        char *const names[] = { strdup(name), NULL };
        PodFilter everywhere = { .names = names, .n_names = 1 };
        const char *where = NULL;

        if (!names[0])
                return STATUS_FAILED;
        if (get->filter.namespace &&
            pods_fetch(get->options->socket, &everywhere, &elsewhere, NULL) >= 0)
                where = json_text(json_array_get(elsewhere, 0), "metadata", "namespace");
        fflush(stdout);
        if (where)
                fprintf(stderr, "error: pods \"%s\" not found in namespace %s, but in %s\n", name,
                        get->filter.namespace, where);
        else
                fprintf(stderr, "error: pods \"%s\" not found\n", name);
        free(names[0]);
        return STATUS_FAILED;
}

static void say_nothing_found(const Get *get) {
        if (get->filter.namespace)
                fprintf(stderr, "No resources found in %s namespace.\n", get->filter.namespace);
        else
                fprintf(stderr, "No resources found\n");
}

static int get_once(Get *get) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        const char *missing;
        int status = STATUS_OK, r;

        r = pods_fetch(get->options->socket, &get->filter, &pods, &error);
        if (r >= 0)
                r = print_pods(get, pods);
        if (r < 0)
                return fail(r, &error);

        missing = pods_missing_name(&get->filter, pods);
        if (missing)
                status = fail_missing(get, missing);
        else if (json_array_size(pods) == 0 && is_table(get) && !get->options->watch)
                say_nothing_found(get);
        if (is_table(get))
                print_manifest_errors(get->options->socket);
        get->listed = json_incref(pods);
        return status;
}

/* The watch begins with all pods there are; those that stand in the table already are not told
 * again. */
static bool was_listed(const Get *get, const json_t *pod) {
        size_t i;
        json_t *listed;

        json_array_foreach(get->listed, i, listed)
                if (json_equal(listed, pod))
                        return true;
        return false;
}

static int print_event(Get *get, const char *type, json_t *pod) {
        cleanup_json json_t *one = NULL;

        if (streq(type, "ADDED") && was_listed(get, pod))
                return 0;
        if (get->format == FORMAT_JSON || get->format == FORMAT_YAML)
                return print_object(get, pod);
        one = json_pack("[O]", pod);
        if (!one)
                return -ENOMEM;
        return get->format == FORMAT_NAME ? print_names(one) : print_table(get, one);
}

static int handle_event(Get *get, const char *line, size_t length) {
        cleanup_json json_t *event = json_loadb(line, length, 0, NULL);
        json_t *pod = json_object_get(event, "object");

        if (!pod)
                return -EBADMSG;
        if (!pod_filter_matches(&get->filter, pod))
                return 0;
        (void) json_object_set_new(pod, "apiVersion", json_string("v1"));
        (void) json_object_set_new(pod, "kind", json_string("Pod"));
        return print_event(get, strna(json_text(event, "type")), pod);
}

static int buffer_append(LineBuffer *buffer, const char *data, size_t length) {
        if (buffer->length + length > EVENT_MAX)
                return -EFBIG;
        if (buffer->room - buffer->length < length) {
                size_t room = MAX(buffer->room * 2, buffer->length + length);
                char *larger = realloc(buffer->data, room);

                if (!larger)
                        return -ENOMEM;
                buffer->data = larger;
                buffer->room = room;
        }
        memcpy(buffer->data + buffer->length, data, length);
        buffer->length += length;
        return 0;
}

static int on_events(const char *data, size_t length, void *userdata) {
        Get *get = userdata;
        LineBuffer *buffer = &get->events;
        char *newline;
        int r;

        r = buffer_append(buffer, data, length);
        while (r >= 0 && (newline = memchr(buffer->data, '\n', buffer->length))) {
                size_t n = (size_t) (newline + 1 - buffer->data);

                r = handle_event(get, buffer->data, n);
                buffer->length -= n;
                memmove(buffer->data, buffer->data + n, buffer->length);
        }
        return r;
}

static int get_watch(Get *get) {
        cleanup_error Error error = ERROR_NULL;
        int status = is_table(get) ? get_once(get) : STATUS_OK, r;

        if (status != STATUS_OK)
                return status;
        r = client_stream(get->options->socket, "/pods?watch=1", on_events, get, &error);
        if (r >= 0)
                r = error_setf(&error, EIO, "the agent has ended");
        return fail(r, &error);
}

static void get_done(Get *get) {
        pod_filter_done(&get->filter);
        json_decref(get->listed);
        free(get->events.data);
}

int run_get(const Options *options) {
        cleanup_with(get_done) Get get = { .options = options, .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        char *const *names;
        size_t n_names;
        int status, r;

        status = parse_resource(options, "get", &names, &n_names);
        if (status == STATUS_OK && options->output)
                status = parse_format(options->output, &get.format);
        if (status != STATUS_OK)
                return status;
        r = pod_filter_init(&get.filter, options, names, n_names, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return options->watch ? get_watch(&get) : get_once(&get);
}
