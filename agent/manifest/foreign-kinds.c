/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/foreign-kinds.h"

#include "agent/model/names.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        SKIPPED_MAX = 24 /* number of kinds named in the warning */
};

/* Kubernetes kinds that create no pods, including obsolete ones. Old manifests have them in other
 * Kubernetes groups; in an unknown group, such as that of Knative's Service, they may create
 * pods. */
static const char *const cluster_kinds[] = {
        "APIService",
        "Binding",
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ControllerRevision",
        "CustomResourceDefinition",
        "DeviceClass",
        "DeviceTaintRule",
        "EndpointSlice",
        "Endpoints",
        "Event",
        "FlowSchema",
        "HorizontalPodAutoscaler",
        "IPAddress",
        "Ingress",
        "IngressClass",
        "Lease",
        "LimitRange",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "PodPreset",
        "PodSecurityPolicy",
        "PodTemplate",
        "PriorityLevelConfiguration",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "ResourceSlice",
        "Role",
        "RoleBinding",
        "SecurityContextConstraints",
        "Service",
        "ServiceAccount",
        "ServiceCIDR",
        "StorageClass",
        "StorageVersion",
        "StorageVersionMigration",
        "ThirdPartyResource",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
};

/* Kinds that a node reads, but in versions that it does not read: such an object is for another
 * component. */
static const char *const read_kinds[] = { "ConfigMap", "PriorityClass", "RuntimeClass", "Secret" };

/* API groups of extensions that are installed separately from the manifests that use them. None of
 * their kinds contains a pod template. */
static const char *const extension_groups[] = {
        "authorization.openshift.io",
        "autoscaling.k8s.io",
        "cert-manager.io",
        "cilium.io",
        "constraints.gatekeeper.sh",
        "crd.projectcalico.org",
        "external-secrets.io",
        "gateway.networking.k8s.io",
        "k8s.cni.cncf.io",
        "kyverno.io",
        "metallb.io",
        "monitoring.coreos.com",
        "networking.istio.io",
        "nfd.k8s-sigs.io",
        "operator.tigera.io",
        "policy.networking.k8s.io",
        "projectcalico.org",
        "route.openshift.io",
        "secrets-store.csi.x-k8s.io",
        "security.istio.io",
        "security.openshift.io",
        "snapshot.storage.k8s.io",
        "traefik.io",
};

#define RUN_TEMPLATE "delete it, or make its template a Pod or a DaemonSet"
#define RUN_ONCE     "delete it, or make its template a Pod with the restartPolicy Never or OnFailure"

static const struct {
        const char *kind;
        const char *advice;
} workloads[] = {
        { "CronJob", RUN_ONCE },
        { "Deployment", RUN_TEMPLATE },
        { "DeploymentConfig", RUN_TEMPLATE },
        { "Job", RUN_ONCE },
        { "ReplicaSet", RUN_TEMPLATE },
        { "ReplicationController", RUN_TEMPLATE },
        { "StatefulSet", RUN_TEMPLATE },
};

/* "Deployment" or "DeploymentList". */
static bool is_kind_or_list(const char *text, const char *kind) {
        size_t length = strlen(kind);

        return strncmp(text, kind, length) == 0 && (!text[length] || streq(text + length, "List"));
}

bool kind_is_workload(const char *kind, const char **ret_advice) {
        for (size_t i = 0; i < N_ELEMENTS(workloads); i++)
                if (is_kind_or_list(kind, workloads[i].kind)) {
                        *ret_advice = workloads[i].advice;
                        return true;
                }
        return false;
}

static const char *node_text(const YamlNode *mapping, const char *key) {
        const YamlNode *node = mapping ? yaml_node_get(mapping, key) : NULL;

        return node && node->kind == YAML_NODE_STRING ? node->text : "";
}

/* The definition in an object, unless the object is of another kind. */
static CustomKind read_definition(const YamlNode *object) {
        const YamlNode *spec = yaml_node_get(object, "spec");

        if (!streq(node_text(object, "kind"), "CustomResourceDefinition") || !spec)
                return (CustomKind){ 0 };
        return (CustomKind){
                .group = node_text(spec, "group"),
                .kind = node_text(yaml_node_get(spec, "names"), "kind"),
        };
}

/* Adds the definition of an object, or those in a list. */
static int add_definitions(const YamlNode *object, ForeignKinds *foreign) {
        const YamlNode *items = yaml_node_get(object, "items");
        const CustomKind custom = read_definition(object);
        int r = 0;

        for (size_t i = 0; items && items->kind == YAML_NODE_SEQUENCE && i < items->n && r >= 0;
             i++)
                r = add_definitions(items->items[i], foreign);
        if (r < 0 || !custom.kind || !custom.kind[0])
                return r;
        if (!ARRAY_RESERVE(foreign->defined, foreign->n_defined, 1))
                return -ENOMEM;
        foreign->defined[foreign->n_defined++] = custom;
        return 0;
}

static int compare_custom_kinds(const void *a, const void *b) {
        const CustomKind *left = a, *right = b;
        int r = strcmp(left->group, right->group);

        return r != 0 ? r : strcmp(left->kind, right->kind);
}

int foreign_kinds_find(const YamlTree *tree, ForeignKinds *ret) {
        int r = 0;

        for (size_t i = 0; i < tree->n_documents && r >= 0; i++)
                r = add_definitions(tree->documents[i], ret);
        if (ret->n_defined > 0)
                qsort(ret->defined, ret->n_defined, sizeof(*ret->defined), compare_custom_kinds);
        return r;
}

void foreign_kinds_done(ForeignKinds *foreign) {
        free(foreign->defined);
        strv_free(foreign->skipped);
        *foreign = (ForeignKinds){ 0 };
}

/* "ServiceAccount" or "ServiceAccountList". */
static bool is_cluster_kind(const char *kind) {
        for (size_t i = 0; i < N_ELEMENTS(cluster_kinds); i++)
                if (is_kind_or_list(kind, cluster_kinds[i]))
                        return true;
        return false;
}

static bool is_read_kind(const char *kind) {
        for (size_t i = 0; i < N_ELEMENTS(read_kinds); i++)
                if (is_kind_or_list(kind, read_kinds[i]))
                        return true;
        return false;
}

static bool is_word_of(const char *text, const char *const *texts, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (streq(text, texts[i]))
                        return true;
        return false;
}

/* "v1", "policy/v1" or "rbac.authorization.k8s.io/v1". */
static bool is_kubernetes_group(const char *group) {
        static const char suffix[] = ".k8s.io";
        size_t length = strlen(group);

        return !strchr(group, '.') ||
               (length >= strlen(suffix) && streq(group + length - strlen(suffix), suffix));
}

/* Whether it is the kind of a definition, or of a list of such objects. */
static bool is_defined(const ForeignKinds *foreign, const char *group, const char *kind) {
        static const char suffix[] = "List";
        size_t length = strlen(kind);
        bool is_list = length > strlen(suffix) && streq(kind + length - strlen(suffix), suffix);
        cleanup_free char *item = strndup(kind, length - (is_list ? strlen(suffix) : 0));
        const CustomKind customs[] = { { group, kind }, { group, item } };

        for (size_t i = 0; i < N_ELEMENTS(customs); i++)
                if (foreign->n_defined > 0 && customs[i].kind &&
                    bsearch(&customs[i], foreign->defined, foreign->n_defined, sizeof(customs[i]),
                            compare_custom_kinds))
                        return true;
        return false;
}

bool daemonset_is_for_windows(const YamlNode *object) {
        static const char *const path[] = { "spec", "template", "spec" };
        static const char *const places[][2] = { { "nodeSelector", "kubernetes.io/os" },
                                                 { "nodeSelector", "beta.kubernetes.io/os" },
                                                 { "os", "name" } };

        for (size_t i = 0; i < N_ELEMENTS(path) && object; i++)
                object = yaml_node_get(object, path[i]);
        for (size_t i = 0; i < N_ELEMENTS(places) && object; i++)
                if (streq(node_text(yaml_node_get(object, places[i][0]), places[i][1]), "windows"))
                        return true;
        return false;
}

bool foreign_kinds_can_skip(const ForeignKinds *foreign, const char *version, const char *kind) {
        cleanup_free char *group = strndup(version, strcspn(version, "/"));
        const char *advice;

        if (!group)
                return false;
        if (is_read_kind(kind) || (is_cluster_kind(kind) && is_kubernetes_group(group)))
                return true;
        /* The group of a definition must contain a domain, so that no file can define Kubernetes'
         * own kinds. */
        return strchr(version, '/') &&
               (is_word_of(group, extension_groups, N_ELEMENTS(extension_groups)) ||
                (strchr(group, '.') && !kind_is_workload(kind, &advice) &&
                 is_defined(foreign, group, kind)));
}

int foreign_kinds_skip(ForeignKinds *foreign, const char *version, const char *kind) {
        char name[EXCERPT_SIZE], group[EXCERPT_SIZE], text[2 * EXCERPT_SIZE + 4];
        bool is_read = is_read_kind(kind);

        (void) snprintf(text, sizeof(text), "%s%s%s", excerpt(name, kind), is_read ? " of " : "",
                        is_read ? excerpt(group, version) : "");
        if (strv_contains(foreign->skipped, text))
                return 0;
        if (strv_length(foreign->skipped) < SKIPPED_MAX)
                return strv_append(&foreign->skipped, text);
        foreign->n_more++;
        return 0;
}

char *foreign_kinds_explain(const ForeignKinds *foreign) {
        char *text = NULL;
        size_t size = 0, n = strv_length(foreign->skipped);
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fputs("skips ", out);
        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s%s",
                        i == 0                               ? ""
                        : i + 1 == n && foreign->n_more == 0 ? " and "
                                                             : ", ",
                        foreign->skipped[i]);
        if (foreign->n_more > 0)
                fprintf(out, " and others");
        fputs(", which a node does not run; it runs " RUNNABLE_KINDS, out);
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
