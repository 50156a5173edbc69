/* SPDX-License-Identifier: Apache-2.0 */
/* When a volume is expanded on this node. */

#include "agent/model/volume-expansion.h"
#include "common/cleanup.h"
#include "tests/test.h"

typedef struct ExpansionCase {
        const char *volume, *requested, *reported, *allocated, *status; /* NULL: unset */
        int64_t known_mib;
        const char *mode;
        bool is_read_only;
        VolumeExpansionStep step;
        const char *size; /* requested by the expansion, if one is due */
        bool is_outdated;
} ExpansionCase;

static const ExpansionCase cases[] = {
        /* nothing is due */
        { "1Gi", "1Gi", "1Gi", NULL, NULL, 1024, NULL, false, VOLUME_EXPANSION_NONE, NULL, false },
        { "1Gi", "1Gi", "1Gi", NULL, NULL, 0, NULL, false, VOLUME_EXPANSION_NONE, NULL, false },
        { "1Gi", "2Gi", "1Gi", "2Gi", "ControllerResizeInProgress", 1024, NULL, false,
          VOLUME_EXPANSION_NONE, NULL, false },
        /* a controller that does not report the stages of the expansion */
        { "2Gi", "2Gi", "1Gi", NULL, NULL, 1024, NULL, false, VOLUME_EXPANSION_CALL, "2Gi", false },
        { "2Gi", "2Gi", "1Gi", NULL, NULL, 1024, NULL, true, VOLUME_EXPANSION_READ_ONLY, "2Gi",
          false },
        /* a controller that reports the stages */
        { "2Gi", "2Gi", "1Gi", "2Gi", "NodeResizePending", 1024, NULL, false, VOLUME_EXPANSION_MARK,
          "2Gi", false },
        { "2Gi", "2Gi", "1Gi", "2Gi", "NodeResizeInProgress", 1024, NULL, false,
          VOLUME_EXPANSION_CALL, "2Gi", false },
        { "3Gi", "2Gi", "1Gi", "3Gi", "NodeResizeInProgress", 1024, NULL, false,
          VOLUME_EXPANSION_CALL, "3Gi", true },
        { "2Gi", "2Gi", "1Gi", "2Gi", "NodeResizeInfeasible", 1024, NULL, false,
          VOLUME_EXPANSION_NONE, NULL, false },
        { "2Gi", "2Gi", "1Gi", "2Gi", "Unheard", 1024, NULL, false, VOLUME_EXPANSION_NONE, NULL,
          false },
        { "2Gi", "2Gi", "1Gi", NULL, "NodeResizePending", 1024, NULL, false, VOLUME_EXPANSION_NONE,
          NULL, false },
        /* another node has expanded it */
        { "2Gi", "2Gi", "2Gi", "2Gi", NULL, 1024, "ReadWriteOnce", false, VOLUME_EXPANSION_NONE,
          NULL, false },
        { "2Gi", "2Gi", "2Gi", "2Gi", NULL, 1024, "ReadWriteMany", false, VOLUME_EXPANSION_CALL,
          "2Gi", false },
};

static Quantity quantity(const char *text) {
        Quantity result = { 0 };

        if (text)
                REQUIRE(quantity_parse(text, &result, NULL) >= 0);
        return result;
}

TEST(expansion_is_planned_by_claim_and_volume)
{
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const ExpansionCase *one = &cases[i];
                char *modes[] = { (char *) (uintptr_t) one->mode, NULL };
                DataObject volume = { .volume.capacity.storage = quantity(one->volume) };
                DataObject claim = {
                        .claim = { .spec = { .access_modes = modes,
                                             .resources.requests.storage =
                                                     quantity(one->requested) },
                                   .status = { .capacity.storage = quantity(one->reported),
                                               .allocated.storage = quantity(one->allocated),
                                               .resize_status.storage =
                                                       (char *) (uintptr_t) one->status } }
                };
                VolumeExpansion plan = plan_volume_expansion(&claim, &volume, one->known_mib << 20,
                                                             one->is_read_only);

                EXPECT_EQ(plan.step, one->step);
                if (one->step != VOLUME_EXPANSION_NONE) {
                        EXPECT_STREQ(plan.size->text, one->size);
                        EXPECT_EQ(plan.is_outdated, one->is_outdated);
                }
                quantity_done(&volume.volume.capacity.storage);
                quantity_done(&claim.claim.spec.resources.requests.storage);
                quantity_done(&claim.claim.status.capacity.storage);
                quantity_done(&claim.claim.status.allocated.storage);
        }
}
