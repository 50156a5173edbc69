/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of core/v1 SecurityContext and PodSecurityContext, in the order of its types. */

#include "agent/model/capability.h"
#include "agent/model/names.h"
#include "agent/model/pod.h"
#include "agent/model/schema.h"

const char *const profile_type_names[N_PROFILE_TYPES] = {
        [PROFILE_RUNTIME_DEFAULT] = "RuntimeDefault",
        [PROFILE_UNCONFINED] = "Unconfined",
        [PROFILE_LOCALHOST] = "Localhost",
        [PROFILE_OTHER] = "Other",
};

const char *const proc_mount_names[N_PROC_MOUNTS] = {
        [PROC_MOUNT_DEFAULT] = "Default",
        [PROC_MOUNT_UNMASKED] = "Unmasked",
};

const char *const groups_policy_names[N_GROUPS_POLICIES] = {
        [GROUPS_POLICY_MERGE] = "Merge",
        [GROUPS_POLICY_STRICT] = "Strict",
        [GROUPS_POLICY_OTHER] = "Other",
};

const char *const fs_group_change_policy_names[N_FS_GROUP_CHANGE_POLICIES] = {
        [FS_GROUP_CHANGE_ON_ROOT_MISMATCH] = "OnRootMismatch",
        [FS_GROUP_CHANGE_ALWAYS] = "Always",
};

const char *const se_linux_change_policy_names[N_SE_LINUX_CHANGE_POLICIES] = {
        [SE_LINUX_CHANGE_MOUNT_OPTION] = "MountOption",
        [SE_LINUX_CHANGE_RECURSIVE] = "Recursive",
};

#define REQUIRED  .is_required = true
#define CHECK(fn) .check = (fn)
/* Kubernetes' range of user and group IDs. */
#define ID_RANGE .min = 0, .max = INT32_MAX

/* clang-format off */
static const Field capabilities_fields[] = {
        FIELD("add",                    STRINGS,    Capabilities, add, CHECK(check_capability), .is_manifest_check = true),
        FIELD("drop",                   STRINGS,    Capabilities, drop, CHECK(check_capability), .is_manifest_check = true),
};
static const Schema capabilities_schema = SCHEMA(Capabilities, capabilities_fields);

static const Field seccomp_profile_fields[] = {
        FIELD("type",                   ENUM,       SecurityProfile, type, REQUIRED,
              ENUM_NAMES(profile_type_names), .other = PROFILE_OTHER),
        FIELD("localhostProfile",       STRING,     SecurityProfile, localhost_profile,
              CHECK(check_descending_path)),
};
static const Schema seccomp_profile_schema = {
        .name = "SeccompProfile", .size = sizeof(SecurityProfile),
        .fields = seccomp_profile_fields, .n_fields = N_ELEMENTS(seccomp_profile_fields),
};

static const Field app_armor_profile_fields[] = {
        FIELD("type",                   ENUM,       SecurityProfile, type, REQUIRED,
              ENUM_NAMES(profile_type_names), .other = PROFILE_OTHER),
        FIELD("localhostProfile",       STRING,     SecurityProfile, localhost_profile,
              CHECK(check_app_armor_name)),
};
static const Schema app_armor_profile_schema = {
        .name = "AppArmorProfile", .size = sizeof(SecurityProfile),
        .fields = app_armor_profile_fields, .n_fields = N_ELEMENTS(app_armor_profile_fields),
};

static const Field se_linux_options_fields[] = {
        FIELD("user",                   STRING,     SeLinuxOptions, user),
        FIELD("role",                   STRING,     SeLinuxOptions, role),
        FIELD("type",                   STRING,     SeLinuxOptions, type),
        FIELD("level",                  STRING,     SeLinuxOptions, level),
};
static const Schema se_linux_options_schema = {
        .name = "SELinuxOptions", .size = sizeof(SeLinuxOptions),
        .fields = se_linux_options_fields, .n_fields = N_ELEMENTS(se_linux_options_fields),
};

static const Field windows_options_fields[] = {
        IGNORED("gmsaCredentialSpecName"),
        IGNORED("gmsaCredentialSpec"),
        IGNORED("runAsUserName"),
        FIELD("hostProcess",            BOOL,       WindowsOptions, host_process),
};
static const Schema windows_options_schema = {
        .name = "WindowsSecurityContextOptions", .size = sizeof(WindowsOptions),
        .fields = windows_options_fields, .n_fields = N_ELEMENTS(windows_options_fields),
};

static const Field security_context_fields[] = {
        FIELD("capabilities",           OBJECT,     SecurityContext, capabilities,
              .schema = &capabilities_schema),
        FIELD("privileged",             BOOL,       SecurityContext, privileged),
        FIELD("seLinuxOptions",         OPTIONAL,   SecurityContext, se_linux_options,
              .schema = &se_linux_options_schema),
        FIELD("windowsOptions",         OBJECT,     SecurityContext, windows_options,
              .schema = &windows_options_schema, .is_api_only = true,
              .reason = "is for Windows; this node runs Linux"),
        FIELD("runAsUser",              INT,        SecurityContext, run_as_user, ID_RANGE),
        FIELD("runAsGroup",             INT,        SecurityContext, run_as_group, ID_RANGE),
        FIELD("runAsNonRoot",           OPTIONAL_BOOL, SecurityContext, run_as_non_root),
        FIELD("readOnlyRootFilesystem", BOOL,       SecurityContext, read_only_root_filesystem),
        FIELD("allowPrivilegeEscalation", OPTIONAL_BOOL, SecurityContext, allow_privilege_escalation),
        FIELD("procMount",              ENUM,       SecurityContext, proc_mount,
              ENUM_NAMES(proc_mount_names), .is_not_empty = true,
              .ignores_other = true),
        FIELD("seccompProfile",         OPTIONAL,   SecurityContext, seccomp_profile,
              .schema = &seccomp_profile_schema),
        FIELD("appArmorProfile",        OPTIONAL,   SecurityContext, app_armor_profile,
              .schema = &app_armor_profile_schema),
};
const Schema security_context_schema = SCHEMA(SecurityContext, security_context_fields);

static const Field sysctl_fields[] = {
        FIELD("name",                   STRING,     Sysctl, name, REQUIRED, CHECK(check_sysctl_name)),
        FIELD("value",                  STRING,     Sysctl, value, .is_manifest_required = true),
};
static const Schema sysctl_schema = SCHEMA(Sysctl, sysctl_fields);

static const Field pod_security_context_fields[] = {
        FIELD("seLinuxOptions",         OPTIONAL,   PodSecurityContext, se_linux_options,
              .schema = &se_linux_options_schema),
        FIELD("windowsOptions",         OBJECT,     PodSecurityContext, windows_options,
              .schema = &windows_options_schema, .is_api_only = true,
              .reason = "is for Windows; this node runs Linux"),
        FIELD("runAsUser",              INT,        PodSecurityContext, run_as_user, ID_RANGE),
        FIELD("runAsGroup",             INT,        PodSecurityContext, run_as_group, ID_RANGE),
        FIELD("runAsNonRoot",           OPTIONAL_BOOL, PodSecurityContext, run_as_non_root),
        FIELD("supplementalGroups",     INTS,       PodSecurityContext, supplemental_groups, ID_RANGE),
        FIELD("supplementalGroupsPolicy", ENUM,     PodSecurityContext, supplemental_groups_policy,
              ENUM_NAMES(groups_policy_names), .is_not_empty = true,
              .other = GROUPS_POLICY_OTHER),
        FIELD("fsGroup",                INT,        PodSecurityContext, fs_group, ID_RANGE),
        FIELD("sysctls",                LIST,       PodSecurityContext, sysctls, .schema = &sysctl_schema),
        FIELD("fsGroupChangePolicy",    ENUM,       PodSecurityContext, fs_group_change_policy,
              ENUM_NAMES(fs_group_change_policy_names), .is_not_empty = true,
              .ignores_other = true),
        FIELD("seccompProfile",         OPTIONAL,   PodSecurityContext, seccomp_profile,
              .schema = &seccomp_profile_schema),
        FIELD("appArmorProfile",        OPTIONAL,   PodSecurityContext, app_armor_profile,
              .schema = &app_armor_profile_schema),
        FIELD("seLinuxChangePolicy",    ENUM,       PodSecurityContext, se_linux_change_policy,
              ENUM_NAMES(se_linux_change_policy_names), .ignores_other = true),
};
const Schema pod_security_context_schema =
        SCHEMA(PodSecurityContext, pod_security_context_fields);
/* clang-format on */
