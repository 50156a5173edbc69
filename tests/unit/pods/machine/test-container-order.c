/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/container-order.h"

#include "tests/test.h"

enum {
        N_MAX = 6
};

/* A pod is written as a word with a letter for each container. Init containers: 'i' waits, 'r'
 * runs, 'd' is done, 'x' has failed; sidecars: 's' waits, 'u' is up, 'e' has ended; main
 * containers: 'm' waits, 'M' runs, 'D' is done, and with a hook: 'h' waits, 'H' runs the hook;
 * ephemeral containers: 'p' waits, 'P' runs. */
static ContainerOrderEntry entry_of(char letter) {
        ContainerOrderEntry entry = { .role = ROLE_MAIN };

        if (strchr("irdx", letter))
                entry.role = ROLE_INIT;
        else if (strchr("sue", letter))
                entry.role = ROLE_SIDECAR;
        else if (strchr("pP", letter))
                entry.role = ROLE_EPHEMERAL;
        entry.is_waiting = strchr("ismhp", letter) != NULL;
        entry.has_run = !entry.is_waiting;
        entry.has_started = strchr("ruMP", letter) != NULL;
        entry.holds_next = letter == 'h' || letter == 'H';
        entry.is_finished = strchr("dxeD", letter) != NULL;
        entry.has_succeeded = letter == 'd' || letter == 'D';
        return entry;
}

/* The due steps, in the same form: '.' nothing, 's' start, 't' stop in turn, 'x' stop. */
static void plan(const char *pod, const ContainerOrderInput *input, char ret[N_MAX + 1]) {
        static const char letters[] = {
                [ORDER_NOTHING] = '.',
                [ORDER_START] = 's',
                [ORDER_STOP_IN_TURN] = 't',
                [ORDER_STOP] = 'x',
        };
        ContainerOrderEntry entries[N_MAX];
        size_t n = strlen(pod);

        REQUIRE(n <= N_MAX);
        for (size_t i = 0; i < n; i++)
                entries[i] = entry_of(pod[i]);
        plan_container_order(entries, n, input);
        for (size_t i = 0; i < n; i++)
                ret[i] = letters[entries[i].action];
        ret[n] = '\0';
}

typedef struct Case {
        const char *pod, *due;
} Case;

static void expect_plans(const Case *cases, size_t n, const ContainerOrderInput *input) {
        for (size_t i = 0; i < n; i++) {
                char due[N_MAX + 1];

                plan(cases[i].pod, input, due);
                if (!streq(due, cases[i].due))
                        test_fail(__FILE__, __LINE__, cases[i].pod, "gives %s, not %s", due,
                                  cases[i].due);
        }
}

TEST(init_containers_start_in_order_and_main_containers_together)
{
        static const Case cases[] = {
                { "mm", "ss" },
                { "imm", "s.." },
                { "rmm", "..." },
                { "dmm", ".ss" },
                { "iim", "s.." },
                { "dim", ".s." },
                { "drm", "..." },
                { "ddm", "..s" },
                { "sim", "s.." },
                { "uim", ".s." },
                { "urm", "..." },
                { "udm", "..s" },
                { "ssm", "s.." },
                { "usm", ".s." },
                { "uum", "..s" },
                { "dMm", "..s" },
                /* A sidecar that has started once does not delay the others, and is started again.
                 */
                { "sdim", "s.s." },
                { "sdM", "s.." },
                { "sdMm", "s..s" },
                { "iM", ".." },
                { "usrm", ".s.." },
                /* A postStart hook delays the containers after its own. */
                { "hmm", "s.." },
                { "Hmm", "..." },
                { "Mmm", ".ss" },
                { "mhm", "ss." },
                { "hhp", "s.s" },
                /* An ephemeral container may start at any time, and no other container waits for
                 * it. */
                { "imp", "s.s" },
                { "rmp", "..s" },
                { "dmp", ".ss" },
                { "dmP", ".s." },
                { "MP", ".." },
        };

        expect_plans(cases, N_ELEMENTS(cases), &(ContainerOrderInput){ 0 });
}

TEST(no_container_starts_while_the_pod_is_held)
{
        static const Case cases[] = { { "im", ".." }, { "dm", ".." }, { "sM", ".." } };

        expect_plans(cases, N_ELEMENTS(cases), &(ContainerOrderInput){ .must_hold = true });
}

TEST(sidecars_stop_last_in_reverse_order)
{
        static const Case cases[] = {
                { "uuMM", "ttxx" },
                { "uuMD", "ttx." },
                { "uuDD", "tx.." },
                { "ueDD", "x..." },
                { "urm", "txx" },
                { "sim", "txx" },
                { "usDD", "tx.." },
                /* Neither an ephemeral container nor an init container delays a sidecar. */
                { "uMP", "txx" },
                { "uDP", "x.x" },
                { "Dp", ".x" },
                { "urD", "xx." },
        };
        static const Case late[] = { { "uuMD", "xxx." }, { "urm", "xxx" } };

        expect_plans(cases, N_ELEMENTS(cases), &(ContainerOrderInput){ .must_end = true });
        expect_plans(late, N_ELEMENTS(late),
                     &(ContainerOrderInput){ .must_end = true, .is_late = true });
}

TEST(a_pod_completes_when_main_containers_are_done_or_init_has_failed)
{
        static const Case cases[] = {
                { "uDM", "..." }, { "uDD", "x.." },   { "uuDD", "tx.." }, { "sDD", "x.." },
                { "uxm", "t.x" }, { "uxim", "t.xx" }, { "uixm", "tx.x" },
        };

        expect_plans(cases, N_ELEMENTS(cases), &(ContainerOrderInput){ 0 });
}

static PodProgress course_of(const char *pod) {
        ContainerOrderEntry entries[N_MAX];
        size_t n = strlen(pod);

        for (size_t i = 0; i < n; i++)
                entries[i] = entry_of(pod[i]);
        return pod_progress_of(entries, n);
}

TEST(progress_of_a_pod_follows_from_its_containers)
{
        EXPECT_EQ(course_of("im"), PROGRESS_INITIALIZING);
        EXPECT_EQ(course_of("um"), PROGRESS_RUNNING);
        EXPECT_EQ(course_of("sM"), PROGRESS_RUNNING);
        EXPECT_EQ(course_of("xm"), PROGRESS_FAILED);
        EXPECT_EQ(course_of("dDM"), PROGRESS_RUNNING);
        EXPECT_EQ(course_of("dDD"), PROGRESS_DONE);
        EXPECT_EQ(course_of("eD"), PROGRESS_DONE);
}
