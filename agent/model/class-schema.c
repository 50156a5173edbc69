/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of the fields of PriorityClass and RuntimeClass. */

#include "agent/model/names.h"
#include "agent/model/object.h"

const char *const preemption_policy_names[N_PREEMPTION_POLICIES] = {
        [PREEMPTION_LOWER_PRIORITY] = "PreemptLowerPriority",
        [PREEMPTION_NEVER] = "Never",
};

/* clang-format off */
static const Field priority_class_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("value",                  INT,        DataObject, priority.value, .is_required = true,
              .min = INT32_MIN, .max = INT32_MAX),
        FIELD("globalDefault",          BOOL,       DataObject, priority.global_default),
        FIELD("description",            STRING,     DataObject, priority.description),
        FIELD("preemptionPolicy",       ENUM,       DataObject, priority.preemption_policy,
              ENUM_NAMES(preemption_policy_names), .ignores_other = true),
};
const Schema priority_class_schema = {
        .name = "PriorityClass", .size = sizeof(DataObject),
        .fields = priority_class_fields, .n_fields = N_ELEMENTS(priority_class_fields),
};

static const Field runtime_overhead_fields[] = {
        FIELD("podFixed",               OBJECT,     RuntimeOverhead, pod_fixed,
              .schema = &resource_list_schema),
};
static const Schema runtime_overhead_schema = {
        .name = "Overhead", .size = sizeof(RuntimeOverhead),
        .fields = runtime_overhead_fields, .n_fields = N_ELEMENTS(runtime_overhead_fields),
};

static const Field runtime_class_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("handler",                STRING,     DataObject, runtime.handler, .is_required = true,
              .check = check_dns_label),
        FIELD("overhead",               OBJECT,     DataObject, runtime.overhead,
              .schema = &runtime_overhead_schema),
        /* Used by schedulers; pods on this node are already scheduled. */
        IGNORED("scheduling"),
};
const Schema runtime_class_schema = {
        .name = "RuntimeClass", .size = sizeof(DataObject),
        .fields = runtime_class_fields, .n_fields = N_ELEMENTS(runtime_class_fields),
};
/* clang-format on */
