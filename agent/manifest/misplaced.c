/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/misplaced.h"

#include <string.h>

static const char of_pod_spec[] = "the pod's spec";
static const char of_container[] = "a container";
static const char of_metadata[] = "the metadata";

/* By the name of the object that has the key. The first row that knows the key counts. */
static const struct {
        const char *found_in;
        FieldHome home;
} homes[] = {
        { "PodTemplateSpec", { &pod_spec_schema, of_pod_spec, "spec.template.spec", true } },
        { "PodTemplateSpec",
          { &container_schema, of_container, "spec.template.spec.containers[]", false } },
        { "ObjectMeta", { &pod_spec_schema, of_pod_spec, NULL, false } },
        { "DaemonSetSpec", { &pod_spec_schema, of_pod_spec, "spec.template.spec", false } },
        { "DaemonSetSpec",
          { &container_schema, of_container, "spec.template.spec.containers[]", false } },
        { "DaemonSet", { &daemonset_spec_schema, "the DaemonSet's spec", "spec", false } },
        { "DaemonSet", { &pod_spec_schema, of_pod_spec, "spec.template.spec", false } },
        { "DaemonSet", { &object_meta_schema, of_metadata, "metadata", false } },
        { "DaemonSet",
          { &container_schema, of_container, "spec.template.spec.containers[]", false } },
        { "Pod", { &pod_spec_schema, of_pod_spec, "spec", false } },
        { "Pod", { &object_meta_schema, of_metadata, "metadata", false } },
        { "Pod", { &container_schema, of_container, "spec.containers[]", false } },
        { "PodSpec", { &container_schema, of_container, "containers[]", false } },
        { "PodSpec",
          { &pod_security_context_schema, "the pod's security context", "securityContext",
            false } },
        { "Container", { &pod_spec_schema, of_pod_spec, NULL, false } },
        { "Container",
          { &security_context_schema, "the security context", "securityContext", false } },
        { "Container", { &resource_requirements_schema, "the resources", "resources", false } },
};

static bool has_key(const Schema *schema, const char *key) {
        for (size_t i = 0; i < schema->n_fields; i++)
                if (streq(schema->fields[i].key, key))
                        return true;
        return false;
}

bool find_field_home(const Schema *schema, const char *key, bool in_template, FieldHome *ret) {
        for (size_t i = 0; i < N_ELEMENTS(homes); i++) {
                if (!streq(homes[i].found_in, schema->name) || !has_key(homes[i].home.schema, key))
                        continue;
                *ret = homes[i].home;
                if (!ret->place) {
                        ret->place = in_template ? "spec.template.spec" : "spec";
                        ret->is_error = in_template && streq(schema->name, "ObjectMeta");
                }
                return true;
        }
        return false;
}
