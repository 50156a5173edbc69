/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest of any bytes results in pods that can be written and read again, or in one error. */

#include "tests/fuzz/fuzz.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/strv.h"

static void check_parsed_pod(const Pod *pod) {
        cleanup_with(pod_freep) Pod *again = NULL;
        cleanup_free char *first = pod_to_json(pod, NULL), *second = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        assert(first);
        assert(pod->metadata.name && pod->metadata.namespace && pod->metadata.uid);
        assert(pod->spec.containers.n > 0);
        r = manifest_parse_record(first, strlen(first), &again, &error);
        assert(r >= 0);
        second = pod_to_json(again, NULL);
        assert(second && streq(first, second));
        assert(pod_spec_equal(&pod->spec, &again->spec));
}

/* Any valid DaemonSet can be evaluated, and its pod can be created and recorded. */
static void check_parsed_daemonset(const DaemonSet *set) {
        static char name[] = "node1";
        const NodeLabelsTaints node = { .name = name };
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        cleanup_with(pod_freep) Pod *pod = NULL;
        char hash[REVISION_HASH_SIZE];
        int r = daemonset_evaluate_placement(set, &node, &(NodePods){ 0 }, 0, &decision);

        assert(r >= 0 && decision.why);
        r = daemonset_revision_hash(&set->spec.template, hash);
        if (r >= 0)
                r = daemonset_make_pod(set, &set->spec.template, hash, 1, name, &pod);
        assert(r >= 0);
        check_parsed_pod(pod);
}

/* Errors that are only warnings elsewhere: an unknown or misplaced field, and a mount that cannot
 * be made. */
static bool has_mistake_without_error(char **errors) {
        strv_foreach(message, errors)
                if (strstr(*message, ": is not a field of ") || strstr(*message, "; it belongs ") ||
                    strstr(*message, ": cannot be mounted: "))
                        return true;
        return false;
}

/* Validation that reports all errors has the same first error, except for mistakes about which the
 * agent only warns: those come before the errors that they explain, or replace them. */
static void check_all_errors(const uint8_t *data, size_t size, int verdict, const Error *error) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_strv char **errors = NULL;
        int r = manifest_validate("fuzz.yaml", (const char *) data, size, "node1", &objects,
                                  &errors);

        assert((r >= 0) == !errors && (verdict >= 0 || r < 0));
        if (errors && !has_mistake_without_error(errors))
                assert(verdict < 0 && streq(errors[0], error->message));
        strv_foreach(message, errors)
                assert(strncmp(*message, "fuzz.yaml", 9) == 0 && !strchr(*message, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse("fuzz.yaml", (const char *) data, size, "node1", &objects, &error);

        check_all_errors(data, size, r, &error);
        if (r < 0) {
                assert(error.message && strncmp(error.message, "fuzz.yaml", 9) == 0);
                assert(!strchr(error.message, '\n'));
                return 0;
        }
        for (size_t i = 0; i < objects.pods.n; i++)
                check_parsed_pod(objects.pods.items[i]);
        for (size_t i = 0; i < objects.daemonsets.n; i++)
                check_parsed_daemonset(objects.daemonsets.items[i]);
        return 0;
}
