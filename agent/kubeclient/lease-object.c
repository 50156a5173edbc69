/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the Lease of a node and its renewal. */

#include "agent/kubeclient/lease-object.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

/* A metav1.MicroTime has exactly six fractional digits. */
static json_t *format_micro_time(uint64_t realtime) {
        static const size_t length = sizeof("2026-01-02T03:04:05.123456") - 1;
        char buffer[RFC3339_SIZE];

        (void) format_rfc3339_nano(buffer, realtime);
        buffer[length] = 'Z';
        buffer[length + 1] = '\0';
        return json_string(buffer);
}

char *lease_object_new(const char *node_name, const char *node_uid, uint64_t now) {
        cleanup_json json_t *json = json_pack(
                "{s:s, s:s, s:{s:s, s:s, s:[{s:s, s:s, s:s, s:s}]}, s:{s:s, s:i, s:o}}", "kind",
                "Lease", "apiVersion", "coordination.k8s.io/v1", "metadata", "name", node_name,
                "namespace", LEASE_NAMESPACE, "ownerReferences", "apiVersion", "v1", "kind", "Node",
                "name", node_name, "uid", node_uid, "spec", "holderIdentity", node_name,
                "leaseDurationSeconds", LEASE_SECONDS, "renewTime", format_micro_time(now));

        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

int lease_object_renew(const char *known, const char *node_name, uint64_t now, char **ret_body) {
        cleanup_json json_t *json = json_loads(known, 0, NULL);
        json_t *spec = json_object_get(json, "spec");
        json_t *metadata = json_object_get(json, "metadata");
        const char *renewed = json_text(spec, "renewTime");
        uint64_t before = 0;
        char *body;

        if (!json_is_object(spec) || !json_is_object(metadata))
                return -EBADMSG;
        if (renewed)
                (void) parse_rfc3339(renewed, &before);
        (void) json_object_set_new(spec, "holderIdentity", json_string(node_name));
        (void) json_object_set_new(spec, "leaseDurationSeconds", json_integer(LEASE_SECONDS));
        (void) json_object_set_new(spec, "renewTime", format_micro_time(MAX(now, before + 1)));
        (void) json_object_del(metadata, "managedFields");
        body = json_to_text(json, JSON_COMPACT);
        if (!body)
                return -ENOMEM;
        *ret_body = body;
        return 0;
}

uint64_t lease_object_version(const char *json) {
        cleanup_json json_t *object = json_loads(json, 0, NULL);
        const char *version = json_string_value(
                json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

        return version ? strtoull(version, NULL, 10) : 0;
}
