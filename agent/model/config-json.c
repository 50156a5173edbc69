/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/config-json.h"

#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/json-text.h"

char *config_to_masked_json(const Config *config) {
        return object_to_json(&config_schema, config);
}

char *config_to_configz_json(const Config *config) {
        cleanup_free char *text = object_to_json(&config_schema, config);
        cleanup_json json_t *json = NULL;
        json_t *object = text ? json_loads(text, 0, NULL) : NULL;

        if (!object)
                return NULL;
        (void) json_object_del(object, "mainstay");
        (void) json_object_set_new(object, "kind", json_string("KubeletConfiguration"));
        (void) json_object_set_new(object, "apiVersion",
                                   json_string("kubelet.config.k8s.io/v1beta1"));
        json = json_pack("{s:o}", "kubeletconfig", object);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}
