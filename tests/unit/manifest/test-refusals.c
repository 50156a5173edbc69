/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that will never be supported are refused with a reason: those that require a cluster, and
 * volumes of other drivers. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

/* Returns the error of these fields of a spec with one container, without its position. */
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

TEST(fields_that_need_a_cluster_are_refused_with_that_reason)
{
        static const struct {
                const char *spec, *field;
        } cases[] = {
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

TEST(unsupported_volume_kinds_are_refused_with_a_reason)
{
        static const struct {
                const char *kind, *reason;
        } cases[] = {
                { "persistentVolumeClaim: {claimName: c}", "needs a cluster: " },
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

TEST(image_volume_requires_a_reference)
{
        EXPECT_STREQ(refusal(CONTAINERS ", volumes: [{name: v, image: {reference: a/b:c}}]"), "");
        EXPECT_STREQ(refusal(CONTAINERS ", volumes: [{name: v, image: {pullPolicy: Always}}]"),
                     "spec.volumes[0].image.reference: is required");
        EXPECT_STREQ(
                refusal(CONTAINERS ", volumes: [{name: v, image: {reference: a, pullPolicy: x}}]"),
                "spec.volumes[0].image.pullPolicy: must be Always, IfNotPresent or Never, not "
                "'x'");
}

TEST(projections_that_need_a_cluster_are_refused)
{
        static const char *const sources[] = { "serviceAccountToken: {path: t}",
                                               "clusterTrustBundle: {path: t}",
                                               "podCertificate: {signerName: s}" };

        for (size_t i = 0; i < N_ELEMENTS(sources); i++) {
                char spec[256];

                (void) snprintf(spec, sizeof(spec),
                                CONTAINERS ", volumes: [{name: v, projected: {sources: [{%s}]}}]",
                                sources[i]);
                EXPECT(strstr(refusal(spec), ": needs a cluster: its ") != NULL);
        }
}

TEST(alpha_fields_are_refused_with_that_reason)
{
        static const char *const specs[] = {
                "containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, "
                "bindMountOptions: [noexec]}]}], volumes: [{name: v, emptyDir: {}}]",
                CONTAINERS ", volumes: [{name: v, emptyDir: {mode: 0755}}]",
        };

        for (size_t i = 0; i < N_ELEMENTS(specs); i++)
                EXPECT(strstr(refusal(specs[i]), ": is alpha in Kubernetes") != NULL);
}

TEST(hostname_override_excludes_related_fields)
{
        static const char sentence[] = "may not be true when `hostnameOverride` is set";

        EXPECT_STREQ(refusal(CONTAINERS ", hostnameOverride: a.example"), "");
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: a.example, hostNetwork: true"),
                      sentence));
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: a, setHostnameAsFQDN: true"),
                      sentence));
        EXPECT(strstr(refusal(CONTAINERS ", hostnameOverride: A_b"), "must be a DNS subdomain"));
}

TEST(group_policies_must_not_be_empty)
{
        EXPECT(strstr(refusal(CONTAINERS ", securityContext: {supplementalGroupsPolicy: ''}"),
                      "spec.securityContext.supplementalGroupsPolicy: must be "));
        EXPECT(strstr(refusal(CONTAINERS ", securityContext: {fsGroupChangePolicy: ''}"),
                      "spec.securityContext.fsGroupChangePolicy: must be "));
}

TEST(resize_policies_are_unique_and_consistent)
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

TEST(empty_and_default_values_of_refused_fields_are_accepted)
{
        EXPECT_STREQ(refusal(CONTAINERS ", automountServiceAccountToken: false, serviceAccountName:"
                                        " '', enableServiceLinks: false, resourceClaims: []"),
                     "");
}
