/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that the files of the wiring share: agent.c builds the modules, apiserver-wiring.c
 * and eviction-wiring.c connect some of them, http-handlers.c and node-api-handlers.c answer
 * requests on the local socket. */

#include "agent/access/authorizer.h"
#include "agent/apiserver/apiserver.h"
#include "agent/bundle/bundle.h"
#include "agent/bundle/seccomp.h"
#include "agent/cdi/cdi-registry.h"
#include "agent/daemonset/controller.h"
#include "agent/desired/desired-state.h"
#include "agent/desired/resolvers.h"
#include "agent/eviction/eviction-manager.h"
#include "agent/eviction/pod-evictor.h"
#include "agent/http/healthz-server.h"
#include "agent/http/http-server.h"
#include "agent/image/image-store.h"
#include "agent/image/manual-pulls.h"
#include "agent/manifest/manifest.h"
#include "agent/metrics/event-store.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/service-notifier.h"
#include "agent/node-devices/node-devices.h"
#include "agent/node/agent-paths.h"
#include "agent/node/api-signer.h"
#include "agent/node/built-in-ranges.h"
#include "agent/node/config-watch.h"
#include "agent/node/lone-node.h"
#include "agent/node/machine-info.h"
#include "agent/node/network-readiness.h"
#include "agent/node/node-api-launcher.h"
#include "agent/node/node-labels.h"
#include "agent/node/self-signed.h"
#include "agent/node/system-log-process.h"
#include "agent/plugins/plugin-manager.h"
#include "agent/pods/manager/node-shutdown-manager.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/stats-provider.h"
#include "agent/report/status-report.h"
#include "agent/sandbox/runtime-copy.h"
#include "agent/sandbox/systemd-client.h"
#include "agent/secrets/secret-opener.h"
#include "agent/secrets/secret-storage.h"

typedef struct Agent {
        AgentPaths paths;
        ConfigFiles config_files;
        Config config;
        MachineInfo node;
        NodeResources allocatable;    /* for pods */
        MergedNodeLabels node_labels; /* change with the configuration and at the API server */
        SeccompProfile *seccomp;
        CdiRegistry *cdi;
        BundleConfig bundle_config;
        Resolvers resolvers; /* for 'bundle_config' */
        KeyFile *identity;
        SecretOpener *secrets;
        SecretStorage *storage;
        RuntimeCopy *runtime_copy;
        SandboxConfig sandbox_config;
        char *own_pod_range; /* the IPv6 one */
        CniBuiltInNetwork built_in_network;
        CniSettings cni_settings;
        NetworkReadiness *network_readiness; /* NULL: pods can always get a network */

        SteadyClock clock;
        sd_event *event;
        sd_event_source *status_source;
        ImageStore *images;
        ManualPulls manual_pulls;
        DesiredState *desired;
        const ManifestDirectory *manifests; /* owned by 'desired' */
        SystemdClient *systemd;             /* NULL if systemd is not PID 1 */
        bool has_slices;                    /* the cgroup driver is systemd */
        EvictionManager *eviction_manager;
        PodEvictor *pod_evictor;
        char *pods_group; /* the cgroup of all pods */
        DeviceManager *devices;
        CsiManager *csi;                  /* NULL: while pods are drained */
        PluginManager *plugins;           /* NULL: while pods are drained */
        NodeDeviceProvider *node_devices; /* NULL: none is configured */
        PodManager *pod_manager;
        DaemonSetController *daemonset_controller;
        ApiServerSync *apiserver; /* NULL: the node does not join an API server */
        ConfigWatch *config_watch;
        LoneNode *lone;          /* NULL: the node has joined an API server, or none was needed yet
                                  */
        SelfSigned *self_signed; /* NULL: not needed yet */
        SystemLogs *system_logs; /* likewise */
        ApiSigner *signer;       /* likewise */
        Authorizer *authorizer;  /* likewise */
        NodeApiLauncher *node_api_launcher; /* NULL: systemd listens instead, or nobody does */
        HttpServer *http_server;
        HealthzServer *healthz_server; /* NULL: none is configured */
        ServiceNotifier *notifier;
        NodeShutdownManager *shutdown_manager;
        EventStore *events;
        StatusReport *report; /* NULL: none is configured */
        StatsProvider stats;
        uint64_t last_containers_started; /* when the counts were last read */
        uint64_t last_reported_event;     /* its number, for the API server */

        uint64_t ready_since; /* realtime; 0: not yet */
} Agent;

/* The desired pods may have changed. 'userdata' is the Agent. */
void agent_request_recompute(void *userdata);

/* apiserver-wiring.c: the sources of the Node's status, for the API server; and a notification that
 * labels, taints, conditions or images of the Node have changed; 'userdata' is the Agent. */
NodeStatusInputs agent_node_status_inputs(const Agent *agent);

/* plugins-wiring.c: the managers are built before the pod manager; plugins are started after the
 * records of pods have been read. 0 or -errno. */
int agent_build_device_manager(Agent *agent);
int agent_build_csi_manager(Agent *agent); /* for volumes of CSI drivers */
int agent_start_plugins(Agent *agent, const char *kubelet_dir);

/* The sources of fetched manifests, and the report; 'userdata' is the Agent. */
NodeSources agent_list_sources(void *userdata);
void agent_report_node_change(void *userdata);

/* Counts may have changed: systemd's status line and readiness are updated once per turn of the
 * loop. */
void agent_schedule_status_update(Agent *agent);

AgentMetrics agent_collect_counts(Agent *agent);

/* Records the event, and passes it on to the journal, watchers and the API server. */
void agent_on_event(const PodEvent *event, void *userdata);

/* See admit_daemonset_pod_t. */
int agent_admit_daemonset_pod(const PodSource *source, const DaemonSet *set, const Pod *pod,
                              DaemonSetRefusal *ret, void *userdata);

/* Applies changed labels or taints of the node. */
void agent_apply_node_labels(Agent *agent);

/* apiserver-wiring.c: without an API server to join, or when draining, 'apiserver' stays NULL. */
int build_apiserver_sync(Agent *agent, bool drain);
void plug_in_apiserver(Agent *agent, ApiServerPodSource *source);

/* Reports all events that were added or counted since the last call. */
void report_events_to_apiserver(Agent *agent);

/* eviction-wiring.c: the first is called before the pod manager is built, the second after it has
 * loaded records. */
int build_eviction_manager(Agent *agent);
void restore_eviction_conditions(Agent *agent);

/* http-handlers.c */
extern const HttpServerHandlers agent_http_handlers;

/* node-api-handlers.c: frees objects that were created for mainstay-api. */
void agent_free_node_api(Agent *agent);
