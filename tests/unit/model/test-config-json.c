/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/config-json.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(configz_is_a_kubelet_configuration_without_the_mainstay_section)
{
        char directory[] = "/manifests", proxy[] = "/var/run/crun";
        Config config = { .static_pod_path = directory, .mainstay = { .runtime = proxy } };
        cleanup_free char *text = config_to_configz_json(&config);

        EXPECT(strncmp(text, "{\"kubeletconfig\":{", 18) == 0);
        EXPECT(strstr(text, "\"staticPodPath\":\"/manifests\""));
        EXPECT(strstr(text, "\"kind\":\"KubeletConfiguration\""));
        EXPECT(strstr(text, "\"apiVersion\":\"kubelet.config.k8s.io/v1beta1\""));
        EXPECT(!strstr(text, "mainstay"));
        EXPECT(!strstr(text, "crun"));
}
