/* SPDX-License-Identifier: Apache-2.0 */

/* The table of the DaemonSet, in the order of Kubernetes' types. */

#include "agent/model/daemonset.h"
#include "agent/model/names.h"
#include "agent/model/schema.h"

#include <errno.h>
#include <stdlib.h>

#define REQUIRED  .is_required = true
#define CHECK(fn) .check = (fn)

const char *const daemonset_strategy_names[N_DAEMONSET_STRATEGIES] = {
        [DAEMONSET_ROLLING_UPDATE] = "RollingUpdate",
        [DAEMONSET_ON_DELETE] = "OnDelete",
};

/* clang-format off */
static const Field rolling_update_fields[] = {
        FIELD("maxUnavailable",         INT_OR_STRING, RollingUpdateDaemonSet, max_unavailable,
              CHECK(check_percentage), .min = 0, .max = INT32_MAX),
        FIELD("maxSurge",               INT_OR_STRING, RollingUpdateDaemonSet, max_surge,
              CHECK(check_percentage), .min = 0, .max = INT32_MAX),
};
static const Schema rolling_update_schema = SCHEMA(RollingUpdateDaemonSet, rolling_update_fields);

static const Field update_strategy_fields[] = {
        FIELD("type",                   ENUM,       DaemonSetUpdateStrategy, type,
              ENUM_NAMES(daemonset_strategy_names),
              .other = DAEMONSET_ON_DELETE, .ignores_other = true),
        FIELD("rollingUpdate",          OPTIONAL,   DaemonSetUpdateStrategy, rolling_update,
              .schema = &rolling_update_schema),
};
static const Schema update_strategy_schema =
        SCHEMA(DaemonSetUpdateStrategy, update_strategy_fields);

/* The template's name is ignored: pods are named after the DaemonSet. */
static const Field template_meta_fields[] = {
        IGNORED("name"),
        IGNORED("generateName"),
        IGNORED("namespace"),
        IGNORED("creationTimestamp"),
        FIELD("labels",                 STRING_MAP, ObjectMeta, labels),
        FIELD("annotations",            STRING_MAP, ObjectMeta, annotations),
        IGNORED("ownerReferences"),
        REFUSED("finalizers"),
};
static const Schema template_meta_schema = {
        .name = "ObjectMeta", .size = sizeof(ObjectMeta),
        .fields = template_meta_fields, .n_fields = N_ELEMENTS(template_meta_fields),
};

static const Field pod_template_fields[] = {
        FIELD("metadata",               OBJECT,     Pod, metadata, .schema = &template_meta_schema),
        FIELD("spec",                   OBJECT,     Pod, spec, REQUIRED, .schema = &pod_spec_schema),
};
const Schema pod_template_schema = {
        .name = "PodTemplateSpec", .size = sizeof(Pod),
        .fields = pod_template_fields, .n_fields = N_ELEMENTS(pod_template_fields),
};

static const Field daemonset_spec_fields[] = {
        FIELD("selector",               OPTIONAL,   DaemonSetSpec, selector,
              .schema = &label_selector_schema),
        FIELD("template",               OBJECT,     DaemonSetSpec, template, REQUIRED,
              .schema = &pod_template_schema),
        FIELD("updateStrategy",         OBJECT,     DaemonSetSpec, update_strategy,
              .schema = &update_strategy_schema),
        FIELD("minReadySeconds",        INT,        DaemonSetSpec, min_ready_seconds,
              .min = 0, .max = INT32_MAX),
        /* A counter from old API versions, which is never set now. */
        IGNORED("templateGeneration"),
        FIELD("revisionHistoryLimit",   INT,        DaemonSetSpec, revision_history_limit,
              .min = 0, .max = INT32_MAX),
};
const Schema daemonset_spec_schema = SCHEMA(DaemonSetSpec, daemonset_spec_fields);

static const Field daemonset_fields[] = {
        IGNORED("kind"),
        FIELD("apiVersion",             STRING,     DaemonSet, api_version),
        FIELD("metadata",               OBJECT,     DaemonSet, metadata, REQUIRED,
              .schema = &object_meta_schema),
        FIELD("spec",                   OBJECT,     DaemonSet, spec, REQUIRED,
              .schema = &daemonset_spec_schema),
        IGNORED("status"),
};
const Schema daemonset_schema = SCHEMA(DaemonSet, daemonset_fields);
/* clang-format on */

DaemonSet *daemonset_free(DaemonSet *set) {
        if (set) {
                schema_done(&daemonset_schema, set);
                free(set);
        }
        return NULL;
}

int daemonset_copy(const DaemonSet *set, DaemonSet **ret) {
        DaemonSet *copy = calloc(1, sizeof(*copy));
        int r = copy ? schema_copy(&daemonset_schema, copy, set) : -ENOMEM;

        if (r < 0) {
                free(copy);
                return r;
        }
        copy->metadata.source = set->metadata.source;
        *ret = copy;
        return 0;
}

int64_t int_or_percent_of_one(const IntOrString *value, bool round_up) {
        int64_t percent;

        if (!value->text)
                return value->number.value;
        percent = strtoll(value->text, NULL, 10);
        return round_up ? (percent + 99) / 100 : percent / 100;
}
