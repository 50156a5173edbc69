/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/config-json.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(configz_has_no_user_password_path_or_query_of_a_url)
{
        static const struct {
                const char *url, *shown;
        } cases[] = {
                { "https://ann:secret@example.com:8443/pods.yaml?token=secret",
                  "\"staticPodURL\":\"https://<masked>@example.com:8443/<masked>\"" },
                { "http://example.com/secret/pods", "\"http://example.com/<masked>\"" },
                { "http://example.com?secret", "\"http://example.com/<masked>\"" },
                { "http://ann@se@cret@example.com#secret",
                  "\"http://<masked>@example.com/<masked>\"" },
                { "http://example.com/", "\"http://example.com/\"" },
                { "http://[::1]:80", "\"http://[::1]:80\"" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *url = strdup(cases[i].url), *text = NULL;
                Config config = { .static_pod_url = url };

                text = config_to_configz_json(&config);
                EXPECT(strstr(text, cases[i].shown));
                EXPECT(!strstr(text, "secret") && !strstr(text, "cret@"));
        }
}

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

TEST(configz_shows_the_kubelets_defaults_for_unset_settings)
{
        Config config = { .max_pods = { .is_set = true, .value = 7 } };
        cleanup_free char *text = config_to_configz_json(&config);

        EXPECT(strstr(text, "\"topologyManagerPolicy\":\"none\""));
        EXPECT(strstr(text, "\"topologyManagerScope\":\"container\""));
        EXPECT(strstr(text, "\"cpuManagerPolicy\":\"none\""));
        EXPECT(strstr(text, "\"memoryManagerPolicy\":\"None\""));
        EXPECT(strstr(text, "\"failSwapOn\":false"));
        EXPECT(strstr(text, "\"maxPods\":7"));
}
