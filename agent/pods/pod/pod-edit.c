/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-edit.h"

#include "agent/pods/pod/event-recorder.h"
#include "common/cleanup.h"
#include "common/text.h"

static bool is_resource_field(const char *path) {
        return strncmp(path, "resources.", 10) == 0 || strncmp(path, "spec.resources.", 15) == 0 ||
               streq(path, "spec.overhead");
}

bool edit_changes_resources(const EditPlan *plan, const char *container) {
        for (size_t i = 0; i < plan->changes.n; i++)
                if (is_resource_field(plan->changes.items[i].path) &&
                    (!container || streq_ptr(plan->changes.items[i].container, container)))
                        return true;
        return false;
}

void report_pod_edit(const PodInstance *pod, const EditPlan *plan, EditEffect effect,
                     const char *container) {
        cleanup_free char *text = edit_plan_format(plan, effect, container);

        if (!text || !text[0])
                return;
        if (effect == EDIT_RESTART_CONTAINER) {
                log_info("Restarting container '%s/%s': edited %s", pod->description, container,
                         text);
                record_pod_event(pod, container, POD_EVENT_NORMAL, "Killing",
                                 "Container %s definition changed, will be restarted", container);
        } else
                log_info("Edited running pod '%s'%s%s: %s", pod->description,
                         container ? ", container " : "", strna(container), text);
}

char *edit_print_replace_reasons(const EditPlan *plan) {
        cleanup_free char *of_pod = edit_plan_format(plan, EDIT_RECREATE_POD, NULL);

        if (of_pod && of_pod[0])
                return TAKE_PTR(of_pod);
        /* Among the changes of a container, only a change of its ports replaces the pod. */
        for (size_t i = 0; i < plan->changes.n; i++)
                if (plan->changes.items[i].effect == EDIT_RECREATE_POD)
                        return text_format("%s of container %s", plan->changes.items[i].path,
                                           strna(plan->changes.items[i].container));
        return NULL;
}
