/* SPDX-License-Identifier: Apache-2.0 */
/* The events at the end of `mainstay describe`. */

#include "agent/cli/describe.h"

#include "agent/cli/words.h"
#include "common/clock.h"
#include "common/json-text.h"

static bool is_event_about(const json_t *event, const json_t *object) {
        return streq_ptr(json_text(event, "involvedObject", "uid"),
                         json_text(object, "metadata", "uid"));
}

/* "4s", or "4s (x3 over 20s)". */
static void write_event_age(const json_t *event, FILE *out) {
        json_int_t count = json_integer_value(json_object_get(event, "count"));
        uint64_t now = now_realtime_usec();
        char last[DURATION_SIZE], first[DURATION_SIZE];

        fputs(format_age(last, json_text(event, "lastTimestamp"), now), out);
        if (count > 1)
                fprintf(out, " (x%lld over %s)", (long long) count,
                        format_age(first, json_text(event, "firstTimestamp"), now));
}

static void write_event(const json_t *event, FILE *out) {
        const char *field = json_text(event, "involvedObject", "fieldPath");

        fprintf(out, "  %s\t%s\t", strna(json_text(event, "type")),
                strna(json_text(event, "reason")));
        write_event_age(event, out);
        fprintf(out, "\t%s\t%s%s", strna(json_text(event, "source", "component")), strna(field),
                field ? ": " : "");
        write_quoted(strna(json_text(event, "message")), out);
        fputc('\n', out);
}

void describe_events(const json_t *object, const json_t *events, FILE *out) {
        bool is_first = true;
        size_t i;
        json_t *event;

        json_array_foreach(json_object_get(events, "items"), i, event) {
                if (!is_event_about(event, object))
                        continue;
                if (is_first)
                        fputs("Events:\n  Type\tReason\t"
                              "Age\tFrom\tMessage\n"
                              "  ----\t------\t----\t----\t-------\n",
                              out);
                is_first = false;
                write_event(event, out);
        }
        if (is_first)
                fputs("Events:\t<none>\n", out);
}
