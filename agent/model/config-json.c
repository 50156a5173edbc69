/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/config-json.h"

#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/json-text.h"

char *config_to_masked_json(const Config *config) {
        return object_to_json(&config_schema, config);
}

/* The kubelet also shows the defaults of settings that are not configured. This agent shows only
 * the defaults of the kubelet's resource managers, because exporters of a node's topology read
 * them. */
static json_t *kubelet_defaults(void) {
        return json_pack("{s:b, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:s, s:i, s:s}", "cgroupsPerQOS",
                         1, "cpuManagerPolicy", "none", "memoryManagerPolicy", "None",
                         "topologyManagerPolicy", "none", "topologyManagerScope", "container",
                         "cpuCFSQuota", 1, "enableControllerAttachDetach", 1, "failSwapOn", 0,
                         "configMapAndSecretChangeDetectionStrategy", "Watch", "maxPods",
                         MAX_PODS_DEFAULT, "containerRuntimeEndpoint", "");
}

char *config_to_configz_json(const Config *config) {
        cleanup_free char *text = object_to_json(&config_schema, config);
        cleanup_json json_t *json = NULL, *defaults = kubelet_defaults();
        json_t *object = text ? json_loads(text, 0, NULL) : NULL;

        if (!object || !defaults || json_object_update_missing(object, defaults) < 0) {
                json_decref(object);
                return NULL;
        }
        (void) json_object_del(object, "mainstay");
        (void) json_object_set_new(object, "kind", json_string("KubeletConfiguration"));
        (void) json_object_set_new(object, "apiVersion",
                                   json_string("kubelet.config.k8s.io/v1beta1"));
        json = json_pack("{s:o}", "kubeletconfig", object);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}
