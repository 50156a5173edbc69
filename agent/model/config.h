/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's configuration: KubeletConfiguration (kubelet.config.k8s.io/v1beta1) under its own
 * names, and, under "mainstay:", settings that exist only in Mainstay. Plain data; manifest/config
 * reads it and sets the defaults. */

#include "agent/model/eviction.h"
#include "agent/model/object.h"
#include "agent/model/placement.h"
#include "agent/model/schema.h"

/* The resources that are reserved, and not available to pods: CPU in thousandths, memory and
 * storage in bytes. */
typedef struct NodeReservation {
        int64_t cpu_milli;
        int64_t memory;
        int64_t ephemeral_storage;
        int64_t pids;
} NodeReservation;

enum {
        MAX_PODS_DEFAULT = 110,
        NODE_API_PORT_DEFAULT = 10250,
};

typedef struct CrashLoopBackOffConfig {
        char *max_container_restart_period; /* Go duration: "300s" */
} CrashLoopBackOffConfig;

/* A mirror of a registry. */
typedef struct RegistryMirrors {
        char *registry; /* "docker.io", "example.com:5000" */
        char **mirrors; /* "https://mirror.example.com/prefix", in the order in which they are tried
                         */
} RegistryMirrors;

enum {
        PULLS_DEFAULT = 3,
        PULLS_MAX = 64,
        REPORT_LOG_LINES_MAX = 1000
};

/* imagePullCredentialsVerificationPolicy: the images on the node for which a registry must have
 * accepted a pod's credentials. */
typedef enum ImageCredentialsPolicy {
        CREDENTIALS_POLICY_UNSET,       /* same as the next one */
        CREDENTIALS_NEVER_OF_PRELOADED, /* for images that were pulled */
        CREDENTIALS_NEVER,
        CREDENTIALS_NEVER_OF_ALLOWLISTED, /* for images that are not in
                                           * preloadedImagesVerificationAllowlist */
        CREDENTIALS_ALWAYS,
        N_CREDENTIALS_POLICIES,
} ImageCredentialsPolicy;

typedef enum SwapBehavior {
        SWAP_UNSET, /* NoSwap */
        SWAP_NONE,
        SWAP_LIMITED,
        N_SWAP_BEHAVIORS,
} SwapBehavior;

typedef struct MemorySwapConfig {
        SwapBehavior swap_behavior;
} MemorySwapConfig;

/* shutdownGracePeriodByPodPriority: applies to pods of this priority and above, up to the priority
 * of the next entry. */
typedef struct ShutdownGracePeriodByPodPriority {
        OptionalInt priority;
        OptionalInt shutdown_grace_period_seconds;
} ShutdownGracePeriodByPodPriority;

/* Computed: the grace period for pods of this priority and above, which starts after those of the
 * earlier stages. */
typedef struct ShutdownStage {
        int64_t priority;
        uint64_t period_usec;
} ShutdownStage;

enum {
        SHUTDOWN_STAGES_MAX = 16
};

typedef enum DaemonSetsBy {
        DAEMONSETS_UNSET, /* auto */
        DAEMONSETS_AUTO,  /* the cluster's controller manager while it is alive, otherwise this
                           * node */
        DAEMONSETS_NODE,
        DAEMONSETS_CONTROLLER,
        N_DAEMONSETS_BY,
} DaemonSetsBy;

/* source: manifests of a signed index, mainstay-source(5). */
typedef struct SourceConfig {
        char *url;           /* URL of the index: "https://…", "file:///…" */
        char **keys;         /* public keys; one of them must have signed the first index */
        char *fleet;         /* name of the fleet that the index is for */
        char *ca_file;       /* PEM, instead of the system's authorities; NULL: the system's */
        char *interval;      /* Go duration: "5m" */
        char *jitter;        /* a random delay of at most this length is added; NULL: a tenth of the
                              * interval */
        char *download_rate; /* quantity, bytes per second; NULL: no limit */
        char *download_window; /* local time, "01:00-05:30"; NULL: always */

        /* Computed by kubelet_config_load(). */
        uint64_t interval_usec;
        uint64_t jitter_usec;
        uint64_t rate_bytes; /* 0: no limit */
} SourceConfig;

/* A header for requests: of staticPodURLHeader, or of a report. */
typedef struct StaticPodUrlHeader {
        char *name;
        char **values;
} StaticPodUrlHeader;

/* report: the destination of statuses and events, mainstay-source(5). */
typedef struct ReportConfig {
        char *url; /* "https://…"; or "file:///…": a directory, for example on a USB stick */
        char *ca_file; /* PEM, instead of the system's authorities; NULL: the source's */
        LIST_OF(StaticPodUrlHeader) headers;
        char *interval;   /* Go duration: "1m" */
        char *jitter;     /* a random delay of at most this length is added; NULL: a tenth of the
                           * interval */
        char *queue_size; /* quantity, bytes: "1Mi" */
        OptionalInt log_lines; /* log lines per container that is not ready, for a directory; unset
                                  or 0: none */

        /* Computed by kubelet_config_load(). */
        uint64_t interval_usec;
        uint64_t jitter_usec;
        uint64_t queue_bytes;
} ReportConfig;

/* sharedObjects: an object of one source that pods of another source can see. */
typedef struct SharedObject {
        char *kind_name; /* ConfigMap, Secret, PriorityClass or RuntimeClass */
        char *namespace; /* NULL: of a kind without one */
        char *name;
        ObjectSource from; /* the source of the object */
        ObjectSource to;   /* the source whose pods see it instead of their own */

        ObjectKind kind; /* computed by kubelet_config_load() */
} SharedObject;

typedef LIST_OF(SharedObject) SharedObjects;

/* The ObjectKind, or -EINVAL for one that cannot be shared. */
int shared_object_kind(const char *name);

/* secretsAtRest: how secrets that the agent stores are protected on disk. */
typedef enum SecretsAtRest {
        SECRETS_AT_REST_UNSET, /* sealed */
        SECRETS_SEALED, /* by systemd's credentials; if that is not possible, they are not stored */
        SECRETS_CLEAR,  /* in files that only root can read */
        N_SECRETS_AT_REST,
} SecretsAtRest;

/* devices: devices of the node that pods request as "mainstay.dev/<name>", mainstay-devices(7). */
typedef struct DeviceMatch {
        char *subsystem; /* "tty" */
        char *vendor;    /* hexadecimal digits: "0403" */
        char *product;
        char *serial;
        StringMap properties; /* properties of udev: name to pattern */
} DeviceMatch;

typedef struct NodeDeviceConfig {
        char *name;
        DeviceMatch *match;   /* NULL: by path */
        char *path;           /* "/dev/ttyUSB*", the path of a node or of a link made by udev; NULL:
                               * found by match */
        char *container_path; /* path in the container; NULL: as on the node */
        char *mode;           /* for the device cgroup; NULL: "rw" */
        OptionalInt count;    /* maximum number of devices or, if shared, of pods that share one */
        bool is_shared;
        bool is_optional; /* pods start without it */
        bool is_grouped;  /* all matching devices form one device */
} NodeDeviceConfig;

typedef LIST_OF(NodeDeviceConfig) NodeDeviceConfigs;

enum {
        NODE_DEVICES_MAX = 256 /* devices per name */
};

/* The settings under "mainstay:". */
typedef struct MainstayConfig {
        OptionalBool built_in_network; /* unset: only on a node without a kubeconfig */
        char **cdi_spec_dirs;          /* "/etc/cdi", "/var/run/cdi"; later ones have precedence */
        bool cdi_for_api_pods;         /* annotations of an API server's pods may name CDI
                                        * devices */
        char *cni_conf_dir;            /* "/etc/cni/net.d" */
        char *cni_bin_dir;             /* "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni" */
        char **pod_cidrs; /* the ranges of the built-in network, one per family; NULL: those of
                             node/built-in-ranges.h. kubelet_config_load() also reads podCIDR */
        char *kubeconfig; /* kubeconfig of the API server to join; NULL: none */
        char *bootstrap_kubeconfig; /* bootstrap kubeconfig and kubeconfig of the issued
                                       certificate; NULL: none */
        NodeDeviceConfigs devices;
        DaemonSetsBy
                daemonsets_by; /* which controller places the server's DaemonSets on this node */
        char **daemonset_namespaces; /* namespaces whose sets this node may place although their
                                      * controller has bound no pod here; "*": all; NULL:
                                      * kube-system, or all if 'daemonsets_by' is this node */
        char *http_proxy;            /* NULL: none; the environment is ignored */
        char *https_proxy;
        char *no_proxy;                 /* hosts, separated by commas */
        char **insecure_registries;     /* "host[:port]": plain HTTP and unverified certificates are
                                         * accepted */
        OptionalInt max_parallel_pulls; /* kubelet_config_load() always sets it */
        char *registry_auth_file;       /* in the format of ~/.docker/config.json */
        char *signature_policy_file;    /* NULL: /etc/containers/policy.json, if it exists */
        bool journal_container_logs;    /* in addition to the log files */
        LIST_OF(RegistryMirrors) registry_mirrors;
        SecretsAtRest secrets_at_rest;
        SourceConfig *source;  /* NULL: none */
        ReportConfig *report;  /* NULL: none */
        char *runtime;         /* the OCI runtime: a path or a name, "runc" */
        StringMap runtimes;    /* more runtimes, by the handlers that RuntimeClasses name */
        StringMap node_labels; /* in addition to the well-known labels; have precedence */
        SharedObjects shared_objects;
        char *seccomp_profile; /* path of the profile RuntimeDefault, or "builtin"; NULL: the
                                  distribution's, or the built-in one */
} MainstayConfig;

/* authentication: for the kubelet's API, which mainstay-api serves. */
typedef struct AnonymousConfig {
        bool enabled;
} AnonymousConfig;

typedef struct WebhookAuthenticationConfig {
        OptionalBool enabled; /* true */
        char *cache_ttl;      /* Go duration: "2m" */
} WebhookAuthenticationConfig;

typedef struct X509AuthenticationConfig {
        char *client_ca_file;
} X509AuthenticationConfig;

typedef struct AuthenticationConfig {
        AnonymousConfig anonymous;
        WebhookAuthenticationConfig webhook;
        X509AuthenticationConfig x509;
} AuthenticationConfig;

typedef enum AuthorizationMode {
        AUTHORIZATION_UNSET, /* Webhook */
        AUTHORIZATION_ALWAYS_ALLOW,
        AUTHORIZATION_WEBHOOK,
        N_AUTHORIZATION_MODES,
} AuthorizationMode;

typedef struct WebhookAuthorizationConfig {
        char *cache_authorized_ttl;   /* Go duration: "5m" */
        char *cache_unauthorized_ttl; /* "30s" */
} WebhookAuthorizationConfig;

typedef struct AuthorizationConfig {
        AuthorizationMode mode;
        WebhookAuthorizationConfig webhook;
} AuthorizationConfig;

typedef struct Config {
        char *static_pod_path; /* NULL: as on the command line */
        char *static_pod_url;  /* NULL or "": none */
        LIST_OF(StaticPodUrlHeader) static_pod_url_header;
        char *http_check_frequency;          /* for staticPodURL; Go duration: "20s" */
        char *cgroup_root;                   /* "/" */
        char *cgroup_driver;                 /* NULL: "systemd" if it is PID 1 and cgroups are v2 */
        char *container_log_max_size;        /* quantity, "10Mi" */
        OptionalInt container_log_max_files; /* 5 */
        char **cluster_dns;                  /* none */
        char *cluster_domain;                /* "cluster.local" */
        char *resolv_conf;                   /* "/etc/resolv.conf" */
        OptionalBool single_process_oom_kill;    /* on cgroup v2; false: the OOM killer kills the
                                                  * whole container */
        OptionalBool enable_server;              /* the agent listens for mainstay-api */
        char *address;                           /* address of the kubelet's API; NULL: all */
        OptionalInt port;                        /* port of the kubelet's API; 10250 */
        OptionalInt read_only_port;              /* without TLS; not supported */
        char *streaming_connection_idle_timeout; /* Go duration: "4h"; for sessions */
        char *tls_cert_file; /* for the kubelet's API; NULL: a self-signed certificate */
        char *tls_private_key_file;
        char *tls_min_version;         /* Go's name: "VersionTLS13"; NULL: TLS 1.2 */
        char **tls_cipher_suites;      /* IANA names, for TLS 1.2; NULL: all secure ones */
        IntList tls_curve_preferences; /* Go's CurveIDs; empty: all */
        AuthenticationConfig authentication;
        AuthorizationConfig authorization;
        bool rotate_certificates;               /* even if the kubeconfig embeds the certificate */
        OptionalBool enable_system_log_handler; /* /logs/ of the kubelet's API; default: on */
        bool enable_system_log_query;           /* of services */
        bool server_tls_bootstrap;  /* the API server issues the certificate of the kubelet's API */
        OptionalInt healthz_port;   /* for /healthz over TCP; 0: none */
        char *healthz_bind_address; /* "127.0.0.1" */
        OptionalBool enable_debugging_handlers; /* true */
        TaintList register_with_taints;         /* taints of this node */
        char *pod_cidr;                         /* "10.0.0.0/16" or "10.0.0.0/16,fd00::/64" */
        OptionalInt pod_pids_limit;             /* -1: none */
        char **allowed_unsafe_sysctls;          /* names, and prefixes with '*' */
        MemorySwapConfig memory_swap;
        CrashLoopBackOffConfig crash_loop_back_off;
        char *shutdown_grace_period;               /* Go duration: "30s" */
        char *shutdown_grace_period_critical_pods; /* "10s", or the whole period if that is
                                                    * shorter */
        LIST_OF(ShutdownGracePeriodByPodPriority) shutdown_by_priority;
        OptionalInt image_gc_high_threshold_percent; /* 85 */
        OptionalInt image_gc_low_threshold_percent;  /* 80 */
        char *image_minimum_gc_age;                  /* Go duration: "2m" */
        char *image_maximum_gc_age;
        ImageCredentialsPolicy image_credentials_policy;
        char **preloaded_images_allowlist;  /* "example.com/app", and prefixes that end with an
                                             * asterisk
                                             */
        OptionalBool serialize_image_pulls; /* limits parallel pulls, together with the next member
                                             */
        OptionalInt max_parallel_image_pulls; /* mainstay.maxParallelPulls overrides it */
        StringMap eviction_hard; /* by signal: "100Mi", "10%"; see 'eviction' for the defaults */
        StringMap eviction_soft;
        StringMap eviction_soft_grace_period; /* by signal: Go durations */
        StringMap eviction_minimum_reclaim;
        char *eviction_pressure_transition_period; /* Go duration: "5m" */
        OptionalInt eviction_max_pod_grace_period; /* 0 */
        bool merge_default_eviction_settings;
        OptionalInt max_pods;            /* 110 */
        OptionalInt pods_per_core;       /* 0: only maxPods applies */
        StringMap system_reserved;       /* by resource: "500m", "1Gi" */
        StringMap kube_reserved;         /* likewise */
        char **enforce_node_allocatable; /* "pods"; see the flags below */
        char *system_reserved_cgroup;    /* cgroup that systemReserved limits; NULL: none */
        char *kube_reserved_cgroup;      /* likewise */
        bool kernel_memcg_notification;
        MainstayConfig mainstay;

        /* Computed by kubelet_config_load() from the settings above. */
        uint64_t http_check_usec;
        unsigned image_gc_high_percent; /* 100: never */
        unsigned image_gc_low_percent;
        uint64_t image_gc_min_age_usec;
        uint64_t image_gc_max_age_usec; /* 0: none */
        uint64_t log_max_size_bytes;
        uint64_t back_off_initial_usec; /* 10 s, or the maximum if that is shorter */
        uint64_t back_off_max_usec;     /* 300 s */
        ShutdownStage shutdown_stages[SHUTDOWN_STAGES_MAX]; /* by priority, lowest first */
        size_t n_shutdown_stages; /* 0: node shutdown does not wait for pods */
        EvictionPolicy eviction;
        NodeReservation system; /* systemReserved */
        NodeReservation kube;   /* kubeReserved */
        char *without_effect;   /* settings and flags that are ignored: "a, b"; NULL: none */
} Config;

/* Whether enforceNodeAllocatable contains this name; without the setting, "pods" is enforced. */
bool config_enforces(const Config *config, const char *what);

/* Adds a setting to 'without_effect'. 0 or -ENOMEM. */
int config_note_without_effect(Config *config, const char *setting);

/* Whether pods get the built-in network: a lone node has it; a joined node waits for its cluster's
 * network. */
bool config_has_built_in_network(const Config *config, bool has_joined);

/* The port of the kubelet's API. */
uint16_t config_node_api_port(const Config *config);

/* The number of pods that the node admits: maxPods, or fewer because of podsPerCore. */
int64_t config_max_pods(const Config *config, unsigned n_cpus);

/* kind and apiVersion have already been read. */
extern const Schema config_schema;
