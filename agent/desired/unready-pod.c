/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/unready-pod.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_unready_reason(const char *reason) {
        return reason && !streq(reason, "PodInitializing") && !streq(reason, "Completed");
}

static const ContainerStatus *find_unready_container(const PodStatus *status) {
        const ContainerStatusList *lists[] = { &status->init_containers, &status->containers };

        for (size_t i = 0; i < N_ELEMENTS(lists); i++)
                for (size_t j = 0; j < lists[i]->n; j++) {
                        const ContainerStatus *one = &lists[i]->items[j];

                        if (!one->ready && is_unready_reason(one->state.reason))
                                return one;
                }
        return NULL;
}

static const char *find_condition_message(const PodStatus *status) {
        static const PodConditionType types[] = { CONDITION_EDIT_PENDING, CONDITION_READY };

        for (size_t i = 0; i < N_ELEMENTS(types); i++)
                if (status->conditions[types[i]].message)
                        return status->conditions[types[i]].message;
        return strna(status->message);
}

/* The running pod is ready, so its edit has not been applied. */
static const char *describe_unready_pod(const PodStatus *status) {
        return status->conditions[CONDITION_READY].is_true ? "the edit is not applied"
                                                           : "the pod is not ready";
}

char *explain_unready_pod(const PodStatus *status) {
        const ContainerStatus *container = find_unready_container(status);
        const char *message =
                container ? strna(container->state.message) : find_condition_message(status);
        char *text;

        text = text_format("%s%s%s%s%s%.300s", container ? "container " : "",
                           container ? container->name : "", container ? ": " : "",
                           container ? container->state.reason : describe_unready_pod(status),
                           message[0] ? ": " : "", message);
        if (!text)
                return NULL;
        for (char *p = text; *p; p++)
                if ((unsigned char) *p < ' ')
                        *p = ' ';
        return text;
}
