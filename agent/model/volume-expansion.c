/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/volume-expansion.h"

#include "common/strv.h"

/* The claim's controller sets this annotation. */
static const char not_on_nodes[] = "volume.kubernetes.io/node-expansion-not-required";

static bool is_expanded_on_each_node(const DataObject *claim) {
        return strv_contains(claim->claim.spec.access_modes, "ReadWriteMany") &&
               !string_map_get(&claim->metadata.annotations, not_on_nodes);
}

/* The stages that a current controller has recorded. */
static VolumeExpansionStep plan_by_status(const DataObject *claim, bool is_reported) {
        const char *status = strna(claim->claim.status.resize_status.storage);

        if (is_reported)
                return is_expanded_on_each_node(claim) ? VOLUME_EXPANSION_CALL
                                                       : VOLUME_EXPANSION_NONE;
        if (streq(status, "NodeResizePending"))
                return VOLUME_EXPANSION_MARK;
        return streq(status, "NodeResizeInProgress") ? VOLUME_EXPANSION_CALL
                                                     : VOLUME_EXPANSION_NONE;
}

VolumeExpansion plan_volume_expansion(const DataObject *claim, const DataObject *volume,
                                      int64_t known_bytes, bool is_read_only) {
        const VolumeClaimStatus *status = &claim->claim.status;
        VolumeExpansion plan = { .size = &volume->volume.capacity.storage,
                                 .has_status = status->resize_status.storage ||
                                               quantity_is_set(&status->allocated.storage) };

        if (known_bytes <= 0 || plan.size->value <= known_bytes)
                return plan;
        if (is_read_only) {
                plan.step = VOLUME_EXPANSION_READ_ONLY;
                return plan;
        }
        if (plan.has_status)
                plan.size = &status->allocated.storage;
        if (!quantity_is_set(plan.size))
                return plan;
        plan.is_reported = status->capacity.storage.value >= plan.size->value &&
                           !status->resize_status.storage;
        plan.is_outdated = claim->claim.spec.resources.requests.storage.value != plan.size->value;
        plan.step =
                plan.has_status ? plan_by_status(claim, plan.is_reported) : VOLUME_EXPANSION_CALL;
        return plan;
}

bool volume_claim_is_resizing(const VolumeClaim *claim) {
        return claim->status.resize_status.storage ||
               claim->spec.resources.requests.storage.value > claim->status.capacity.storage.value;
}
