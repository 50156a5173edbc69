/* SPDX-License-Identifier: Apache-2.0 */

/* Operations on any object using its table: free, compare, copy. Members are accessed by memcpy(),
 * because a table contains their layout but not their type. */

#include "agent/model/schema.h"

#include "agent/model/quantity.h"
#include "common/cleanup.h"
#include "common/strv.h"

size_t field_count_names(const Field *field) {
        return field->other && !field->ignores_other ? MIN(field->other, field->n_names)
                                                     : field->n_names;
}

void *field_at(const Field *field, void *object) {
        return (char *) object + field->offset;
}

const void *field_at_const(const Field *field, const void *object) {
        return (const char *) object + field->offset;
}

List field_list(const Field *field, const void *object) {
        List list;

        memcpy(&list, field_at_const(field, object), sizeof(list));
        return list;
}

static const void *element_const(const Field *field, const List *list, size_t i) {
        return (const char *) list->items + i * field->schema->size;
}

static void *element(const Field *field, const List *list, size_t i) {
        return (char *) list->items + i * field->schema->size;
}

static void *pointer_at(const Field *field, const void *object) {
        void *pointer;

        memcpy(&pointer, field_at_const(field, object), sizeof(pointer));
        return pointer;
}

static void list_done(const Field *field, const void *object) {
        List list = field_list(field, object);

        for (size_t i = 0; i < list.n; i++)
                schema_done(field->schema, element(field, &list, i));
        free(list.items);
}

static void ints_done(const IntList *list) {
        free(list->items);
}

static void field_done(const Field *field, void *object) {
        void *pointer;

        switch (field->type) {
        case FIELD_STRING:
                free(pointer_at(field, object));
                break;
        case FIELD_STRINGS:
                strv_free((char **) pointer_at(field, object));
                break;
        case FIELD_QUANTITY:
                quantity_done(field_at(field, object));
                break;
        case FIELD_INTS:
                ints_done(field_at(field, object));
                break;
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                free(((IntOrString *) field_at(field, object))->text);
                break;
        case FIELD_STRING_MAP:
                string_map_done(field_at(field, object));
                break;
        case FIELD_OBJECT:
                schema_done(field->schema, field_at(field, object));
                break;
        case FIELD_OPTIONAL:
                pointer = pointer_at(field, object);
                if (pointer)
                        schema_done(field->schema, pointer);
                free(pointer);
                break;
        case FIELD_LIST:
        case FIELD_MAP:
        case FIELD_REST:
                list_done(field, object);
                break;
        case FIELD_BOOL:
        case FIELD_PRESENT:
        case FIELD_OPTIONAL_BOOL:
        case FIELD_INT:
        case FIELD_ENUM:
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
}

void schema_done(const Schema *schema, void *object) {
        for (size_t i = 0; i < schema->n_fields; i++)
                field_done(&schema->fields[i], object);
        memset(object, 0, schema->size);
}

static bool quantities_equal(const Quantity *a, const Quantity *b) {
        if (!quantity_is_set(a) || !quantity_is_set(b))
                return quantity_is_set(a) == quantity_is_set(b);
        return a->value == b->value && a->milli == b->milli;
}

static bool ints_equal(const OptionalInt *a, const OptionalInt *b) {
        return a->is_set == b->is_set && (!a->is_set || a->value == b->value);
}

static bool ints_or_strings_equal(const IntOrString *a, const IntOrString *b) {
        return streq_ptr(a->text, b->text) && ints_equal(&a->number, &b->number);
}

static bool optional_bools_equal(const OptionalBool *a, const OptionalBool *b) {
        return a->is_set == b->is_set && (!a->is_set || a->value == b->value);
}

static bool int_lists_equal(const IntList *a, const IntList *b) {
        return a->n == b->n &&
               (a->n == 0 || memcmp(a->items, b->items, a->n * sizeof(*a->items)) == 0);
}

static bool lists_equal(const Field *field, const void *a, const void *b) {
        List left = field_list(field, a), right = field_list(field, b);

        if (left.n != right.n)
                return false;
        for (size_t i = 0; i < left.n; i++)
                if (!schema_equal(field->schema, element_const(field, &left, i),
                                  element_const(field, &right, i)))
                        return false;
        return true;
}

static bool optionals_equal(const Field *field, const void *a, const void *b) {
        const void *left = pointer_at(field, a), *right = pointer_at(field, b);

        return left && right ? schema_equal(field->schema, left, right) : left == right;
}

static bool field_equal(const Field *field, const void *a, const void *b) {
        const void *left = field_at_const(field, a), *right = field_at_const(field, b);

        switch (field->type) {
        case FIELD_STRING:
                return streq(strna(pointer_at(field, a)), strna(pointer_at(field, b)));
        case FIELD_STRINGS:
                return strv_equal(pointer_at(field, a), pointer_at(field, b));
        case FIELD_BOOL:
        case FIELD_PRESENT:
                return memcmp(left, right, sizeof(bool)) == 0;
        case FIELD_ENUM:
                return memcmp(left, right, sizeof(int)) == 0;
        case FIELD_OPTIONAL_BOOL:
                return optional_bools_equal(left, right);
        case FIELD_INT:
                return ints_equal(left, right);
        case FIELD_INTS:
                return int_lists_equal(left, right);
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                return ints_or_strings_equal(left, right);
        case FIELD_QUANTITY:
                return quantities_equal(left, right);
        case FIELD_STRING_MAP:
                return string_map_equal(left, right);
        case FIELD_OBJECT:
                return schema_equal(field->schema, left, right);
        case FIELD_OPTIONAL:
                return optionals_equal(field, a, b);
        case FIELD_LIST:
        case FIELD_MAP:
        case FIELD_REST:
                return lists_equal(field, a, b);
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
        return true;
}

bool schema_equal(const Schema *schema, const void *a, const void *b) {
        for (size_t i = 0; i < schema->n_fields; i++)
                if (!field_equal(&schema->fields[i], a, b))
                        return false;
        return true;
}

static int copy_string_field(void *to, const char *from) {
        char *copy = from ? strdup(from) : NULL;

        if (from && !copy)
                return -ENOMEM;
        memcpy(to, &copy, sizeof(copy));
        return 0;
}

static int copy_strings(void *to, char *const *from) {
        cleanup_strv char **copy = NULL;
        int r = strv_extend(&copy, from);

        if (r < 0)
                return r;
        memcpy(to, &copy, sizeof(copy));
        copy = NULL;
        return 0;
}

static int copy_quantity(Quantity *to, const Quantity *from) {
        *to = *from;
        to->text = NULL;
        return copy_string_field(&to->text, from->text);
}

static int copy_int_or_string(IntOrString *to, const IntOrString *from) {
        to->number = from->number;
        return copy_string_field(&to->text, from->text);
}

static int copy_string_map(StringMap *to, const StringMap *from) {
        if (from->n == 0)
                return 0;
        to->items = calloc(from->n, sizeof(*to->items));
        if (!to->items)
                return -ENOMEM;
        to->n = from->n;
        for (size_t i = 0; i < from->n; i++)
                if (copy_string_field(&to->items[i].key, from->items[i].key) < 0 ||
                    copy_string_field(&to->items[i].value, from->items[i].value) < 0)
                        return -ENOMEM;
        return 0;
}

static int copy_ints(IntList *to, const IntList *from) {
        if (from->n == 0)
                return 0;
        to->items = calloc(from->n, sizeof(*to->items));
        if (!to->items)
                return -ENOMEM;
        memcpy(to->items, from->items, from->n * sizeof(*to->items));
        to->n = from->n;
        return 0;
}

/* The list belongs to the copy before its elements are filled, so that schema_done() frees them. */
static int copy_list(const Field *field, void *to, const void *from) {
        List source = field_list(field, from), copy = { 0 };

        if (source.n == 0)
                return 0;
        copy.items = calloc(source.n, field->schema->size);
        if (!copy.items)
                return -ENOMEM;
        copy.n = source.n;
        memcpy(field_at(field, to), &copy, sizeof(copy));
        for (size_t i = 0; i < copy.n; i++)
                if (schema_copy(field->schema, element(field, &copy, i),
                                element_const(field, &source, i)) < 0)
                        return -ENOMEM;
        return 0;
}

static int copy_optional(const Field *field, void *to, const void *from) {
        const void *source = pointer_at(field, from);
        void *copy;

        if (!source)
                return 0;
        copy = calloc(1, field->schema->size);
        if (!copy)
                return -ENOMEM;
        memcpy(field_at(field, to), &copy, sizeof(copy));
        return schema_copy(field->schema, copy, source);
}

static int field_copy(const Field *field, void *to, const void *from) {
        void *target = field_at(field, to);
        const void *source = field_at_const(field, from);

        switch (field->type) {
        case FIELD_STRING:
                return copy_string_field(target, pointer_at(field, from));
        case FIELD_STRINGS:
                return copy_strings(target, pointer_at(field, from));
        case FIELD_BOOL:
        case FIELD_PRESENT:
                memcpy(target, source, sizeof(bool));
                break;
        case FIELD_ENUM:
                memcpy(target, source, sizeof(int));
                break;
        case FIELD_OPTIONAL_BOOL:
                memcpy(target, source, sizeof(OptionalBool));
                break;
        case FIELD_INT:
                memcpy(target, source, sizeof(OptionalInt));
                break;
        case FIELD_INTS:
                return copy_ints(target, source);
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                return copy_int_or_string(target, source);
        case FIELD_QUANTITY:
                return copy_quantity(target, source);
        case FIELD_STRING_MAP:
                return copy_string_map(target, source);
        case FIELD_OBJECT:
                return schema_copy(field->schema, target, source);
        case FIELD_OPTIONAL:
                return copy_optional(field, to, from);
        case FIELD_LIST:
        case FIELD_MAP:
        case FIELD_REST:
                return copy_list(field, to, from);
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
        return 0;
}

int schema_copy(const Schema *schema, void *to, const void *from) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                int r = field_copy(&schema->fields[i], to, from);

                if (r < 0) {
                        schema_done(schema, to);
                        return r;
                }
        }
        return 0;
}
