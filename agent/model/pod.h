/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Pod of core/v1: plain data, with defaults applied and validated by manifest/, read by all
 * modules.
 *
 * Members are named as in the API, in snake case. Every struct here has a Schema (model/schema.h):
 * a table of its fields by which it is read, written, compared and freed. A zeroed struct is an
 * empty one. */

#include "agent/model/object-source.h"
#include "agent/model/placement.h"
#include "agent/model/probe.h"
#include "agent/model/quantity.h"
#include "agent/model/security.h"
#include "agent/model/values.h"

typedef enum RestartPolicy {
        RESTART_POLICY_UNSET,
        RESTART_POLICY_ALWAYS,
        RESTART_POLICY_ON_FAILURE,
        RESTART_POLICY_NEVER,
        RESTART_POLICY_OTHER, /* of a container, from a newer API server: the pod's policy
                               * applies */
        N_RESTART_POLICIES,
} RestartPolicy;

typedef enum PullPolicy {
        PULL_POLICY_UNSET,
        PULL_POLICY_ALWAYS,
        PULL_POLICY_IF_NOT_PRESENT,
        PULL_POLICY_NEVER,
        N_PULL_POLICIES,
} PullPolicy;

typedef enum HostPathType {
        HOST_PATH_UNSET, /* "": no check */
        HOST_PATH_DIRECTORY_OR_CREATE,
        HOST_PATH_DIRECTORY,
        HOST_PATH_FILE_OR_CREATE,
        HOST_PATH_FILE,
        HOST_PATH_SOCKET,
        HOST_PATH_CHAR_DEVICE,
        HOST_PATH_BLOCK_DEVICE,
        HOST_PATH_OTHER, /* from a newer API server: the volume cannot be created */
        N_HOST_PATH_TYPES,
} HostPathType;

typedef enum Medium {
        MEDIUM_UNSET, /* "": the node's disk */
        MEDIUM_MEMORY,
        MEDIUM_HUGE_PAGES, /* huge pages of the only page size that the pod's containers request */
        MEDIUM_HUGE_PAGES_1GI,
        MEDIUM_HUGE_PAGES_2MI,
        MEDIUM_OTHER, /* from an API server, which does not check it: the volume cannot be
                       * created */
        N_MEDIA,
} Medium;

typedef enum OsName {
        OS_UNSET,
        OS_LINUX,
        OS_WINDOWS,
        OS_OTHER, /* from a newer API server: the pod is rejected, like one for Windows */
        N_OS_NAMES,
} OsName;

typedef enum Protocol {
        PROTOCOL_UNSET,
        PROTOCOL_TCP,
        PROTOCOL_UDP,
        PROTOCOL_SCTP,
        N_PROTOCOLS,
} Protocol;

typedef enum DnsPolicy {
        DNS_POLICY_UNSET,
        DNS_POLICY_CLUSTER_FIRST,
        DNS_POLICY_CLUSTER_FIRST_WITH_HOST_NET,
        DNS_POLICY_DEFAULT,
        DNS_POLICY_NONE,
        N_DNS_POLICIES,
} DnsPolicy;

typedef enum MountPropagation {
        MOUNT_PROPAGATION_UNSET,
        MOUNT_PROPAGATION_NONE,
        MOUNT_PROPAGATION_HOST_TO_CONTAINER,
        MOUNT_PROPAGATION_BIDIRECTIONAL,
        MOUNT_PROPAGATION_OTHER, /* from a newer API server: the container cannot be created */
        N_MOUNT_PROPAGATIONS,
} MountPropagation;

typedef enum RecursiveReadOnly {
        RECURSIVE_READ_ONLY_UNSET,
        RECURSIVE_READ_ONLY_DISABLED,
        RECURSIVE_READ_ONLY_IF_POSSIBLE,
        RECURSIVE_READ_ONLY_ENABLED,
        RECURSIVE_READ_ONLY_OTHER, /* likewise */
        N_RECURSIVE_READ_ONLY,
} RecursiveReadOnly;

typedef enum TerminationMessagePolicy {
        TERMINATION_MESSAGE_UNSET,
        TERMINATION_MESSAGE_FILE,
        TERMINATION_MESSAGE_FALLBACK_TO_LOGS,
        N_TERMINATION_MESSAGE_POLICIES,
} TerminationMessagePolicy;

/* The action when a restart rule matches the exit code of its container. */
typedef enum RestartAction {
        RESTART_ACTION_UNSET,
        RESTART_ACTION_RESTART,
        RESTART_ACTION_RESTART_ALL,
        N_RESTART_ACTIONS,
} RestartAction;

typedef enum ExitCodeOperator {
        EXIT_CODE_OPERATOR_UNSET,
        EXIT_CODE_IN,
        EXIT_CODE_NOT_IN,
        N_EXIT_CODE_OPERATORS,
} ExitCodeOperator;

typedef enum ResizeResource {
        RESIZE_RESOURCE_UNSET,
        RESIZE_CPU,
        RESIZE_MEMORY,
        N_RESIZE_RESOURCES,
} ResizeResource;

typedef enum ResizeRestart {
        RESIZE_RESTART_UNSET,
        RESIZE_RESTART_NOT_REQUIRED,
        RESIZE_RESTART_CONTAINER,
        N_RESIZE_RESTARTS,
} ResizeRestart;

/* The names of the values in the API; index 0 is NULL. */
extern const char *const restart_policy_names[N_RESTART_POLICIES];
extern const char *const pull_policy_names[N_PULL_POLICIES];
extern const char *const host_path_type_names[N_HOST_PATH_TYPES];
extern const char *const medium_names[N_MEDIA];
extern const char *const os_names[N_OS_NAMES];
extern const char *const protocol_names[N_PROTOCOLS];
extern const char *const dns_policy_names[N_DNS_POLICIES];
extern const char *const mount_propagation_names[N_MOUNT_PROPAGATIONS];
extern const char *const recursive_read_only_names[N_RECURSIVE_READ_ONLY];
extern const char *const termination_message_policy_names[N_TERMINATION_MESSAGE_POLICIES];
extern const char *const restart_action_names[N_RESTART_ACTIONS];
extern const char *const exit_code_operator_names[N_EXIT_CODE_OPERATORS];
extern const char *const resize_resource_names[N_RESIZE_RESOURCES];
extern const char *const resize_restart_names[N_RESIZE_RESTARTS];

/* A field of the pod: "metadata.name", "metadata.labels['app']", "status.hostIP". */
typedef struct ObjectFieldSelector {
        char *api_version; /* "v1" or NULL */
        char *field_path;
} ObjectFieldSelector;

/* A resource of one of the pod's containers: "limits.memory". */
typedef struct ResourceFieldSelector {
        char *container_name; /* NULL: the container itself */
        char *resource;
        Quantity divisor; /* unset or 0 means 1 */
} ResourceFieldSelector;

/* One key of a ConfigMap or Secret in the pod's namespace. */
typedef struct KeySelector {
        char *name;
        char *key;
        bool optional;
} KeySelector;

/* One variable of a file that a container of the pod has written into an emptyDir. */
typedef struct FileKeySelector {
        char *volume_name;
        char *path; /* path in the volume */
        char *key;
        bool optional;
} FileKeySelector;

/* Exactly one is not NULL. */
typedef struct EnvVarSource {
        ObjectFieldSelector *field_ref;
        ResourceFieldSelector *resource_field_ref;
        KeySelector *config_map_key_ref;
        KeySelector *secret_key_ref;
        FileKeySelector *file_key_ref;
} EnvVarSource;

typedef struct EnvVar {
        char *name;
        char *value; /* NULL: "" */
        EnvVarSource *value_from;
} EnvVar;

/* All keys of a ConfigMap or Secret. */
typedef struct EnvSource {
        char *name;
        bool optional;
} EnvSource;

/* Exactly one source is not NULL. */
typedef struct EnvFromSource {
        char *prefix;
        EnvSource *config_map_ref;
        EnvSource *secret_ref;
} EnvFromSource;

typedef struct ContainerPort {
        char *name;
        OptionalInt host_port;
        OptionalInt container_port;
        Protocol protocol;
        char *host_ip;
} ContainerPort;

/* A block device of a claim, in a container. */
typedef struct VolumeDevice {
        char *name; /* of the volume */
        char *device_path;
} VolumeDevice;

typedef struct VolumeMount {
        char *name;
        bool read_only;
        RecursiveReadOnly recursive_read_only;
        char *mount_path;
        char *sub_path;
        MountPropagation mount_propagation;
        char *sub_path_expr; /* references to $(NAME) are expanded */
} VolumeMount;

/* A resource provided by a device plugin or by the node's list of devices: "example.com/gpu". */
typedef struct ExtendedResource {
        char *name;
        Quantity amount; /* a whole number */
} ExtendedResource;

typedef struct ResourceList {
        Quantity cpu;
        Quantity ephemeral_storage; /* for writable layer and logs */
        Quantity huge_pages_1gi;
        Quantity huge_pages_2mi;
        Quantity memory;
        LIST_OF(ExtendedResource) extended; /* sorted by name; only in containers */
} ResourceList;

typedef struct ResourceRequirements {
        ResourceList limits;
        ResourceList requests; /* defaulted from the limits */
} ResourceRequirements;

typedef struct RestartRuleExitCodes {
        ExitCodeOperator operator;
        IntList values;
} RestartRuleExitCodes;

typedef struct RestartRule {
        RestartAction action;
        RestartRuleExitCodes *exit_codes; /* never NULL after validation */
} RestartRule;

/* Whether a change of the resource restarts the container (in-place resize). */
typedef struct ResizePolicy {
        ResizeResource resource_name;
        ResizeRestart restart_policy;
} ResizePolicy;

typedef struct Container {
        char *name;
        char *image;
        PullPolicy image_pull_policy;
        char **command;
        char **args;
        char *working_dir;
        LIST_OF(ContainerPort) ports;
        LIST_OF(EnvFromSource) env_from;
        LIST_OF(EnvVar) env;
        ResourceRequirements resources;
        LIST_OF(ResizePolicy) resize_policy; /* resources without an entry need no restart */
        RestartPolicy
                restart_policy; /* unset: the pod's; Always makes an init container a sidecar */
        LIST_OF(RestartRule)
        restart_policy_rules; /* the first rule that matches overrides the restart policy */
        LIST_OF(VolumeMount) volume_mounts;
        Probe *liveness_probe;
        Probe *readiness_probe;
        Probe *startup_probe;
        Lifecycle *lifecycle;
        char *termination_message_path; /* never NULL after defaulting */
        TerminationMessagePolicy termination_message_policy;
        SecurityContext security_context;
        LIST_OF(VolumeDevice) volume_devices; /* only in pods of an API server */
        bool has_stdin;                       /* stdin: stays open until a client attaches */
        bool stdin_once; /* closed when the first attached client disconnects */
        bool tty;
        char *target_container_name; /* only in an ephemeral container: the container whose PID
                                        namespace it joins; NULL: it has its own */
} Container;

typedef struct HostPathVolumeSource {
        char *path;
        HostPathType type;
} HostPathVolumeSource;

typedef struct EmptyDirVolumeSource {
        Medium medium;
        Quantity size_limit;
} EmptyDirVolumeSource;

/* A key of an object and the path of its file. */
typedef struct KeyToPath {
        char *key;
        char *path;       /* relative, may contain directories */
        OptionalInt mode; /* unset: the volume's */
} KeyToPath;

/* A ConfigMap or a Secret as files: a volume, or a source of a projected volume, which has no
 * default mode. Without items, all keys are used. */
typedef struct ObjectVolumeSource {
        char *name;
        LIST_OF(KeyToPath) items;
        OptionalInt default_mode;
        bool optional;
} ObjectVolumeSource;

/* Exactly one reference is not NULL. */
typedef struct DownwardAPIVolumeFile {
        char *path;
        ObjectFieldSelector *field_ref;
        ResourceFieldSelector *resource_field_ref;
        OptionalInt mode;
} DownwardAPIVolumeFile;

typedef struct DownwardAPIVolumeSource {
        LIST_OF(DownwardAPIVolumeFile) items;
        OptionalInt default_mode; /* of a volume; projections have none */
} DownwardAPIVolumeSource;

/* A service account token as a file. */
typedef struct TokenProjection {
        char *audience; /* NULL: the API server's */
        OptionalInt expiration_seconds;
        char *path;
} TokenProjection;

/* At most one source is not NULL. */
typedef struct VolumeProjection {
        ObjectVolumeSource *secret;
        DownwardAPIVolumeSource *downward_api;
        ObjectVolumeSource *config_map;
        TokenProjection *service_account_token; /* the following only in pods of an API server */
        bool cluster_trust_bundle;
        bool pod_certificate;
} VolumeProjection;

typedef struct ProjectedVolumeSource {
        LIST_OF(VolumeProjection) sources;
        OptionalInt default_mode;
} ProjectedVolumeSource;

/* The layers of an image, read-only. */
typedef struct ImageVolumeSource {
        char *reference;
        PullPolicy pull_policy;
} ImageVolumeSource;

/* A claim in the pod's namespace, which the API server has bound to a PersistentVolume. */
typedef struct ClaimVolumeSource {
        char *claim_name;
        bool read_only;
} ClaimVolumeSource;

typedef struct NfsVolumeSource {
        char *server;
        char *path;
        bool read_only;
} NfsVolumeSource;

/* An object in the pod's namespace. */
typedef struct LocalObjectReference {
        char *name;
} LocalObjectReference;

/* An ephemeral volume of a CSI driver. */
typedef struct CsiVolumeSource {
        char *driver;
        bool read_only;
        char *fs_type;
        StringMap attributes;
        LocalObjectReference *publish_secret; /* or NULL */
} CsiVolumeSource;

/* Kinds of volume that this node cannot mount: a pod that an API server has bound here waits if it
 * has one. */
typedef struct UnmountableVolume {
        bool gce_persistent_disk;
        bool aws_elastic_block_store;
        bool git_repo;
        bool iscsi;
        bool glusterfs;
        bool rbd;
        bool flex_volume;
        bool cinder;
        bool cephfs;
        bool flocker;
        bool fc;
        bool azure_file;
        bool vsphere_volume;
        bool quobyte;
        bool azure_disk;
        bool photon_persistent_disk;
        bool portworx_volume;
        bool scale_io;
        bool storageos;
} UnmountableVolume;

/* Exactly one source is not NULL or set. */
typedef struct Volume {
        char *name;
        ClaimVolumeSource *persistent_volume_claim; /* only in pods of an API server */
        bool ephemeral;                             /* as above; a claim is created for the pod */
        NfsVolumeSource *nfs;
        CsiVolumeSource *csi;
        UnmountableVolume unmountable;
        HostPathVolumeSource *host_path;
        EmptyDirVolumeSource *empty_dir;
        ObjectVolumeSource *secret;
        DownwardAPIVolumeSource *downward_api;
        ObjectVolumeSource *config_map;
        ProjectedVolumeSource *projected;
        ImageVolumeSource *image;
} Volume;

typedef struct HostAlias {
        char *ip;
        char **hostnames;
} HostAlias;

typedef struct PodDnsOption {
        char *name;
        char *value; /* NULL: the name alone */
} PodDnsOption;

typedef struct PodDnsConfig {
        char **nameservers;
        char **searches;
        LIST_OF(PodDnsOption) options;
} PodDnsConfig;

/* The operating system of the pod; only Linux is accepted. */
typedef struct PodOs {
        OsName name;
} PodOs;

/* A condition that must be true before the pod is ready. */
typedef struct ReadinessGate {
        char *condition_type;
} ReadinessGate;

typedef struct PodSpec {
        LIST_OF(Container) init_containers; /* in the order of execution */
        LIST_OF(Container) containers;
        LIST_OF(Container) ephemeral_containers; /* added while the pod runs, never removed */
        LIST_OF(Volume) volumes;
        RestartPolicy restart_policy;
        OptionalInt termination_grace_period_seconds;
        OptionalInt active_deadline_seconds;
        DnsPolicy dns_policy;
        StringMap node_selector;
        char *service_account_name;
        OptionalBool automount_token; /* informational: admission handles it */
        char *node_name;
        OptionalBool enable_service_links; /* absent: true */
        bool host_network;
        char *hostname;
        char *subdomain;
        Affinity *affinity;
        char *scheduler_name; /* informational: a node does not schedule */
        TolerationList tolerations;
        LIST_OF(HostAlias) host_aliases;
        LIST_OF(LocalObjectReference) image_pull_secrets;
        PodDnsConfig *dns_config;
        bool set_hostname_as_fqdn;
        PodOs *os;
        bool host_pid;
        bool host_ipc;
        bool share_process_namespace;
        OptionalBool host_users; /* absent: true */
        PodSecurityContext security_context;
        char *priority_class_name;
        OptionalInt priority;            /* defaulted from the priority class */
        ResourceRequirements *resources; /* for all containers together; NULL: none */
        char *runtime_class_name;
        ResourceList *overhead; /* of the sandbox, from its runtime class; NULL: none */
        LIST_OF(ReadinessGate) readiness_gates;
        bool has_resource_claims; /* resource claims: only in pods of an API server */
        char *hostname_override;  /* NULL or "": none */
} PodSpec;

/* The owner of an object. Not accepted from a file; pods created for a DaemonSet have one. */
typedef struct OwnerReference {
        char *api_version;
        char *kind;
        char *name;
        char *uid;
        bool controller;
        bool block_owner_deletion;
} OwnerReference;

typedef struct ObjectMeta {
        char *name;      /* for a pod of a file with the node name appended: "web-node1" */
        char *namespace; /* never NULL after defaulting */
        char *uid;       /* 32 hex digits; for a pod of an API server, a UUID */
        StringMap labels;
        StringMap annotations;
        LIST_OF(OwnerReference) owner_references;
        ObjectSource source; /* source of the pod; never read from the object's text */
} ObjectMeta;

typedef struct Pod {
        ObjectMeta metadata;
        PodSpec spec;
} Pod;

/* A deep copy. 0 or -ENOMEM. */
int pod_copy(const Pod *pod, Pod **ret);
Pod *pod_free(Pod *pod);
DEFINE_CLEANUP(Pod *, pod_free)

/* Whether both specs have the same meaning; labels and annotations are not compared. */
bool pod_spec_equal(const PodSpec *a, const PodSpec *b);

/* The priority of a system class; 0 for other names. */
int64_t system_priority_class_value(const char *class_name);

/* The volume with that name, or NULL. */
const Volume *pod_find_volume(const PodSpec *spec, const char *name);

/* Whether the pod has its own user namespace: hostUsers is false. */
bool pod_has_own_users(const PodSpec *spec);

/* The resources for all containers together, and the overhead of the sandbox. Never NULL: without
 * any, they are empty. */
const ResourceRequirements *pod_level_resources(const PodSpec *spec);
const ResourceList *pod_overhead(const PodSpec *spec);

/* Whether the overhead has CPU or memory, the resources that a runtime class can set. */
bool pod_has_overhead(const PodSpec *spec);

/* Replaces the overhead by a copy; an empty one becomes NULL. 0 or -ENOMEM. */
int pod_set_overhead(PodSpec *spec, const ResourceList *overhead);

/* Frees resources and an overhead that contain no quantity, because these count as absent. */
void pod_drop_empty_resources(PodSpec *spec);

/* The kubelet's config source of the pod: "file"; "http" if it was fetched; or "api" for a pod that
 * an API server has bound to this node. Pods that this node creates for DaemonSets of an API server
 * do not have it. Only the agent writes it, see pod_set_source(). */
extern const char pod_source_annotation[];
bool pod_is_of_api(const Pod *pod);

/* Whether the pod comes from a manifest, fetched or not, or belongs to a DaemonSet from a manifest.
 */
bool pod_is_of_manifest(const Pod *pod);

/* Whether its priority is at least that of system-cluster-critical. */
bool pod_is_critical(const PodSpec *spec);

/* The owner reference with controller: true, or NULL. */
const OwnerReference *object_controller(const ObjectMeta *metadata);

/* Returns that owner reference if it is a DaemonSet of apps/v1, or NULL. */
const OwnerReference *object_controlling_daemonset(const ObjectMeta *metadata);

/* Whether both have the same controller: source, UID, kind, API group and namespace. A user can
 * write any owner reference, but only into objects in the user's own namespaces. */
bool objects_have_same_controller(const ObjectMeta *a, const ObjectMeta *b);

/* Sets the UID of a pod from a file: a hash of node name, namespace, name, spec and the annotations
 * that name CDI devices. Labels and other annotations are excluded, because they can change without
 * a restart. 0 or -ENOMEM. */
int pod_set_uid(Pod *pod);

/* Sets the kubelet's annotation that shows whether a static pod has been edited: a hash of node
 * name, namespace, name, spec, labels and annotations. 0 or -ENOMEM. */
int pod_set_config_hash(Pod *pod);
extern const char config_hash_annotation[];

/* The length of the pod's name without "-<node>", which is appended to the name of a static pod and
 * is not in its file. */
size_t pod_plain_name_length(const Pod *pod);

/* Whether the agent itself sets this annotation. */
bool is_agent_annotation(const char *key);

/* The number of volume sources that are set; exactly one in a valid pod. */
size_t volume_count_sources(const Volume *volume);

/* "iscsi": the kind of a volume that no node agent can mount without plugins; NULL: another
 * kind. */
const char *volume_unmountable_kind(const Volume *volume);

/* The claim of a volume: "data", or the claim created for the pod, "web-data"; NULL: the volume is
 * of another kind, or out of memory. The caller frees it. */
char *volume_claim_name(const Pod *pod, const Volume *volume);

/* Whether the agent writes the files of the volume, which is read-only in containers. */
bool volume_is_data(const Volume *volume);
