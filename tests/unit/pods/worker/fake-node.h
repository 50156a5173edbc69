/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node for one test: a pod manager with fakes around it, and tables of events. A row of a table
 * states that after this time this event happens, and that the pod manager then makes these
 * requests and the pod has this status. */

#include "agent/pods/machine/start-limiter.h"
#include "agent/pods/manager/pod-manager.h"
#include "tests/unit/pods/worker/fakes.h"

enum {
        NODE_TEXT_MAX = 4096
};

/* A pod "web" in the host network; the spec follows. */
#define POD_HEAD    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
#define POD(spec)   POD_HEAD "  hostNetwork: true\n" spec
#define APP         "  containers: [{name: app, image: busybox}]\n"
#define APP_WITH(x) "  containers: [{name: app, image: busybox, " x "}]\n"

typedef struct FakeNode {
        sd_event *event;
        char *directory;
        char *run_dir, *state_dir, *log_dir, *cni_dir;
        BundleConfig bundle;
        SandboxConfig sandbox;
        CniSettings network;
        NodeLabelsTaints labels;
        NodeConditions conditions;
        NodeResources allocatable;
        DeviceManager *devices;
        StartLimit start_limit; /* applies from the next start of the agent */
        PodManager *manager;
        char pod_events[NODE_TEXT_MAX]; /* "Started Killing": the reasons since the last query */
        char last_message[512];         /* message of the last event */
        unsigned n_reports;             /* calls of on_pod() */
        unsigned n_logs_ended;
} FakeNode;

/* Starts the agent of a node without pods. */
FakeNode *fake_node_new(void);

/* Ends the agent and its node, and frees everything. */
FakeNode *fake_node_free(FakeNode *node);
DEFINE_CLEANUP(FakeNode *, fake_node_free)

/* Kills the agent; another one starts and reads the records. */
void fake_node_restart_agent(FakeNode *node);

/* Runs the loop at the current time until nothing is left to do. */
void fake_node_run(FakeNode *node);

/* Lets time pass; each timer is called when it is due. */
void fake_node_pass(FakeNode *node, uint64_t usec);

/* Applies a file of the manifest directory, or the pods that an API server has bound to the node.
 * Its pods start, or are edited. */
void fake_node_apply(FakeNode *node, const char *yaml);
void fake_node_bind(FakeNode *node, const char *json);

/* Sets the devices of the resource "example.com/gpu", such as "a b". Their allocation succeeds
 * immediately. */
void fake_node_set_devices(FakeNode *node, const char *ids);

/* Returns the status of the pod with this name in its manifest, such as "Running Ready | app
 * running ready, side waiting CrashLoopBackOff (2)", or "gone". Valid until the next call. */
const char *fake_node_status(FakeNode *node, const char *name);
char *fake_node_uid(FakeNode *node, const char *name);

/* Returns the reasons of the pods' events since the last call. Valid until the next call. */
const char *fake_node_pod_events(FakeNode *node);

/* A row. Its event, with the names of containers, images and pods:
 *   ""                        only time passes
 *   "apply"                   the manifest is 'text', from now on
 *   "exit app 1"              the container's process ends
 *   "exec app 1"              the command that a probe or a hook runs in it ends
 *   "exec app timeout"        the command exceeds its time limit
 *   "stop web", "delete web 5", "evict web"
 *   "shims die", "connections break", "agent restarts", "machine restarts"
 *   "pulled busybox", "not pulled busybox" */
typedef struct NodeStep {
        unsigned seconds;
        const char *event;
        const char *requests; /* NULL: not checked */
        const char *status;   /* of the pod "web"; likewise */
        const char *text;
} NodeStep;

void fake_node_play(FakeNode *node, const char *file, int line, const NodeStep *steps, size_t n);

#define PLAY(node, steps) fake_node_play(node, __FILE__, __LINE__, steps, N_ELEMENTS(steps))
