/* SPDX-License-Identifier: Apache-2.0 */
/* All that is wanted here, by files and by an API server, becomes one set of wishes; and what an
 * earlier agent was asked for is told back to those who may not be able to say it now. */

#include "agent/desired/desired-pods.h"

#include "agent/agent-private.h"
#include "agent/manifest-status.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"

static void report_manifest_problem(Agent *agent, char ***problems, const char *sentence,
                                    bool is_error) {
        if (!strv_contains(agent->reported_problems, sentence)) {
                log_set_message_id(MESSAGE_MANIFEST_INVALID);
                if (is_error)
                        log_error("%s", sentence);
                else
                        log_warning("%s", sentence);
        }
        (void) strv_append(problems, sentence);
}

/* False where a wish may not have been heard. */
static bool add_manifest_pods(Agent *agent, const Manifest *manifest) {
        bool is_complete = true;

        for (size_t i = 0; i < manifest->pods.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = pod_manager_add_desired(agent->pod_manager, manifest->file,
                                                manifest->pods.items[i], &error);

                if (r < 0)
                        log_error("%s: %s", manifest->file, error_message(&error, r));
                is_complete = is_complete && r != -ENOMEM;
        }
        return is_complete;
}

static bool sync_desired_daemonsets(Agent *agent, const Manifest *const *manifests, size_t n,
                                    char ***problems) {
        bool is_complete = true;

        daemonset_controller_begin_sync(agent->daemonset_controller);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < manifests[i]->daemonsets.n; j++)
                        is_complete = daemonset_controller_sync_set(
                                              agent->daemonset_controller, manifests[i]->file,
                                              manifests[i]->daemonsets.items[j]) >= 0 &&
                                      is_complete;
        if (agent->apiserver)
                is_complete = apiserver_sync_daemonsets(agent->apiserver,
                                                        agent->daemonset_controller) >= 0 &&
                              is_complete;
        is_complete =
                daemonset_controller_end_sync(agent->daemonset_controller) >= 0 && is_complete;
        for (char *const *warning = daemonset_controller_warnings(agent->daemonset_controller);
             warning && *warning; warning++)
                report_manifest_problem(agent, problems, *warning, /* is_error= */ false);
        return is_complete;
}

static void report_data_objects_changed(Agent *agent) {
        unsigned generation = manifest_directory_data_generation(agent->manifests);

        if (generation != agent->data_generation)
                pod_manager_on_objects_changed(agent->pod_manager, /* concerns= */ NULL, NULL);
        agent->data_generation = generation;
}

void recompute_desired_pods(void *userdata) {
        Agent *agent = userdata;
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(agent->manifests, &manifests);
        const char *directory_error = manifest_directory_last_error(agent->manifests);
        cleanup_strv char **problems = NULL;
        bool is_complete = true;

        if (agent->is_terminating) /* nothing begins any more, and what ends is no failure */
                return;
        eviction_manager_synchronize(agent->eviction_manager);
        pod_manager_readmit_evicted(agent->pod_manager);
        pod_manager_begin_desired(agent->pod_manager);
        for (size_t i = 0; i < n; i++) {
                if (manifests[i]->error) {
                        if (!strv_contains(agent->reported_problems, manifests[i]->error))
                                record_broken_manifest_events(manifests[i], agent_on_event, agent);
                        report_manifest_problem(agent, &problems, manifests[i]->error,
                                                /* is_error= */ true);
                }
                strv_foreach(warning, manifests[i]->warnings)
                        report_manifest_problem(agent, &problems, *warning, /* is_error= */ false);
                is_complete = add_manifest_pods(agent, manifests[i]) && is_complete;
        }
        if (directory_error)
                report_manifest_problem(agent, &problems, directory_error, /* is_error= */ true);
        is_complete = sync_desired_daemonsets(agent, manifests, n, &problems) && is_complete;
        if (agent->apiserver)
                is_complete = apiserver_add_desired_pods(agent->apiserver) >= 0 && is_complete;
        if (is_complete) /* who could not be named must not be taken for one who was not */
                pod_manager_stop_undesired(agent->pod_manager);
        report_data_objects_changed(agent);
        strv_free(agent->reported_problems);
        agent->reported_problems = TAKE_PTR(problems);
        agent->has_scanned = true;
        agent_schedule_status_update(agent);
        agent_schedule_memory_trim(agent);
}

/* ---- what an earlier agent was asked for ---- */

void restore_desired_pod(const char *file, const Pod *pod, void *userdata) {
        Agent *agent = userdata;
        cleanup_with(pod_freep) Pod *copy = NULL;
        int r;

        if (streq(file, apiserver_pod_source)) {
                if (agent->apiserver)
                        (void) apiserver_restore_pod(agent->apiserver, pod);
                else
                        log_warning("Pod '%s' is stopped: it was an API server's, and there is no "
                                    "kubeconfig any more",
                                    pod->metadata.name);
                return;
        }
        if (daemonset_controller_claim_record(agent->daemonset_controller, file, pod))
                return;
        r = pod_copy(pod, &copy);
        if (r >= 0)
                r = manifest_directory_restore_pod_take(agent->manifests, file, copy);
        if (r < 0)
                (void) log_error_errno(r, "Cannot remember what %s said before", file);
        else
                copy = NULL;
}

int restore_desired_daemonset(const char *origin, const DaemonSet *set, void *userdata) {
        Agent *agent = userdata;
        DaemonSet *copy;
        int r;

        if (streq(origin, apiserver_daemonset_source))
                return agent->apiserver ? apiserver_restore_daemonset(agent->apiserver, set) : 0;
        r = daemonset_copy(set, &copy);
        return r < 0 ? r : manifest_directory_restore_set_take(agent->manifests, origin, copy);
}

void recompute_desired_pods_if_scanned(void *userdata) {
        Agent *agent = userdata;

        if (agent->has_scanned)
                recompute_desired_pods(agent);
}
