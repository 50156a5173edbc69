/* SPDX-License-Identifier: Apache-2.0 */

/* Plans the edit of a running pod. The schema tables list the fields; the table here determines the
 * effect of changing each field. A change of a field without a rule restarts its container or
 * replaces its pod, so a forgotten rule costs a restart, but every change is applied. */

#include "agent/model/edit-plan.h"

#include "agent/model/cdi.h"
#include "agent/model/containers.h"
#include "agent/model/object-identity.h"
#include "agent/model/qos.h"
#include "agent/model/quantity.h"
#include "agent/model/references.h"
#include "agent/model/schema.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum EditRuleKind {
        EDIT_RULE_WHOLE,    /* the field as a whole */
        EDIT_RULE_DESCEND,  /* the fields of the embedded object */
        EDIT_RULE_BY_NAME,  /* the items of the list, matched by name */
        EDIT_RULE_IN_ORDER, /* likewise, and their order matters */
        EDIT_RULE_PORTS,
        EDIT_RULE_ADDED, /* the items that are added to the list; present items never change */
} EditRuleKind;

/* 'effect' also applies to the fields below that have no rule. */
typedef struct EditRule {
        const char *type; /* the API's name */
        const char *key;
        EditRuleKind kind;
        EditEffect effect;
} EditRule;

/* clang-format off */
static const EditRule edit_rules[] = {
        { "Pod",         "metadata",                      EDIT_RULE_DESCEND, EDIT_NONE },
        { "ObjectMeta",  "labels",                        EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "ObjectMeta",  "annotations",                   EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "ObjectMeta",  "ownerReferences",               EDIT_RULE_WHOLE,   EDIT_IN_PLACE },

        { "Pod",         "spec",                          EDIT_RULE_DESCEND, EDIT_RECREATE_POD },
        { "PodSpec",     "volumes",                       EDIT_RULE_BY_NAME, EDIT_RECREATE_POD },
        { "PodSpec",     "initContainers",                EDIT_RULE_IN_ORDER, EDIT_RECREATE_POD },
        { "PodSpec",     "containers",                    EDIT_RULE_BY_NAME, EDIT_RESTART_CONTAINER },
        { "PodSpec",     "ephemeralContainers",           EDIT_RULE_ADDED,   EDIT_IN_PLACE },
        { "PodSpec",     "terminationGracePeriodSeconds", EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "activeDeadlineSeconds",         EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "priorityClassName",             EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "priority",                      EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "preemptionPolicy",              EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "overhead",                      EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "resources",                     EDIT_RULE_DESCEND, EDIT_RECREATE_POD },
        /* Used by schedulers only. */
        { "PodSpec",     "nodeSelector",                  EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "affinity",                      EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "schedulerName",                 EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "tolerations",                   EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "topologySpreadConstraints",     EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "readinessGates",                EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "PodSpec",     "automountServiceAccountToken",  EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        /* Used by the next pull. */
        { "PodSpec",     "imagePullSecrets",              EDIT_RULE_WHOLE,   EDIT_IN_PLACE },

        { "Container",   "imagePullPolicy",               EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "resources",                     EDIT_RULE_DESCEND, EDIT_RESTART_CONTAINER },
        { "Container",   "resizePolicy",                  EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "restartPolicyRules",            EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "livenessProbe",                 EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "readinessProbe",                EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "startupProbe",                  EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "lifecycle",                     EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "terminationMessagePolicy",      EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "Container",   "ports",                         EDIT_RULE_PORTS,   EDIT_IN_PLACE },

        { "ResourceRequirements", "limits",               EDIT_RULE_DESCEND, EDIT_NONE },
        { "ResourceRequirements", "requests",             EDIT_RULE_DESCEND, EDIT_NONE },
        { "ResourceList", "cpu",                          EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        { "ResourceList", "memory",                       EDIT_RULE_WHOLE,   EDIT_IN_PLACE },
        /* Devices are allocated when the pod is admitted. */
        { "ResourceList", "<domain>/<name>",              EDIT_RULE_WHOLE,   EDIT_RECREATE_POD },
};
/* clang-format on */

/* The state of the comparison. */
typedef struct EditWalk {
        EditPlan *plan;
        const Pod *running;
        const Pod *desired;
        const char *container; /* NULL: the pod */
} EditWalk;

/* A position in the object: its path, and the default effect of a change there. */
typedef struct EditPosition {
        EditEffect default_effect;
        const char *path;
} EditPosition;

static const EditRule *find_edit_rule(const Schema *schema, const char *key) {
        for (size_t i = 0; i < N_ELEMENTS(edit_rules); i++)
                if (streq(edit_rules[i].type, schema->name) && streq(edit_rules[i].key, key))
                        return &edit_rules[i];
        return NULL;
}

static void edit_change_done(EditChange *change) {
        free(change->container);
        free(change->path);
        free(change->from);
        free(change->to);
}

void edit_plan_done(EditPlan *plan) {
        for (size_t i = 0; i < plan->changes.n; i++)
                edit_change_done(&plan->changes.items[i]);
        free(plan->changes.items);
        *plan = (EditPlan){ 0 };
}

static char *join_field_path(const char *path, const char *key) {
        return text_format("%s%s%s", path, path[0] ? "." : "", key);
}

/* The strings may be NULL. */
static int add_edit_change(const EditWalk *walk, EditEffect effect, const char *path,
                           const char *from, const char *to) {
        EditPlan *plan = walk->plan;
        EditChange *change;

        if (!ARRAY_RESERVE(plan->changes.items, plan->changes.n, 1))
                return -ENOMEM;
        change = &plan->changes.items[plan->changes.n++];
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

/* The text of a field with a scalar value, "" if it is absent; NULL for other types. */
static const char *format_scalar_field(const Field *field, const void *object, char buffer[32]) {
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

static int add_field_change(const EditWalk *walk, const Field *field, EditEffect effect,
                            const char *path, const void *a, const void *b) {
        char left[32], right[32];

        return add_edit_change(walk, effect, path, format_scalar_field(field, a, left),
                               format_scalar_field(field, b, right));
}

static int compare_objects(const EditWalk *walk, const EditPosition *position, const Schema *schema,
                           const void *a, const void *b);

/* "name" is the first field of every list item that has one. */
static const char *list_item_name(const List *list, const Schema *schema, size_t i) {
        const char *name;

        memcpy(&name, (const char *) list->items + i * schema->size + schema->fields[0].offset,
               sizeof(name));
        return strna(name);
}

static const void *list_item_at(const List *list, const Schema *schema, size_t i) {
        return (const char *) list->items + i * schema->size;
}

static const void *find_list_item(const List *list, const Schema *schema, const char *name) {
        for (size_t i = 0; i < list->n; i++)
                if (streq(list_item_name(list, schema, i), name))
                        return list_item_at(list, schema, i);
        return NULL;
}

static bool is_sidecar_in_either(const EditWalk *walk, const Container *container) {
        return container_role(&walk->running->spec, container) == ROLE_SIDECAR ||
               container_role(&walk->desired->spec, container) == ROLE_SIDECAR;
}

/* An added or removed item affects the pod; a changed one may affect only its container. */
static int compare_list_item(const EditWalk *walk, const EditRule *rule, const char *path,
                             const Schema *schema, const char *name, const void *a, const void *b) {
        bool is_container = streq(schema->name, "Container");
        cleanup_free char *full = NULL;
        EditPosition position = { rule->effect, "" };
        EditWalk within = *walk;

        full = text_format("%s[%s]", path, name);
        if (!full)
                return -ENOMEM;
        if (!a || !b)
                return add_edit_change(walk, EDIT_RECREATE_POD, full, NULL, NULL);
        if (schema_equal(schema, a, b))
                return 0;
        if (!is_container)
                return add_edit_change(walk, rule->effect, full, NULL, NULL);
        within.container = name;
        if (is_sidecar_in_either(walk, a) && is_sidecar_in_either(walk, b))
                position.default_effect = EDIT_RESTART_CONTAINER;
        return compare_objects(&within, &position, schema, a, b);
}

static bool have_same_order(const Schema *schema, const List *a, const List *b) {
        for (size_t i = 0; i < MIN(a->n, b->n); i++)
                if (!streq(list_item_name(a, schema, i), list_item_name(b, schema, i)))
                        return false;
        return true;
}

static int compare_list_by_name(const EditWalk *walk, const EditRule *rule, const char *path,
                                const Field *field, const void *a, const void *b) {
        const List left = field_list(field, a), right = field_list(field, b);
        const Schema *schema = field->schema;
        int r = 0;

        if (rule->kind == EDIT_RULE_IN_ORDER && !have_same_order(schema, &left, &right))
                return add_edit_change(walk, EDIT_RECREATE_POD, path, NULL, NULL);
        for (size_t i = 0; i < left.n && r >= 0; i++) {
                const char *name = list_item_name(&left, schema, i);

                r = compare_list_item(walk, rule, path, schema, name,
                                      list_item_at(&left, schema, i),
                                      find_list_item(&right, schema, name));
        }
        for (size_t i = 0; i < right.n && r >= 0; i++) {
                const char *name = list_item_name(&right, schema, i);

                if (!find_list_item(&left, schema, name))
                        r = compare_list_item(walk, rule, path, schema, name, NULL,
                                              list_item_at(&right, schema, i));
        }
        return r;
}

/* Items that only the running pod has are kept: see edit_inherit_pod_identity(). */
static int compare_added_items(const EditWalk *walk, const EditRule *rule, const char *path,
                               const Field *field, const void *a, const void *b) {
        const List left = field_list(field, a), right = field_list(field, b);
        const Schema *schema = field->schema;
        int r = 0;

        for (size_t i = 0; i < right.n && r >= 0; i++) {
                const char *name = list_item_name(&right, schema, i);
                cleanup_free char *full = NULL;

                if (find_list_item(&left, schema, name))
                        continue;
                full = text_format("%s[%s]", path, name);
                if (!full)
                        return -ENOMEM;
                r = add_edit_change(walk, rule->effect, full, NULL, NULL);
        }
        return r;
}

static bool has_host_port(const Container *container) {
        for (size_t i = 0; i < container->ports.n; i++)
                if (container->ports.items[i].host_port.is_set)
                        return true;
        return false;
}

/* containerPort is informational; hostPort is set up with the pod's network. */
static EditEffect edit_effect_of_ports(const EditWalk *walk, const Container *a,
                                       const Container *b) {
        bool is_mapped =
                !walk->desired->spec.host_network && (has_host_port(a) || has_host_port(b));

        return is_mapped ? EDIT_RECREATE_POD : EDIT_IN_PLACE;
}

/* Ignores the agent's own annotations, which change with every load. */
static bool map_lacks_pairs(const StringMap *map, const StringMap *of) {
        for (size_t i = 0; i < of->n; i++)
                if (!is_agent_annotation(of->items[i].key) &&
                    !streq_ptr(string_map_get(map, of->items[i].key), of->items[i].value))
                        return true;
        return false;
}

static bool field_differs(const Field *field, const void *a, const void *b) {
        const Schema one = { .name = "", .fields = field, .n_fields = 1 };
        const StringMap *left = field_at_const(field, a), *right = field_at_const(field, b);

        if (field->type == FIELD_STRING_MAP)
                return map_lacks_pairs(left, right) || map_lacks_pairs(right, left);
        return !schema_equal(&one, a, b);
}

/* The effect of a change to CPU or memory, according to the container's resizePolicy. */
static EditEffect edit_effect_of_resource(const EditWalk *walk, const Schema *schema,
                                          const Field *field, EditEffect effect) {
        const Container *container =
                walk->container ? pod_find_container(walk->desired, walk->container) : NULL;

        if (!container || !streq(schema->name, "ResourceList"))
                return effect;
        /* An API server does not allow this change, so the record was written by an older agent
         * that does not support the field. */
        if (field->type == FIELD_REST && pod_is_of_api(walk->running))
                return EDIT_IN_PLACE;
        for (size_t i = 0; i < container->resize_policy.n; i++) {
                const ResizePolicy *policy = &container->resize_policy.items[i];

                if (streq_ptr(resize_resource_names[policy->resource_name], field->key) &&
                    policy->restart_policy == RESIZE_RESTART_CONTAINER)
                        return MAX(effect, EDIT_RESTART_CONTAINER);
        }
        return effect;
}

/* The object in a field to descend into. Only the pod's resources may be absent. */
static const void *object_or_none(const Field *field, const void *object) {
        static const ResourceRequirements none = { 0 };
        const void *at = field_at_const(field, object), *optional;

        if (field->type != FIELD_OPTIONAL)
                return at;
        memcpy(&optional, at, sizeof(optional));
        return optional ? optional : &none;
}

static int compare_field(const EditWalk *walk, const EditPosition *position, const Schema *schema,
                         const Field *field, const void *a, const void *b) {
        const EditRule *rule = find_edit_rule(schema, field->key);
        cleanup_free char *path = join_field_path(position->path, field->key);
        EditPosition below = { position->default_effect, path };

        if (!path)
                return -ENOMEM;
        if (!rule)
                return position->default_effect == EDIT_NONE
                               ? 0
                               : add_field_change(walk, field, position->default_effect, path, a,
                                                  b);
        switch (rule->kind) {
        case EDIT_RULE_DESCEND:
                /* A pod's metadata and spec have separate defaults, which their parts inherit. */
                if (streq(schema->name, "Pod"))
                        below.default_effect = rule->effect;
                return compare_objects(walk, &below, field->schema, object_or_none(field, a),
                                       object_or_none(field, b));
        case EDIT_RULE_BY_NAME:
        case EDIT_RULE_IN_ORDER:
                return compare_list_by_name(walk, rule, path, field, a, b);
        case EDIT_RULE_ADDED:
                return compare_added_items(walk, rule, path, field, a, b);
        case EDIT_RULE_PORTS:
                return add_edit_change(walk, edit_effect_of_ports(walk, a, b), path, NULL, NULL);
        case EDIT_RULE_WHOLE:
                break;
        }
        return add_field_change(walk, field,
                                edit_effect_of_resource(walk, schema, field, rule->effect), path, a,
                                b);
}

static int compare_objects(const EditWalk *walk, const EditPosition *position, const Schema *schema,
                           const void *a, const void *b) {
        int r = 0;

        for (size_t i = 0; i < schema->n_fields && r >= 0; i++)
                if (field_differs(&schema->fields[i], a, b))
                        r = compare_field(walk, position, schema, &schema->fields[i], a, b);
        return r;
}

/* A pod from another source is a different pod, even if nothing else differs, so it gets neither
 * the sandbox nor the volumes of its predecessor. */
static bool is_of_another_source(const Pod *running, const Pod *desired) {
        ObjectSource from = running->metadata.source, to = desired->metadata.source;

        return from != to && from != OBJECT_SOURCE_NONE && to != OBJECT_SOURCE_NONE;
}

int edit_plan_make(const Pod *running, const Pod *desired, EditPlan *ret) {
        QosClass before = pod_qos_class(&running->spec), after = pod_qos_class(&desired->spec);
        EditPlan plan = { 0 };
        const EditWalk walk = { .plan = &plan, .running = running, .desired = desired };
        int r = compare_objects(&walk, &(EditPosition){ EDIT_NONE, "" }, &pod_schema, running,
                                desired);

        /* The QoS class is part of the path of the pod's cgroup. */
        if (r >= 0 && before != after)
                r = add_edit_change(&walk, EDIT_RECREATE_POD, "status.qosClass",
                                    qos_class_names[before], qos_class_names[after]);
        /* Objects with other names or namespaces are other pods. */
        if (r >= 0 && !objects_share_namespace(&running->metadata, &desired->metadata))
                r = add_edit_change(&walk, EDIT_RECREATE_POD, "metadata.namespace",
                                    strna(running->metadata.namespace),
                                    strna(desired->metadata.namespace));
        if (r >= 0 && !streq_ptr(running->metadata.name, desired->metadata.name))
                r = add_edit_change(&walk, EDIT_RECREATE_POD, "metadata.name",
                                    strna(running->metadata.name), strna(desired->metadata.name));
        /* The UID of a file's pod changes with every edit; that of an API server's pod changes only
         * when the pod is a different one. */
        if (r >= 0 && (pod_is_of_api(running) || pod_is_of_api(desired)) &&
            !objects_share_uid(&running->metadata, &desired->metadata))
                r = add_edit_change(&walk, EDIT_RECREATE_POD, "metadata.uid", running->metadata.uid,
                                    desired->metadata.uid);
        /* The containers have the devices that they were created with. Those of an API server's pod
         * keep the devices of their admission until they restart. */
        if (r >= 0 && pod_is_of_manifest(desired) && !pod_cdi_annotations_equal(running, desired))
                r = add_edit_change(&walk, EDIT_RECREATE_POD,
                                    "metadata.annotations[" CDI_ANNOTATION_PREFIX "...]", NULL,
                                    NULL);
        if (r >= 0 && is_of_another_source(running, desired))
                r = add_edit_change(&walk, EDIT_RECREATE_POD, "source",
                                    object_source_names[running->metadata.source],
                                    object_source_names[desired->metadata.source]);
        if (r < 0)
                edit_plan_done(&plan);
        else
                *ret = plan;
        return r;
}

EditEffect edit_plan_container_effect(const EditPlan *plan, const char *container) {
        EditEffect effect = EDIT_NONE;

        for (size_t i = 0; i < plan->changes.n; i++)
                if (streq_ptr(plan->changes.items[i].container, container))
                        effect = MAX(effect, plan->changes.items[i].effect);
        return effect;
}

char *edit_plan_format(const EditPlan *plan, EditEffect effect, const char *container) {
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

static int set_copied_string(char **to, const char *from) {
        char *copy = from ? strdup(from) : NULL;

        if (from && !copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

int edit_inherit_class_values(const Pod *running, Pod *desired) {
        const PodSpec *from = &running->spec;
        PodSpec *to = &desired->spec;

        if (!to->priority.is_set && to->priority_class_name &&
            streq_ptr(to->priority_class_name, from->priority_class_name))
                to->priority = from->priority;
        if (to->runtime_class_name && streq_ptr(to->runtime_class_name, from->runtime_class_name) &&
            from->overhead && !pod_has_overhead(to))
                return pod_set_overhead(to, from->overhead);
        return 0;
}

/* Running containers keep their position: order does not matter among containers that start
 * together. */
static void keep_container_order(const PodSpec *from, PodSpec *to) {
        for (size_t i = 0; i < from->containers.n; i++)
                for (size_t j = i; j < to->containers.n; j++)
                        if (streq(from->containers.items[i].name, to->containers.items[j].name)) {
                                Container moved = to->containers.items[i];

                                to->containers.items[i] = to->containers.items[j];
                                to->containers.items[j] = moved;
                        }
}

/* Likewise: the files of a volume are found by its index. */
static void keep_volume_order(const PodSpec *from, PodSpec *to) {
        for (size_t i = 0; i < from->volumes.n; i++)
                for (size_t j = i; j < to->volumes.n; j++)
                        if (streq(from->volumes.items[i].name, to->volumes.items[j].name)) {
                                Volume moved = to->volumes.items[i];

                                to->volumes.items[i] = to->volumes.items[j];
                                to->volumes.items[j] = moved;
                        }
}

static bool has_container(const Container *containers, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(containers[i].name, name))
                        return true;
        return false;
}

/* Ephemeral containers are never removed or changed, and the pod's manifest does not contain them:
 * those of the running pod stay, in their order, and new ones follow. */
static int keep_ephemeral_containers(const PodSpec *from, PodSpec *to) {
        size_t n = 0, n_known = from->ephemeral_containers.n;
        Container *items;
        int r = 0;

        if (n_known == 0)
                return 0;
        items = calloc(n_known + to->ephemeral_containers.n, sizeof(*items));
        if (!items)
                return -ENOMEM;
        for (; n < n_known && r >= 0; n += r >= 0)
                r = schema_copy(&ephemeral_container_schema, &items[n],
                                &from->ephemeral_containers.items[n]);
        if (r < 0) {
                while (n > 0)
                        schema_done(&ephemeral_container_schema, &items[--n]);
                free(items);
                return r;
        }
        for (size_t i = 0; i < to->ephemeral_containers.n; i++) {
                Container *one = &to->ephemeral_containers.items[i];

                if (has_container(items, n_known, one->name))
                        schema_done(&ephemeral_container_schema, one);
                else
                        items[n++] = *one;
        }
        free(to->ephemeral_containers.items);
        to->ephemeral_containers.items = items;
        to->ephemeral_containers.n = n;
        return 0;
}

int edit_inherit_pod_identity(const Pod *running, Pod *desired) {
        static const char config_seen_annotation[] = "kubernetes.io/config.seen";
        const StringMap *from = &running->metadata.annotations;
        const char *seen = string_map_get(from, config_seen_annotation);
        int r = set_copied_string(&desired->metadata.uid, running->metadata.uid);

        for (size_t i = 0; i < desired->metadata.annotations.n && r >= 0; i++) {
                KeyValue *item = &desired->metadata.annotations.items[i];
                /* The hash belongs to the manifest from which this spec comes. */
                bool is_kept =
                        is_agent_annotation(item->key) && !streq(item->key, config_hash_annotation);
                const char *value = is_kept ? string_map_get(from, item->key) : NULL;

                if (value)
                        r = set_copied_string(&item->value, value);
        }
        /* The desired pod of a DaemonSet does not have this annotation, because it is set when the
         * pod starts. */
        if (r >= 0 && seen)
                r = string_map_set(&desired->metadata.annotations, config_seen_annotation, seen);
        keep_container_order(&running->spec, &desired->spec);
        keep_volume_order(&running->spec, &desired->spec);
        if (r >= 0)
                r = keep_ephemeral_containers(&running->spec, &desired->spec);
        return r;
}
