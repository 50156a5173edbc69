/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the agent share: agent.c builds it and runs the loop, answers.c is asked on the
 * socket. Nobody else includes this. */

#include "agent/apiserver/apiserver.h"
#include "agent/bundle/bundle.h"
#include "agent/bundle/seccomp.h"
#include "agent/daemonset/controller.h"
#include "agent/desired/desired-state.h"
#include "agent/desired/resolvers.h"
#include "agent/eviction/eviction-manager.h"
#include "agent/http/http-server.h"
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/metrics/event-store.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/service-notifier.h"
#include "agent/node/config-watch.h"
#include "agent/node/machine-info.h"
#include "agent/node/node-labels.h"
#include "agent/pods/pod-manager.h"
#include "agent/sandbox/shutdown-inhibitor.h"
#include "agent/sandbox/systemd-client.h"

typedef struct Agent {
        /* Directories, absolute. */
        char *manifest_dir;
        char *state_dir;
        char *run_dir;
        char *log_dir;
        char *shim_path;
        char *image_helper_path;
        char *shim_cgroup;
        char *socket_path;
        int lock_fd;

        char *config_path;
        char *kubeconfig;
        char *bootstrap_kubeconfig; /* NULL: none */
        Config config;
        MachineInfo node;
        MergedNodeLabels node_labels; /* what pods ask for; may change with the configuration, and
                                         at the server */
        SeccompProfile *seccomp;
        BundleConfig bundle_config;
        Resolvers resolvers; /* of 'bundle_config' */
        SandboxConfig sandbox_config;
        CniPaths cni_paths;

        SteadyClock clock;
        sd_event *event;
        sd_event_source *status_source;
        sd_event_source *memory_trim_timer; /* runs for a while after much was to do */
        ImageStore *images;
        DesiredState *desired;
        const ManifestDirectory *manifests; /* of 'desired' */
        SystemdClient *systemd;             /* NULL where systemd is not PID 1 */
        bool has_slices;                    /* the cgroup driver is systemd */
        ShutdownInhibitor *inhibitor;       /* NULL where nothing is to be waited for */
        EvictionManager *eviction_manager;
        char *pods_group; /* the control group of all pods */
        PodManager *pod_manager;
        DaemonSetController *daemonset_controller;
        ApiServerSync *apiserver; /* NULL: there is no API server to join */
        ConfigWatch *config_watch;
        HttpServer *http_server;
        ServiceNotifier *notifier;
        EventStore *events;
        uint64_t last_containers_started; /* containers, when the counts were looked at last */
        uint64_t last_reported_event;     /* its number, of those that the API server was told of */

        bool is_ready;
        bool is_terminating;   /* it was told to */
        bool is_shutting_down; /* pods are stopped because the machine goes down, */
        bool has_shut_down;    /* and all of them are */
} Agent;

/* Desired pods may be different. 'userdata' is the Agent. */
void agent_request_recompute(void *userdata);

/* The counts may be others: whoever hears of them is told, once a turn of the loop. */
void agent_schedule_status_update(Agent *agent);

/* Much is to do: some time later what memory it took is given back. */
void agent_schedule_memory_trim(Agent *agent);

AgentMetrics agent_collect_counts(Agent *agent);

/* Something happened that people like to know. */
void agent_on_event(const PodEvent *event, void *userdata);

/* evictions.c: watches what the node has left; before the supervisor is built, and after it has
 * taken up what an earlier agent left. */
int build_eviction_manager(Agent *agent);
void restore_eviction_conditions(Agent *agent);

/* answers.c */
extern const HttpServerHandlers agent_http_handlers;
