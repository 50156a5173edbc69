/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the agent share: agent.c builds it and runs the loop, answers.c is asked on the
 * socket. Nobody else includes this. */

#include "agent/bundle/bundle.h"
#include "agent/bundle/seccomp.h"
#include "agent/config-watch.h"
#include "agent/daemons.h"
#include "agent/image/image.h"
#include "agent/manifest/manifest.h"
#include "agent/node.h"
#include "agent/publish/events.h"
#include "agent/publish/publish.h"
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
        Config config;
        Node node;
        NodeFacts facts; /* what pods ask for; may change with the configuration */
        SeccompProfile *seccomp;
        BundleConfig bundle_config;
        SandboxConfig sandbox_config;
        NetworkPlaces network_places;

        sd_event *event;
        sd_event_source *publish_source;
        ImageStore *images;
        ManifestSource *manifests;
        Units *units;    /* NULL where systemd is not PID 1 */
        bool has_slices; /* the cgroup driver is systemd */
        Supervisor *supervisor;
        Daemons *daemons;
        ConfigWatch *config_watch;
        Serve *serve;
        Publish *publish;
        Events *events;

        unsigned data_generation; /* of the objects that the supervisor was told of last */
        bool has_scanned;
        bool is_ready;
        bool is_ending;
        char **told; /* sentences about manifests that stand, so that each is logged once */
} Agent;

/* All good manifests are wished for, and their DaemonSets decided on; who is not named is swept. */
void agent_on_manifests_changed(void *userdata);

PublishCounts agent_take_counts(Agent *agent);

/* answers.c */
extern const ServeHandlers agent_answers;
