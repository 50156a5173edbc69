/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the agent share: agent.c builds it and runs the loop, answers.c is asked on the
 * socket. Nobody else includes this. */

#include "agent/bundle/bundle.h"
#include "agent/bundle/seccomp.h"
#include "agent/cluster.h"
#include "agent/config-watch.h"
#include "agent/daemons.h"
#include "agent/facts.h"
#include "agent/image/image.h"
#include "agent/manifest/manifest.h"
#include "agent/node.h"
#include "agent/pressure/pressure.h"
#include "agent/publish/events.h"
#include "agent/publish/publish.h"
#include "agent/sandbox/inhibitor.h"
#include "agent/sandbox/units.h"
#include "agent/serve/serve.h"
#include "agent/supervise/supervisor.h"

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
        Node node;
        Facts facts; /* what pods ask for; may change with the configuration, and at the server */
        SeccompProfile *seccomp;
        BundleConfig bundle_config;
        SandboxConfig sandbox_config;
        NetworkPlaces network_places;

        SteadyClock clock;
        sd_event *event;
        sd_event_source *publish_source;
        sd_event_source *calm_timer; /* runs for a while after much was to do */
        ImageStore *images;
        ManifestSource *manifests;
        Units *units;         /* NULL where systemd is not PID 1 */
        bool has_slices;      /* the cgroup driver is systemd */
        Inhibitor *inhibitor; /* NULL where nothing is to be waited for */
        Pressure *pressure;
        char *pods_group;             /* the control group of all pods */
        sd_event_source *wish_source; /* pods are wished for once more */
        Supervisor *supervisor;
        Daemons *daemons;
        Cluster *cluster; /* NULL: there is no API server to join */
        ConfigWatch *config_watch;
        Serve *serve;
        Publish *publish;
        Events *events;
        uint64_t n_started;  /* containers, when the counts were looked at last */
        uint64_t told_event; /* its number, of those that the API server was told of */

        unsigned data_generation; /* of the objects that the supervisor was told of last */
        bool has_scanned;
        bool is_ready;
        bool is_ending;        /* it was told to */
        bool is_shutting_down; /* pods are stopped because the machine goes down, */
        bool has_shut_down;    /* and all of them are */
        char **told; /* sentences about manifests that stand, so that each is logged once */
} Agent;

/* The counts may be others: whoever hears of them is told, once a turn of the loop. */
void agent_schedule_publish(Agent *agent);

/* Much is to do: some time later what memory it took is given back. */
void agent_expect_calm(Agent *agent);

PublishCounts agent_take_counts(Agent *agent);

/* Something happened that people like to know. */
void agent_on_event(const PodEvent *event, void *userdata);

/* evictions.c: watches what the node has left; before the supervisor is built, and after it has
 * taken up what an earlier agent left. */
int evictions_build(Agent *agent);
void evictions_take_up(Agent *agent);

/* answers.c */
extern const ServeHandlers agent_answers;
