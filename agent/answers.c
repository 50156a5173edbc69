/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked on the socket, and whom of the rooms it is asked of. */

#include "agent/agent-private.h"
#include "agent/figures.h"
#include "agent/images.h"
#include "agent/inputs.h"
#include "agent/model/json.h"
#include "agent/origins.h"
#include "agent/wishes.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <stdlib.h>
#include <unistd.h>

static int serve_next_pod(void *userdata, const char *after, char **ret_key, char **ret_json) {
        Agent *agent = userdata;
        cleanup_with(pod_status_done) PodStatus status = { 0 };
        cleanup_free char *key = NULL, *json = NULL;
        const Pod *pod;
        int r = supervisor_next(agent->supervisor, after, &pod, &status);

        if (r <= 0)
                return r;
        key = figures_pod_key(pod);
        json = origin_print_pod(agent->supervisor, pod, &status);
        if (!key || !json)
                return -ENOMEM;
        *ret_key = TAKE_PTR(key);
        *ret_json = TAKE_PTR(json);
        return 1;
}

static int serve_next_event(void *userdata, uint64_t after, uint64_t *ret_number, char **ret_json) {
        Agent *agent = userdata;

        return events_next(agent->events, after, ret_number, ret_json);
}

static int serve_next_object(void *userdata, ObjectKind kind, const char *after, char **ret_key,
                             char **ret_json) {
        Agent *agent = userdata;

        return inputs_next_object(agent->manifests, agent->manifest_dir, kind, after, ret_key,
                                  ret_json);
}

static void serve_report(void *userdata, ServeReport *report) {
        Agent *agent = userdata;

        inputs_report(agent->manifests, agent->manifest_dir, agent->supervisor, agent->images,
                      report);
}

static int serve_find_log(void *userdata, const char *namespace, const char *pod,
                          const char *container, bool previous, ServeLog *ret, Error *reterr) {
        Agent *agent = userdata;

        return supervisor_find_log(agent->supervisor, namespace, pod, container, previous,
                                   &ret->directory, &ret->attempt, &ret->is_live, reterr);
}

/* What is left of it is wanted again by its manifest. */
static int serve_delete_pod(void *userdata, const char *namespace, const char *pod,
                            int64_t grace_seconds, Error *reterr) {
        Agent *agent = userdata;
        int r;

        if (!agent->has_scanned)
                return error_setf(reterr, EAGAIN, "%s has not been read yet", agent->manifest_dir);
        r = supervisor_delete(agent->supervisor, namespace, pod, grace_seconds, reterr);
        if (r < 0)
                return r;
        daemons_forget_orphan(agent->daemons, namespace, pod);
        wishes_make(agent);
        return 0;
}

/* What tells one set on. */
typedef struct EachDaemonSet {
        serve_each_t each;
        void *context;
} EachDaemonSet;

static int tell_daemonset(const DaemonSet *set, const char *json, void *context) {
        const EachDaemonSet *teller = context;
        cleanup_free char *key = path_join(set->metadata.namespace, set->metadata.name);

        return key ? teller->each(key, json, teller->context) : -ENOMEM;
}

static int serve_each_daemonset(void *userdata, serve_each_t each, void *context) {
        return daemons_each(((Agent *) userdata)->daemons, tell_daemonset,
                            &(EachDaemonSet){ each, context });
}

static char *serve_revisions(void *userdata) {
        return daemons_revisions_to_json(((Agent *) userdata)->daemons);
}

static char *serve_node(void *userdata) {
        const Agent *agent = userdata;
        cleanup_free char *refused = NULL;
        NodeStanding standing = { 0 };

        if (agent->cluster)
                cluster_standing(agent->cluster, &standing, &refused);
        return node_to_json(&agent->facts.all, pressure_conditions(agent->pressure), &standing);
}

static const Manifest *find_manifest(const Agent *agent, const char *file) {
        const Manifest *const *manifests;
        size_t n = manifest_source_list(agent->manifests, &manifests);

        for (size_t i = 0; i < n; i++)
                if (streq(manifests[i]->file, file))
                        return manifests[i];
        return NULL;
}

/* A set is its file; so that is what goes, unless there is more in it than the set. */
static int delete_daemonset(Agent *agent, const char *namespace, const char *name, bool orphan,
                            Error *reterr) {
        const char *file = daemons_origin(agent->daemons, namespace, name, reterr);
        const Manifest *manifest = file ? find_manifest(agent, file) : NULL;
        cleanup_free char *path = NULL;
        int r = file ? 0 : -ENOENT;

        if (r < 0)
                return r;
        if (!manifest || manifest->error ||
            manifest->pods.n + manifest->data.n + manifest->daemonsets.n != 1)
                return error_setf(reterr, EINVAL,
                                  "%s does not hold this set alone; remove it from there by hand",
                                  file);
        path = path_join(agent->manifest_dir, file);
        if (!path)
                return -ENOMEM;
        if (orphan) {
                r = daemons_orphan(agent->daemons, namespace, name, reterr);
                if (r < 0)
                        return r;
                wishes_make(agent);
        }
        if (unlink(path) >= 0)
                return 0;
        r = error_setf(reterr, errno, "cannot remove %s: %s", path, strerror(errno));
        if (orphan)
                daemons_take_back(agent->daemons, namespace, name);
        return r;
}

static int serve_order_daemonset(void *userdata, const char *namespace, const char *name,
                                 const char *verb, int64_t revision, Error *reterr) {
        Agent *agent = userdata;

        if (!agent->has_scanned)
                return error_setf(reterr, EAGAIN, "%s has not been read yet", agent->manifest_dir);
        if (streq(verb, "undo"))
                return daemons_undo(agent->daemons, namespace, name, revision, reterr);
        if (streq(verb, "restart"))
                return daemons_restart(agent->daemons, namespace, name, reterr);
        return delete_daemonset(agent, namespace, name, streq(verb, "orphan"), reterr);
}

static int serve_exec(void *userdata, const char *namespace, const char *pod, const char *container,
                      const ServeExec *exec, int socket_fd, Error *reterr) {
        Agent *agent = userdata;

        return supervisor_session(agent->supervisor, namespace, pod, container,
                                  &(SandboxSession){ .argv = exec->argv,
                                                     .has_input = exec->has_input,
                                                     .has_output = exec->has_output,
                                                     .has_error = exec->has_error,
                                                     .has_terminal = exec->has_terminal },
                                  socket_fd, reterr);
}

static int serve_is_ready(void *userdata, Error *reterr) {
        Agent *agent = userdata;

        if (agent->is_ready)
                return 0;
        return error_setf(reterr, EAGAIN, "the first scan of %s has not been acted on yet",
                          agent->manifest_dir);
}

typedef LIST_OF(ProbeSample) ProbeSamples;

static void keep_sample(const ProbeSample *sample, void *userdata) {
        ProbeSamples *list = userdata;
        ProbeSample *more = reallocarray(list->items, list->n + 1, sizeof(*more));

        if (!more)
                return;
        list->items = more;
        list->items[list->n++] = *sample;
}

static char *serve_metrics(void *userdata) {
        Agent *agent = userdata;
        PublishCounts counts = agent_take_counts(agent);
        ProbeSamples samples = { 0 };
        char *text;

        supervisor_each_probe(agent->supervisor, keep_sample, &samples);
        counts.probes = samples.items;
        counts.n_probes = samples.n;
        text = publish_metrics(&counts);
        free(samples.items);
        return text;
}

static char *serve_resource_metrics(void *userdata) {
        Agent *agent = userdata;

        return figures_usage(agent->supervisor, &agent->bundle_config);
}

const ServeHandlers agent_answers = {
        .next_pod = serve_next_pod,
        .next_event = serve_next_event,
        .next_object = serve_next_object,
        .report = serve_report,
        .find_log = serve_find_log,
        .delete_pod = serve_delete_pod,
        .each_daemonset = serve_each_daemonset,
        .revisions = serve_revisions,
        .node = serve_node,
        .order_daemonset = serve_order_daemonset,
        .exec = serve_exec,
        .images = images_serve_list,
        .pull_image = images_serve_pull,
        .remove_image = images_serve_remove,
        .prune_images = images_serve_prune,
        .is_ready = serve_is_ready,
        .metrics = serve_metrics,
        .resource_metrics = serve_resource_metrics,
};
