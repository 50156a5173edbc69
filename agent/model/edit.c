/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of the schema say which fields there are; the table here says what a change of one
 * takes. A field that it does not name restarts its container, or replaces its pod: what was
 * forgotten costs a restart, and is never left undone. */

#include "agent/model/edit.h"

#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum RuleKind {
        RULE_WHOLE,    /* the field as a whole */
        RULE_DESCEND,  /* the fields of the object that it is */
        RULE_BY_NAME,  /* the items of the list, each against the one of its name */
        RULE_IN_ORDER, /* likewise, and their order matters */
        RULE_PORTS,
} RuleKind;

/* What of the fields below, which have no rule of their own, 'effect' is too. */
typedef struct Rule {
        const char *type; /* as the API calls it */
        const char *key;
        RuleKind kind;
        EditEffect effect;
} Rule;

/* clang-format off */
static const Rule rules[] = {
        { "Pod",         "metadata",                      RULE_DESCEND, EDIT_NONE },
        { "ObjectMeta",  "labels",                        RULE_WHOLE,   EDIT_LIVE },
        { "ObjectMeta",  "annotations",                   RULE_WHOLE,   EDIT_LIVE },
        { "ObjectMeta",  "ownerReferences",               RULE_WHOLE,   EDIT_LIVE },

        { "Pod",         "spec",                          RULE_DESCEND, EDIT_REPLACE },
        { "PodSpec",     "volumes",                       RULE_BY_NAME, EDIT_REPLACE },
        { "PodSpec",     "initContainers",                RULE_IN_ORDER, EDIT_REPLACE },
        { "PodSpec",     "containers",                    RULE_BY_NAME, EDIT_RESTART },
        { "PodSpec",     "terminationGracePeriodSeconds", RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "activeDeadlineSeconds",         RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "priorityClassName",             RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "priority",                      RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "preemptionPolicy",              RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "overhead",                      RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "resources",                     RULE_DESCEND, EDIT_REPLACE },
        /* For schedulers. */
        { "PodSpec",     "nodeSelector",                  RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "affinity",                      RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "schedulerName",                 RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "tolerations",                   RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "topologySpreadConstraints",     RULE_WHOLE,   EDIT_LIVE },
        { "PodSpec",     "readinessGates",                RULE_WHOLE,   EDIT_LIVE },
        /* For the next pull. */
        { "PodSpec",     "imagePullSecrets",              RULE_WHOLE,   EDIT_LIVE },

        { "Container",   "imagePullPolicy",               RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "resources",                     RULE_DESCEND, EDIT_RESTART },
        { "Container",   "resizePolicy",                  RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "restartPolicyRules",            RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "livenessProbe",                 RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "readinessProbe",                RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "startupProbe",                  RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "lifecycle",                     RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "terminationMessagePolicy",      RULE_WHOLE,   EDIT_LIVE },
        { "Container",   "ports",                         RULE_PORTS,   EDIT_LIVE },

        { "ResourceRequirements", "limits",               RULE_DESCEND, EDIT_NONE },
        { "ResourceRequirements", "requests",             RULE_DESCEND, EDIT_NONE },
        { "ResourceList", "cpu",                          RULE_WHOLE,   EDIT_LIVE },
        { "ResourceList", "memory",                       RULE_WHOLE,   EDIT_LIVE },
};
/* clang-format on */

/* Where the comparison is. */
typedef struct Walk {
        EditPlan *plan;
        const Pod *running;
        const Pod *wanted;
        const char *container; /* NULL: not within one */
} Walk;

/* Of a place in the object: what has no rule there, and its path. */
typedef struct Place {
        EditEffect otherwise;
        const char *path;
} Place;

static const Rule *find_rule(const Schema *schema, const char *key) {
        for (size_t i = 0; i < N_ELEMENTS(rules); i++)
                if (streq(rules[i].type, schema->name) && streq(rules[i].key, key))
                        return &rules[i];
        return NULL;
}

static void change_done(EditChange *change) {
        free(change->container);
        free(change->path);
        free(change->from);
        free(change->to);
}

void edit_plan_done(EditPlan *plan) {
        for (size_t i = 0; i < plan->changes.n; i++)
                change_done(&plan->changes.items[i]);
        free(plan->changes.items);
        *plan = (EditPlan){ 0 };
}

static char *join(const char *path, const char *key) {
        char *joined;

        return asprintf(&joined, "%s%s%s", path, path[0] ? "." : "", key) < 0 ? NULL : joined;
}

/* The strings may be NULL. */
static int add(const Walk *walk, EditEffect effect, const char *path, const char *from,
               const char *to) {
        EditPlan *plan = walk->plan;
        EditChange *longer =
                reallocarray(plan->changes.items, plan->changes.n + 1, sizeof(*longer));
        EditChange *change;

        if (!longer)
                return -ENOMEM;
        plan->changes.items = longer;
        change = &longer[plan->changes.n++];
        *change = (EditChange){
                .effect = effect,
                .container = walk->container ? strdup(walk->container) : NULL,
                .path = strdup(path),
                .from = from ? strdup(from) : NULL,
                .to = to ? strdup(to) : NULL,
        };
        plan->effect = MAX(plan->effect, effect);
        return change->path && (change->container || !walk->container) && (change->from || !from) &&
                               (change->to || !to)
                       ? 0
                       : -ENOMEM;
}

/* The text of a field that holds one word, "" where it is absent; NULL for others. */
static const char *word_of(const Field *field, const void *object, char buffer[32]) {
        const void *at = field_at_const(field, object);
        const OptionalInt *number = at;
        unsigned value;
        char *text;

        switch (field->type) {
        case FIELD_STRING:
                memcpy(&text, at, sizeof(text));
                return strna(text);
        case FIELD_QUANTITY:
                return strna(((const Quantity *) at)->text);
        case FIELD_BOOL:
                return *(const bool *) at ? "true" : "false";
        case FIELD_INT:
                (void) snprintf(buffer, 32, "%" PRId64, number->value);
                return number->is_set ? buffer : "";
        case FIELD_ENUM:
                memcpy(&value, at, sizeof(value));
                return strna(field->names[value]);
        default:
                return NULL;
        }
}

static int add_field(const Walk *walk, const Field *field, EditEffect effect, const char *path,
                     const void *a, const void *b) {
        char left[32], right[32];

        return add(walk, effect, path, word_of(field, a, left), word_of(field, b, right));
}

static int compare(const Walk *walk, const Place *place, const Schema *schema, const void *a,
                   const void *b);

/* Every list whose items have names begins its items with them. */
static const char *name_of(const List *list, const Schema *schema, size_t i) {
        const char *name;

        memcpy(&name, (const char *) list->items + i * schema->size + schema->fields[0].offset,
               sizeof(name));
        return strna(name);
}

static const void *item_of(const List *list, const Schema *schema, size_t i) {
        return (const char *) list->items + i * schema->size;
}

static const void *find_item(const List *list, const Schema *schema, const char *name) {
        for (size_t i = 0; i < list->n; i++)
                if (streq(name_of(list, schema, i), name))
                        return item_of(list, schema, i);
        return NULL;
}

static bool is_sidecar(const Walk *walk, const Container *container) {
        return container_role(&walk->running->spec, container) == ROLE_SIDECAR ||
               container_role(&walk->wanted->spec, container) == ROLE_SIDECAR;
}

/* An item that came or went is the pod's affair; one that is another may be its own. */
static int compare_item(const Walk *walk, const Rule *rule, const char *path, const Schema *schema,
                        const char *name, const void *a, const void *b) {
        bool is_container = streq(schema->name, "Container");
        cleanup_free char *full = NULL;
        Place place = { rule->effect, "" };
        Walk within = *walk;

        if (asprintf(&full, "%s[%s]", path, name) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        if (!a || !b)
                return add(walk, EDIT_REPLACE, full, NULL, NULL);
        if (schema_equal(schema, a, b))
                return 0;
        if (!is_container)
                return add(walk, rule->effect, full, NULL, NULL);
        within.container = name;
        if (is_sidecar(walk, a) && is_sidecar(walk, b))
                place.otherwise = EDIT_RESTART;
        return compare(&within, &place, schema, a, b);
}

static bool are_in_order(const Schema *schema, const List *a, const List *b) {
        for (size_t i = 0; i < MIN(a->n, b->n); i++)
                if (!streq(name_of(a, schema, i), name_of(b, schema, i)))
                        return false;
        return true;
}

static int compare_by_name(const Walk *walk, const Rule *rule, const char *path, const Field *field,
                           const void *a, const void *b) {
        const List left = field_list(field, a), right = field_list(field, b);
        const Schema *schema = field->schema;
        int r = 0;

        if (rule->kind == RULE_IN_ORDER && !are_in_order(schema, &left, &right))
                return add(walk, EDIT_REPLACE, path, NULL, NULL);
        for (size_t i = 0; i < left.n && r >= 0; i++) {
                const char *name = name_of(&left, schema, i);

                r = compare_item(walk, rule, path, schema, name, item_of(&left, schema, i),
                                 find_item(&right, schema, name));
        }
        for (size_t i = 0; i < right.n && r >= 0; i++) {
                const char *name = name_of(&right, schema, i);

                if (!find_item(&left, schema, name))
                        r = compare_item(walk, rule, path, schema, name, NULL,
                                         item_of(&right, schema, i));
        }
        return r;
}

static bool has_host_port(const Container *container) {
        for (size_t i = 0; i < container->ports.n; i++)
                if (container->ports.items[i].host_port.is_set)
                        return true;
        return false;
}

/* Ports tell people what a program does; those of the host are made with the pod's network. */
static EditEffect effect_of_ports(const Walk *walk, const Container *a, const Container *b) {
        bool is_mapped = !walk->wanted->spec.host_network && (has_host_port(a) || has_host_port(b));

        return is_mapped ? EDIT_REPLACE : EDIT_LIVE;
}

/* The annotations that an agent makes for itself are another with every reading. */
static bool is_agents_own(const char *key) {
        return strncmp(key, "kubernetes.io/config.", strlen("kubernetes.io/config.")) == 0;
}

static bool map_lacks(const StringMap *map, const StringMap *of) {
        for (size_t i = 0; i < of->n; i++)
                if (!is_agents_own(of->items[i].key) &&
                    !streq_ptr(string_map_get(map, of->items[i].key), of->items[i].value))
                        return true;
        return false;
}

static bool field_differs(const Field *field, const void *a, const void *b) {
        const Schema one = { .name = "", .fields = field, .n_fields = 1 };
        const StringMap *left = field_at_const(field, a), *right = field_at_const(field, b);

        if (field->type == FIELD_STRING_MAP)
                return map_lacks(left, right) || map_lacks(right, left);
        return !schema_equal(&one, a, b);
}

/* What its container says of another amount of CPU or memory. */
static EditEffect effect_of_resource(const Walk *walk, const Schema *schema, const Field *field,
                                     EditEffect effect) {
        const Container *container =
                walk->container ? pod_find_container(walk->wanted, walk->container) : NULL;

        if (!container || !streq(schema->name, "ResourceList"))
                return effect;
        for (size_t i = 0; i < container->resize_policy.n; i++) {
                const ResizePolicy *policy = &container->resize_policy.items[i];

                if (streq(resize_resource_names[policy->resource_name], field->key) &&
                    policy->restart_policy == RESIZE_RESTART_CONTAINER)
                        return MAX(effect, EDIT_RESTART);
        }
        return effect;
}

static int compare_field(const Walk *walk, const Place *place, const Schema *schema,
                         const Field *field, const void *a, const void *b) {
        const Rule *rule = find_rule(schema, field->key);
        cleanup_free char *path = join(place->path, field->key);
        Place below = { place->otherwise, path };

        if (!path)
                return -ENOMEM;
        if (!rule)
                return place->otherwise == EDIT_NONE
                               ? 0
                               : add_field(walk, field, place->otherwise, path, a, b);
        switch (rule->kind) {
        case RULE_DESCEND:
                /* A pod's metadata and its spec begin anew; a part of them is as what it is in. */
                if (streq(schema->name, "Pod"))
                        below.otherwise = rule->effect;
                return compare(walk, &below, field->schema, field_at_const(field, a),
                               field_at_const(field, b));
        case RULE_BY_NAME:
        case RULE_IN_ORDER:
                return compare_by_name(walk, rule, path, field, a, b);
        case RULE_PORTS:
                return add(walk, effect_of_ports(walk, a, b), path, NULL, NULL);
        case RULE_WHOLE:
                break;
        }
        return add_field(walk, field, effect_of_resource(walk, schema, field, rule->effect), path,
                         a, b);
}

static int compare(const Walk *walk, const Place *place, const Schema *schema, const void *a,
                   const void *b) {
        int r = 0;

        for (size_t i = 0; i < schema->n_fields && r >= 0; i++)
                if (field_differs(&schema->fields[i], a, b))
                        r = compare_field(walk, place, schema, &schema->fields[i], a, b);
        return r;
}

int edit_plan(const Pod *running, const Pod *wanted, EditPlan *ret) {
        QosClass before = pod_qos_class(&running->spec), after = pod_qos_class(&wanted->spec);
        EditPlan plan = { 0 };
        const Walk walk = { .plan = &plan, .running = running, .wanted = wanted };
        int r = compare(&walk, &(Place){ EDIT_NONE, "" }, &pod_schema, running, wanted);

        /* The class is in the name of the pod's control group. */
        if (r >= 0 && before != after)
                r = add(&walk, EDIT_REPLACE, "status.qosClass", qos_class_names[before],
                        qos_class_names[after]);
        /* A file's pod has another UID with every edit; an API server's, only when it is another.
         */
        if (r >= 0 && (pod_is_of_api(running) || pod_is_of_api(wanted)) &&
            !streq(running->metadata.uid, wanted->metadata.uid))
                r = add(&walk, EDIT_REPLACE, "metadata.uid", running->metadata.uid,
                        wanted->metadata.uid);
        if (r < 0)
                edit_plan_done(&plan);
        else
                *ret = plan;
        return r;
}

EditEffect edit_plan_of_container(const EditPlan *plan, const char *container) {
        EditEffect effect = EDIT_NONE;

        for (size_t i = 0; i < plan->changes.n; i++)
                if (streq_ptr(plan->changes.items[i].container, container))
                        effect = MAX(effect, plan->changes.items[i].effect);
        return effect;
}

char *edit_plan_print(const EditPlan *plan, EditEffect effect, const char *container) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < plan->changes.n; i++) {
                const EditChange *change = &plan->changes.items[i];

                if (change->effect != effect || !streq_ptr(change->container, container))
                        continue;
                (void) fprintf(out, "%s%s", n++ > 0 ? ", " : "", change->path);
                if (change->from && change->to)
                        (void) fprintf(out, " (%s -> %s)", change->from[0] ? change->from : "none",
                                       change->to[0] ? change->to : "none");
        }
        return memstream_finish(out, &text);
}

static int keep_string(char **to, const char *from) {
        char *copy = from ? strdup(from) : NULL;

        if (from && !copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

int edit_assume_classes(const Pod *running, Pod *wanted) {
        const PodSpec *from = &running->spec;
        PodSpec *to = &wanted->spec;

        if (!to->priority.is_set && to->priority_class_name &&
            streq_ptr(to->priority_class_name, from->priority_class_name))
                to->priority = from->priority;
        if (to->runtime_class_name && streq_ptr(to->runtime_class_name, from->runtime_class_name) &&
            !quantity_is_set(&to->overhead.cpu) && !quantity_is_set(&to->overhead.memory))
                return schema_copy(&resource_list_schema, &to->overhead, &from->overhead);
        return 0;
}

/* Who runs keeps his place: of what begins together the order says nothing. */
static void keep_order(const PodSpec *from, PodSpec *to) {
        for (size_t i = 0; i < from->containers.n; i++)
                for (size_t j = i; j < to->containers.n; j++)
                        if (streq(from->containers.items[i].name, to->containers.items[j].name)) {
                                Container moved = to->containers.items[i];

                                to->containers.items[i] = to->containers.items[j];
                                to->containers.items[j] = moved;
                        }
}

/* Likewise: what was got for a volume is found by its place. */
static void keep_order_of_volumes(const PodSpec *from, PodSpec *to) {
        for (size_t i = 0; i < from->volumes.n; i++)
                for (size_t j = i; j < to->volumes.n; j++)
                        if (streq(from->volumes.items[i].name, to->volumes.items[j].name)) {
                                Volume moved = to->volumes.items[i];

                                to->volumes.items[i] = to->volumes.items[j];
                                to->volumes.items[j] = moved;
                        }
}

int edit_keep_identity(const Pod *running, Pod *wanted) {
        const StringMap *from = &running->metadata.annotations;
        int r = keep_string(&wanted->metadata.uid, running->metadata.uid);

        for (size_t i = 0; i < wanted->metadata.annotations.n && r >= 0; i++) {
                KeyValue *item = &wanted->metadata.annotations.items[i];
                const char *value =
                        is_agents_own(item->key) ? string_map_get(from, item->key) : NULL;

                if (value)
                        r = keep_string(&item->value, value);
        }
        keep_order(&running->spec, &wanted->spec);
        keep_order_of_volumes(&running->spec, &wanted->spec);
        return r;
}
