/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/unready-pod.h"

#include "common/cleanup.h"
#include "tests/test.h"

static ContainerStatus waiting(const char *name, const char *reason, const char *message) {
        return (ContainerStatus){ .name = (char *) (uintptr_t) name,
                                  .state = { .kind = STATE_WAITING,
                                             .reason = (char *) (uintptr_t) reason,
                                             .message = (char *) (uintptr_t) message } };
}

static void expect_why(const PodStatus *status, const char *expected) {
        cleanup_free char *text = explain_unready_pod(status);

        EXPECT_STREQ(text, expected);
}

TEST(the_first_container_that_is_not_ready_is_named_in_one_line)
{
        ContainerStatus containers[] = {
                waiting("a", "PodInitializing", NULL),
                waiting("b", "CrashLoopBackOff", "back-off 10s\nrestarting"),
                waiting("c", "ErrImagePull", NULL),
        };
        PodStatus status = { .containers = { containers, N_ELEMENTS(containers) } };

        expect_why(&status, "container b: CrashLoopBackOff: back-off 10s restarting");
        containers[1].ready = true;
        expect_why(&status, "container c: ErrImagePull");
}

TEST(an_edit_that_was_not_applied_is_not_called_unready)
{
        PodStatus status = { 0 };

        status.conditions[CONDITION_READY].is_true = true;
        expect_why(&status, "the edit is not applied");
        status.conditions[CONDITION_EDIT_PENDING].message = (char[]){ "it cannot start" };
        expect_why(&status, "the edit is not applied: it cannot start");
}

TEST(conditions_report_the_absence_of_such_a_container)
{
        PodStatus status = { 0 };

        expect_why(&status, "the pod is not ready");
        status.conditions[CONDITION_READY].message =
                (char[]){ "containers with unready status: [a]" };
        expect_why(&status, "the pod is not ready: containers with unready status: [a]");
}
