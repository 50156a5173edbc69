/* SPDX-License-Identifier: Apache-2.0 */
/* All that is wanted here, by files and by an API server, becomes one set of wishes; and what an
 * earlier agent was asked for is told back to those who may not be able to say it now. */

#include "agent/wishes.h"

#include "agent/agent-private.h"
#include "agent/inputs.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"

static void tell(Agent *agent, char ***standing, const char *sentence, bool is_error) {
        if (!strv_contains(agent->told, sentence)) {
                log_mark(MESSAGE_MANIFEST_BROKEN);
                if (is_error)
                        log_error("%s", sentence);
                else
                        log_warning("%s", sentence);
        }
        (void) strv_append(standing, sentence);
}

/* False where a wish may not have been heard. */
static bool want_pods(Agent *agent, const Manifest *manifest) {
        bool heard = true;

        for (size_t i = 0; i < manifest->pods.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = supervisor_want(agent->supervisor, manifest->file, manifest->pods.items[i],
                                        &error);

                if (r < 0)
                        log_error("%s: %s", manifest->file, error_message(&error, r));
                heard = heard && r != -ENOMEM;
        }
        return heard;
}

static bool want_daemonsets(Agent *agent, const Manifest *const *manifests, size_t n,
                            char ***standing) {
        bool heard = true;

        daemons_begin(agent->daemons);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < manifests[i]->daemonsets.n; j++)
                        heard = daemons_want(agent->daemons, manifests[i]->file,
                                             manifests[i]->daemonsets.items[j]) >= 0 &&
                                heard;
        if (agent->cluster)
                heard = cluster_want_daemonsets(agent->cluster, agent->daemons) >= 0 && heard;
        heard = daemons_end(agent->daemons) >= 0 && heard;
        for (char *const *warning = daemons_warnings(agent->daemons); warning && *warning;
             warning++)
                tell(agent, standing, *warning, /* is_error= */ false);
        return heard;
}

static void tell_objects(Agent *agent) {
        unsigned generation = manifest_source_data_generation(agent->manifests);

        if (generation != agent->data_generation)
                supervisor_objects_changed(agent->supervisor, /* concerns= */ NULL, NULL);
        agent->data_generation = generation;
}

void wishes_make(void *userdata) {
        Agent *agent = userdata;
        const Manifest *const *manifests;
        size_t n = manifest_source_list(agent->manifests, &manifests);
        const char *trouble = manifest_source_trouble(agent->manifests);
        cleanup_strv char **standing = NULL;
        bool heard = true;

        if (agent->is_ending) /* nothing begins any more, and what ends is no failure */
                return;
        pressure_look(agent->pressure);
        supervisor_let_return(agent->supervisor);
        supervisor_begin(agent->supervisor);
        for (size_t i = 0; i < n; i++) {
                if (manifests[i]->error) {
                        if (!strv_contains(agent->told, manifests[i]->error))
                                inputs_tell_broken(manifests[i], agent_on_event, agent);
                        tell(agent, &standing, manifests[i]->error, /* is_error= */ true);
                }
                strv_foreach(warning, manifests[i]->warnings)
                        tell(agent, &standing, *warning, /* is_error= */ false);
                heard = want_pods(agent, manifests[i]) && heard;
        }
        if (trouble)
                tell(agent, &standing, trouble, /* is_error= */ true);
        heard = want_daemonsets(agent, manifests, n, &standing) && heard;
        if (agent->cluster)
                heard = cluster_want(agent->cluster) >= 0 && heard;
        if (heard) /* who could not be named must not be taken for one who was not */
                supervisor_sweep(agent->supervisor);
        tell_objects(agent);
        strv_free(agent->told);
        agent->told = TAKE_PTR(standing);
        agent->has_scanned = true;
        agent_schedule_publish(agent);
        agent_expect_calm(agent);
}

/* ---- what an earlier agent was asked for ---- */

void wishes_on_record(const char *file, const Pod *pod, void *userdata) {
        Agent *agent = userdata;
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r;

        if (streq(file, cluster_file)) {
                if (agent->cluster)
                        (void) cluster_seed(agent->cluster, pod);
                else
                        log_warning("Pod '%s' is stopped: it was an API server's, and there is no "
                                    "kubeconfig any more",
                                    pod->metadata.name);
                return;
        }
        if (daemons_take_record(agent->daemons, file, pod))
                return;
        r = pod_copy(pod, &copy);
        if (r >= 0)
                r = manifest_source_seed_take(agent->manifests, file, copy);
        if (r < 0)
                (void) log_error_errno(r, "Cannot remember what %s said before", file);
        else
                copy = NULL;
}

int wishes_on_known_daemonset(const char *origin, const DaemonSet *set, void *userdata) {
        Agent *agent = userdata;
        DaemonSet *copy;
        int r;

        if (streq(origin, cluster_origin))
                return agent->cluster ? cluster_seed_daemonset(agent->cluster, set) : 0;
        r = daemonset_copy(set, &copy);
        return r < 0 ? r : manifest_source_seed_daemonset_take(agent->manifests, origin, copy);
}

void wishes_are_due(void *userdata) {
        Agent *agent = userdata;

        if (agent->has_scanned)
                wishes_make(agent);
}
