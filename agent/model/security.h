/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SecurityContext and PodSecurityContext of core/v1: user, groups, capabilities, seccomp, AppArmor,
 * SELinux. Plain data, a part of pod.h. */

#include "agent/model/values.h"

typedef enum ProfileType {
        PROFILE_UNSET,
        PROFILE_RUNTIME_DEFAULT,
        PROFILE_UNCONFINED,
        PROFILE_LOCALHOST,
        PROFILE_OTHER, /* from a newer API server: the container cannot be created */
        N_PROFILE_TYPES,
} ProfileType;

typedef enum ProcMount {
        PROC_MOUNT_UNSET, /* Default */
        PROC_MOUNT_DEFAULT,
        PROC_MOUNT_UNMASKED,
        N_PROC_MOUNTS,
} ProcMount;

typedef enum SupplementalGroupsPolicy {
        GROUPS_POLICY_UNSET, /* Merge */
        GROUPS_POLICY_MERGE, /* adds the groups that the user has in the image */
        GROUPS_POLICY_STRICT,
        GROUPS_POLICY_OTHER, /* from a newer API server: the sandbox cannot be created */
        N_GROUPS_POLICIES,
} SupplementalGroupsPolicy;

/* fsGroupChangePolicy matters only for claims, because emptyDirs start empty. OnRootMismatch does
 * not change a volume whose top directory already has the group. */
typedef enum FsGroupChangePolicy {
        FS_GROUP_CHANGE_UNSET,
        FS_GROUP_CHANGE_ON_ROOT_MISMATCH,
        FS_GROUP_CHANGE_ALWAYS,
        N_FS_GROUP_CHANGE_POLICIES,
} FsGroupChangePolicy;

/* Has no effect on the volumes supported here: "MountOption" applies to CSI drivers that support
 * it; all others are relabelled recursively in both cases. */
typedef enum SeLinuxChangePolicy {
        SE_LINUX_CHANGE_UNSET,
        SE_LINUX_CHANGE_MOUNT_OPTION,
        SE_LINUX_CHANGE_RECURSIVE,
        N_SE_LINUX_CHANGE_POLICIES,
} SeLinuxChangePolicy;

extern const char *const profile_type_names[N_PROFILE_TYPES];
extern const char *const proc_mount_names[N_PROC_MOUNTS];
extern const char *const groups_policy_names[N_GROUPS_POLICIES];
extern const char *const fs_group_change_policy_names[N_FS_GROUP_CHANGE_POLICIES];
extern const char *const se_linux_change_policy_names[N_SE_LINUX_CHANGE_POLICIES];

/* A SeccompProfile or an AppArmorProfile. */
typedef struct SecurityProfile {
        ProfileType type;
        char *localhost_profile;
} SecurityProfile;

/* The parts of a label that differ from the policy's default. */
typedef struct SeLinuxOptions {
        char *user;
        char *role;
        char *type;
        char *level;
} SeLinuxOptions;

typedef struct Capabilities {
        char **add; /* "NET_ADMIN", "ALL" */
        char **drop;
} Capabilities;

typedef struct Sysctl {
        char *name;
        char *value;
} Sysctl;

/* WindowsSecurityContextOptions has no effect here, but many namespaces of an API server do not
 * admit pods with hostProcess. */
typedef struct WindowsOptions {
        bool host_process;
} WindowsOptions;

/* The settings of a container, which override the pod's. */
typedef struct SecurityContext {
        Capabilities capabilities;
        bool privileged;
        SeLinuxOptions *se_linux_options;
        WindowsOptions windows_options; /* only in objects of an API server */
        OptionalInt run_as_user;
        OptionalInt run_as_group;
        OptionalBool run_as_non_root;
        bool read_only_root_filesystem;
        OptionalBool allow_privilege_escalation; /* absent: allowed */
        ProcMount proc_mount;
        SecurityProfile *seccomp_profile;
        SecurityProfile *app_armor_profile;
} SecurityContext;

typedef struct PodSecurityContext {
        SeLinuxOptions *se_linux_options;
        WindowsOptions windows_options; /* likewise */
        OptionalInt run_as_user;
        OptionalInt run_as_group;
        OptionalBool run_as_non_root;
        IntList supplemental_groups;
        SupplementalGroupsPolicy supplemental_groups_policy;
        OptionalInt fs_group;
        LIST_OF(Sysctl) sysctls;
        FsGroupChangePolicy fs_group_change_policy;
        SeLinuxChangePolicy se_linux_change_policy;
        SecurityProfile *seccomp_profile;
        SecurityProfile *app_armor_profile;
} PodSecurityContext;
