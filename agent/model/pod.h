/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Pod as Kubernetes' core/v1 has it: plain data, defaulted and validated by manifest/, read by
 * all.
 *
 * Names follow the API, in snake case. Every struct here has a Schema (model/schema.h): a table of
 * its fields by which it is read, written, compared and freed. A zeroed struct is an empty one. */

#include "common/macros.h"

#include <stdint.h>

/* A list is a pointer and a count; all lists have the layout of List. */
#define LIST_OF(type)        \
        struct {             \
                type *items; \
                size_t n;    \
        }

typedef LIST_OF(void) List;

typedef struct OptionalInt {
        bool is_set;
        int64_t value;
} OptionalInt;

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

typedef enum DnsPolicy {
        DNS_POLICY_UNSET,
        DNS_POLICY_CLUSTER_FIRST,
        DNS_POLICY_CLUSTER_FIRST_WITH_HOST_NET,
        DNS_POLICY_DEFAULT,
        DNS_POLICY_NONE,
        N_DNS_POLICIES,
} DnsPolicy;

/* What each value is called in the API; index 0 is NULL. */
extern const char *const restart_policy_names[N_RESTART_POLICIES];
extern const char *const pull_policy_names[N_PULL_POLICIES];
extern const char *const host_path_type_names[N_HOST_PATH_TYPES];
extern const char *const medium_names[N_MEDIA];
extern const char *const protocol_names[N_PROTOCOLS];
extern const char *const dns_policy_names[N_DNS_POLICIES];

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

typedef struct PodSpec {
        LIST_OF(Container) containers;
        LIST_OF(Volume) volumes;
        RestartPolicy restart_policy;
        OptionalInt termination_grace_period_seconds;
        DnsPolicy dns_policy;
        char *node_name;
        bool host_network;
        char *hostname;
        char *subdomain;
        LIST_OF(HostAlias) host_aliases;
        PodDnsConfig *dns_config;
        bool set_hostname_as_fqdn;
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

/* The container of that name, or NULL. */
const Container *pod_find_container(const Pod *pod, const char *name);

typedef enum QosClass {
        QOS_GUARANTEED,
        QOS_BURSTABLE,
        QOS_BEST_EFFORT,
        N_QOS_CLASSES,
} QosClass;

extern const char *const qos_class_names[N_QOS_CLASSES];

/* Kubernetes' rule: Guaranteed where every container has cpu and memory limits and requests equal
 * to them, BestEffort where none has any of either, else Burstable. */
QosClass pod_qos_class(const PodSpec *spec);
