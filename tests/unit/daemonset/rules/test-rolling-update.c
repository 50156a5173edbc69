/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling updates: which pods are kept, and whether a new one is created. */

#include "agent/daemonset/rules/rolling-update.h"
#include "common/clock.h"
#include "tests/test.h"

/* A pod is written as four characters: 'c'urrent or 'o'ld; t'e'rminating, 'f'ailed, 's'yncing or
 * none of these; 'r'eady or not; and the order in which it started. Ready pods have been ready
 * since second 100. */
static size_t read_pods(const char *text, DaemonSetPodState pods[4]) {
        size_t n = 0;

        for (; *text; text += 4 + (text[4] == ' '))
                pods[n++] = (DaemonSetPodState){
                        .is_current = text[0] == 'c',
                        .is_terminating = text[1] == 'e',
                        .is_terminal = text[1] == 'f',
                        .is_syncing = text[1] == 's',
                        .is_ready = text[2] == 'r',
                        .ready_since = text[2] == 'r' ? 100 * USEC_PER_SEC : 0,
                        .start_time = (uint64_t) text[3],
                };
        return n;
}

typedef enum Strategy {
        REPLACE,
        SURGE,
        ON_DELETE,
        STAGE,    /* REPLACE, with a successor that could not start yet */
        BACK_OFF, /* REPLACE, during the back-off of failed pods */
} Strategy;

static DaemonSet make_set(Strategy strategy, RollingUpdateDaemonSet *rolling, int64_t min_ready) {
        *rolling = (RollingUpdateDaemonSet){
                .max_unavailable.number = { true, strategy != SURGE },
                .max_surge.number = { true, strategy == SURGE },
        };
        return (DaemonSet){
                .spec.update_strategy = { strategy == ON_DELETE ? DAEMONSET_ON_DELETE
                                                                : DAEMONSET_ROLLING_UPDATE,
                                          rolling },
                .spec.min_ready_seconds = { true, min_ready },
        };
}

/* Returns the plan, such as "keeps 10 new": one digit for each pod that is kept, then the rest. */
static void plan(Strategy strategy, DaemonSetVerdict verdict, const char *pods, unsigned now_sec,
                 char text[64]) {
        RollingUpdateDaemonSet rolling;
        DaemonSet set = make_set(strategy, &rolling, 10);
        DaemonSetPodState items[4];
        DaemonSetPodStates list = { items, read_pods(pods, items) };
        const DaemonSetPlanInput planning = { .verdict = verdict,
                                              .is_preflighted = strategy != STAGE,
                                              .is_backing_off = strategy == BACK_OFF,
                                              .now = now_sec * USEC_PER_SEC };
        bool keep[4];
        DaemonSetPlan result;
        size_t n;

        daemonset_plan_update(&set, &list, &planning, keep, &result);
        n = (size_t) snprintf(text, 64, "keeps ");
        for (size_t i = 0; i < list.n; i++)
                text[n++] = keep[i] ? '1' : '0';
        (void) snprintf(text + n, 64 - n, "%s%s%s%s%s", result.creates_pod ? " new" : "",
                        result.awaits_preflight ? " stages" : "",
                        result.is_available ? " available" : "",
                        result.is_settled ? " settled" : "",
                        result.again_at == 110 * USEC_PER_SEC ? " again" : "");
}

TEST(update_strategy_decides_which_pods_are_kept)
{
        static const struct {
                Strategy strategy;
                DaemonSetVerdict verdict;
                const char *pods;
                unsigned now_sec;
                const char *plan;
        } cases[] = {
                { REPLACE, DAEMONSET_SHOULD_RUN, "", 0, "keeps  new" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "c--1", 0, "keeps 1" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "c-r1", 105, "keeps 1 again" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "c-r1", 110, "keeps 1 available settled" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "o-r1", 110, "keeps 0" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "oer1", 110, "keeps 0" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "ce-1", 110, "keeps 0 new" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "c-r2 c-r1", 110, "keeps 01 available" },
                { REPLACE, DAEMONSET_SHOULD_RUN, "oe-1 c--2", 110, "keeps 01" },
                { STAGE, DAEMONSET_SHOULD_RUN, "o-r1", 110, "keeps 1 stages" },
                { STAGE, DAEMONSET_SHOULD_RUN, "oer1", 110, "keeps 0" },
                { STAGE, DAEMONSET_SHOULD_RUN, "", 110, "keeps  new" },
                { STAGE, DAEMONSET_SHOULD_RUN, "o-r1 c--2", 110, "keeps 01" },
                { STAGE, DAEMONSET_SHOULD_STOP, "o-r1", 110, "keeps 0" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1", 110, "keeps 1 new" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o--1", 110, "keeps 1 new" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1 c--2", 110, "keeps 11" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1 c-r2", 105, "keeps 11 again" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1 c-r2", 110, "keeps 01 available" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o--1 c--2", 110, "keeps 01" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "o-r1", 110, "keeps 1 settled" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "oer1", 110, "keeps 0" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "", 110, "keeps  new" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "o-r2 o-r1", 110, "keeps 01" },
                { REPLACE, DAEMONSET_SHOULD_CONTINUE, "", 110, "keeps  settled" },
                { REPLACE, DAEMONSET_SHOULD_CONTINUE, "o-r1", 110, "keeps 1 settled" },
                { REPLACE, DAEMONSET_SHOULD_CONTINUE, "o-r1 c-r2", 110, "keeps 01 available" },
                { REPLACE, DAEMONSET_SHOULD_STOP, "c-r1 o-r2", 110, "keeps 00" },
                { REPLACE, DAEMONSET_SHOULD_STOP, "", 110, "keeps  settled" },
                { SURGE, DAEMONSET_SHOULD_CONTINUE, "o-r1", 110, "keeps 1 settled" },
                { SURGE, DAEMONSET_SHOULD_CONTINUE, "o-r1 c--2", 110, "keeps 11 settled" },
                { SURGE, DAEMONSET_SHOULD_CONTINUE, "o-r1 c-r2", 110, "keeps 01 available" },
                /* A failed pod is removed, and replaced when it is gone. */
                { REPLACE, DAEMONSET_SHOULD_RUN, "cf-1", 110, "keeps 0" },
                { BACK_OFF, DAEMONSET_SHOULD_RUN, "cf-1", 110, "keeps 1" },
                { BACK_OFF, DAEMONSET_SHOULD_RUN, "ce-1", 110, "keeps 0 new" },
                { BACK_OFF, DAEMONSET_SHOULD_RUN, "of-1", 110, "keeps 0" },
                { STAGE, DAEMONSET_SHOULD_RUN, "of-1", 110, "keeps 0" },
                { BACK_OFF, DAEMONSET_SHOULD_CONTINUE, "cf-1", 110, "keeps 1 settled" },
                { REPLACE, DAEMONSET_SHOULD_CONTINUE, "cf-1", 110, "keeps 0" },
                { BACK_OFF, DAEMONSET_SHOULD_STOP, "cf-1", 110, "keeps 0" },
                { SURGE, DAEMONSET_SHOULD_RUN, "of-1", 110, "keeps 0 new" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1 cf-2", 110, "keeps 10" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "of-1", 110, "keeps 0" },
                { ON_DELETE, DAEMONSET_SHOULD_RUN, "cf-1", 110, "keeps 0" },
                /* While a state is unknown, all pods are kept. */
                { REPLACE, DAEMONSET_SHOULD_RUN, "os-1", 110, "keeps 1" },
                { SURGE, DAEMONSET_SHOULD_RUN, "os-1 cs-2", 110, "keeps 11" },
                { SURGE, DAEMONSET_SHOULD_RUN, "os-1 c-r2", 110, "keeps 11" },
                { SURGE, DAEMONSET_SHOULD_RUN, "o-r1 cs-2 ce-3", 110, "keeps 110" },
                { REPLACE, DAEMONSET_SHOULD_CONTINUE, "os-1", 110, "keeps 1" },
                { REPLACE, DAEMONSET_SHOULD_STOP, "os-1", 110, "keeps 0" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char text[64];

                plan(cases[i].strategy, cases[i].verdict, cases[i].pods, cases[i].now_sec, text);
                if (!streq(text, cases[i].plan))
                        test_fail(__FILE__, __LINE__, cases[i].pods, "case %zu: '%s', not '%s'", i,
                                  text, cases[i].plan);
        }
}

/* At most one pod is kept, or two with maxSurge. No pod is kept if one is created without
 * maxSurge. */
TEST(number_of_pods_is_limited_in_each_state)
{
        static const char letters[2][2] = { { 'c', 'o' }, { '-', 'e' } };

        for (unsigned bits = 0; bits < 1U << 11; bits++) {
                Strategy strategy = bits % 3;
                size_t n_kept = 0, n = (bits >> 9) % 4;
                RollingUpdateDaemonSet rolling;
                DaemonSet set = make_set(strategy, &rolling, 0);
                DaemonSetPodState items[4] = { 0 };
                bool keep[4];
                DaemonSetPlan result;

                for (size_t i = 0; i < n; i++)
                        items[i] = (DaemonSetPodState){
                                .is_current = letters[0][(bits >> (3 * i)) & 1] == 'c',
                                .is_terminating = letters[1][(bits >> (3 * i + 1)) & 1] == 'e',
                                .is_ready = (bits >> (3 * i + 2)) & 1,
                        };
                daemonset_plan_update(
                        &set, &(DaemonSetPodStates){ items, n },
                        &(DaemonSetPlanInput){ DAEMONSET_SHOULD_RUN, bits & 1, false, 1 }, keep,
                        &result);
                for (size_t i = 0; i < n; i++) {
                        n_kept += keep[i];
                        EXPECT(!(keep[i] && items[i].is_terminating));
                }
                EXPECT(n_kept + result.creates_pod <= (strategy == SURGE ? 2 : 1));
        }
}
