/* SPDX-License-Identifier: Apache-2.0 */
/* The patches of a claim's status while its volume is expanded. */

#include "agent/apiserver/claim-updates.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#define METADATA "\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"}"

/* Returns the patch for a claim with this status, with sorted keys; "": no patch. */
static void expect_patch(const char *status, ClaimUpdate update, const char *expected) {
        cleanup_free char *text = NULL, *found = NULL;
        cleanup_json json_t *claim = NULL, *patch = NULL;

        REQUIRE(asprintf(&text, "{" METADATA ",\"status\":%s}", status) > 0);
        claim = json_loads(text, 0, NULL);
        REQUIRE(claim);
        patch = claim_update_patch(claim, &update, 0);
        found = patch ? json_to_text(patch, JSON_COMPACT | JSON_SORT_KEYS) : strdup("");
        EXPECT_STREQ(found, expected);
}

TEST(expansion_in_progress_replaces_only_a_pending_one)
{
        const ClaimUpdate update = { .kind = CLAIM_EXPANDING };

        expect_patch("{\"allocatedResourceStatuses\":{\"storage\":\"NodeResizePending\"}}", update,
                     "{" METADATA ",\"status\":{\"allocatedResourceStatuses\":{\"storage\":"
                     "\"NodeResizeInProgress\"}}}");
        expect_patch("{\"allocatedResourceStatuses\":{\"storage\":\"ControllerResizeInProgress\"}}",
                     update, "");
        expect_patch("{}", update, "");
}

TEST(expanded_volume_has_its_new_size_and_no_resize_condition)
{
        const ClaimUpdate update = { .kind = CLAIM_EXPANDED, .size = "2Gi" };

        expect_patch("{\"conditions\":[{\"type\":\"Other\"},{\"type\":\"FileSystemResizePending\"}"
                     "],\"allocatedResourceStatuses\":{\"storage\":\"NodeResizeInProgress\"}}",
                     update,
                     "{" METADATA ",\"status\":{\"allocatedResourceStatuses\":null,\"capacity\":{"
                     "\"storage\":\"2Gi\"},\"conditions\":[{\"$patch\":\"delete\",\"type\":"
                     "\"FileSystemResizePending\"}]}}");
        expect_patch(
                "{\"allocatedResourceStatuses\":{\"storage\":\"a\",\"x.example.com/y\":\"b\"}}",
                update,
                "{" METADATA ",\"status\":{\"allocatedResourceStatuses\":{\"storage\":null},"
                "\"capacity\":{\"storage\":\"2Gi\"},\"conditions\":[]}}");
}

TEST(failed_expansion_is_a_condition_once)
{
        expect_patch("{}", (ClaimUpdate){ .kind = CLAIM_EXPANSION_FAILED, .message = "no" },
                     "{" METADATA ",\"status\":{\"conditions\":[{\"lastProbeTime\":null,"
                     "\"lastTransitionTime\":\"1970-01-01T00:00:00Z\",\"message\":"
                     "\"failed to expand pvc with no\",\"status\":\"True\",\"type\":"
                     "\"NodeResizeError\"}]}}");
        expect_patch("{\"conditions\":[{\"type\":\"NodeResizeError\",\"status\":\"True\"}]}",
                     (ClaimUpdate){ .kind = CLAIM_EXPANSION_FAILED, .message = "no" }, "");
        expect_patch("{\"conditions\":[{\"type\":\"NodeResizeError\",\"status\":\"True\"}]}",
                     (ClaimUpdate){ .kind = CLAIM_EXPANSION_INFEASIBLE, .message = "no" },
                     "{" METADATA ",\"status\":{\"allocatedResourceStatuses\":{\"storage\":"
                     "\"NodeResizeInfeasible\"}}}");
}
