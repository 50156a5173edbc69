/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused for good says why: what only a cluster has, and volumes that are no business of
 * this agent's. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

/* What is said of a spec beside one container, without its place. */
static const char *refusal(const char *spec) {
        static char text[1024];
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char yaml[1024];
        const char *place;
        int r;

        (void) snprintf(yaml, sizeof(yaml),
                        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {%s}}", spec);
        r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);
        manifest_objects_done(&objects);
        if (r >= 0)
                return "";
        EXPECT_EQ(r, -EINVAL);
        place = strchr(error_message(&error, r), ' '); /* after "f:1:60:" */
        (void) snprintf(text, sizeof(text), "%s", place ? place + 1 : "");
        return text;
}

#define CONTAINERS "containers: [{name: c, image: i}]"

TEST(what_only_a_cluster_has_is_refused_for_that_reason)
{
        static const struct {
                const char *spec, *field;
        } cases[] = {
                { CONTAINERS ", serviceAccountName: default", "spec.serviceAccountName" },
                { CONTAINERS ", serviceAccount: default", "spec.serviceAccount" },
                { CONTAINERS ", resourceClaims: [{name: gpu}]", "spec.resourceClaims" },
                { CONTAINERS ", schedulingGates: [{name: g}]", "spec.schedulingGates" },
                { CONTAINERS ", evictionResponders: [{name: n}]", "spec.evictionResponders" },
                { "containers: [{name: c, image: i, volumeDevices: [{name: v, devicePath: /d}]}]",
                  "spec.containers[0].volumeDevices" },
                { "containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]",
                  "spec.containers[0].resources.claims" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char begin[256];
                const char *text = refusal(cases[i].spec);

                (void) snprintf(begin, sizeof(begin), "%s: needs a cluster: ", cases[i].field);
                if (strncmp(text, begin, strlen(begin)) != 0)
                        test_fail(__FILE__, __LINE__, cases[i].field, "says '%s'", text);
        }
}

TEST(every_kind_of_volume_that_is_not_honoured_says_why)
{
        static const struct {
                const char *kind, *reason;
        } cases[] = {
                { "persistentVolumeClaim: {claimName: c}", "needs a cluster: " },
                { "csi: {driver: d}", "needs a cluster: " },
                { "ephemeral: {volumeClaimTemplate: {spec: {volumeName: v}}}",
                  "needs a cluster: " },
                { "gcePersistentDisk: {pdName: p}", "needs a cluster: " },
                { "awsElasticBlockStore: {volumeID: v}", "needs a cluster: " },
                { "cinder: {volumeID: v}", "needs a cluster: " },
                { "azureFile: {secretName: s}", "needs a cluster: " },
                { "azureDisk: {diskName: d}", "needs a cluster: " },
                { "vsphereVolume: {volumePath: v}", "needs a cluster: " },
                { "portworxVolume: {volumeID: v}", "needs a cluster: " },
                { "gitRepo: {repository: r}", "is a kind of volume that Kubernetes has removed" },
                { "glusterfs: {path: p}", "is a kind of volume that Kubernetes has removed" },
                { "rbd: {image: i}", "is a kind of volume that Kubernetes has removed" },
                { "cephfs: {path: p}", "is a kind of volume that Kubernetes has removed" },
                { "flocker: {datasetName: d}", "is a kind of volume that Kubernetes has removed" },
                { "quobyte: {volume: v}", "is a kind of volume that Kubernetes has removed" },
                { "photonPersistentDisk: {pdID: p}",
                  "is a kind of volume that Kubernetes has removed" },
                { "scaleIO: {system: s}", "is a kind of volume that Kubernetes has removed" },
                { "storageos: {volumeName: v}", "is a kind of volume that Kubernetes has removed" },
                { "nfs: {server: s, path: /}", "is not a kind of volume that this agent mounts; " },
                { "iscsi: {iqn: i}", "is not a kind of volume that this agent mounts; " },
                { "fc: {lun: 1}", "is not a kind of volume that this agent mounts; " },
                { "flexVolume: {driver: d}", "is not a kind of volume that this agent mounts; " },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char spec[256], begin[256];
                const char *text;

                (void) snprintf(spec, sizeof(spec), CONTAINERS ", volumes: [{name: v, %s}]",
                                cases[i].kind);
                (void) snprintf(begin, sizeof(begin), "spec.volumes[0].%.*s: %s",
                                (int) strcspn(cases[i].kind, ":"), cases[i].kind, cases[i].reason);
                text = refusal(spec);
                if (strncmp(text, begin, strlen(begin)) != 0)
                        test_fail(__FILE__, __LINE__, cases[i].kind, "says '%s'", text);
        }
}

TEST(a_volume_that_is_an_image_names_one)
{
        EXPECT_STREQ(refusal(CONTAINERS ", volumes: [{name: v, image: {reference: a/b:c}}]"), "");
        EXPECT_STREQ(refusal(CONTAINERS ", volumes: [{name: v, image: {pullPolicy: Always}}]"),
                     "spec.volumes[0].image.reference: is required");
        EXPECT_STREQ(
                refusal(CONTAINERS ", volumes: [{name: v, image: {reference: a, pullPolicy: x}}]"),
                "spec.volumes[0].image.pullPolicy: must be Always, IfNotPresent or Never, not "
                "'x'");
}

TEST(projections_of_what_only_a_cluster_has_are_refused)
{
        static const char *const sources[] = { "serviceAccountToken: {path: t}",
                                               "clusterTrustBundle: {path: t}",
                                               "podCertificate: {signerName: s}" };

        for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
                char spec[256];

                (void) snprintf(spec, sizeof(spec),
                                CONTAINERS ", volumes: [{name: v, projected: {sources: [{%s}]}}]",
                                sources[i]);
                EXPECT(strstr(refusal(spec), ": needs a cluster: only there are ") != NULL);
        }
}

TEST(what_kubernetes_itself_has_only_on_trial_is_refused_for_that_reason)
{
        static const char *const specs[] = {
                "containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, "
                "bindMountOptions: [noexec]}]}], volumes: [{name: v, emptyDir: {}}]",
                CONTAINERS ", volumes: [{name: v, emptyDir: {mode: 0755}}]",
        };

        for (size_t i = 0; i < N_ELEMENTS(specs); i++)
                EXPECT(strstr(refusal(specs[i]), ": is alpha in Kubernetes") != NULL);
}

TEST(a_name_that_goes_before_all_stands_alone)
{
        static const char sentence[] = "may not be true when `hostnameOverride` is set";

        EXPECT_STREQ(refusal(CONTAINERS ", hostnameOverride: a.example"), "");
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: a.example, hostNetwork: true"),
                      sentence));
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: a, setHostnameAsFQDN: true"),
                      sentence));
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: A_b"), "must be a DNS subdomain"));
}

TEST(a_policy_of_resizing_is_said_once_and_can_be_followed)
{
        EXPECT(strstr(refusal("containers: [{name: c, image: i, resizePolicy: [{resourceName: cpu, "
                              "restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: "
                              "NotRequired}]}]"),
                      "resizePolicy[1].resourceName: must be unique"));
        EXPECT(strstr(refusal("restartPolicy: Never, containers: [{name: c, image: i, "
                              "resizePolicy: [{resourceName: cpu, restartPolicy: "
                              "RestartContainer}]}]"),
                      "must be 'NotRequired' when `restartPolicy` is 'Never'"));
        EXPECT(strstr(refusal(CONTAINERS ", initContainers: [{name: i, image: i, resizePolicy: "
                                         "[{resourceName: cpu, restartPolicy: NotRequired}]}]"),
                      "must not be set for init containers"));
}

TEST(what_changes_nothing_is_accepted)
{
        EXPECT_STREQ(refusal(CONTAINERS ", automountServiceAccountToken: false, serviceAccountName:"
                                        " '', enableServiceLinks: false, resourceClaims: []"),
                     "");
}
