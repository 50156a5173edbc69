/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's state in a few words, for systemd (sd_notify) and for Prometheus. Counts come in,
 * text goes out; what they mean is decided elsewhere. */

#include "agent/model/eviction.h"
#include "agent/model/probe-sample.h"
#include "common/macros.h"

#include <stdint.h>

/* A picture of the agent. Strings are borrowed. */
typedef struct PublishCounts {
        const char *node_name;

        unsigned pods_wanted;  /* by manifests that are in use */
        unsigned pods;         /* that exist, those being stopped included */
        unsigned pods_running; /* phase Running */

        unsigned containers_created; /* by the state of each container's latest attempt */
        unsigned containers_running;
        unsigned containers_exited;
        unsigned containers_unknown;

        uint64_t pods_started; /* since the agent started */
        uint64_t containers_started;
        uint64_t containers_start_errors;
        uint64_t containers_restarted; /* of those started, the ones that were not the first */

        unsigned manifests_broken;
        const char *manifest_error;   /* the first of them, with its place; NULL: none */
        const char *manifest_trouble; /* why the directory cannot be read; NULL: it can */
        unsigned archives_broken;
        const char *api_trouble; /* with the API server; NULL: none, or there is no server */

        const NodeConditions *conditions; /* NULL: not known */
        const uint64_t *evictions;        /* N_EVICTION_SIGNALS; likewise */

        const ProbeSample *probes;
        size_t n_probes;
} PublishCounts;

typedef struct Publish Publish;

/* NULL where memory ends. Where NOTIFY_SOCKET is not set, all that follows does nothing. */
Publish *publish_new(void);

/* Whether somebody listens: only then is it worth the work to count. */
bool publish_is_heard(const Publish *publish);

/* READY=1, once: when the first scan has been acted on. */
void publish_ready(Publish *publish);

/* STATUS= in words ("3 pods, 3 running; 1 manifest broken: web.yaml:7:11: …"), if they are not the
 * ones that were sent last. Cheap to call every turn. */
void publish_status(Publish *publish, const PublishCounts *counts);

/* RELOADING=1 and, when what was read has been acted on, READY=1; neither before the first
 * READY=1. */
void publish_begin_reload(Publish *publish);
void publish_end_reload(Publish *publish);
static inline void publish_end_reloadp(Publish **publish) {
        publish_end_reload(*publish);
}

/* STOPPING=1, once. */
void publish_stopping(Publish *publish);

/* The stop takes as long as this, from now on, and systemd waits for it. */
void publish_stop_takes(Publish *publish, uint64_t usec);

Publish *publish_free(Publish *publish);
DEFINE_CLEANUP(Publish *, publish_free)

/* The words of STATUS=, in memory that the caller frees, or NULL. */
char *publish_sentence(const PublishCounts *counts);

/* The Prometheus text format, version 0.0.4, under the kubelet's names where it has one, and of
 * this process. In memory that the caller frees, or NULL. */
char *publish_metrics(const PublishCounts *counts);
