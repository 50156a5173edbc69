/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/table-kinds.h"

#include "agent/model/age.h"
#include "agent/model/label-text.h"
#include "agent/model/pod-summary.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <ctype.h>

#define NAME_COLUMN \
        { "Name", "string", "name", 0, "The name of the object." }
#define AGE_COLUMN \
        { "Age", "string", "", 0, "How long ago it was created." }
#define TEXT(name) \
        { name, "string", "", 0, "" }
#define WIDE(name) \
        { name, "string", "", 1, "" }
#define INTEGER(name) \
        { name, "integer", "", 0, "" }
#define END_OF_COLUMNS \
        { NULL, NULL, NULL, 0, NULL }

/* ---- cells ---- */

static void add_text_cell(json_t *cells, const char *text) {
        (void) json_array_append_new(cells, json_string(strna(text)));
}

static void add_text_cell_or(json_t *cells, const char *text, const char *otherwise) {
        add_text_cell(cells, text && *text ? text : otherwise);
}

static void add_number_cell(json_t *cells, const json_t *number) {
        (void) json_array_append_new(cells, json_integer(json_integer_value(number)));
}

static void add_age_cell(json_t *cells, const char *time, uint64_t now_usec) {
        char age[DURATION_SIZE];

        add_text_cell(cells, format_age(age, time, now_usec));
}

static void add_name_cell(json_t *cells, const json_t *object) {
        add_text_cell(cells, json_text(object, "metadata", "name"));
}

static void add_creation_cell(json_t *cells, const json_t *object, uint64_t now_usec) {
        add_age_cell(cells, json_text(object, "metadata", "creationTimestamp"), now_usec);
}

static void add_own_text_cell(json_t *cells, char *text) {
        add_text_cell(cells, text);
        free(text);
}

/* Adds a member of each item, separated by commas. */
static void add_list_cell(json_t *cells, const json_t *items, const char *member) {
        cleanup_free char *text = NULL;
        size_t size, i;
        FILE *out = open_memstream(&text, &size);
        const json_t *item;

        if (!out)
                return;
        json_array_foreach(items, i, item)
                fprintf(out, "%s%s", i > 0 ? "," : "", strna(json_text(item, member)));
        if (fclose(out) == 0)
                add_text_cell(cells, text);
}

/* ---- pods ---- */

static const TableColumn pod_columns[] = {
        NAME_COLUMN, TEXT("Ready"), TEXT("Status"),         TEXT("Restarts"),        AGE_COLUMN,
        WIDE("IP"),  WIDE("Node"),  WIDE("Nominated Node"), WIDE("Readiness Gates"), END_OF_COLUMNS,
};

static void write_pod_cells(const json_t *pod, uint64_t now_usec, json_t *cells) {
        PodSummary row;

        pod_summarize(pod, now_usec, &row);
        add_text_cell(cells, row.name);
        add_text_cell(cells, row.ready);
        add_text_cell(cells, row.status);
        add_text_cell(cells, row.restarts);
        add_text_cell(cells, row.age);
        add_text_cell(cells, row.ip);
        add_text_cell(cells, row.node);
        add_text_cell(cells, row.nominated_node);
        add_text_cell(cells, row.readiness_gates);
}

const TableKind pod_table_kind = { pod_columns, write_pod_cells };

/* ---- nodes ---- */

static const TableColumn node_columns[] = {
        NAME_COLUMN,
        TEXT("Status"),
        TEXT("Roles"),
        AGE_COLUMN,
        TEXT("Version"),
        WIDE("Internal-IP"),
        WIDE("External-IP"),
        WIDE("OS-Image"),
        WIDE("Kernel-Version"),
        WIDE("Container-Runtime"),
        END_OF_COLUMNS,
};

static void add_node_status_cell(json_t *cells, const json_t *node) {
        const json_t *ready = find_status_condition(node, "Ready");
        char text[64];

        (void) snprintf(text, sizeof(text), "%s%s",
                        !ready                                          ? "Unknown"
                        : streq_ptr(json_text(ready, "status"), "True") ? "Ready"
                                                                        : "NotReady",
                        json_is_true(json_at(node, "spec", "unschedulable")) ? ",SchedulingDisabled"
                                                                             : "");
        add_text_cell(cells, text);
}

static void add_node_roles_cell(json_t *cells, const json_t *node) {
        static const char prefix[] = "node-role.kubernetes.io/";
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        const char *key, *separator = "";
        const json_t *value;

        if (!out)
                return;
        json_object_foreach(json_at(node, "metadata", "labels"), key, value) {
                if (strncmp(key, prefix, sizeof(prefix) - 1) != 0 || !key[sizeof(prefix) - 1])
                        continue;
                fprintf(out, "%s%s", separator, key + sizeof(prefix) - 1);
                separator = ",";
        }
        if (fclose(out) == 0)
                add_text_cell_or(cells, text, "<none>");
}

static void add_node_address_cell(json_t *cells, const json_t *node, const char *type) {
        size_t i;
        const json_t *address;

        json_array_foreach(json_at(node, "status", "addresses"), i, address)
                if (streq_ptr(json_text(address, "type"), type)) {
                        add_text_cell(cells, json_text(address, "address"));
                        return;
                }
        add_text_cell(cells, "<none>");
}

static void add_node_kernel_cell(json_t *cells, const json_t *info) {
        const char *kernel = json_text(info, "kernelVersion");
        const char *architecture = json_text(info, "architecture");
        char text[256];

        (void) snprintf(text, sizeof(text), architecture ? "%s (%s)" : "%s",
                        kernel ? kernel : "<unknown>", architecture);
        add_text_cell(cells, text);
}

static void write_node_cells(const json_t *node, uint64_t now_usec, json_t *cells) {
        const json_t *info = json_at(node, "status", "nodeInfo");

        add_name_cell(cells, node);
        add_node_status_cell(cells, node);
        add_node_roles_cell(cells, node);
        add_creation_cell(cells, node, now_usec);
        add_text_cell(cells, json_text(info, "kubeletVersion"));
        add_node_address_cell(cells, node, "InternalIP");
        add_node_address_cell(cells, node, "ExternalIP");
        add_text_cell_or(cells, json_text(info, "osImage"), "<unknown>");
        add_node_kernel_cell(cells, info);
        add_text_cell_or(cells, json_text(info, "containerRuntimeVersion"), "<unknown>");
}

const TableKind node_table_kind = { node_columns, write_node_cells };

/* ---- events ---- */

static const TableColumn event_columns[] = {
        TEXT("Last Seen"), TEXT("Type"),
        TEXT("Reason"),    TEXT("Object"),
        WIDE("Subobject"), WIDE("Source"),
        TEXT("Message"),   WIDE("First Seen"),
        WIDE("Count"),     { "Name", "string", "name", 1, "" },
        END_OF_COLUMNS,
};

static void add_event_object_cell(json_t *cells, const json_t *event) {
        const char *name = strna(json_text(event, "involvedObject", "name"));
        char kind[64], text[512];

        (void) snprintf(kind, sizeof(kind), "%s",
                        strna(json_text(event, "involvedObject", "kind")));
        for (char *c = kind; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        (void) snprintf(text, sizeof(text), "%s%s%s", kind, *name ? "/" : "", name);
        add_text_cell(cells, text);
}

static void add_event_source_cell(json_t *cells, const json_t *event) {
        const char *component = json_text(event, "source", "component");
        const char *host = json_text(event, "source", "host");
        char text[512];

        (void) snprintf(text, sizeof(text), "%s%s%s", strna(component), host ? ", " : "",
                        strna(host));
        add_text_cell(cells, text);
}

static void write_event_cells(const json_t *event, uint64_t now_usec, json_t *cells) {
        const char *first = json_text(event, "firstTimestamp");
        const char *last = json_text(event, "lastTimestamp");
        json_int_t count = json_integer_value(json_object_get(event, "count"));
        char number[32];

        (void) snprintf(number, sizeof(number), "%lld", (long long) (count > 0 ? count : 1));
        add_age_cell(cells, last ? last : first, now_usec);
        add_text_cell(cells, json_text(event, "type"));
        add_text_cell(cells, json_text(event, "reason"));
        add_event_object_cell(cells, event);
        add_text_cell(cells, json_text(event, "involvedObject", "fieldPath"));
        add_event_source_cell(cells, event);
        add_text_cell(cells, json_text(event, "message"));
        add_age_cell(cells, first, now_usec);
        add_text_cell(cells, number);
        add_name_cell(cells, event);
}

const TableKind event_table_kind = { event_columns, write_event_cells };

/* ---- DaemonSets and their revisions ---- */

static const TableColumn daemonset_columns[] = {
        NAME_COLUMN,           INTEGER("Desired"),   INTEGER("Current"),    INTEGER("Ready"),
        INTEGER("Up-to-date"), INTEGER("Available"), TEXT("Node Selector"), AGE_COLUMN,
        WIDE("Containers"),    WIDE("Images"),       WIDE("Selector"),      END_OF_COLUMNS,
};

static void write_daemonset_cells(const json_t *set, uint64_t now_usec, json_t *cells) {
        static const char *const counts[] = { "desiredNumberScheduled", "currentNumberScheduled",
                                              "numberReady", "updatedNumberScheduled",
                                              "numberAvailable" };
        const json_t *spec = json_at(set, "spec", "template", "spec");
        const json_t *containers = json_at(spec, "containers");

        add_name_cell(cells, set);
        for (size_t i = 0; i < N_ELEMENTS(counts); i++)
                add_number_cell(cells, json_at(set, "status", counts[i]));
        add_own_text_cell(cells, format_pairs(json_at(spec, "nodeSelector")));
        add_creation_cell(cells, set, now_usec);
        add_list_cell(cells, containers, "name");
        add_list_cell(cells, containers, "image");
        add_own_text_cell(cells, format_label_selector(json_at(set, "spec", "selector")));
}

const TableKind daemonset_table_kind = { daemonset_columns, write_daemonset_cells };

static const TableColumn controller_revision_columns[] = {
        NAME_COLUMN, TEXT("Controller"), TEXT("Revision"), AGE_COLUMN, END_OF_COLUMNS,
};

static void write_controller_revision_cells(const json_t *revision, uint64_t now_usec,
                                            json_t *cells) {
        const json_t *owner = json_array_get(json_at(revision, "metadata", "ownerReferences"), 0);
        char number[32], controller[300] = "<none>";

        if (owner)
                (void) snprintf(controller, sizeof(controller), "daemonset.apps/%s",
                                strna(json_text(owner, "name")));
        (void) snprintf(number, sizeof(number), "%lld",
                        (long long) json_integer_value(json_object_get(revision, "revision")));
        add_name_cell(cells, revision);
        add_text_cell(cells, controller);
        add_text_cell(cells, number);
        add_creation_cell(cells, revision, now_usec);
}

const TableKind controller_revision_table_kind = { controller_revision_columns,
                                                   write_controller_revision_cells };

/* ---- namespaces, ConfigMaps, Secrets, classes, leases ---- */

static const TableColumn namespace_columns[] = {
        NAME_COLUMN,
        TEXT("Status"),
        AGE_COLUMN,
        END_OF_COLUMNS,
};

static void write_namespace_cells(const json_t *namespace, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, namespace);
        add_text_cell(cells, json_text(namespace, "status", "phase"));
        add_creation_cell(cells, namespace, now_usec);
}

const TableKind namespace_table_kind = { namespace_columns, write_namespace_cells };

static void add_data_count_cell(json_t *cells, const json_t *object) {
        char number[32];

        (void) snprintf(number, sizeof(number), "%zu",
                        json_object_size(json_object_get(object, "data")) +
                                json_object_size(json_object_get(object, "binaryData")));
        add_text_cell(cells, number);
}

static const TableColumn config_map_columns[] = {
        NAME_COLUMN,
        TEXT("Data"),
        AGE_COLUMN,
        END_OF_COLUMNS,
};

static void write_config_map_cells(const json_t *object, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, object);
        add_data_count_cell(cells, object);
        add_creation_cell(cells, object, now_usec);
}

const TableKind config_map_table_kind = { config_map_columns, write_config_map_cells };

static const TableColumn secret_columns[] = {
        NAME_COLUMN, TEXT("Type"), TEXT("Data"), AGE_COLUMN, END_OF_COLUMNS,
};

static void write_secret_cells(const json_t *secret, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, secret);
        add_text_cell_or(cells, json_text(secret, "type"), "Opaque");
        add_data_count_cell(cells, secret);
        add_creation_cell(cells, secret, now_usec);
}

const TableKind secret_table_kind = { secret_columns, write_secret_cells };

static const TableColumn priority_class_columns[] = {
        NAME_COLUMN, INTEGER("Value"),         { "Global-Default", "boolean", "", 0, "" },
        AGE_COLUMN,  TEXT("PreemptionPolicy"), END_OF_COLUMNS,
};

static void write_priority_class_cells(const json_t *class, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, class);
        add_number_cell(cells, json_object_get(class, "value"));
        (void) json_array_append_new(
                cells, json_boolean(json_is_true(json_object_get(class, "globalDefault"))));
        add_creation_cell(cells, class, now_usec);
        add_text_cell_or(cells, json_text(class, "preemptionPolicy"), "PreemptLowerPriority");
}

const TableKind priority_class_table_kind = { priority_class_columns, write_priority_class_cells };

static const TableColumn runtime_class_columns[] = {
        NAME_COLUMN,
        TEXT("Handler"),
        AGE_COLUMN,
        END_OF_COLUMNS,
};

static void write_runtime_class_cells(const json_t *class, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, class);
        add_text_cell(cells, json_text(class, "handler"));
        add_creation_cell(cells, class, now_usec);
}

const TableKind runtime_class_table_kind = { runtime_class_columns, write_runtime_class_cells };

static const TableColumn lease_columns[] = {
        NAME_COLUMN,
        TEXT("Holder"),
        AGE_COLUMN,
        END_OF_COLUMNS,
};

static void write_lease_cells(const json_t *lease, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, lease);
        add_text_cell(cells, json_text(lease, "spec", "holderIdentity"));
        add_creation_cell(cells, lease, now_usec);
}

const TableKind lease_table_kind = { lease_columns, write_lease_cells };

/* ---- kinds without objects, and metrics ---- */

static const TableColumn service_columns[] = {
        NAME_COLUMN,     TEXT("Type"), TEXT("Cluster-IP"), TEXT("External-IP"),
        TEXT("Port(s)"), AGE_COLUMN,   WIDE("Selector"),   END_OF_COLUMNS,
};

static void write_service_cells(const json_t *service, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, service);
        add_text_cell(cells, json_text(service, "spec", "type"));
        add_text_cell(cells, json_text(service, "spec", "clusterIP"));
        add_text_cell(cells, "<none>");
        add_list_cell(cells, json_at(service, "spec", "ports"), "name");
        add_creation_cell(cells, service, now_usec);
        add_own_text_cell(cells, format_pairs(json_at(service, "spec", "selector")));
}

const TableKind service_table_kind = { service_columns, write_service_cells };

static const TableColumn disruption_budget_columns[] = {
        NAME_COLUMN, TEXT("Min Available"), TEXT("Max Unavailable"), AGE_COLUMN, END_OF_COLUMNS,
};

static void write_disruption_budget_cells(const json_t *budget, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, budget);
        add_text_cell_or(cells, json_text(budget, "spec", "minAvailable"), "N/A");
        add_text_cell_or(cells, json_text(budget, "spec", "maxUnavailable"), "N/A");
        add_creation_cell(cells, budget, now_usec);
}

const TableKind disruption_budget_table_kind = { disruption_budget_columns,
                                                 write_disruption_budget_cells };

static const TableColumn name_columns[] = {
        NAME_COLUMN,
        AGE_COLUMN,
        END_OF_COLUMNS,
};

static void write_name_and_age_cells(const json_t *object, uint64_t now_usec, json_t *cells) {
        add_name_cell(cells, object);
        add_creation_cell(cells, object, now_usec);
}

const TableKind name_table_kind = { name_columns, write_name_and_age_cells };
