/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/misplaced.h"

#include <stdio.h>
#include <string.h>

enum {
        PLACES_MAX = 4, /* if more objects than this have a key, it is too common for advice */
        DEPTH_MAX = 5,  /* from a DaemonSet to a container's security context */
};

/* The objects in which fields are misplaced most often. They precede others at the same distance.
 */
static const struct {
        const Schema *schema;
        const char *noun;
} parts[] = {
        { &object_meta_schema, "the metadata" },
        { &daemonset_spec_schema, "the DaemonSet's spec" },
        { &pod_spec_schema, "the pod's spec" },
        { &container_schema, "a container" },
        { &pod_security_context_schema, "the pod's security context" },
        { &security_context_schema, "the security context" },
        { &resource_requirements_schema, "the resources" },
};

/* The objects that were found to have the key. */
typedef struct Search {
        const char *key;
        char base[DECODE_PATH_SIZE]; /* the object from which the search descends */
        size_t n_up;                 /* number of levels from the key up to it */
        const char *keys[DEPTH_MAX]; /* the keys from there to the current object */
        bool is_list[DEPTH_MAX];
        size_t distance, n_places;
        FieldHome *found;
} Search;

/* Metadata has several schemas. */
static bool is_same_type(const Schema *a, const Schema *b) {
        return streq(a->name, b->name);
}

static bool has_key(const Schema *schema, const char *key) {
        for (size_t i = 0; i < schema->n_fields; i++)
                if (streq(schema->fields[i].key, key))
                        return schema->fields[i].type != FIELD_IGNORED;
        return false;
}

static size_t rank_of(const Schema *schema) {
        size_t i = 0;

        while (i < N_ELEMENTS(parts) && !is_same_type(parts[i].schema, schema))
                i++;
        return i;
}

static void add_text(char places[PLACES_SIZE], const char *text) {
        size_t n = strlen(places);

        (void) snprintf(places + n, PLACES_SIZE - n, "%s", text);
}

static void add_place(Search *search, size_t n_down) {
        char *places = search->found->places;

        if (search->n_places++ > 0)
                add_text(places, " or ");
        add_text(places, !search->base[0] && n_down == 0 ? "the document" : search->base);
        for (size_t i = 0; i < n_down; i++) {
                if (i > 0 || search->base[0])
                        add_text(places, ".");
                add_text(places, search->keys[i]);
                if (search->is_list[i])
                        add_text(places, "[]");
        }
}

/* Whether the key probably belongs to an object in another branch: the parent object, or one of the
 * parts of a pod. */
static bool is_confused(const Search *search, size_t rank, size_t n_down) {
        bool is_around = search->n_up == 1 && n_down == 0;

        return !streq(search->key, "name") && (is_around || rank < N_ELEMENTS(parts));
}

static void consider_object(Search *search, const Schema *schema, size_t n_down) {
        FieldHome *found = search->found;
        size_t distance = search->n_up + n_down, rank = rank_of(schema);
        size_t found_rank = found->schema ? rank_of(found->schema) : N_ELEMENTS(parts);

        if (search->n_up > 0 && !is_confused(search, rank, n_down))
                return;
        if (distance > search->distance || (distance == search->distance && rank > found_rank))
                return;
        if (distance < search->distance || rank < found_rank) {
                *found = (FieldHome){ .schema = schema };
                search->n_places = 0;
        }
        if (found->schema && !is_same_type(found->schema, schema))
                found->schema = NULL;
        search->distance = distance;
        add_place(search, n_down);
}

static bool is_object(const Field *field) {
        return field->schema && (field->type == FIELD_OBJECT || field->type == FIELD_OPTIONAL ||
                                 field->type == FIELD_LIST);
}

/* A container's fields have unique names, and the overhead belongs to the runtime class. */
static bool is_no_home(const char *key) {
        return streq(key, "initContainers") || streq(key, "ephemeralContainers") ||
               streq(key, "overhead");
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEPTH_MAX */
static void search_below(Search *search, const Schema *schema, size_t n_down) {
        if (n_down >= DEPTH_MAX || search->n_up + n_down >= search->distance)
                return;
        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];

                if (!is_object(field) || is_no_home(field->key))
                        continue;
                search->keys[n_down] = field->key;
                search->is_list[n_down] = field->type == FIELD_LIST;
                if (has_key(field->schema, search->key))
                        consider_object(search, field->schema, n_down + 1);
                search_below(search, field->schema, n_down + 1);
        }
}

bool find_field_home(const DecodePath *path, FieldHome *ret) {
        Search search = { .key = path->key, .distance = SIZE_MAX, .found = ret };

        *ret = (FieldHome){ 0 };
        if (streq(path->key, "apiVersion") || streq(path->key, "kind"))
                return false;
        for (const DecodePath *at = path; at; at = at->parent) {
                if (!at->schema || at->is_map_key)
                        continue;
                decode_path_format(at->parent, search.base);
                if (search.n_up > 0 && has_key(at->schema, path->key))
                        consider_object(&search, at->schema, 0);
                search_below(&search, at->schema, 0);
                search.n_up++;
        }
        if (search.n_places == 0 || search.n_places > PLACES_MAX)
                return false;
        ret->noun = !ret->schema                               ? "several objects"
                    : rank_of(ret->schema) < N_ELEMENTS(parts) ? parts[rank_of(ret->schema)].noun
                                                               : ret->schema->name;
        return true;
}

static bool is_in_template(const DecodePath *path) {
        for (; path; path = path->parent)
                if (path->key && streq(path->key, "template"))
                        return true;
        return false;
}

bool is_misplaced_in_template(const DecodePath *path) {
        return (is_same_type(path->schema, &pod_template_schema) ||
                is_same_type(path->schema, &object_meta_schema)) &&
               is_in_template(path) && has_key(&pod_spec_schema, path->key);
}
