/* SPDX-License-Identifier: Apache-2.0 */
/* An object from a list or a watch of an API server: any kind that the agent reads, or only the
 * metadata. The first byte selects the kind. */

#include "tests/fuzz/fuzz.h"

#include "agent/kubeclient/json-view.h"
#include "agent/kubeclient/object-summary.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"

static const char *const kinds[] = { "Pod",       "ConfigMap", "Secret",           "PriorityClass",
                                     "DaemonSet", "List",      "PersistentVolume", "RuntimeClass" };

static void check_views(const char *text, size_t size) {
        const JsonView object = { text, size };
        const JsonView member = json_view_member(object, "metadata");
        cleanup_free char *name = json_view_dup(json_view_string(json_view_member(member, "name")));
        cleanup_free char *message = json_view_message(json_view_member(object, "message"));

        (void) json_view_number(json_view_member(object, "code"));
        assert(!name || strlen(name) <= size);
        assert(!message || strlen(message) <= size);
        assert(!member.text || (member.text >= text && member.text + member.length <= text + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *text = NULL;
        KubeObjectSummary summary = { 0 };
        const char *kind;

        if (size == 0)
                return 0;
        kind = kinds[data[0] % N_ELEMENTS(kinds)];
        text = strndup((const char *) data + 1, size - 1);
        assert(text);
        size = strlen(text);
        if (manifest_parse_api("api", kind, text, size, "node1", &objects, &error) < 0)
                assert(error.message);
        if (kube_object_summary_parse(text, size, &summary, NULL) >= 0)
                assert(summary.name && summary.uid);
        kube_object_summary_done(&summary);
        check_views(text, size);
        return 0;
}
