/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/daemonset-admission.h"

#include "agent/model/pod-adoption.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the same template ---- */

/* Set by the controller or by this node, for each revision. */
static bool is_revision_label(const char *key) {
        return streq(key, revision_hash_label) || streq(key, "pod-template-generation");
}

static bool has_all_of(const StringMap *map, const StringMap *expected) {
        for (size_t i = 0; i < expected->n; i++)
                if (!is_revision_label(expected->items[i].key) &&
                    !streq_ptr(string_map_get(map, expected->items[i].key),
                               expected->items[i].value))
                        return false;
        return true;
}

/* Admission sets these fields of a pod, so they do not come from the template. */
static bool is_change_by_admission(const EditChange *change) {
        static const char *const paths[] = { "spec.priority", "spec.preemptionPolicy",
                                             "spec.overhead", "spec.schedulerName",
                                             "spec.imagePullSecrets" };

        if (change->container)
                return false;
        for (size_t i = 0; i < N_ELEMENTS(paths); i++)
                if (streq(change->path, paths[i]))
                        return true;
        return strncmp(change->path, "metadata.", strlen("metadata.")) == 0;
}

int is_pod_made_alike(const Pod *made, const Pod *pod) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        cleanup_with(pod_freep) Pod *plain = NULL;
        int r;

        if (!has_all_of(&pod->metadata.labels, &made->metadata.labels) ||
            !has_all_of(&pod->metadata.annotations, &made->metadata.annotations))
                return 0;
        r = pod_adoption_make(made, pod, EDIT_IN_PLACE, &plain);
        if (r <= 0)
                return r;
        r = edit_plan_make(made, plain, &plan);
        for (size_t i = 0; r >= 0 && i < plan.changes.n; i++)
                if (!is_change_by_admission(&plan.changes.items[i]))
                        return 0;
        return r < 0 ? r : 1;
}

/* ---- the checks ---- */

/* 0 or -ENOMEM. */
static int refuse(DaemonSetRefusal *ret, const char *reason, char *message) {
        if (!message)
                return -ENOMEM;
        *ret = (DaemonSetRefusal){ reason, message };
        return 0;
}

/* If the administrator permits this node to place all sets, their namespaces need not be listed. */
static bool is_namespace_chosen(const DaemonSetAdmission *admission, const char *namespace) {
        if (!admission->namespaces)
                return admission->daemonsets_by == DAEMONSETS_NODE ||
                       streq(namespace, "kube-system");
        return strv_contains(admission->namespaces, "*") ||
               strv_contains(admission->namespaces, namespace);
}

/* 1, 0 or -ENOMEM. */
static int was_admitted_before(const DaemonSetAdmission *admission, const DaemonSet *set,
                               const Pod *pod) {
        cleanup_with(pod_freep) Pod *admitted = NULL;
        int r = admitted_pods_find(admission->admitted, set, &admitted);

        return r > 0 ? is_pod_made_alike(pod, admitted) : r;
}

static int refuse_unproven_set(const DaemonSet *set, DaemonSetRefusal *ret) {
        char *message =
                text_format("waits for its controller: namespace %s is not in "
                            "mainstay.daemonSetNamespaces, and no pod of the API server with this "
                            "template was bound to this node before",
                            set->metadata.namespace);
        return refuse(ret, "AwaitsController", message);
}

/* Uses the wording that the DaemonSet controller receives from an API server. */
static int refuse_violation(const Pod *pod, const char *reason, const char *violations,
                            DaemonSetRefusal *ret) {
        char *message = text_format("pods \"%s\" is forbidden: %s", pod->metadata.name, violations);
        return refuse(ret, reason, message);
}

/* The API server has computed the same priority for a pod with the same template. 1, 0 or
 * -ENOMEM. */
static int was_priority_computed(const DaemonSetAdmission *admission, const DaemonSet *set,
                                 const Pod *pod) {
        cleanup_with(pod_freep) Pod *admitted = NULL;
        int r = admitted_pods_find(admission->admitted, set, &admitted);

        if (r <= 0)
                return r;
        return admitted->spec.priority.is_set &&
                               admitted->spec.priority.value == pod->spec.priority.value
                       ? is_pod_made_alike(pod, admitted)
                       : 0;
}

/* The Priority admission of the server computes the priority from the class, and rejects any other
 * one. The node has only the system classes. 1, 0 with the refusal, or -ENOMEM. */
static int check_computed_priority(const DaemonSetAdmission *admission, const DaemonSet *set,
                                   const Pod *pod, DaemonSetRefusal *ret) {
        const PodSpec *spec = &pod->spec;
        const char *class = spec->priority_class_name;
        int64_t computed = class ? system_priority_class_value(class) : 0;
        cleanup_free char *why = NULL;
        int r;

        if (!spec->priority.is_set || (spec->priority.value == computed && (!class || computed)))
                return 1;
        r = was_priority_computed(admission, set, pod);
        if (r != 0)
                return r;
        why = text_format(
                "the integer value of priority (%" PRId64
                ") must not be provided in pod spec; it is computed from the PriorityClass%s%s",
                spec->priority.value, class ? " " : "", strna(class));
        if (!why)
                return -ENOMEM;
        return refuse_violation(pod, "Priority", why, ret);
}

static int refuse_unknown_namespace(const Error *error, int r, DaemonSetRefusal *ret) {
        return refuse(ret, "NamespaceUnknown", strdup(error_message(error, r)));
}

int daemonset_admission_check(const DaemonSetAdmission *admission, const DaemonSet *set,
                              const Pod *pod, DaemonSetRefusal *ret) {
        cleanup_free char *violations = NULL;
        cleanup_error Error error = ERROR_NULL;
        PodSecurityPolicy policy;
        int r = is_namespace_chosen(admission, set->metadata.namespace)
                        ? 1
                        : was_admitted_before(admission, set, pod);

        if (r < 0)
                return r;
        if (r == 0)
                return refuse_unproven_set(set, ret);
        r = namespace_policies_find(admission->policies, set->metadata.namespace, &policy, &error);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse_unknown_namespace(&error, r, ret);
        if (r == 0)
                return refuse(ret, NULL, strdup("its namespace is being read"));
        r = pod_security_check(&policy, pod, &violations);
        if (r == 0)
                return refuse_violation(pod, "PodSecurity", violations, ret);
        return r < 0 ? r : check_computed_priority(admission, set, pod, ret);
}
