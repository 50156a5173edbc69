/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/label-text.h"

#include "common/file.h"
#include "common/json-text.h"
#include "common/macros.h"

#include <stdio.h>

static void print_pairs(json_t *map, FILE *out) {
        const char *key;
        json_t *value;

        json_object_foreach(map, key, value)
                fprintf(out, "%s%s=%s", ftell(out) > 0 ? "," : "", key,
                        strna(json_string_value(value)));
}

/* "<none>" for an empty text. */
static char *finish_text_or_none(FILE *out, char **text) {
        if (!memstream_finish(out, text))
                return NULL;
        if ((*text)[0])
                return *text;
        free(*text);
        return strdup("<none>");
}

char *format_pairs(json_t *map) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        print_pairs(map, out);
        return finish_text_or_none(out, &text);
}

static void print_selector_requirement(const json_t *requirement, FILE *out) {
        const char *op = strna(json_text(requirement, "operator"));
        const char *key = strna(json_text(requirement, "key"));
        size_t i;
        json_t *value;

        fputs(ftell(out) > 0 ? "," : "", out);
        if (streq(op, "Exists") || streq(op, "DoesNotExist")) {
                fprintf(out, "%s%s", streq(op, "Exists") ? "" : "!", key);
                return;
        }
        fprintf(out, "%s %s (", key, streq(op, "In") ? "in" : "notin");
        json_array_foreach(json_object_get(requirement, "values"), i, value)
                fprintf(out, "%s%s", i > 0 ? "," : "", strna(json_string_value(value)));
        fputc(')', out);
}

char *format_label_selector(const json_t *selector) {
        char *text = NULL;
        size_t length, i;
        json_t *requirement;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        print_pairs(json_object_get(selector, "matchLabels"), out);
        json_array_foreach(json_object_get(selector, "matchExpressions"), i, requirement)
                print_selector_requirement(requirement, out);
        return finish_text_or_none(out, &text);
}
