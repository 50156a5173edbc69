/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Pod as Kubernetes' core/v1 has it: plain data, defaulted and validated by manifest/, read by
 * all.
 *
 * Names follow the API, in snake case. Every struct here has a Schema (model/schema.h): a table of
 * its fields by which it is read, written, compared and freed. A zeroed struct is an empty one. */

#include "agent/model/security.h"
#include "agent/model/values.h"

/* A resource.Quantity. Unset where text is NULL. Values are rounded up and saturate at INT64_MAX.
 */
typedef struct Quantity {
        char *text;    /* canonical: "500m", "1536Mi" */
        int64_t value; /* in units: bytes, CPUs */
        int64_t milli; /* in thousandths */
} Quantity;

typedef struct KeyValue {
        char *key;
        char *value;
} KeyValue;

typedef LIST_OF(KeyValue) StringMap;

/* The value of a key, or NULL. */
const char *string_map_get(const StringMap *map, const char *key);

typedef enum RestartPolicy {
        RESTART_POLICY_UNSET,
        RESTART_POLICY_ALWAYS,
        RESTART_POLICY_ON_FAILURE,
        RESTART_POLICY_NEVER,
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
        N_HOST_PATH_TYPES,
} HostPathType;

typedef enum Medium {
        MEDIUM_UNSET, /* "": the node's disk */
        MEDIUM_MEMORY,
        N_MEDIA,
} Medium;

typedef enum Protocol {
        PROTOCOL_UNSET,
        PROTOCOL_TCP,
        PROTOCOL_UDP,
        PROTOCOL_SCTP,
        N_PROTOCOLS,
} Protocol;

/* What each value is called in the API; index 0 is NULL. */
extern const char *const restart_policy_names[N_RESTART_POLICIES];
extern const char *const pull_policy_names[N_PULL_POLICIES];
extern const char *const host_path_type_names[N_HOST_PATH_TYPES];
extern const char *const medium_names[N_MEDIA];
extern const char *const protocol_names[N_PROTOCOLS];

typedef struct EnvVar {
        char *name;
        char *value; /* NULL: "" */
} EnvVar;

typedef struct ContainerPort {
        char *name;
        OptionalInt host_port;
        OptionalInt container_port;
        Protocol protocol;
        char *host_ip;
} ContainerPort;

typedef struct VolumeMount {
        char *name;
        char *mount_path;
        bool read_only;
} VolumeMount;

typedef struct ResourceList {
        Quantity cpu;
        Quantity memory;
} ResourceList;

typedef struct ResourceRequirements {
        ResourceList limits;
        ResourceList requests; /* defaulted from the limits */
} ResourceRequirements;

typedef struct Container {
        char *name;
        char *image;
        PullPolicy image_pull_policy;
        char **command;
        char **args;
        char *working_dir;
        LIST_OF(ContainerPort) ports;
        LIST_OF(EnvVar) env;
        ResourceRequirements resources;
        LIST_OF(VolumeMount) volume_mounts;
        SecurityContext security_context;
} Container;

typedef struct HostPathVolumeSource {
        char *path;
        HostPathType type;
} HostPathVolumeSource;

typedef struct EmptyDirVolumeSource {
        Medium medium;
        Quantity size_limit;
} EmptyDirVolumeSource;

/* Exactly one source is not NULL. */
typedef struct Volume {
        char *name;
        HostPathVolumeSource *host_path;
        EmptyDirVolumeSource *empty_dir;
} Volume;

typedef struct PodSpec {
        LIST_OF(Container) containers;
        LIST_OF(Volume) volumes;
        RestartPolicy restart_policy;
        OptionalInt termination_grace_period_seconds;
        char *node_name;
        bool host_network;
        bool host_pid;
        bool host_ipc;
        bool share_process_namespace;
        PodSecurityContext security_context;
        char *priority_class_name;
        OptionalInt priority;           /* defaulted from the class */
        ResourceRequirements resources; /* of all containers together */
} PodSpec;

typedef struct ObjectMeta {
        char *name;      /* of a file pod with the node's suffix: "web-node1" */
        char *namespace; /* never NULL after defaulting */
        char *uid;       /* 32 hex digits */
        StringMap labels;
        StringMap annotations;
} ObjectMeta;

typedef struct Pod {
        ObjectMeta metadata;
        PodSpec spec;
} Pod;

/* A deep copy. 0 or -ENOMEM. */
int pod_copy(const Pod *pod, Pod **ret);
Pod *pod_free(Pod *pod);
DEFINE_CLEANUP(Pod *, pod_free)

/* True where both specs mean the same; labels and annotations are not looked at. */
bool pod_spec_equal(const PodSpec *a, const PodSpec *b);

/* The priority that a class of the system's gives; 0 for a class that is none. */
int64_t system_priority(const char *class_name);

/* The container of that name, or NULL. */
const Container *pod_find_container(const Pod *pod, const char *name);

typedef enum QosClass {
        QOS_GUARANTEED,
        QOS_BURSTABLE,
        QOS_BEST_EFFORT,
        N_QOS_CLASSES,
} QosClass;

extern const char *const qos_class_names[N_QOS_CLASSES];

/* Something is asked for or limited for all containers together. */
bool pod_has_resources(const PodSpec *spec);

/* Kubernetes' rule: Guaranteed where every container has cpu and memory limits and requests equal
 * to them, BestEffort where none has any of either, else Burstable. What the pod says of all its
 * containers together is looked at in their place. */
QosClass pod_qos_class(const PodSpec *spec);
