/* SPDX-License-Identifier: Apache-2.0 */
/* The manual lists the supported fields; the list is generated from the tables of the schemas. */

#include "agent/model/config.h"
#include "agent/model/daemonset.h"
#include "agent/model/object.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "tests/pages.h"
#include "tests/test.h"

enum {
        FILE_MODE_MAX = 0777,
        SCHEMAS_MAX = 128,
        VALUE_COLUMN = 30,
        LINE_LENGTH = 64, /* without the indentation */
};

/* Adds each schema once, in the order in which fields refer to them. */
typedef struct SchemaList {
        const Schema *items[SCHEMAS_MAX];
        const Schema *owners[SCHEMAS_MAX]; /* the schema that refers to it first */
        size_t n;
} SchemaList;

static bool has_schema(const SchemaList *list, const Schema *schema) {
        for (size_t i = 0; i < list->n; i++)
                if (list->items[i] == schema)
                        return true;
        return false;
}

static bool is_refused(const Field *field) {
        return field->type == FIELD_REFUSED || field->type == FIELD_IGNORED;
}

static void add_schema(SchemaList *list, const Schema *schema, const Schema *owner) {
        if (has_schema(list, schema))
                return;
        REQUIRE(list->n < SCHEMAS_MAX);
        list->items[list->n] = schema;
        list->owners[list->n++] = owner;
        for (size_t i = 0; i < schema->n_fields; i++)
                if (schema->fields[i].schema && !is_refused(&schema->fields[i]))
                        add_schema(list, schema->fields[i].schema, schema);
}

static void print_range(FILE *out, const Field *field) {
        if (field->min == 0 && field->max == FILE_MODE_MAX)
                fputs("file mode, 0 to 0777", out);
        else if (field->min >= field->max || field->min == INT32_MIN)
                fputs("whole number", out);
        else if (field->max >= INT32_MAX)
                fprintf(out, "whole number, at least %" PRId64, field->min);
        else
                fprintf(out, "whole number, %" PRId64 " to %" PRId64, field->min, field->max);
}

static void print_names(FILE *out, const Field *field) {
        size_t n_names = field_count_names(field); /* without those only in records */

        for (size_t i = 1; i < n_names; i++)
                fprintf(out, "%s%s",
                        i == 1             ? ""
                        : i + 1 == n_names ? " or "
                                           : ", ",
                        field->names[i]);
}

static void print_refusal(FILE *out, const Field *field) {
        if (field->is_only_warned_of)
                fputs("ignored, with a warning", out);
        else if (field->accepts)
                fprintf(out, "only %s", field->accepts);
        else
                fputs("not supported", out);
        if (field->reason && !field->is_only_warned_of)
                fprintf(out, ": %s", field->reason);
        if (field->is_not_for_node && !field->is_only_warned_of)
                fputs("; from an API server: ignored", out);
}

static void print_type(FILE *out, const Field *field) {
        static const char *const words[N_FIELD_TYPES] = {
                [FIELD_STRING] = "string",
                [FIELD_BOOL] = "true or false",
                [FIELD_OPTIONAL_BOOL] = "true or false",
                [FIELD_INTS] = "list of whole numbers",
                [FIELD_INT_OR_STRING] = "whole number or percentage",
                [FIELD_QUANTITY] = "quantity",
                [FIELD_PORT] = "number or name of a port",
                [FIELD_STRINGS] = "list of strings",
                [FIELD_STRING_MAP] = "map of strings",
                [FIELD_IGNORED] = "ignored",
        };

        if (field->type == FIELD_INT)
                print_range(out, field);
        else if (field->type == FIELD_ENUM)
                print_names(out, field);
        else if (field->type == FIELD_REFUSED || field->type == FIELD_PRESENT)
                print_refusal(out, field);
        else if (field->type == FIELD_IGNORED && field->reason)
                fputs(field->reason, out);
        else if (field->schema)
                fprintf(out, "%s%s",
                        field->type == FIELD_LIST   ? "list of "
                        : field->type == FIELD_MAP  ? "map of "
                        : field->type == FIELD_REST ? "number of devices: "
                                                    : "",
                        field->schema->name);
        else
                fputs(words[field->type], out);
}

static char *describe_field(const Field *field) {
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        print_type(out, field);
        if (field->type == FIELD_PRESENT)
                fputs("; from an API server: the pod waits", out);
        else if (field->is_api_only)
                fputs(field->is_only_warned_of ? "; in a file: ignored, with a warning"
                                               : "; in a file: not supported",
                      out);
        else if (field->is_required || field->is_manifest_required)
                fputs(", required", out);
        fclose(out);
        return text;
}

/* "    key                      value", the value broken into lines. */
static void print_row(FILE *out, const char *key, const char *value) {
        int column = fprintf(out, "    %s", key) - 4;

        while (*value) {
                size_t room = LINE_LENGTH - VALUE_COLUMN, n = strlen(value);

                if (column >= VALUE_COLUMN) {
                        fputs("\n    ", out);
                        column = 0;
                }
                if (n > room)
                        for (n = room; n > 0 && value[n] != ' ';)
                                n--;
                fprintf(out, "%*s%.*s", VALUE_COLUMN - column, "", (int) n, value);
                column = VALUE_COLUMN;
                value += n + strspn(value + n, " ");
        }
        fputc('\n', out);
}

/* Two types with the same name are distinguished by the type that refers to the second one. */
static bool has_namesake_before(const SchemaList *list, size_t i) {
        for (size_t j = 0; j < i; j++)
                if (streq(list->items[j]->name, list->items[i]->name))
                        return true;
        return false;
}

static void print_schema(FILE *out, const SchemaList *list, size_t n) {
        const Schema *schema = list->items[n];
        bool is_second = list->owners[n] && has_namesake_before(list, n);

        fprintf(out, "### %s%s%s\n\n", schema->name, is_second ? " of " : "",
                is_second ? list->owners[n]->name : "");
        for (size_t i = 0; i < schema->n_fields; i++) {
                cleanup_free char *value = describe_field(&schema->fields[i]);

                print_row(out, schema->fields[i].key, value);
        }
}

static char *print_field_tables(void) {
        SchemaList list = { 0 };
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        add_schema(&list, &pod_schema, NULL);
        add_schema(&list, &daemonset_schema, NULL);
        for (ObjectKind kind = 0; kind < N_OBJECT_KINDS; kind++)
                if (!object_kind_is_api_only(kind))
                        add_schema(&list, object_schemas[kind], NULL);
        for (size_t i = 0; i < list.n; i++) {
                fputs(i > 0 ? "\n" : "", out);
                print_schema(out, &list, i);
        }
        fclose(out);
        return text;
}

TEST(the_manual_lists_the_fields_of_every_object)
{
        cleanup_free char *expected = print_field_tables();

        page_expect_section("man/mainstay-pods.7.md", "## FIELDS", expected);
}

/* ---- the configuration ---- */

static char *print_ignored_settings(void) {
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        size_t column = 0;

        REQUIRE(out);
        for (size_t i = 0; i < config_schema.n_fields; i++) {
                const Field *field = &config_schema.fields[i];

                if (field->type != FIELD_REFUSED)
                        continue;
                if (column + strlen(field->key) + 3 > 100) {
                        fputs(",\n", out);
                        column = 0;
                }
                column += (size_t) fprintf(out, "%s`%s`", column > 0 ? ", " : "", field->key);
        }
        fputs(".\n", out);
        fclose(out);
        return text;
}

TEST(the_manual_lists_the_ignored_settings_of_a_kubelet)
{
        cleanup_free char *expected = print_ignored_settings();

        page_expect_section("man/mainstay-config.5.md", "## IGNORED SETTINGS", expected);
}

/* A term of a list of definitions: "\n`mainstay.runtime`" and the rest of the line. */
static void expect_setting(const char *page, const char *prefix, const char *key) {
        cleanup_free char *term = NULL;

        for (const char *line = page; line; line = strchr(line + 1, '\n')) {
                size_t n = strcspn(line + 1, "\n");
                cleanup_free char *copy = strndup(line, n + 1);

                free(term);
                REQUIRE(copy && asprintf(&term, "`%s%s`", prefix, key) >= 0);
                if (strncmp(copy, "\n`", 2) == 0 && strstr(copy, term))
                        return;
        }
        test_fail(__FILE__, __LINE__, term, "is not described by mainstay-config(5)");
}

static void expect_settings(const char *page, const char *prefix, const Schema *schema) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];

                if (is_refused(field))
                        continue;
                if (field->type == FIELD_OBJECT) {
                        cleanup_free char *longer = NULL;

                        REQUIRE(asprintf(&longer, "%s%s.", prefix, field->key) >= 0);
                        expect_settings(page, longer, field->schema);
                } else {
                        expect_setting(page, prefix, field->key);
                }
        }
}

static bool is_setting(const Schema *schema, const char *path) {
        size_t n = strcspn(path, ".");

        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];

                if (strlen(field->key) != n || strncmp(field->key, path, n) != 0)
                        continue;
                if (path[n] == '.')
                        return field->schema && is_setting(field->schema, path + n + 1);
                return !is_refused(field);
        }
        return false;
}

/* All terms of the section that lists the settings. */
static void expect_only_settings(char *section) {
        char *rest = section, *line;

        while ((line = strsep(&rest, "\n"))) {
                if (line[0] != '`')
                        continue;
                for (char *name; (name = strsep(&line, "`"));)
                        if (name[0] && name[0] != ',' && !is_setting(&config_schema, name))
                                test_fail(__FILE__, __LINE__, name,
                                          "of mainstay-config(5) is not a setting");
        }
}

TEST(the_manual_describes_every_setting)
{
        cleanup_free char *page = page_read("man/mainstay-config.5.md");
        cleanup_free char *section = page_read_section("man/mainstay-config.5.md", "## SETTINGS");

        expect_settings(page, "", &config_schema);
        expect_only_settings(section);
}
