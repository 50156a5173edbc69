/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>

static const char *config_path(void) {
        static char path[128];

        (void) snprintf(path, sizeof(path), "%s/config.yaml", test_directory());
        return path;
}

static void write_config(const char *yaml) {
        REQUIRE(write_file_atomic_at(AT_FDCWD, config_path(), yaml, strlen(yaml), 0644) == 0);
}

/* The error after the path, or "". */
static const char *load(const char *yaml, Config *config, char ***warnings) {
        static char text[512];
        cleanup_error Error error = ERROR_NULL;
        const char *message;

        write_config(yaml);
        if (kubelet_config_load(config_path(), config, warnings, &error) >= 0)
                return "";
        message = error.message ? error.message : "no message";
        if (strncmp(message, config_path(), strlen(config_path())) == 0)
                message += strlen(config_path());
        (void) snprintf(text, sizeof(text), "%s", message);
        return text;
}

static void expect_defaults(const Config *config) {
        EXPECT(config->static_pod_path == NULL);
        EXPECT_STREQ(config->cgroup_root, "/");
        EXPECT_STREQ(config->cgroup_driver, NULL);
        EXPECT_STREQ(config->mainstay.runtime, "runc");
        EXPECT_STREQ(config->mainstay.cni_bin_dir, "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni");
        EXPECT_EQ(config->log_max_size_bytes, 10 * MIB);
        EXPECT_EQ(config->container_log_max_files.value, 5);
        EXPECT_EQ(config->pod_pids_limit.value, -1);
        EXPECT_EQ(config->back_off_initial_usec, 10 * USEC_PER_SEC);
        EXPECT_EQ(config->back_off_max_usec, 300 * USEC_PER_SEC);
}

TEST(missing_configuration_gives_the_defaults)
{
        cleanup_error Error error = ERROR_NULL;
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_EQ(kubelet_config_load(config_path(), &config, &warnings, &error), 0);
        EXPECT(warnings == NULL);
        expect_defaults(&config);
        config_done(&config);
}

TEST(maximum_age_of_images_must_exceed_the_minimum_age)
{
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("imageMaximumGCAge: 24h\n", &config, &warnings), "");
        EXPECT_EQ(config.image_gc_max_age_usec, UINT64_C(24) * 60 * 60 * USEC_PER_SEC);
        config_done(&config);
        config = (Config){ 0 };
        EXPECT(strstr(load("imageMaximumGCAge: 2m\n", &config, &warnings),
                      "imageMaximumGCAge must be greater than imageMinimumGCAge, 2m is not greater "
                      "than 2m"));
        config_done(&config);
}

TEST(empty_document_gives_the_defaults)
{
        static const char *const empty[] = { "# nothing\n", "---\n", "{}" };

        for (size_t i = 0; i < N_ELEMENTS(empty); i++) {
                char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(empty[i], &config, &warnings), "");
                EXPECT(warnings == NULL);
                expect_defaults(&config);
                config_done(&config);
        }
}

TEST(empty_configuration_file_is_an_error)
{
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("", &config, &warnings),
                     ": the file is empty (for the defaults remove it, or write '{}' into it)");
}

TEST(settings_are_read_under_their_own_names)
{
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("apiVersion: kubelet.config.k8s.io/v1beta1\n"
                          "kind: KubeletConfiguration\n"
                          "staticPodPath: /srv/pods\n"
                          "cgroupRoot: /pods\n"
                          "cgroupDriver: cgroupfs\n"
                          "containerLogMaxSize: 1Mi\n"
                          "containerLogMaxFiles: 3\n"
                          "podPidsLimit: 100\n"
                          "crashLoopBackOff: {maxContainerRestartPeriod: 1m}\n"
                          "mainstay: {runtime: /usr/bin/crun}\n",
                          &config, &warnings),
                     "");
        EXPECT(warnings == NULL);
        EXPECT_STREQ(config.static_pod_path, "/srv/pods");
        EXPECT_STREQ(config.cgroup_root, "/pods");
        EXPECT_EQ(config.log_max_size_bytes, MIB);
        EXPECT_EQ(config.container_log_max_files.value, 3);
        EXPECT_EQ(config.pod_pids_limit.value, 100);
        EXPECT_EQ(config.back_off_max_usec, 60 * USEC_PER_SEC);
        EXPECT_EQ(config.back_off_initial_usec, 10 * USEC_PER_SEC);
        EXPECT_STREQ(config.mainstay.runtime, "/usr/bin/crun");
        config_done(&config);
}

TEST(a_manifest_url_has_headers_and_an_interval)
{
        static const struct {
                const char *yaml, *error;
        } cases[] = {
                { "staticPodURL: ftp://secret@x/", ":1:15: staticPodURL: must start with http:// "
                                                   "or https://" },
                { "staticPodURL: 'https://x/ y'", ":1:15: staticPodURL: must not contain spaces" },
                { "httpCheckFrequency: 20ms", ":1:21: httpCheckFrequency: must be at least 1s" },
                { "staticPodURLHeader: {A: [\"s\\r\\nB: t\"]}",
                  ":1:26: staticPodURLHeader[A][0]: must be one line of text" },
                { "staticPodURLHeader: {A: secret}",
                  ":1:25: staticPodURLHeader[A]: must be a list of strings" },
        };
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("staticPodURL: https://example.com/pods\nhttpCheckFrequency: 1m\n"
                          "staticPodURLHeader: {Metadata-Flavor: [Google], X-Two: [a, b]}\n",
                          &config, &warnings),
                     "");
        EXPECT_STREQ(config.static_pod_url, "https://example.com/pods");
        EXPECT_EQ(config.http_check_usec, 60 * USEC_PER_SEC);
        REQUIRE(config.static_pod_url_header.n == 2);
        EXPECT_STREQ(config.static_pod_url_header.items[1].name, "X-Two");
        EXPECT_STREQ(config.static_pod_url_header.items[1].values[1], "b");
        config_done(&config);
        EXPECT_STREQ(load("staticPodURL: ''\nhttpCheckFrequency: 0s\n", &config, &warnings), "");
        EXPECT_EQ(config.http_check_usec, 20 * USEC_PER_SEC);
        config_done(&config);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_STREQ(load(cases[i].yaml, &config, &warnings), cases[i].error);
}

TEST(a_short_maximum_shortens_the_first_back_off)
{
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("crashLoopBackOff: {maxContainerRestartPeriod: 2s}", &config, &warnings),
                     "");
        EXPECT_EQ(config.back_off_max_usec, 2 * USEC_PER_SEC);
        EXPECT_EQ(config.back_off_initial_usec, 2 * USEC_PER_SEC);
        config_done(&config);
}

TEST(settings_without_effect_are_named_once)
{
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };
        const char *path = config_path();
        size_t n = strlen(path);

        EXPECT_STREQ(load("syncFrequency: 2m\nreservedMemory: [{numaNode: 0}]\nstaticPodPaht: /x\n"
                          "mainstay: {}\nfoo: 1\n",
                          &config, &warnings),
                     "");
        EXPECT_STREQ(config.without_effect, "syncFrequency, reservedMemory");
        REQUIRE(strv_length(warnings) == 2);
        EXPECT_STREQ(warnings[0] + n,
                     ":3:1: staticPodPaht: is not a field of KubeletConfiguration; "
                     "did you mean 'staticPodPath'?");
        EXPECT_STREQ(warnings[1] + n, ":5:1: foo: is not a field of KubeletConfiguration");
        config_done(&config);
}

TEST(an_unknown_setting_of_mainstay_is_an_error_that_names_the_nearest)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "mainstay: {runtim: x}", ":1:12: mainstay.runtim: is not a field of "
                                           "MainstayConfig; did you mean 'runtime'?" },
                { "mainstay: {signaturePolicy: /p}",
                  ":1:12: mainstay.signaturePolicy: is not a field of MainstayConfig; did you mean "
                  "'signaturePolicyFile'?" },
                { "mainstay: {SignaturePolicyFile: /p}",
                  ":1:12: mainstay.SignaturePolicyFile: is not a field of MainstayConfig; did you "
                  "mean 'signaturePolicyFile'?" },
                { "mainstay: {foo: 1}", ":1:12: mainstay.foo: is not a field of MainstayConfig" },
                { "mainstay: {foo: null}",
                  ":1:12: mainstay.foo: is not a field of MainstayConfig" },
                { "mainstay: {registryMirrors: [{registry: a.example, mirrors: [b], mirror: c}]}",
                  ":1:66: mainstay.registryMirrors[0].mirror: is not a field of RegistryMirrors; "
                  "did you mean 'mirrors'?" },
                { "mainstay: {report: {url: https://a.example/, caFiles: /x}}",
                  ":1:46: mainstay.report.caFiles: is not a field of ReportConfig; did you mean "
                  "'caFile'?" },
                { "mainstay: {source: {key: []}}", ":1:21: mainstay.source.key: is not a field of "
                                                   "SourceConfig; did you mean 'keys'?" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_strv char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].text, &config, &warnings), cases[i].message);
                config_done(&config);
        }
}

TEST(a_registry_that_hides_its_host_is_refused)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "mainstay: {insecureRegistries: [0x7f.1]}",
                  ":1:33: mainstay.insecureRegistries[0]: must be a host or host:port, not "
                  "'0x7f.1'" },
                { "mainstay: {registryMirrors: [{registry: a.b., mirrors: [c]}]}",
                  ":1:41: mainstay.registryMirrors[0].registry: must be a host or host:port, not "
                  "'a.b.'" },
                { "mainstay: {registryMirrors: [{registry: a.b, mirrors: ['https://0x7f.1/']}]}",
                  ":1:56: mainstay.registryMirrors[0].mirrors[0]: must be an address such as "
                  "https://mirror.example.com/prefix, not 'https://0x7f.1/'" },
                { "preloadedImagesVerificationAllowlist: [busybox/*]",
                  ":1:40: preloadedImagesVerificationAllowlist[0]: 'busybox' must start with a "
                  "registry, such as docker.io or busybox:443" },
                { "preloadedImagesVerificationAllowlist: [127.1/x]",
                  ":1:40: preloadedImagesVerificationAllowlist[0]: couldn't parse image name "
                  "'127.1/x': '127.1' is not a registry: an IPv4 address must be four decimal "
                  "numbers, like 127.0.0.1" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_strv char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].text, &config, &warnings), cases[i].message);
                config_done(&config);
        }
}

TEST(a_port_without_tls_is_reported_as_not_served)
{
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("port: 10250\nreadOnlyPort: 10255\n", &config, &warnings), "");
        REQUIRE(strv_length(warnings) == 1);
        EXPECT_STREQ(warnings[0] + strlen(config_path()),
                     ":2:15: readOnlyPort: is not served, because its clients are not "
                     "authenticated; mainstay-api serves the same paths with TLS");
        EXPECT_STREQ(config.without_effect, "readOnlyPort");
        config_done(&config);
}

TEST(zero_durations_mean_the_defaults)
{
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };

        /* kubeadm writes such values for settings without a value. */
        EXPECT_STREQ(load("syncFrequency: 0s\nimageMinimumGCAge: 0s\nimageMaximumGCAge: 0s\n"
                          "memorySwap: {}\ncrashLoopBackOff: {}\nruntimeRequestTimeout: 0s\n"
                          "logging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}}}\n"
                          "authentication: {webhook: {cacheTTL: 0s}}\n"
                          "authorization: {webhook: {cacheAuthorizedTTL: 0s, "
                          "cacheUnauthorizedTTL: 0s}}\n"
                          "rotateCertificates: true\nhealthzPort: 10248\n"
                          "readOnlyPort: 0\nstreamingConnectionIdleTimeout: 0s\n"
                          "containerRuntimeEndpoint: unix:///run/x.sock\n",
                          &config, &warnings),
                     "");
        EXPECT(warnings == NULL);
        EXPECT_STREQ(config.without_effect, "logging, containerRuntimeEndpoint");
        EXPECT_EQ(config.image_gc_min_age_usec, 120 * USEC_PER_SEC);
        EXPECT_EQ(config.image_gc_max_age_usec, 0);
        EXPECT(config.authentication.webhook.cache_ttl == NULL);
        EXPECT(config.authorization.webhook.cache_authorized_ttl == NULL);
        EXPECT(config.authorization.webhook.cache_unauthorized_ttl == NULL);
        EXPECT(config.streaming_connection_idle_timeout == NULL);
        EXPECT(config.rotate_certificates);
        EXPECT_EQ(config.healthz_port.value, 10248);
        EXPECT_STREQ(config.healthz_bind_address, "127.0.0.1");
        config_done(&config);
}

TEST(parallel_pulls_follow_the_kubelets_settings)
{
        static const struct {
                const char *yaml;
                int64_t pulls;
        } cases[] = {
                { "{}", 3 },
                { "serializeImagePulls: true", 1 },
                { "serializeImagePulls: false", 64 },
                { "serializeImagePulls: false\nmaxParallelImagePulls: 5", 5 },
                { "maxParallelImagePulls: 5", 5 },
                { "serializeImagePulls: true\nmaxParallelImagePulls: 1", 1 },
                { "mainstay: {maxParallelPulls: 7}", 7 },
                { "serializeImagePulls: false\nmainstay: {maxParallelPulls: 7}", 7 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_strv char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].yaml, &config, &warnings), "");
                EXPECT(warnings == NULL);
                EXPECT_EQ(config.mainstay.max_parallel_pulls.value, cases[i].pulls);
                config_done(&config);
        }
}

TEST(shutdown_grace_periods_are_sorted_by_priority)
{
        static const struct {
                const char *yaml;
                size_t n;
                ShutdownStage stages[2];
        } cases[] = {
                { "{}", 2, { { 0, 20000000 }, { 2000000000, 10000000 } } },
                { "shutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s",
                  2,
                  { { 0, 20000000 }, { 2000000000, 10000000 } } },
                { "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: "
                  "0}]",
                  1,
                  { { 0, 0 } } },
                { "shutdownGracePeriod: 5s", 2, { { 0, 5000000 }, { 2000000000, 0 } } },
                { "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 2s",
                  2,
                  { { 0, 3000000 }, { 2000000000, 2000000 } } },
                { "shutdownGracePeriodByPodPriority:\n"
                  "- {priority: 9, shutdownGracePeriodSeconds: 1}\n"
                  "- {priority: 3, shutdownGracePeriodSeconds: 2}",
                  2,
                  { { 3, 2000000 }, { 9, 1000000 } } },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_strv char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].yaml, &config, &warnings), "");
                EXPECT_EQ(config.n_shutdown_stages, cases[i].n);
                for (size_t j = 0; j < cases[i].n; j++) {
                        EXPECT_EQ(config.shutdown_stages[j].priority, cases[i].stages[j].priority);
                        EXPECT_EQ(config.shutdown_stages[j].period_usec,
                                  cases[i].stages[j].period_usec);
                }
                config_done(&config);
        }
}

#define SHARED(object) "mainstay: {sharedObjects: [{" object "}]}"

TEST(invalid_settings_are_refused_with_their_place)
{
        static const struct {
                const char *yaml;
                const char *message;
        } cases[] = {
                { "[]", ":1:1: must be a mapping, not a list" },
                { "a: b\n---\nc: d\n", ": must hold one document, not 2" },
                { "kind: Pod", ":1:7: kind: must be KubeletConfiguration, not the string 'Pod'" },
                { "apiVersion: v1",
                  ":1:13: apiVersion: must be kubelet.config.k8s.io/v1beta1, not the string 'v1'" },
                { "staticPodPath: pods",
                  ":1:16: staticPodPath: must be an absolute path, not 'pods'" },
                { "tlsCipherSuites: [TLS_RSA_WITH_AES_512]",
                  ":1:19: tlsCipherSuites[0]: must be the IANA name of a cipher suite such as "
                  "'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', not 'TLS_RSA_WITH_AES_512'" },
                { "tlsMinVersion: '1.2'",
                  ":1:16: tlsMinVersion: must be 'VersionTLS12' or 'VersionTLS13', not '1.2'" },
                { "tlsCurvePreferences: [0]",
                  ":1:23: tlsCurvePreferences[0]: must be between 1 and 65535, not 0" },
                { "cgroupDriver: x", ":1:15: cgroupDriver: must be cgroupfs or systemd, not 'x'" },
                { "shutdownGracePeriod: 10ms",
                  ":1:22: shutdownGracePeriod: must be either zero or 1s to 24h, not '10ms'" },
                { "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s",
                  ":2:34: shutdownGracePeriodCriticalPods: must be <= shutdownGracePeriod" },
                { "shutdownGracePeriod: 5s\n"
                  "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: "
                  "1}]",
                  ":2:35: shutdownGracePeriodByPodPriority: Cannot specify both "
                  "shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time" },
                { "shutdownGracePeriodByPodPriority: [{priority: 0}]",
                  ":1:36: shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds: is "
                  "required" },
                { "serializeImagePulls: true\nmaxParallelImagePulls: 2",
                  ":2:24: maxParallelImagePulls: cannot be larger than 1 unless "
                  "serializeImagePulls is false" },
                { "maxParallelImagePulls: 2\nmainstay: {maxParallelPulls: 3}",
                  ":1:24: maxParallelImagePulls: contradicts mainstay.maxParallelPulls, "
                  "which is 3" },
                { "serializeImagePulls: true\nmainstay: {maxParallelPulls: 3}",
                  ":1:22: serializeImagePulls: contradicts mainstay.maxParallelPulls, "
                  "which is 3" },
                { "preloadedImagesVerificationAllowlist: [a/b]",
                  ":1:39: preloadedImagesVerificationAllowlist: needs "
                  "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages" },
                { "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
                  "preloadedImagesVerificationAllowlist: [\"a*\"]",
                  ":2:40: preloadedImagesVerificationAllowlist[0]: only patterns that end with "
                  "'/*' are allowed, not 'a*'" },
                { "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
                  "preloadedImagesVerificationAllowlist: [\"a/b:1\"]",
                  ":2:40: preloadedImagesVerificationAllowlist[0]: must be the name of an image "
                  "without a tag or digest, not 'a/b:1'" },
                { "imagePullCredentialsVerificationPolicy: Sometimes",
                  ":1:41: imagePullCredentialsVerificationPolicy: must be "
                  "NeverVerifyPreloadedImages, NeverVerify, NeverVerifyAllowlistedImages or "
                  "AlwaysVerify, not 'Sometimes'" },
                { "maxParallelImagePulls: 0",
                  ":1:24: maxParallelImagePulls: must be between 1 and 64, not 0" },
                { "containerLogMaxSize: 10",
                  ":1:22: containerLogMaxSize: must be a string, not the number 10; quote it" },
                { "containerLogMaxSize: ten",
                  ":1:22: containerLogMaxSize: must be a quantity such as 500m, 2 or 1.5Gi, not "
                  "'ten'" },
                { "containerLogMaxSize: '0'", ":1:22: containerLogMaxSize: must be more than 0" },
                { "containerLogMaxFiles: 1",
                  ":1:23: containerLogMaxFiles: must be between 2 and 1000, not 1" },
                { "podPidsLimit: -2",
                  ":1:15: podPidsLimit: must be between -1 and 4194304, not -2" },
                { "crashLoopBackOff: {maxContainerRestartPeriod: 10}",
                  ":1:47: crashLoopBackOff.maxContainerRestartPeriod: must be a string, not the "
                  "number 10; quote it" },
                { "crashLoopBackOff: {maxContainerRestartPeriod: soon}",
                  ":1:47: crashLoopBackOff.maxContainerRestartPeriod: must be a duration such as "
                  "300s or 1m, not 'soon'" },
                { "crashLoopBackOff: {maxContainerRestartPeriod: 0s}",
                  ":1:47: crashLoopBackOff.maxContainerRestartPeriod: must be between 1s and 300s, "
                  "not '0s'" },
                { "crashLoopBackOff: {maxContainerRestartPeriod: 301s}",
                  ":1:47: crashLoopBackOff.maxContainerRestartPeriod: must be between 1s and 300s, "
                  "not '301s'" },
                { "mainstay: {nodeLabels: {a b: c}}",
                  ":1:30: mainstay.nodeLabels[a b]: must be a qualified name such as "
                  "example.com/my-name, not 'a b'" },
                { "mainstay: {nodeLabels: {a: b c}}",
                  ":1:28: mainstay.nodeLabels[a]: must be letters, digits, '-', '_' or '.' between "
                  "alphanumerics, not 'b c'" },
                { "mainstay: {nodeLabels: {a: 1}}",
                  ":1:28: mainstay.nodeLabels[a]: must be a string, not the number 1; quote it" },
                { "registerWithTaints: [{key: a}]",
                  ":1:22: registerWithTaints[0].effect: is required" },
                { "registerWithTaints: [{key: a b, effect: NoExecute}]",
                  ":1:28: registerWithTaints[0].key: must be a qualified name such as "
                  "example.com/my-name, not 'a b'" },
                { "registerWithTaints: [{key: a, effect: Never}]",
                  ":1:39: registerWithTaints[0].effect: must be NoSchedule, PreferNoSchedule or "
                  "NoExecute, not 'Never'" },
                { "registerWithTaints: [{key: a, effect: NoExecute, timeAdded: today}]",
                  ":1:61: registerWithTaints[0].timeAdded: must be a time such as "
                  "2026-01-02T03:04:05Z, not 'today'" },
                { "registerWithTaints: [{key: a, effect: NoExecute}, {key: a, value: b, effect: "
                  "NoExecute}]",
                  ":1:51: registerWithTaints[1]: must be unique by key and effect; it is also "
                  "registerWithTaints[0]" },
                { SHARED("kind: Secret, name: a, from: file, to: api"),
                  ":1:28: mainstay.sharedObjects[0]: must have a namespace" },
                { SHARED("kind: RuntimeClass, namespace: b, name: a, from: file, to: api"),
                  ":1:28: mainstay.sharedObjects[0]: must not have a namespace: objects of this "
                  "kind have none" },
                { SHARED("kind: Secret, namespace: b, name: a, from: url, to: url"),
                  ":1:28: mainstay.sharedObjects[0]: must have a 'to' that differs from 'from'" },
                { SHARED("kind: PriorityClass, name: a, from: api, to: file"),
                  ":1:28: mainstay.sharedObjects[0]: must not be a PriorityClass from api: a node "
                  "does not read those of an API server" },
                { SHARED("kind: PersistentVolumeClaim, namespace: b, name: a, from: api, to: file"),
                  ":1:35: mainstay.sharedObjects[0].kind: must be ConfigMap, Secret, "
                  "PriorityClass or RuntimeClass, not 'PersistentVolumeClaim'" },
                { SHARED("kind: Secret, namespace: '*', name: a, from: api, to: file"),
                  ":1:54: mainstay.sharedObjects[0].namespace: must be a DNS label, not '*'" },
                { SHARED("kind: Secret, namespace: b, name: a, from: orphan, to: file"),
                  ":1:72: mainstay.sharedObjects[0].from: must be file, url, index or api, not "
                  "'orphan'" },
                { SHARED("kind: Secret, namespace: b, name: a, from: file"),
                  ":1:28: mainstay.sharedObjects[0].to: is required" },
                { SHARED("kind: Secret, namespace: b, name: a, from: url, to: api}, {kind: Secret, "
                         "namespace: b, name: a, from: file, to: api"),
                  ":1:87: mainstay.sharedObjects[1]: must be unique by kind, namespace, name and "
                  "'to'" },
                { "mainstay: runc", ":1:11: mainstay: must be a mapping, not the string 'runc'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].yaml, &config, &warnings), cases[i].message);
        }
}

TEST(unreadable_configuration_is_an_error)
{
        cleanup_error Error error = ERROR_NULL;
        char **warnings = NULL;
        Config config = { 0 };
        char expected[256];

        EXPECT_EQ(kubelet_config_load(test_directory(), &config, &warnings, &error), -EISDIR);
        (void) snprintf(expected, sizeof(expected), "%s: Is a directory", test_directory());
        EXPECT_STREQ(error.message, expected);
}

/* A setting that is commented out has no blank between '#' and its name. */
static char *with_comments_in_force(const char *text) {
        char *copy = strdup(text), *to = copy;

        REQUIRE(copy != NULL);
        for (const char *from = copy; *from; from++) {
                bool begins = from == copy || from[-1] == '\n';

                if (!(begins && from[0] == '#' && (from[1] != ' ' || from[2] == ' ')))
                        *to++ = *from;
        }
        *to = '\0';
        return copy;
}

TEST(installed_configuration_shows_every_setting_with_its_default)
{
        cleanup_free char *file = NULL, *yaml = NULL;
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };

        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/packaging/config.yaml", MIB, &file, NULL) >= 0);
        EXPECT_STREQ(load(file, &config, &warnings), "");
        EXPECT(warnings == NULL);
        expect_defaults(&config);
        config_done(&config);

        for (size_t i = 0; i < config_schema.n_fields; i++) {
                const Field *field = &config_schema.fields[i];

                if (field->type != FIELD_REFUSED && field->type != FIELD_IGNORED)
                        EXPECT(strstr(file, field->key) != NULL);
        }
        yaml = with_comments_in_force(file);
        EXPECT_STREQ(load(yaml, &config, &warnings), "");
        EXPECT(warnings == NULL);
        EXPECT_STREQ(config.static_pod_path, "/etc/kubernetes/manifests");
        EXPECT_EQ(config.log_max_size_bytes, 10 * MIB);
        EXPECT_EQ(config.back_off_max_usec, 300 * USEC_PER_SEC);
        EXPECT_STREQ(config.mainstay.runtime, "runc");
        config_done(&config);
}

static const EvictionThreshold *find_threshold(const Config *config, EvictionSignal signal,
                                               bool is_soft) {
        for (size_t i = 0; i < config->eviction.n_thresholds; i++)
                if (config->eviction.thresholds[i].signal == signal &&
                    (config->eviction.thresholds[i].grace_usec > 0) == is_soft)
                        return &config->eviction.thresholds[i];
        return NULL;
}

/* Returns how much memory must be available on a machine with this amount of memory. */
static int64_t memory_threshold(const char *text, int64_t capacity) {
        char **warnings = NULL;
        Config config = { 0 };
        int64_t amount;

        EXPECT_STREQ(load(text, &config, &warnings), "");
        amount = eviction_amount_of(&find_threshold(&config, EVICTION_MEMORY, false)->value,
                                    capacity);
        config_done(&config);
        return amount;
}

TEST(default_memory_eviction_threshold_is_at_most_a_twentieth)
{
        EXPECT_EQ(memory_threshold("{}", 16384 * MIB), 100 * MIB);
        EXPECT_EQ(memory_threshold("{}", 2000 * MIB), 100 * MIB);
        EXPECT_EQ(memory_threshold("{}", 100 * MIB), 5 * MIB);
        EXPECT_EQ(memory_threshold("evictionHard: {memory.available: 100Mi}", 100 * MIB),
                  100 * MIB);
        EXPECT_EQ(memory_threshold("evictionHard: {memory.available: 20%}", 100 * MIB), 20 * MIB);
}

TEST(eviction_thresholds_default_to_the_kubelets)
{
        static const char *const without[] = { "{}", "evictionHard: null",
                                               "evictionPressureTransitionPeriod: 0s" };

        for (size_t i = 0; i < N_ELEMENTS(without); i++) {
                char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(without[i], &config, &warnings), "");
                REQUIRE(config.eviction.n_thresholds == 5);
                EXPECT_EQ(find_threshold(&config, EVICTION_MEMORY, false)->value.quantity,
                          100 * MIB);
                EXPECT(find_threshold(&config, EVICTION_IMAGE_FS, false)->value.fraction == 0.15);
                EXPECT(find_threshold(&config, EVICTION_NODE_FS, false)->value.fraction == 0.10);
                EXPECT_EQ(config.eviction.transition_usec, 300 * USEC_PER_SEC);
                EXPECT_EQ(config.eviction.max_pod_grace_seconds, 0);
                config_done(&config);
        }
}

TEST(configured_thresholds_replace_the_defaults_unless_merged)
{
        char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(load("evictionHard: {}", &config, &warnings), "");
        EXPECT_EQ(config.eviction.n_thresholds, 0);
        config_done(&config);
        EXPECT_STREQ(load("evictionHard: {memory.available: 1Gi, nodefs.available: 0%}", &config,
                          &warnings),
                     "");
        EXPECT_EQ(config.eviction.n_thresholds, 1);
        config_done(&config);
        EXPECT_STREQ(load("evictionHard: {memory.available: 1Gi, nodefs.available: 100%}\n"
                          "mergeDefaultEvictionSettings: true",
                          &config, &warnings),
                     "");
        EXPECT_EQ(config.eviction.n_thresholds, 4);
        EXPECT_EQ(find_threshold(&config, EVICTION_MEMORY, false)->value.quantity, 1024 * MIB);
        EXPECT(!find_threshold(&config, EVICTION_NODE_FS, false));
        config_done(&config);
}

TEST(soft_thresholds_need_a_grace_period)
{
        char **warnings = NULL;
        Config config = { 0 };
        const EvictionThreshold *soft;

        EXPECT_STREQ(load("evictionHard: {memory.available: 5%}\n"
                          "evictionSoft: {memory.available: 500Mi}\n"
                          "evictionSoftGracePeriod: {memory.available: 1m30s}\n"
                          "evictionMinimumReclaim: {memory.available: 10%}\n"
                          "evictionMaxPodGracePeriod: 20\n"
                          "evictionPressureTransitionPeriod: 30s\n"
                          "kernelMemcgNotification: true",
                          &config, &warnings),
                     "");
        EXPECT(warnings == NULL);
        soft = find_threshold(&config, EVICTION_MEMORY, true);
        REQUIRE(soft != NULL);
        EXPECT_EQ(soft->value.quantity, 500 * MIB);
        EXPECT_EQ(soft->grace_usec, 90 * USEC_PER_SEC);
        EXPECT(soft->min_reclaim.fraction == 0.1);
        EXPECT(find_threshold(&config, EVICTION_MEMORY, false)->min_reclaim.fraction == 0.1);
        EXPECT_EQ(config.eviction.max_pod_grace_seconds, 20);
        EXPECT_EQ(config.eviction.transition_usec, 30 * USEC_PER_SEC);
        EXPECT(config.eviction.has_memcg_notification);
        config_done(&config);
}

TEST(invalid_threshold_is_refused_with_its_place)
{
        static const struct {
                const char *yaml, *message;
        } cases[] = {
                { "evictionHard: {memory.left: 1Gi}",
                  ":1:29: evictionHard[memory.left]: unsupported eviction signal" },
                { "evictionHard:\n  memory.available: lots",
                  ":2:21: evictionHard[memory.available]: must be a quantity such as 500m, 2 or "
                  "1.5Gi, not 'lots'" },
                { "evictionHard: {nodefs.available: 0}",
                  ":1:34: evictionHard[nodefs.available]: must be a string, not the number 0; "
                  "quote it" },
                { "evictionHard: {nodefs.available: \"0\"}",
                  ":1:34: evictionHard[nodefs.available]: must be positive, not 0" },
                { "evictionHard: {nodefs.available: 110%}",
                  ":1:34: evictionHard[nodefs.available]: must be <= 100%, not 110%" },
                { "evictionHard: {nodefs.available: -1%}",
                  ":1:34: evictionHard[nodefs.available]: must be >= 0%, not -1%" },
                { "evictionHard: {nodefs.available: x%}",
                  ":1:34: evictionHard[nodefs.available]: must be a percentage such as 10%, not "
                  "'x%'" },
                { "evictionSoft: {pid.available: 1k}",
                  ":1:31: evictionSoft[pid.available]: needs a grace period of its own in "
                  "evictionSoftGracePeriod" },
                { "evictionSoftGracePeriod: {pid.available: soon}",
                  ":1:42: evictionSoftGracePeriod[pid.available]: must be a duration such as "
                  "1m30s, "
                  "not 'soon'" },
                { "evictionMinimumReclaim: {pid.available: 0%}",
                  ":1:41: evictionMinimumReclaim[pid.available]: must be positive, not 0%" },
                { "evictionMinimumReclaim: {pid.available: \"-1\"}",
                  ":1:41: evictionMinimumReclaim[pid.available]: must be greater than or equal to "
                  "0, not -1" },
                { "evictionPressureTransitionPeriod: x",
                  ":1:35: evictionPressureTransitionPeriod: must be a duration such as 90s or 2m, "
                  "not 'x'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char **warnings = NULL;
                Config config = { 0 };

                EXPECT_STREQ(load(cases[i].yaml, &config, &warnings), cases[i].message);
                config_done(&config);
        }
}

/* Returns the error of a configuration, or "" if it is valid. */
static const char *verdict_of(const char *yaml) {
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };
        const char *error = load(yaml, &config, &warnings);

        EXPECT(warnings == NULL);
        config_done(&config);
        return error;
}

TEST(reservations_and_limits_of_the_node_are_read)
{
        cleanup_strv char **warnings = NULL;
        Config config = { 0 };

        EXPECT_STREQ(
                load("maxPods: 50\npodsPerCore: 3\nsystemReserved: {cpu: 500m, memory: 1Gi, pid: "
                     "'1000'}\nkubeReserved: {cpu: '1', ephemeral-storage: 2Gi}\n",
                     &config, &warnings),
                "");
        EXPECT_EQ(config_max_pods(&config, 4), 12);
        EXPECT_EQ(config_max_pods(&config, 64), 50);
        EXPECT_EQ(config.system.cpu_milli, 500);
        EXPECT_EQ(config.system.memory, INT64_C(1) << 30);
        EXPECT_EQ(config.system.pids, 1000);
        EXPECT_EQ(config.kube.cpu_milli, 1000);
        EXPECT_EQ(config.kube.ephemeral_storage, INT64_C(2) << 30);
        EXPECT(config_enforces(&config, "pods"));
        EXPECT(!config_enforces(&config, "kube-reserved"));
        config_done(&config);
        EXPECT_STREQ(load("enforceNodeAllocatable: [none]\n", &config, &warnings), "");
        EXPECT(!config_enforces(&config, "pods"));
        EXPECT_EQ(config_max_pods(&config, 64), 110);
        config_done(&config);
}

TEST(invalid_reservations_are_errors)
{
        EXPECT_STREQ(verdict_of("systemReserved: {disk: '1'}\n"),
                     ":1:24: systemReserved[disk]: cannot be reserved; cpu, memory, "
                     "ephemeral-storage and pid can");
        EXPECT_STREQ(verdict_of("kubeReserved: {cpu: '-1'}\n"),
                     ":1:21: kubeReserved[cpu]: must not be negative");
        EXPECT(verdict_of("kubeReserved: {cpu: much}\n")[0]);
        EXPECT(verdict_of("enforceNodeAllocatable: [all]\n")[0]);
        EXPECT_STREQ(verdict_of("enforceNodeAllocatable: [system-reserved]\n"),
                     ":1:25: enforceNodeAllocatable: system-reserved needs systemReservedCgroup");
        EXPECT_STREQ(verdict_of("enforceNodeAllocatable: [system-reserved]\n"
                                "systemReservedCgroup: /system\n"),
                     "");
}
