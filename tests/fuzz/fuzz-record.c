/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the agent itself has written: records of pods and DaemonSets, templates of revisions,
 * notes about attempts. The result is written and read again. */

#include "tests/fuzz/fuzz.h"

#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/pods/container/attempt-checkpoint.h"
#include "common/cleanup.h"

static void check_pod_record(const char *text, size_t size) {
        cleanup_with(pod_freep) Pod *pod = NULL, *again = NULL, *changed = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *json = NULL;

        if (manifest_parse_changed_record(text, size, &changed, NULL) >= 0)
                assert(changed->metadata.uid && changed->metadata.namespace);
        if (manifest_parse_record(text, size, &pod, &error) < 0) {
                assert(error.message);
                return;
        }
        json = pod_to_json(pod, NULL);
        assert(json && manifest_parse_record(json, strlen(json), &again, NULL) >= 0);
        assert(pod_spec_equal(&pod->spec, &again->spec));
}

static void check_other_records(const char *text, size_t size) {
        cleanup_with(daemonset_freep) DaemonSet *set = NULL;
        AttemptCheckpoint checkpoint = { 0 };
        Pod template = { 0 };

        if (manifest_parse_template(text, size, &template, NULL) >= 0)
                schema_done(&pod_template_schema, &template);
        if (manifest_parse_daemonset(text, size, &set, NULL) >= 0)
                assert(set->metadata.name && set->spec.selector);
        attempt_checkpoint_parse(text, &checkpoint);
        free(checkpoint.image_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size);

        assert(text);
        check_pod_record(text, strlen(text));
        check_other_records(text, strlen(text));
        return 0;
}
