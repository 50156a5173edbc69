/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/decode.h"

#include "agent/manifest/misplaced.h"
#include "agent/manifest/scalar.h"
#include "agent/manifest/spelling.h"
#include "agent/model/duration.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <inttypes.h>

enum {
        FILE_MODE_MAX = 0777 /* an integer with this limit is a file mode */
};

/* "must be <type>, not <actual type>", with advice if quotes are the cause. */
static int refuse_type(const Decoder *d, const YamlNode *node, const char *what,
                       const char *advice) {
        bool hides_value = d->hides_values && yaml_node_is_scalar(node);
        char text[DESCRIPTION_SIZE];

        return error_setf(d->reterr, EINVAL, "must be %s%s%s%s", what, hides_value ? "" : ", not ",
                          hides_value ? "" : yaml_node_describe(node, text), advice);
}

/* For a value that would be valid without its quotes. */
static const char *unquote_advice(const YamlNode *node, YamlNodeKind expected_kind) {
        bool fits = node->kind == YAML_NODE_STRING && scalar_resolve(node->text) == expected_kind;

        return fits ? "; remove the quotes" : "";
}

static int expect_string(const Decoder *d, const YamlNode *node) {
        if (node->kind == YAML_NODE_STRING)
                return 0;
        return refuse_type(d, node, "a string", yaml_node_is_scalar(node) ? "; quote it" : "");
}

/* If a secret is a number, the message must not show its digits. */
static int expect_secret(const Decoder *d, const YamlNode *node) {
        if (node->kind == YAML_NODE_STRING)
                return 0;
        return error_setf(d->reterr, EINVAL, "must be a string%s",
                          yaml_node_is_scalar(node) ? "; quote it" : "");
}

/* In the API an empty string counts as absent, except in a few fields. */
static bool is_absent_text(const Decoder *d, const Field *field, const YamlNode *node) {
        return !node->text[0] && !(field->is_not_empty && d->mode == DECODE_MANIFEST);
}

/* An API server has admitted the content of its objects, and records may contain them. */
static bool is_checked(const Decoder *d, const Field *field) {
        return field->check && (!field->is_manifest_check || d->mode == DECODE_MANIFEST);
}

static int decode_string(Decoder *d, const Field *field, const YamlNode *node,
                         const DecodePath *path, void *at) {
        char *copy;
        int r;

        r = field->is_secret ? expect_secret(d, node) : expect_string(d, node);
        if (r < 0)
                return decode_error_at(d, node, path, r);
        if (is_absent_text(d, field, node))
                return 0;
        if (is_checked(d, field))
                r = field->check(node->text, d->reterr);
        if (r < 0)
                return decode_error_at(d, node, path, r);
        copy = strdup(node->text);
        if (!copy)
                return -ENOMEM;
        memcpy(at, &copy, sizeof(copy));
        return 0;
}

static int decode_bool(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                       void *at) {
        if (node->kind != YAML_NODE_BOOL)
                return decode_error_at(d, node, path,
                                       refuse_type(d, node, "true or false",
                                                   unquote_advice(node, YAML_NODE_BOOL)));
        *(bool *) at = yaml_node_bool(node);
        return 0;
}

static int decode_present(Decoder *d, const Field *field, const YamlNode *node,
                          const DecodePath *path, void *at) {
        /* The agent's records contain an empty object. */
        *(bool *) at = d->mode == DECODE_RECORD || !yaml_node_is_empty(node);
        return 0;
}

static int decode_optional_bool(Decoder *d, const Field *field, const YamlNode *node,
                                const DecodePath *path, void *at) {
        OptionalBool *value = at;
        int r = decode_bool(d, field, node, path, &value->value);

        value->is_set = r >= 0;
        return r;
}

static int read_int(const Decoder *d, const Field *field, const YamlNode *node, OptionalInt *ret) {
        int64_t value;

        if (node->kind != YAML_NODE_INT && node->kind != YAML_NODE_FLOAT)
                return refuse_type(d, node, "a number", unquote_advice(node, YAML_NODE_INT));
        if (!yaml_node_int(node, &value))
                return refuse_type(d, node, "a whole number of 64 bits", "");
        /* The server has admitted the value, so only narrower limits of this node apply. */
        if (d->mode == DECODE_API && field->min < field->max)
                value = MAX(field->min, MIN(value, field->max));
        if (field->max == FILE_MODE_MAX && (value < field->min || value > field->max))
                return error_setf(d->reterr, EINVAL,
                                  "must be between 0 and 0777 (octal, which is 511), not %" PRId64,
                                  value);
        if (field->min < field->max && (value < field->min || value > field->max))
                return error_setf(d->reterr, EINVAL,
                                  "must be between %" PRId64 " and %" PRId64 ", not %" PRId64,
                                  field->min, field->max, value);
        *ret = (OptionalInt){ .is_set = true, .value = value };
        return 0;
}

static int decode_int(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                      void *at) {
        int r = read_int(d, field, node, at);

        return r < 0 ? decode_error_at(d, node, path, r) : 0;
}

static int decode_int_or_string(Decoder *d, const Field *field, const YamlNode *node,
                                const DecodePath *path, void *at) {
        IntOrString *value = at;

        if (node->kind == YAML_NODE_STRING)
                return decode_string(d, field, node, path, &value->text);
        return decode_int(d, field, node, path, &value->number);
}

/* Kubernetes allows blanks around a quantity in quotes. */
static int parse_quantity_text(const char *text, Quantity *ret, Error *reterr) {
        static const char blanks[] = " \t\n\v\f\r";
        const char *start = text + strspn(text, blanks);
        size_t n = strlen(start);
        cleanup_free char *trimmed = NULL;

        while (n > 0 && strchr(blanks, start[n - 1]))
                n--;
        trimmed = strndup(start, n);
        return trimmed ? quantity_parse(trimmed, ret, reterr) : -ENOMEM;
}

static int decode_quantity(Decoder *d, const Field *field, const YamlNode *node,
                           const DecodePath *path, void *at) {
        char number[NUMBER_SIZE];
        int r;

        if (node->kind == YAML_NODE_NULL && field->null_is_zero)
                r = quantity_parse("0", at, d->reterr);
        else if (node->kind == YAML_NODE_STRING)
                r = parse_quantity_text(node->text, at, d->reterr);
        else if (yaml_node_number(node, number))
                r = quantity_parse(number, at, d->reterr);
        else
                r = refuse_type(d, node, "a quantity such as 500m, 2 or 1.5Gi", "");
        return r < 0 ? decode_error_at(d, node, path, r) : 0;
}

/* The rule of port names applies, unless the value is a number in quotes. */
static int check_port_number(Decoder *d, const YamlNode *node, OptionalInt *ret_number) {
        static const Field range = { .min = 1, .max = 65535 };
        const char *advice = unquote_advice(node, YAML_NODE_INT);

        if (node->kind == YAML_NODE_INT || node->kind == YAML_NODE_FLOAT)
                return read_int(d, &range, node, ret_number);
        if (node->kind != YAML_NODE_STRING || advice[0])
                return refuse_type(d, node, "a number or the name of a port", advice);
        if (!node->text[0])
                return error_setf(d->reterr, EINVAL, "is required");
        return check_port_name(node->text, d->reterr);
}

static int decode_port(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                       void *at) {
        IntOrString *port = at;
        int r = check_port_number(d, node, &port->number);

        if (r < 0)
                return decode_error_at(d, node, path, r);
        if (node->kind != YAML_NODE_STRING)
                return 0;
        port->text = strdup(node->text);
        return port->text ? 0 : -ENOMEM;
}

static int refuse_enum(const Decoder *d, const Field *field, const YamlNode *node) {
        char names[256] = "", text[EXCERPT_SIZE];
        size_t n = 0, n_names = field_count_names(field);

        for (size_t i = 1; i < n_names && n < sizeof(names); i++) {
                const char *joint = i == 1 ? "" : i + 1 == n_names ? " or " : ", ";

                n += (size_t) snprintf(names + n, sizeof(names) - n, "%s%s", joint,
                                       field->names[i]);
        }
        return error_setf(d->reterr, EINVAL, "must be %s, not '%s'", names,
                          excerpt(text, node->text));
}

static bool is_other_name(const Decoder *d, const Field *field, const YamlNode *node) {
        if (d->mode == DECODE_API)
                return field->other || field->ignores_other;
        return d->mode == DECODE_RECORD && field->other &&
               streq(field->names[field->other], node->text);
}

static int decode_enum(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                       void *at) {
        int r = expect_string(d, node);

        if (r < 0)
                return decode_error_at(d, node, path, r);
        if (is_absent_text(d, field, node))
                return 0;
        for (unsigned i = 1; i < field_count_names(field); i++)
                if (streq(field->names[i], node->text)) {
                        memcpy(at, &i, sizeof(i));
                        return 0;
                }
        if (is_other_name(d, field, node)) {
                memcpy(at, &field->other, sizeof(field->other));
                return 0;
        }
        return decode_error_at(d, node, path, refuse_enum(d, field, node));
}

static int expect_sequence(const Decoder *d, const YamlNode *node, const DecodePath *path) {
        if (node->kind == YAML_NODE_SEQUENCE)
                return 0;
        return decode_error_at(d, node, path, refuse_type(d, node, "a list", ""));
}

/* Limits the lists in files. Those from an API server are limited by the size of its objects, and
 * have been checked for duplicates there. */
static int expect_list(const Decoder *d, const YamlNode *node, const DecodePath *path) {
        int r = expect_sequence(d, node, path);

        if (r < 0 || node->n <= DECODE_LIST_MAX || d->mode == DECODE_API ||
            d->mode == DECODE_RECORD)
                return r;
        r = error_setf(d->reterr, EINVAL, "must have at most %d items, not %" PRIu32,
                       DECODE_LIST_MAX, node->n);
        return decode_error_at(d, node, path, r);
}

static int decode_ints(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                       void *at) {
        IntList *list = at;
        int r = expect_list(d, node, path);

        if (r < 0 || node->n == 0)
                return r;
        list->items = calloc(node->n, sizeof(*list->items));
        if (!list->items)
                return -ENOMEM;
        for (size_t i = 0; i < node->n; i++) {
                const DecodePath item = { .parent = path, .index = i };
                OptionalInt number = { 0 };

                r = decode_keep_error(d, decode_int(d, field, node->items[i], &item, &number));
                if (r < 0)
                        return r;
                list->items[list->n++] = number.value;
        }
        return 0;
}

static int expect_mapping(const Decoder *d, const YamlNode *node, const DecodePath *path) {
        if (node->kind == YAML_NODE_MAPPING)
                return 0;
        return decode_error_at(d, node, path, refuse_type(d, node, "a mapping", ""));
}

/* The array is allocated at once, because strv_append() would walk it for each item. */
static int decode_strings(Decoder *d, const Field *field, const YamlNode *node,
                          const DecodePath *path, void *at) {
        char **strings;
        int r = expect_sequence(d, node, path);

        if (r < 0 || node->n == 0)
                return r;
        strings = calloc((size_t) node->n + 1, sizeof(*strings));
        if (!strings)
                return -ENOMEM;
        memcpy(at, &strings, sizeof(strings));
        for (size_t i = 0; i < node->n; i++) {
                DecodePath item = { .parent = path, .index = i };
                const YamlNode *value = node->items[i];
                const char *text = value->kind == YAML_NODE_NULL ? "" : value->text;

                if (value->kind == YAML_NODE_NULL)
                        r = 0;
                else
                        r = field->is_secret ? expect_secret(d, value) : expect_string(d, value);
                if (r >= 0 && is_checked(d, field))
                        r = field->check(text, d->reterr);
                strings[i] = strdup(r < 0 ? "" : text);
                if (!strings[i])
                        return -ENOMEM;
                if (r < 0)
                        r = decode_keep_error(d, decode_error_at(d, value, &item, r));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_map_keys(const void *a, const void *b) {
        return strcmp(((const KeyValue *) a)->key, ((const KeyValue *) b)->key);
}

static int decode_entry(Decoder *d, const Field *field, const YamlNode *key, const YamlNode *value,
                        const DecodePath *path, KeyValue *ret) {
        DecodePath entry = { .parent = path, .key = key->text, .is_map_key = true };
        int r = 0;

        if (value->kind != YAML_NODE_NULL)
                r = field->is_secret ? expect_secret(d, value) : expect_string(d, value);
        if (r < 0)
                return decode_error_at(d, value, &entry, r);
        ret->key = strdup(key->text);
        ret->value = strdup(value->kind == YAML_NODE_NULL ? "" : value->text);
        return ret->key && ret->value ? 0 : -ENOMEM;
}

static int decode_string_map(Decoder *d, const Field *field, const YamlNode *node,
                             const DecodePath *path, void *at) {
        StringMap *map = at;
        int r = expect_mapping(d, node, path);

        if (r < 0 || node->n == 0)
                return r;
        map->items = calloc(node->n, sizeof(*map->items));
        if (!map->items)
                return -ENOMEM;
        for (size_t i = 0; i < node->n && r >= 0; i++) {
                map->n++;
                r = decode_entry(d, field, yaml_node_key(node, i), yaml_node_value(node, i), path,
                                 &map->items[map->n - 1]);
                if (r < 0 && decode_keep_error(d, r) >= 0) {
                        map->n--; /* it has neither key nor value */
                        r = 0;
                }
        }
        if (r < 0)
                return r;
        /* The pairs are sorted, as in maps that the API prints, so that their order in the file
         * does not matter. */
        qsort(map->items, map->n, sizeof(*map->items), compare_map_keys);
        return 0;
}

static int decode_embedded(Decoder *d, const Field *field, const YamlNode *node,
                           const DecodePath *path, void *at) {
        return decode_object(d, node, field->schema, path, at);
}

static int decode_optional(Decoder *d, const Field *field, const YamlNode *node,
                           const DecodePath *path, void *at) {
        void *object = calloc(1, field->schema->size);

        if (!object)
                return -ENOMEM;
        memcpy(at, &object, sizeof(object));
        return decode_object(d, node, field->schema, path, object);
}

/* The list grows by one before each item, so that schema_done() frees everything after a
 * failure. */
static int decode_list(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                       void *at) {
        List list = { 0 };
        int r;

        /* An earlier version may only have recorded that the value exists. */
        if (d->mode == DECODE_RECORD && yaml_node_is_empty(node))
                return 0;
        r = expect_list(d, node, path);
        if (r < 0 || node->n == 0)
                return r;
        list.items = calloc(node->n, field->schema->size);
        if (!list.items)
                return -ENOMEM;
        for (size_t i = 0; i < node->n && r >= 0; i++) {
                DecodePath item = { .parent = path, .index = i };

                list.n++;
                memcpy(at, &list, sizeof(list));
                r = decode_object(d, node->items[i], field->schema, &item,
                                  (char *) list.items + i * field->schema->size);
                r = decode_keep_error(d, r);
        }
        return r;
}

/* A value without content at any depth: {}, [], null. */
static bool is_harmless(const YamlNode *node) {
        size_t n = node->kind == YAML_NODE_MAPPING ? node->n : 0;

        for (size_t i = 0; i < n; i++)
                if (!is_harmless(yaml_node_value(node, i)))
                        return false;
        return n > 0 || yaml_node_is_empty(node);
}

static bool is_accepted(const Field *field, const YamlNode *node) {
        char number[NUMBER_SIZE];

        if (!field->accepts)
                return false;
        if (node->kind == YAML_NODE_BOOL)
                return streq(field->accepts, yaml_node_bool(node) ? "true" : "false");
        if (yaml_node_number(node, number))
                return streq(field->accepts, number);
        return node->kind == YAML_NODE_STRING && streq(field->accepts, node->text);
}

/* Values that only repeat the default: Go prints unset durations as "0s". */
static bool is_zero(const YamlNode *node) {
        for (size_t i = 0; node->kind == YAML_NODE_MAPPING && i < node->n; i++)
                if (!is_zero(yaml_node_value(node, i)))
                        return false;
        return node->kind == YAML_NODE_MAPPING || yaml_node_is_empty(node) ||
               (node->kind == YAML_NODE_STRING && streq(node->text, "0s"));
}

/* Whether the value is the default, which has no effect; a duration may have any spelling. */
static bool is_default(const Field *field, const YamlNode *node) {
        uint64_t usec, expected;

        if (is_zero(node) || is_accepted(field, node))
                return true;
        return field->accepts && node->kind == YAML_NODE_STRING &&
               duration_parse(node->text, &usec) >= 0 &&
               duration_parse(field->accepts, &expected) >= 0 && usec == expected;
}

int decode_note_without_effect(Decoder *d, const char *setting) {
        char *names = text_format("%s%s%s", strna(d->without_effect), d->without_effect ? ", " : "",
                                  setting);

        if (!names)
                return -ENOMEM;
        free(d->without_effect);
        d->without_effect = names;
        return 0;
}

static int note_field_without_effect(Decoder *d, const Field *field, const YamlNode *node,
                                     const DecodePath *path) {
        char text[DECODE_PATH_SIZE];

        return is_default(field, node)
                       ? 0
                       : decode_note_without_effect(d, decode_path_format(path, text));
}

static int decode_refused(Decoder *d, const Field *field, const YamlNode *key, const YamlNode *node,
                          const DecodePath *path) {
        int r;

        if (d->mode == DECODE_CONFIG)
                return note_field_without_effect(d, field, node, path);
        if (d->mode == DECODE_API && field->is_not_for_node)
                return 0;
        if (is_accepted(field, node))
                return 0;
        /* If there is a value without effect, an empty value of another type is an error. */
        if (is_harmless(node) && (!field->accepts || d->mode != DECODE_MANIFEST))
                return 0;
        if (field->is_only_warned_of && d->mode == DECODE_MANIFEST)
                return decode_warn(d, key, path, field->reason);
        r = error_setf(d->reterr, EINVAL, "%s",
                       field->reason ? field->reason
                                     : "is known to Kubernetes but not supported here yet");
        return decode_error_at(d, key, path, r);
}

typedef int (*decode_field_t)(Decoder *d, const Field *field, const YamlNode *node,
                              const DecodePath *path, void *at);

static int decode_map(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                      void *at);

static const decode_field_t decoders[N_FIELD_TYPES] = {
        [FIELD_STRING] = decode_string,
        [FIELD_BOOL] = decode_bool,
        [FIELD_PRESENT] = decode_present,
        [FIELD_OPTIONAL_BOOL] = decode_optional_bool,
        [FIELD_INT] = decode_int,
        [FIELD_INTS] = decode_ints,
        [FIELD_INT_OR_STRING] = decode_int_or_string,
        [FIELD_QUANTITY] = decode_quantity,
        [FIELD_PORT] = decode_port,
        [FIELD_ENUM] = decode_enum,
        [FIELD_STRINGS] = decode_strings,
        [FIELD_STRING_MAP] = decode_string_map,
        [FIELD_OBJECT] = decode_embedded,
        [FIELD_OPTIONAL] = decode_optional,
        [FIELD_LIST] = decode_list,
        [FIELD_MAP] = decode_map,
};

static int decode_map_entry(Decoder *d, const Field *field, const YamlNode *key,
                            const YamlNode *value, const DecodePath *parent, void *entry) {
        const Field *keys = &field->schema->fields[0], *values = &field->schema->fields[1];
        const DecodePath path = { .parent = parent, .key = key->text, .is_map_key = true };
        char *name = strdup(key->text);

        if (!name)
                return -ENOMEM;
        memcpy(field_at(keys, entry), &name, sizeof(name));
        if (is_checked(d, keys) && keys->check(name, d->reterr) < 0)
                return decode_error_at(d, key, &path, -EINVAL);
        if (values->is_secret && value->kind != YAML_NODE_SEQUENCE)
                return decode_error_at(d, value, &path,
                                       error_setf(d->reterr, EINVAL, "must be a list of strings"));
        return decoders[values->type](d, values, value, &path, field_at(values, entry));
}

/* The list grows by one before each entry, as in decode_list(). */
static int decode_map(Decoder *d, const Field *field, const YamlNode *node, const DecodePath *path,
                      void *at) {
        List list = { 0 };
        int r = expect_mapping(d, node, path);

        if (r < 0 || node->n == 0)
                return r;
        list.items = calloc(node->n, field->schema->size);
        if (!list.items)
                return -ENOMEM;
        for (size_t i = 0; i < node->n && r >= 0; i++) {
                list.n++;
                memcpy(at, &list, sizeof(list));
                r = decode_map_entry(d, field, yaml_node_key(node, i), yaml_node_value(node, i),
                                     path, (char *) list.items + i * field->schema->size);
                r = decode_keep_error(d, r);
        }
        return r;
}

static bool has_room_for_hints(const Decoder *d) {
        return d->errors ? strv_length(d->errors->messages) < DECODE_ERRORS_MAX
                         : d->n_warnings < DECODE_WARNINGS_MAX;
}

static int decode_pair(Decoder *d, const Schema *schema, const YamlNode *key, const YamlNode *value,
                       const DecodePath *parent, void *object);

/* The last key above a field, "template": "" for the document. */
static const char *parent_key(const DecodePath *path) {
        const DecodePath *parent = path->parent;

        while (parent && !parent->key)
                parent = parent->parent;
        return parent ? parent->key : "the document";
}

/* Finds the errors below a misplaced field, as if it were in its correct place. */
static int decode_misplaced_value(Decoder *d, const Schema *home, const YamlNode *key,
                                  const YamlNode *value, const DecodePath *path) {
        void *object = calloc(1, home->size);
        int r = object ? decode_pair(d, home, key, value, path->parent, object) : -ENOMEM;

        if (object)
                schema_done(home, object);
        free(object);
        return decode_keep_error(d, r);
}

static int refuse_misplaced(Decoder *d, const FieldHome *home, const YamlNode *key,
                            const YamlNode *value, const DecodePath *path) {
        int r = decode_error_at(d, key, path,
                                error_setf(d->reterr, EINVAL,
                                           "is a field of %s; it belongs below %s, not below %s",
                                           home->noun, home->places, parent_key(path)));

        if (!d->errors)
                return r;
        d->has_misplaced = true;
        r = decode_keep_error(d, r);
        return r < 0 || !home->schema ? r
                                      : decode_misplaced_value(d, home->schema, key, value, path);
}

static int report_unknown(Decoder *d, const Schema *schema, const YamlNode *key,
                          const DecodePath *path) {
        /* Hints are expensive; messages beyond the limit are only counted. */
        const char *hint = has_room_for_hints(d) ? suggest_field_key(schema, key->text) : NULL;
        char sentence[256];

        /* Unknown metadata is usually intended for other programs. */
        bool is_metadata = streq(schema->name, object_meta_schema.name);

        (void) snprintf(sentence, sizeof(sentence), "is not a field of %s%s%s%s", schema->name,
                        hint          ? "; did you mean '"
                        : is_metadata ? "; use labels or annotations"
                                      : "",
                        strna(hint), hint ? "'?" : "");
        if (schema->is_strict)
                return decode_error_at(d, key, path, error_setf(d->reterr, EINVAL, "%s", sentence));
        return decode_warn_strictly(d, key, path, sentence);
}

static int decode_unknown(Decoder *d, const Schema *schema, const YamlNode *key,
                          const YamlNode *value, const DecodePath *path) {
        FieldHome home;

        if (d->mode == DECODE_API && !schema->closed)
                return 0;
        if (schema->closed || d->mode == DECODE_RECORD) {
                int r = error_setf(d->reterr, EINVAL, "%s",
                                   schema->closed ? schema->closed
                                                  : "is not known to this version");
                return decode_error_at(d, key, path, r);
        }
        if (d->mode == DECODE_MANIFEST &&
            (is_misplaced_in_template(path) || (d->errors && has_room_for_hints(d))) &&
            find_field_home(path, &home))
                return refuse_misplaced(d, &home, key, value, path);
        return report_unknown(d, schema, key, path);
}

static const Field *find_field(const Schema *schema, const char *key) {
        const Field *rest = NULL;

        for (size_t i = 0; i < schema->n_fields; i++)
                if (schema->fields[i].type == FIELD_REST)
                        rest = &schema->fields[i];
                else if (streq(schema->fields[i].key, key))
                        return &schema->fields[i];
        return strchr(key, '/') ? rest : NULL;
}

/* Keeps the list sorted. */
static int decode_rest(Decoder *d, const Field *field, const YamlNode *key, const YamlNode *value,
                       const DecodePath *parent, void *object) {
        size_t size = field->schema->size, at = 0;
        List list = field_list(field, object);
        char *items = array_reserve(list.items, list.n, 1, size);

        if (!items)
                return -ENOMEM;
        list.items = items;
        for (; at < list.n; at++) {
                const char *name;

                memcpy(&name, items + at * size + field->schema->fields[0].offset, sizeof(name));
                if (strcmp(key->text, name) <= 0)
                        break;
        }
        (void) array_open_gap(items, list.n, at, size);
        list.n++;
        memcpy(field_at(field, object), &list, sizeof(list));
        return decode_map_entry(d, field, key, value, parent, items + at * size);
}

static bool is_refused_key(const Decoder *d, const Field *field, const char *key) {
        return field->is_api_only && d->mode == DECODE_MANIFEST &&
               !(field->is_manifest_key && field->is_manifest_key(key));
}

static int decode_pair(Decoder *d, const Schema *schema, const YamlNode *key, const YamlNode *value,
                       const DecodePath *parent, void *object) {
        const DecodePath path = { .parent = parent, .schema = schema, .key = key->text };
        const Field *field = find_field(schema, key->text);

        if (!field)
                return decode_unknown(d, schema, key, value, &path);
        if (field->type == FIELD_IGNORED || (value->kind == YAML_NODE_NULL && !field->null_is_zero))
                return 0;
        if (field->type == FIELD_REFUSED || is_refused_key(d, field, key->text))
                return decode_refused(d, field, key, value, &path);
        if (field->type == FIELD_REST)
                return decode_rest(d, field, key, value, parent, object);
        return decoders[field->type](d, field, value, &path, field_at(field, object));
}

/* If an embedded object is absent, its own required fields are reported. */
static bool is_required_missing(const Field *field, const YamlNode *value) {
        if (!value || value->kind == YAML_NODE_NULL)
                return true;
        return field->type != FIELD_OBJECT && yaml_node_is_empty(value);
}

/* Finds an unknown key that may be the missing one: the first one with a similar spelling,
 * otherwise the first one. */
static const YamlNode *find_misplaced_key(const Schema *schema, const YamlNode *node,
                                          const char *missing) {
        const YamlNode *first = NULL;
        size_t n = 0;

        for (size_t i = 0; node->kind == YAML_NODE_MAPPING && i < node->n; i++) {
                const YamlNode *key = yaml_node_key(node, i);

                if (find_field(schema, key->text))
                        continue;
                if (++n > DECODE_WARNINGS_MAX)
                        break;
                if (streq_ptr(suggest_field_key(schema, key->text), missing))
                        return key;
                first = first ? first : key;
        }
        return first;
}

static int refuse_missing(const Decoder *d, const YamlNode *node, const Schema *schema,
                          const DecodePath *path) {
        const YamlNode *stray = find_misplaced_key(schema, node, path->key),
                       *value = yaml_node_get(node, path->key);
        char text[EXCERPT_SIZE];

        if (!stray)
                return decode_error_at(d, value ? value : node, path,
                                       error_setf(d->reterr, EINVAL, "is required"));
        return decode_error_at(d, stray, path,
                               error_setf(d->reterr, EINVAL,
                                          "is required; '%s' is not a field of %s",
                                          excerpt(text, stray->text), schema->name));
}

static int check_required(const Decoder *d, const YamlNode *node, const Schema *schema,
                          const DecodePath *parent) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];
                const DecodePath path = { .parent = parent, .key = field->key };
                bool is_required = field->is_required ||
                                   (field->is_manifest_required && d->mode == DECODE_MANIFEST);
                const YamlNode *value = is_required ? yaml_node_get(node, field->key) : NULL;
                int r;

                if (!is_required || !is_required_missing(field, value))
                        continue;
                /* A missing field has been found in the wrong place. */
                if (d->has_misplaced && (field->type == FIELD_OBJECT || field->type == FIELD_LIST))
                        continue;
                r = decode_keep_error(d, refuse_missing(d, node, schema, &path));
                if (r < 0)
                        return r;
        }
        return 0;
}

int decode_object(Decoder *d, const YamlNode *node, const Schema *schema, const DecodePath *path,
                  void *object) {
        size_t n_errors = decode_count_errors(d);
        int r = 0;

        /* A null item of a list is an object without set fields. */
        if (node->kind != YAML_NODE_NULL)
                r = expect_mapping(d, node, path);
        for (size_t i = 0; i < node->n && r >= 0; i++) {
                r = decode_pair(d, schema, yaml_node_key(node, i), yaml_node_value(node, i), path,
                                object);
                r = decode_keep_error(d, r);
        }
        if (r < 0)
                return r;
        return decode_result(d, n_errors, check_required(d, node, schema, path));
}
