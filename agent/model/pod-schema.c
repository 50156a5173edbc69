/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of core/v1 Pod: every field that Kubernetes defines, in the order of its types, so
 * that output reads like the API server's. A row without a member is a field that is refused; to
 * support the field, add a member. */

#include "agent/model/cdi.h"
#include "agent/model/names.h"
#include "agent/model/pod.h"
#include "agent/model/schema.h"

#include <errno.h>
#include <string.h>

#define REQUIRED  .is_required = true
#define CHECK(fn) .check = (fn)

/* Reasons for refusing fields that will not be supported. */
#define NEEDS_CLUSTER   "needs a cluster: "
#define REMOVED_VOLUME  "is a kind of volume that Kubernetes has removed"
#define ALPHA           "is alpha in Kubernetes, and disabled by default"
#define OF_CLUSTER(why) .is_api_only = true, .reason = NEEDS_CLUSTER why
#define SERVED_BY_CSI                                                                         \
        NEEDS_CLUSTER "its CSI drivers serve this kind of volume; otherwise mount it on the " \
                      "node, and name it by hostPath"
#define NOT_OURS                                                                                \
        "is not a kind of volume that this agent mounts; mount it on the node, and name it by " \
        "hostPath"

#define ZERO .null_is_zero = true

/* This check applies only to a manifest, see schema.h. */
#define LENIENT .is_manifest_check = true

/* An unknown value from a newer API server is treated as absent. */
#define REQUIRED_IN_FILES .is_manifest_required = true

/* The kubelet contacts the registry if it does not recognize the policy. */
#define PULLS_ANYWAY .other = PULL_POLICY_ALWAYS, .ignores_other = true

static int check_resource_name(const char *value, Error *reterr) {
        static const char podman[] = "podman.io/device=";

        if (strncmp(value, podman, strlen(podman)) == 0)
                return error_setf(reterr, EINVAL,
                                  "is a device for podman only; list it in mainstay.devices of the "
                                  "configuration, and request its resource");
        return is_cdi_resource(value) ? check_cdi_qualified_name(value, reterr)
                                      : check_extended_resource(value, reterr);
}

/* clang-format off */
static const Field extended_resource_fields[] = {
        FIELD("name",                   STRING,     ExtendedResource, name, CHECK(check_resource_name), LENIENT),
        FIELD("amount",                 QUANTITY,   ExtendedResource, amount, ZERO),
};
static const Schema extended_resource_schema = SCHEMA(ExtendedResource, extended_resource_fields);

static const Field resource_list_fields[] = {
        FIELD("cpu",                    QUANTITY,   ResourceList, cpu, ZERO),
        FIELD("ephemeral-storage",      QUANTITY,   ResourceList, ephemeral_storage, ZERO),
        FIELD("hugepages-1Gi",          QUANTITY,   ResourceList, huge_pages_1gi, ZERO),
        FIELD("hugepages-2Mi",          QUANTITY,   ResourceList, huge_pages_2mi, ZERO),
        FIELD("memory",                 QUANTITY,   ResourceList, memory, ZERO),
        FIELD("<domain>/<name>",        REST,       ResourceList, extended,
              .schema = &extended_resource_schema),
};
const Schema resource_list_schema = {
        .name = "ResourceList", .size = sizeof(ResourceList),
        .fields = resource_list_fields, .n_fields = N_ELEMENTS(resource_list_fields),
        .closed = "is not a resource of this node; it has cpu, memory, ephemeral-storage, "
                  "hugepages-1Gi and hugepages-2Mi",
};

static const Field resource_requirements_fields[] = {
        FIELD("limits",                 OBJECT,     ResourceRequirements, limits,
              .schema = &resource_list_schema),
        FIELD("requests",               OBJECT,     ResourceRequirements, requests,
              .schema = &resource_list_schema),
        FIELD_NOT_FOR_NODE("claims", NEEDS_CLUSTER "its scheduler allocates the claimed devices"),
};
const Schema resource_requirements_schema =
        SCHEMA(ResourceRequirements, resource_requirements_fields);

static const Field container_port_fields[] = {
        FIELD("name",                   STRING,     ContainerPort, name, CHECK(check_port_name)),
        FIELD("hostPort",               INT,        ContainerPort, host_port, .min = 0, .max = 65535),
        FIELD("containerPort",          INT,        ContainerPort, container_port, REQUIRED,
              .min = 1, .max = 65535),
        FIELD("protocol",               ENUM,       ContainerPort, protocol, ENUM_NAMES(protocol_names),
              .ignores_other = true),
        FIELD("hostIP",                 STRING,     ContainerPort, host_ip, CHECK(check_ip_address), LENIENT),
};
static const Schema container_port_schema = SCHEMA(ContainerPort, container_port_fields);

static const Field object_field_selector_fields[] = {
        FIELD("apiVersion",             STRING,     ObjectFieldSelector, api_version),
        FIELD("fieldPath",              STRING,     ObjectFieldSelector, field_path, REQUIRED),
};
static const Schema object_field_selector_schema =
        SCHEMA(ObjectFieldSelector, object_field_selector_fields);

static const Field resource_field_selector_fields[] = {
        FIELD("containerName",          STRING,     ResourceFieldSelector, container_name),
        FIELD("resource",               STRING,     ResourceFieldSelector, resource, REQUIRED),
        FIELD("divisor",                QUANTITY,   ResourceFieldSelector, divisor),
};
static const Schema resource_field_selector_schema =
        SCHEMA(ResourceFieldSelector, resource_field_selector_fields);

static const Field key_selector_fields[] = {
        FIELD("name",                   STRING,     KeySelector, name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("key",                    STRING,     KeySelector, key, REQUIRED, CHECK(check_data_key)),
        FIELD("optional",               BOOL,       KeySelector, optional),
};
static const Schema key_selector_schema = SCHEMA(KeySelector, key_selector_fields);

static const Field file_key_selector_fields[] = {
        FIELD("volumeName",             STRING,     FileKeySelector, volume_name, REQUIRED,
              CHECK(check_dns_label)),
        FIELD("path",                   STRING,     FileKeySelector, path, REQUIRED,
              CHECK(check_file_path), LENIENT),
        FIELD("key",                    STRING,     FileKeySelector, key, REQUIRED, CHECK(check_env_name)),
        FIELD("optional",               BOOL,       FileKeySelector, optional),
};
static const Schema file_key_selector_schema = SCHEMA(FileKeySelector, file_key_selector_fields);

static const Field env_var_source_fields[] = {
        FIELD("fieldRef",               OPTIONAL,   EnvVarSource, field_ref,
              .schema = &object_field_selector_schema),
        FIELD("resourceFieldRef",       OPTIONAL,   EnvVarSource, resource_field_ref,
              .schema = &resource_field_selector_schema),
        FIELD("configMapKeyRef",        OPTIONAL,   EnvVarSource, config_map_key_ref,
              .schema = &key_selector_schema),
        FIELD("secretKeyRef",           OPTIONAL,   EnvVarSource, secret_key_ref,
              .schema = &key_selector_schema),
        FIELD("fileKeyRef",             OPTIONAL,   EnvVarSource, file_key_ref,
              .schema = &file_key_selector_schema),
};
static const Schema env_var_source_schema = SCHEMA(EnvVarSource, env_var_source_fields);

static const Field env_var_fields[] = {
        FIELD("name",                   STRING,     EnvVar, name, REQUIRED, CHECK(check_env_name)),
        FIELD("value",                  STRING,     EnvVar, value),
        FIELD("valueFrom",              OPTIONAL,   EnvVar, value_from,
              .schema = &env_var_source_schema),
};
static const Schema env_var_schema = SCHEMA(EnvVar, env_var_fields);

static const Field env_source_fields[] = {
        FIELD("name",                   STRING,     EnvSource, name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("optional",               BOOL,       EnvSource, optional),
};
static const Schema env_source_schema = SCHEMA(EnvSource, env_source_fields);

static const Field env_from_fields[] = {
        FIELD("prefix",                 STRING,     EnvFromSource, prefix, CHECK(check_env_name)),
        FIELD("configMapRef",           OPTIONAL,   EnvFromSource, config_map_ref,
              .schema = &env_source_schema),
        FIELD("secretRef",              OPTIONAL,   EnvFromSource, secret_ref,
              .schema = &env_source_schema),
};
static const Schema env_from_schema = SCHEMA(EnvFromSource, env_from_fields);

static const Field volume_mount_fields[] = {
        FIELD("name",                   STRING,     VolumeMount, name, REQUIRED),
        FIELD("readOnly",               BOOL,       VolumeMount, read_only),
        FIELD("recursiveReadOnly",      ENUM,       VolumeMount, recursive_read_only,
              ENUM_NAMES(recursive_read_only_names), .is_not_empty = true,
              .other = RECURSIVE_READ_ONLY_OTHER),
        FIELD("mountPath",              STRING,     VolumeMount, mount_path, REQUIRED,
              CHECK(check_mount_path), LENIENT),
        FIELD("subPath",                STRING,     VolumeMount, sub_path,
              CHECK(check_descending_path)),
        FIELD("mountPropagation",       ENUM,       VolumeMount, mount_propagation,
              ENUM_NAMES(mount_propagation_names), .other = MOUNT_PROPAGATION_OTHER),
        FIELD("subPathExpr",            STRING,     VolumeMount, sub_path_expr,
              CHECK(check_descending_path)),
        REFUSED_FOR("bindMountOptions", ALPHA),
};
const Schema volume_mount_schema = SCHEMA(VolumeMount, volume_mount_fields);

static const Field exit_codes_fields[] = {
        FIELD("operator",               ENUM,       RestartRuleExitCodes, operator, REQUIRED_IN_FILES,
              ENUM_NAMES(exit_code_operator_names), .ignores_other = true),
        FIELD("values",                 INTS,       RestartRuleExitCodes, values,
              .min = INT32_MIN, .max = INT32_MAX),
};
static const Schema exit_codes_schema = {
        .name = "ContainerRestartRuleOnExitCodes", .size = sizeof(RestartRuleExitCodes),
        .fields = exit_codes_fields, .n_fields = N_ELEMENTS(exit_codes_fields),
};

static const Field restart_rule_fields[] = {
        FIELD("action",                 ENUM,       RestartRule, action, REQUIRED_IN_FILES,
              ENUM_NAMES(restart_action_names), .ignores_other = true),
        FIELD("exitCodes",              OPTIONAL,   RestartRule, exit_codes, REQUIRED_IN_FILES,
              .schema = &exit_codes_schema),
};
static const Schema restart_rule_schema = {
        .name = "ContainerRestartRule", .size = sizeof(RestartRule),
        .fields = restart_rule_fields, .n_fields = N_ELEMENTS(restart_rule_fields),
};

static const Field resize_policy_fields[] = {
        FIELD("resourceName",           ENUM,       ResizePolicy, resource_name, REQUIRED_IN_FILES,
              ENUM_NAMES(resize_resource_names), .ignores_other = true),
        FIELD("restartPolicy",          ENUM,       ResizePolicy, restart_policy, REQUIRED_IN_FILES,
              ENUM_NAMES(resize_restart_names), .ignores_other = true),
};
static const Schema resize_policy_schema = {
        .name = "ContainerResizePolicy", .size = sizeof(ResizePolicy),
        .fields = resize_policy_fields, .n_fields = N_ELEMENTS(resize_policy_fields),
};

static const Field volume_device_fields[] = {
        FIELD("name",                   STRING,     VolumeDevice, name, REQUIRED),
        FIELD("devicePath",             STRING,     VolumeDevice, device_path, REQUIRED),
};
static const Schema volume_device_schema = SCHEMA(VolumeDevice, volume_device_fields);

static const Field container_fields[] = {
        FIELD("name",                   STRING,     Container, name, REQUIRED, CHECK(check_dns_label)),
        FIELD("image",                  STRING,     Container, image, REQUIRED, CHECK(check_image)),
        FIELD("command",                STRINGS,    Container, command),
        FIELD("args",                   STRINGS,    Container, args),
        FIELD("workingDir",             STRING,     Container, working_dir,
              CHECK(check_absolute_path), LENIENT),
        FIELD("ports",                  LIST,       Container, ports, .schema = &container_port_schema),
        FIELD("envFrom",                LIST,       Container, env_from, .schema = &env_from_schema),
        FIELD("env",                    LIST,       Container, env, .schema = &env_var_schema),
        FIELD("resources",              OBJECT,     Container, resources,
              .schema = &resource_requirements_schema),
        FIELD("resizePolicy",           LIST,       Container, resize_policy,
              .schema = &resize_policy_schema),
        FIELD("restartPolicy",          ENUM,       Container, restart_policy,
              ENUM_NAMES(restart_policy_names), .is_not_empty = true,
              .other = RESTART_POLICY_OTHER),
        FIELD("restartPolicyRules",     LIST,       Container, restart_policy_rules,
              .schema = &restart_rule_schema),
        FIELD("volumeMounts",           LIST,       Container, volume_mounts,
              .schema = &volume_mount_schema),
        FIELD("volumeDevices",          LIST,       Container, volume_devices,
              .schema = &volume_device_schema, OF_CLUSTER("block devices come from PersistentVolumeClaims")),
        FIELD("livenessProbe",          OPTIONAL,   Container, liveness_probe, .schema = &probe_schema),
        FIELD("readinessProbe",         OPTIONAL,   Container, readiness_probe, .schema = &probe_schema),
        FIELD("startupProbe",           OPTIONAL,   Container, startup_probe, .schema = &probe_schema),
        FIELD("lifecycle",              OPTIONAL,   Container, lifecycle, .schema = &lifecycle_schema),
        FIELD("terminationMessagePath", STRING,     Container, termination_message_path,
              CHECK(check_mount_path), LENIENT),
        FIELD("terminationMessagePolicy", ENUM,     Container, termination_message_policy,
              ENUM_NAMES(termination_message_policy_names), .ignores_other = true),
        FIELD("imagePullPolicy",        ENUM,       Container, image_pull_policy,
              ENUM_NAMES(pull_policy_names), PULLS_ANYWAY),
        FIELD("securityContext",        OBJECT,     Container, security_context,
              .schema = &security_context_schema),
        FIELD("stdin",                  BOOL,       Container, has_stdin),
        FIELD("stdinOnce",              BOOL,       Container, stdin_once),
        FIELD("tty",                    BOOL,       Container, tty),
};
const Schema container_schema = SCHEMA(Container, container_fields);

#define NOT_EPHEMERAL "cannot be set for an ephemeral container"

/* A Container without the fields that make a pod depend on it. */
static const Field ephemeral_container_fields[] = {
        FIELD("name",                   STRING,     Container, name, REQUIRED, CHECK(check_dns_label)),
        FIELD("image",                  STRING,     Container, image, REQUIRED, CHECK(check_image)),
        FIELD("command",                STRINGS,    Container, command),
        FIELD("args",                   STRINGS,    Container, args),
        FIELD("workingDir",             STRING,     Container, working_dir,
              CHECK(check_absolute_path), LENIENT),
        REFUSED_FOR("ports", NOT_EPHEMERAL),
        FIELD("envFrom",                LIST,       Container, env_from, .schema = &env_from_schema),
        FIELD("env",                    LIST,       Container, env, .schema = &env_var_schema),
        REFUSED_FOR("resources", NOT_EPHEMERAL),
        REFUSED_FOR("resizePolicy", NOT_EPHEMERAL),
        REFUSED_FOR("restartPolicy", NOT_EPHEMERAL),
        REFUSED_FOR("restartPolicyRules", NOT_EPHEMERAL),
        FIELD("volumeMounts",           LIST,       Container, volume_mounts,
              .schema = &volume_mount_schema),
        FIELD("volumeDevices",          LIST,       Container, volume_devices,
              .schema = &volume_device_schema, OF_CLUSTER("block devices come from PersistentVolumeClaims")),
        REFUSED_FOR("livenessProbe", NOT_EPHEMERAL),
        REFUSED_FOR("readinessProbe", NOT_EPHEMERAL),
        REFUSED_FOR("startupProbe", NOT_EPHEMERAL),
        REFUSED_FOR("lifecycle", NOT_EPHEMERAL),
        FIELD("terminationMessagePath", STRING,     Container, termination_message_path,
              CHECK(check_mount_path), LENIENT),
        FIELD("terminationMessagePolicy", ENUM,     Container, termination_message_policy,
              ENUM_NAMES(termination_message_policy_names), .ignores_other = true),
        FIELD("imagePullPolicy",        ENUM,       Container, image_pull_policy,
              ENUM_NAMES(pull_policy_names), PULLS_ANYWAY),
        FIELD("securityContext",        OBJECT,     Container, security_context,
              .schema = &security_context_schema),
        FIELD("stdin",                  BOOL,       Container, has_stdin),
        FIELD("stdinOnce",              BOOL,       Container, stdin_once),
        FIELD("tty",                    BOOL,       Container, tty),
        FIELD("targetContainerName",    STRING,     Container, target_container_name,
              CHECK(check_dns_label)),
};
const Schema ephemeral_container_schema = {
        .name = "EphemeralContainer", .size = sizeof(Container),
        .fields = ephemeral_container_fields, .n_fields = N_ELEMENTS(ephemeral_container_fields),
};

static const Field host_path_fields[] = {
        FIELD("path",                   STRING,     HostPathVolumeSource, path, REQUIRED,
              CHECK(check_host_path), LENIENT),
        FIELD("type",                   ENUM,       HostPathVolumeSource, type,
              ENUM_NAMES(host_path_type_names), .other = HOST_PATH_OTHER),
};
const Schema host_path_schema = SCHEMA(HostPathVolumeSource, host_path_fields);

static const Field empty_dir_fields[] = {
        FIELD("medium",                 ENUM,       EmptyDirVolumeSource, medium,
              ENUM_NAMES(medium_names), .other = MEDIUM_OTHER),
        FIELD("sizeLimit",              QUANTITY,   EmptyDirVolumeSource, size_limit),
        REFUSED_FOR("mode", ALPHA),
};
static const Schema empty_dir_schema = SCHEMA(EmptyDirVolumeSource, empty_dir_fields);

static const Field key_to_path_fields[] = {
        FIELD("key",                    STRING,     KeyToPath, key, REQUIRED,
              CHECK(check_data_key), LENIENT),
        FIELD("path",                   STRING,     KeyToPath, path, REQUIRED, CHECK(check_file_path)),
        FIELD("mode",                   INT,        KeyToPath, mode, .min = 0, .max = 0777),
};
static const Schema key_to_path_schema = SCHEMA(KeyToPath, key_to_path_fields);

static const Field secret_volume_fields[] = {
        FIELD("secretName",             STRING,     ObjectVolumeSource, name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("items",                  LIST,       ObjectVolumeSource, items,
              .schema = &key_to_path_schema),
        FIELD("defaultMode",            INT,        ObjectVolumeSource, default_mode,
              .min = 0, .max = 0777),
        FIELD("optional",               BOOL,       ObjectVolumeSource, optional),
};
static const Schema secret_volume_schema = {
        .name = "SecretVolumeSource", .size = sizeof(ObjectVolumeSource),
        .fields = secret_volume_fields, .n_fields = N_ELEMENTS(secret_volume_fields),
};

static const Field config_map_volume_fields[] = {
        FIELD("name",                   STRING,     ObjectVolumeSource, name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("items",                  LIST,       ObjectVolumeSource, items,
              .schema = &key_to_path_schema),
        FIELD("defaultMode",            INT,        ObjectVolumeSource, default_mode,
              .min = 0, .max = 0777),
        FIELD("optional",               BOOL,       ObjectVolumeSource, optional),
};
static const Schema config_map_volume_schema = {
        .name = "ConfigMapVolumeSource", .size = sizeof(ObjectVolumeSource),
        .fields = config_map_volume_fields, .n_fields = N_ELEMENTS(config_map_volume_fields),
};

static const Field downward_api_file_fields[] = {
        FIELD("path",                   STRING,     DownwardAPIVolumeFile, path, REQUIRED,
              CHECK(check_file_path)),
        FIELD("fieldRef",               OPTIONAL,   DownwardAPIVolumeFile, field_ref,
              .schema = &object_field_selector_schema),
        FIELD("resourceFieldRef",       OPTIONAL,   DownwardAPIVolumeFile, resource_field_ref,
              .schema = &resource_field_selector_schema),
        FIELD("mode",                   INT,        DownwardAPIVolumeFile, mode, .min = 0, .max = 0777),
};
static const Schema downward_api_file_schema =
        SCHEMA(DownwardAPIVolumeFile, downward_api_file_fields);

static const Field downward_api_volume_fields[] = {
        FIELD("items",                  LIST,       DownwardAPIVolumeSource, items,
              .schema = &downward_api_file_schema),
        FIELD("defaultMode",            INT,        DownwardAPIVolumeSource, default_mode,
              .min = 0, .max = 0777),
};
static const Schema downward_api_volume_schema =
        SCHEMA(DownwardAPIVolumeSource, downward_api_volume_fields);

static const Field object_projection_fields[] = {
        FIELD("name",                   STRING,     ObjectVolumeSource, name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("items",                  LIST,       ObjectVolumeSource, items,
              .schema = &key_to_path_schema),
        FIELD("optional",               BOOL,       ObjectVolumeSource, optional),
};
static const Schema secret_projection_schema = {
        .name = "SecretProjection", .size = sizeof(ObjectVolumeSource),
        .fields = object_projection_fields, .n_fields = N_ELEMENTS(object_projection_fields),
};
static const Schema config_map_projection_schema = {
        .name = "ConfigMapProjection", .size = sizeof(ObjectVolumeSource),
        .fields = object_projection_fields, .n_fields = N_ELEMENTS(object_projection_fields),
};

static const Field downward_api_projection_fields[] = {
        FIELD("items",                  LIST,       DownwardAPIVolumeSource, items,
              .schema = &downward_api_file_schema),
};
static const Schema downward_api_projection_schema = {
        .name = "DownwardAPIProjection", .size = sizeof(DownwardAPIVolumeSource),
        .fields = downward_api_projection_fields,
        .n_fields = N_ELEMENTS(downward_api_projection_fields),
};

static const Field token_projection_fields[] = {
        FIELD("audience",               STRING,     TokenProjection, audience),
        FIELD("expirationSeconds",      INT,        TokenProjection, expiration_seconds,
              .min = 600, .max = INT64_C(1) << 32),
        FIELD("path",                   STRING,     TokenProjection, path, REQUIRED, CHECK(check_file_path)),
};
static const Schema token_projection_schema = {
        .name = "ServiceAccountTokenProjection", .size = sizeof(TokenProjection),
        .fields = token_projection_fields, .n_fields = N_ELEMENTS(token_projection_fields),
};

static const Field volume_projection_fields[] = {
        FIELD("secret",                 OPTIONAL,   VolumeProjection, secret,
              .schema = &secret_projection_schema),
        FIELD("downwardAPI",            OPTIONAL,   VolumeProjection, downward_api,
              .schema = &downward_api_projection_schema),
        FIELD("configMap",              OPTIONAL,   VolumeProjection, config_map,
              .schema = &config_map_projection_schema),
        FIELD("serviceAccountToken",    OPTIONAL,   VolumeProjection, service_account_token,
              .schema = &token_projection_schema, OF_CLUSTER("its API server issues the tokens of service accounts; remove this source, or use a secret source with a token that a Secret of a file has")),
        PRESENT("clusterTrustBundle", VolumeProjection, cluster_trust_bundle, NEEDS_CLUSTER "its API server stores the trust bundles"),
        PRESENT("podCertificate", VolumeProjection, pod_certificate, NEEDS_CLUSTER "its signers issue the certificates"),
};
static const Schema volume_projection_schema = SCHEMA(VolumeProjection, volume_projection_fields);

static const Field projected_volume_fields[] = {
        FIELD("sources",                LIST,       ProjectedVolumeSource, sources,
              .schema = &volume_projection_schema),
        FIELD("defaultMode",            INT,        ProjectedVolumeSource, default_mode,
              .min = 0, .max = 0777),
};
static const Schema projected_volume_schema = SCHEMA(ProjectedVolumeSource, projected_volume_fields);

static const Field image_volume_fields[] = {
        FIELD("reference",              STRING,     ImageVolumeSource, reference, REQUIRED,
              CHECK(check_image)),
        FIELD("pullPolicy",             ENUM,       ImageVolumeSource, pull_policy,
              ENUM_NAMES(pull_policy_names), PULLS_ANYWAY),
};
static const Schema image_volume_schema = SCHEMA(ImageVolumeSource, image_volume_fields);

static const Field claim_volume_fields[] = {
        FIELD("claimName",              STRING,     ClaimVolumeSource, claim_name, REQUIRED,
              CHECK(check_dns_subdomain), LENIENT),
        FIELD("readOnly",               BOOL,       ClaimVolumeSource, read_only),
};
static const Schema claim_volume_schema = {
        .name = "PersistentVolumeClaimVolumeSource", .size = sizeof(ClaimVolumeSource),
        .fields = claim_volume_fields, .n_fields = N_ELEMENTS(claim_volume_fields),
};

static const Field nfs_volume_fields[] = {
        FIELD("server",                 STRING,     NfsVolumeSource, server, REQUIRED,
              CHECK(check_nfs_server), LENIENT),
        FIELD("path",                   STRING,     NfsVolumeSource, path, REQUIRED,
              CHECK(check_absolute_path), LENIENT),
        FIELD("readOnly",               BOOL,       NfsVolumeSource, read_only),
};
const Schema nfs_volume_schema = {
        .name = "NFSVolumeSource", .size = sizeof(NfsVolumeSource),
        .fields = nfs_volume_fields, .n_fields = N_ELEMENTS(nfs_volume_fields),
};

static const Field local_object_reference_fields[] = {
        FIELD("name", STRING, LocalObjectReference, name),
};
static const Schema local_object_reference_schema =
        SCHEMA(LocalObjectReference, local_object_reference_fields);

static const Field csi_volume_fields[] = {
        FIELD("driver",                 STRING,     CsiVolumeSource, driver, REQUIRED,
              CHECK(check_csi_driver), LENIENT),
        FIELD("readOnly",               BOOL,       CsiVolumeSource, read_only),
        FIELD("fsType",                 STRING,     CsiVolumeSource, fs_type),
        FIELD("volumeAttributes",       STRING_MAP, CsiVolumeSource, attributes),
        FIELD("nodePublishSecretRef",   OPTIONAL,   CsiVolumeSource, publish_secret,
              .schema = &local_object_reference_schema),
};
static const Schema csi_volume_schema = {
        .name = "CSIVolumeSource", .size = sizeof(CsiVolumeSource),
        .fields = csi_volume_fields, .n_fields = N_ELEMENTS(csi_volume_fields),
};

static const Field volume_fields[] = {
        FIELD("name",                   STRING,     Volume, name, REQUIRED, CHECK(check_dns_label)),
        FIELD("hostPath",               OPTIONAL,   Volume, host_path, .schema = &host_path_schema),
        FIELD("emptyDir",               OPTIONAL,   Volume, empty_dir, .schema = &empty_dir_schema),
        PRESENT("gcePersistentDisk", Volume, unmountable.gce_persistent_disk, SERVED_BY_CSI),
        PRESENT("awsElasticBlockStore", Volume, unmountable.aws_elastic_block_store, SERVED_BY_CSI),
        PRESENT("gitRepo", Volume, unmountable.git_repo, REMOVED_VOLUME),
        FIELD("secret",                 OPTIONAL,   Volume, secret, .schema = &secret_volume_schema),
        FIELD("nfs",                    OPTIONAL,   Volume, nfs, .schema = &nfs_volume_schema),
        PRESENT("iscsi", Volume, unmountable.iscsi, NOT_OURS),
        PRESENT("glusterfs", Volume, unmountable.glusterfs, REMOVED_VOLUME),
        FIELD("persistentVolumeClaim",  OPTIONAL,   Volume, persistent_volume_claim,
              .schema = &claim_volume_schema,
              OF_CLUSTER("its controllers bind claims to volumes; otherwise use hostPath")),
        PRESENT("rbd", Volume, unmountable.rbd, REMOVED_VOLUME),
        PRESENT("flexVolume", Volume, unmountable.flex_volume, NOT_OURS),
        PRESENT("cinder", Volume, unmountable.cinder, SERVED_BY_CSI),
        PRESENT("cephfs", Volume, unmountable.cephfs, REMOVED_VOLUME),
        PRESENT("flocker", Volume, unmountable.flocker, REMOVED_VOLUME),
        FIELD("downwardAPI",            OPTIONAL,   Volume, downward_api,
              .schema = &downward_api_volume_schema),
        PRESENT("fc", Volume, unmountable.fc, NOT_OURS),
        PRESENT("azureFile", Volume, unmountable.azure_file, SERVED_BY_CSI),
        FIELD("configMap",              OPTIONAL,   Volume, config_map,
              .schema = &config_map_volume_schema),
        PRESENT("vsphereVolume", Volume, unmountable.vsphere_volume, SERVED_BY_CSI),
        PRESENT("quobyte", Volume, unmountable.quobyte, REMOVED_VOLUME),
        PRESENT("azureDisk", Volume, unmountable.azure_disk, SERVED_BY_CSI),
        PRESENT("photonPersistentDisk", Volume, unmountable.photon_persistent_disk, REMOVED_VOLUME),
        FIELD("projected",              OPTIONAL,   Volume, projected,
              .schema = &projected_volume_schema),
        PRESENT("portworxVolume", Volume, unmountable.portworx_volume, SERVED_BY_CSI),
        PRESENT("scaleIO", Volume, unmountable.scale_io, REMOVED_VOLUME),
        PRESENT("storageos", Volume, unmountable.storageos, REMOVED_VOLUME),
        FIELD("csi",                    OPTIONAL,   Volume, csi, .schema = &csi_volume_schema),
        PRESENT("ephemeral", Volume, ephemeral, NEEDS_CLUSTER "its controllers create the claim and bind it to a volume; otherwise use emptyDir"),
        FIELD("image",                  OPTIONAL,   Volume, image, .schema = &image_volume_schema),
};
const Schema volume_schema = SCHEMA(Volume, volume_fields);

static const Field host_alias_fields[] = {
        FIELD("ip",                     STRING,     HostAlias, ip, REQUIRED, CHECK(check_ip_address), LENIENT),
        FIELD("hostnames",              STRINGS,    HostAlias, hostnames, CHECK(check_dns_subdomain)),
};
static const Schema host_alias_schema = SCHEMA(HostAlias, host_alias_fields);

static const Field pod_dns_option_fields[] = {
        FIELD("name",                   STRING,     PodDnsOption, name, REQUIRED, CHECK(check_dns_option), LENIENT),
        FIELD("value",                  STRING,     PodDnsOption, value, CHECK(check_dns_option), LENIENT),
};
static const Schema pod_dns_option_schema = {
        .name = "PodDNSConfigOption", .size = sizeof(PodDnsOption),
        .fields = pod_dns_option_fields, .n_fields = N_ELEMENTS(pod_dns_option_fields),
};

static const Field pod_dns_config_fields[] = {
        FIELD("nameservers",            STRINGS,    PodDnsConfig, nameservers, CHECK(check_ip_address), LENIENT),
        FIELD("searches",               STRINGS,    PodDnsConfig, searches, CHECK(check_dns_search)),
        FIELD("options",                LIST,       PodDnsConfig, options, .schema = &pod_dns_option_schema),
};
static const Schema pod_dns_config_schema = {
        .name = "PodDNSConfig", .size = sizeof(PodDnsConfig),
        .fields = pod_dns_config_fields, .n_fields = N_ELEMENTS(pod_dns_config_fields),
};

static const Field pod_os_fields[] = {
        FIELD("name",                   ENUM,       PodOs, name, REQUIRED, ENUM_NAMES(os_names),
              .other = OS_OTHER),
};
static const Schema pod_os_schema = {
        .name = "PodOS", .size = sizeof(PodOs),
        .fields = pod_os_fields, .n_fields = N_ELEMENTS(pod_os_fields),
};

static const Field readiness_gate_fields[] = {
        FIELD("conditionType",          STRING,     ReadinessGate, condition_type, REQUIRED,
              CHECK(check_label_key)),
};
static const Schema readiness_gate_schema = {
        .name = "PodReadinessGate", .size = sizeof(ReadinessGate),
        .fields = readiness_gate_fields, .n_fields = N_ELEMENTS(readiness_gate_fields),
};

static const Field pod_spec_fields[] = {
        FIELD("volumes",                LIST,       PodSpec, volumes, .schema = &volume_schema),
        FIELD("initContainers",         LIST,       PodSpec, init_containers,
              .schema = &container_schema),
        FIELD("containers",             LIST,       PodSpec, containers, REQUIRED,
              .schema = &container_schema),
        FIELD("ephemeralContainers",    LIST,       PodSpec, ephemeral_containers,
              .schema = &ephemeral_container_schema, .is_api_only = true,
              .reason = "cannot be in a manifest; they are added to a pod that runs, by 'mainstay debug POD'"),
        FIELD("restartPolicy",          ENUM,       PodSpec, restart_policy,
              .names = restart_policy_names, .n_names = RESTART_POLICY_OTHER,
              .ignores_other = true),
        FIELD("terminationGracePeriodSeconds", INT, PodSpec, termination_grace_period_seconds,
              .min = INT32_MIN, .max = INT32_MAX),
        FIELD("activeDeadlineSeconds",  INT,        PodSpec, active_deadline_seconds,
              .min = 1, .max = INT32_MAX),
        FIELD("dnsPolicy",              ENUM,       PodSpec, dns_policy,
              ENUM_NAMES(dns_policy_names), .ignores_other = true),
        FIELD("nodeSelector",           STRING_MAP, PodSpec, node_selector),
        FIELD("serviceAccountName",     STRING,     PodSpec, service_account_name,
              CHECK(check_dns_subdomain)),
        IGNORED_BUT("serviceAccount", "the old name of serviceAccountName"), /* manifest/ reads it */
        /* The API server's admission has added the corresponding volumes. */
        FIELD("automountServiceAccountToken", OPTIONAL_BOOL, PodSpec, automount_token),
        FIELD("nodeName",               STRING,     PodSpec, node_name),
        FIELD("hostNetwork",            BOOL,       PodSpec, host_network),
        FIELD("hostPID",                BOOL,       PodSpec, host_pid),
        FIELD("hostIPC",                BOOL,       PodSpec, host_ipc),
        FIELD("shareProcessNamespace",  BOOL,       PodSpec, share_process_namespace),
        FIELD("securityContext",        OBJECT,     PodSpec, security_context,
              .schema = &pod_security_context_schema),
        FIELD("imagePullSecrets",       LIST,       PodSpec, image_pull_secrets,
              .schema = &local_object_reference_schema),
        FIELD("hostname",               STRING,     PodSpec, hostname, CHECK(check_optional_dns_label)),
        FIELD("subdomain",              STRING,     PodSpec, subdomain, CHECK(check_optional_dns_label)),
        FIELD("affinity",               OPTIONAL,   PodSpec, affinity, .schema = &affinity_schema),
        FIELD("schedulerName",          STRING,     PodSpec, scheduler_name),
        FIELD("tolerations",            LIST,       PodSpec, tolerations, .schema = &toleration_schema),
        FIELD("hostAliases",            LIST,       PodSpec, host_aliases, .schema = &host_alias_schema),
        FIELD("priorityClassName",      STRING,     PodSpec, priority_class_name,
              CHECK(check_dns_subdomain)),
        FIELD("priority",               INT,        PodSpec, priority,
              .min = INT32_MIN, .max = INT32_MAX),
        FIELD("dnsConfig",              OPTIONAL,   PodSpec, dns_config, .schema = &pod_dns_config_schema),
        FIELD("readinessGates",         LIST,       PodSpec, readiness_gates,
              .schema = &readiness_gate_schema),
        FIELD("runtimeClassName",       STRING,     PodSpec, runtime_class_name,
              CHECK(check_dns_subdomain)),
        FIELD("enableServiceLinks",     OPTIONAL_BOOL, PodSpec, enable_service_links),
        REFUSED_BUT("preemptionPolicy", "PreemptLowerPriority", .is_not_for_node = true, .reason = NEEDS_CLUSTER "only its scheduler uses this field"),
        FIELD("overhead",               OPTIONAL,   PodSpec, overhead,
              .schema = &resource_list_schema),
        { .key = "topologySpreadConstraints", .type = FIELD_REFUSED, .is_not_for_node = true, .is_only_warned_of = true, .reason = "is ignored: it spreads pods over the nodes of a cluster" },
        FIELD("setHostnameAsFQDN",      BOOL,       PodSpec, set_hostname_as_fqdn),
        FIELD("os",                     OPTIONAL,   PodSpec, os, .schema = &pod_os_schema),
        FIELD("hostUsers",              OPTIONAL_BOOL, PodSpec, host_users),
        FIELD_NOT_FOR_NODE("schedulingGates", NEEDS_CLUSTER "only its scheduler uses this field"),
        PRESENT("resourceClaims", PodSpec, has_resource_claims, NEEDS_CLUSTER "its scheduler allocates the claimed devices"),
        FIELD("resources",              OPTIONAL,   PodSpec, resources,
              .schema = &resource_requirements_schema),
        FIELD("hostnameOverride",       STRING,     PodSpec, hostname_override,
              CHECK(check_host_name), .is_not_empty = true),
        FIELD_NOT_FOR_NODE("workloadRef", NEEDS_CLUSTER "only its scheduler uses this field"),
        FIELD_NOT_FOR_NODE("schedulingGroup", NEEDS_CLUSTER "only its scheduler uses this field"),
        FIELD_NOT_FOR_NODE("evictionResponders", NEEDS_CLUSTER "its API server receives the eviction requests"),
};
const Schema pod_spec_schema = SCHEMA(PodSpec, pod_spec_fields);

static const Field owner_reference_fields[] = {
        FIELD("apiVersion",             STRING,     OwnerReference, api_version, REQUIRED),
        FIELD("kind",                   STRING,     OwnerReference, kind, REQUIRED),
        FIELD("name",                   STRING,     OwnerReference, name, REQUIRED),
        FIELD("uid",                    STRING,     OwnerReference, uid, REQUIRED),
        FIELD("controller",             BOOL,       OwnerReference, controller),
        FIELD("blockOwnerDeletion",     BOOL,       OwnerReference, block_owner_deletion),
};
const Schema owner_reference_schema = SCHEMA(OwnerReference, owner_reference_fields);

static const Field object_meta_fields[] = {
        FIELD("name",                   STRING,     ObjectMeta, name, REQUIRED,
              CHECK(check_dns_subdomain)),
        IGNORED("generateName"), /* required, as in an API server, because the object has a name */
        FIELD("namespace",              STRING,     ObjectMeta, namespace, CHECK(check_dns_label)),
        IGNORED("selfLink"),
        FIELD("uid",                    STRING,     ObjectMeta, uid, CHECK(check_uid)),
        IGNORED("resourceVersion"),
        IGNORED("generation"),
        IGNORED("creationTimestamp"),
        IGNORED("deletionTimestamp"),
        IGNORED("deletionGracePeriodSeconds"),
        FIELD("labels",                 STRING_MAP, ObjectMeta, labels),
        FIELD("annotations",            STRING_MAP, ObjectMeta, annotations),
        FIELD("ownerReferences",        LIST,       ObjectMeta, owner_references,
              .schema = &owner_reference_schema, .is_api_only = true, .is_only_warned_of = true,
              .reason = "is ignored: the owner is an object of a cluster"),
        FIELD_NOT_FOR_NODE("finalizers", NEEDS_CLUSTER "its controllers remove the finalizers"),
        IGNORED("managedFields"),
};
const Schema object_meta_schema = SCHEMA(ObjectMeta, object_meta_fields);

static const Field pod_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     Pod, metadata, REQUIRED,
              .schema = &object_meta_schema),
        FIELD("spec",                   OBJECT,     Pod, spec, REQUIRED, .schema = &pod_spec_schema),
        IGNORED("status"),
};
const Schema pod_schema = SCHEMA(Pod, pod_fields);
/* clang-format on */
