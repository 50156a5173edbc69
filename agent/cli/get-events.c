/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get events`. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/watch.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <ctype.h>

/* get events: a table with the latest last, or the objects. */

typedef struct GetEvents {
        const GetRequest *request;
        Columns columns;
        bool has_headings; /* already printed */
} GetEvents;

static bool is_requested_event(const GetRequest *request, const json_t *event) {
        return (!request->namespace ||
                streq_ptr(json_text(event, "metadata", "namespace"), request->namespace)) &&
               object_is_named(event, request->names, request->n_names);
}

/* "daemonset", kubectl's prefix of the object's name. */
static const char *kind_in_lower_case(char buffer[32], const char *kind) {
        size_t n = 0;

        for (; n < 31 && kind[n]; n++)
                buffer[n] = (char) tolower((unsigned char) kind[n]);
        buffer[n] = '\0';
        return buffer;
}

static void write_event_row(const json_t *event, FILE *out, void *userdata) {
        const GetEvents *get = userdata;
        char age[DURATION_SIZE], kind[32];

        if (get->request->options->all_namespaces)
                fprintf(out, "%s\t", strna(json_text(event, "metadata", "namespace")));
        fprintf(out, "%s\t%s\t%s\t%s/%s\t",
                format_age(age, json_text(event, "lastTimestamp"), now_realtime_usec()),
                strna(json_text(event, "type")), strna(json_text(event, "reason")),
                kind_in_lower_case(kind, strna(json_text(event, "involvedObject", "kind"))),
                strna(json_text(event, "involvedObject", "name")));
        write_quoted(strna(json_text(event, "message")), out);
        fputc('\n', out);
}

static int print_events_table(GetEvents *get, const json_t *events) {
        bool has_headings = get->has_headings || get->request->options->no_headers;
        bool has_namespace = get->request->options->all_namespaces;

        get->has_headings = true;
        return print_rows(&get->columns,
                          has_headings    ? NULL
                          : has_namespace ? "NAMESPACE\tLAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE\n"
                                          : "LAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE\n",
                          events, write_event_row, get);
}

static int print_events_in_format(GetEvents *get, json_t *events) {
        const GetRequest *request = get->request;

        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, events);
        case FORMAT_NAME:
                return print_object_names("event", events);
        default:
                return json_array_size(events) > 0 ? print_events_table(get, events) : 0;
        }
}

static int on_listed_event(const char *type, json_t *event, void *userdata) {
        GetEvents *get = userdata;
        const GetRequest *request = get->request;
        cleanup_json json_t *one = NULL;

        if (!is_requested_event(request, event))
                return 0;
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                return print_object(request->format, /* is_in_stream= */ true, event);
        one = json_pack("[O]", event);
        return one ? print_events_in_format(get, one) : -ENOMEM;
}

static int fetch_events(const GetRequest *request, json_t **ret, Error *reterr) {
        cleanup_json json_t *list = NULL, *wanted = json_array();
        size_t i;
        json_t *event;
        int r = client_get_json(request->options->socket, "/events", &list, reterr);

        if (r < 0)
                return r;
        json_array_foreach(json_object_get(list, "items"), i, event)
                if (is_requested_event(request, event))
                        (void) json_array_append(wanted, event);
        *ret = json_incref(wanted);
        return 0;
}

static int check_event_names(const GetRequest *request, const json_t *events, Error *reterr) {
        const char *missing = find_missing_object_name(events, request->names, request->n_names);

        return missing ? error_setf(reterr, ENOENT, "events \"%s\" not found", missing) : 0;
}

int get_events(const GetRequest *request) {
        GetEvents get = { .request = request, .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *events = NULL;
        int r;

        if (request->options->watch)
                return fail_with_error(watch_objects(request->options->socket, "/events?watch=1",
                                                     on_listed_event, &get, &error),
                                       &error);
        r = fetch_events(request, &events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_events_in_format(&get, events);
        if (r < 0)
                return fail_with_error(r, &error);
        r = check_event_names(request, events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(events) == 0 && format_is_table(request->format))
                report_nothing_found(request->namespace);
        return STATUS_OK;
}
