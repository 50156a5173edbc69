/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/status/pod-phase.h"

#include "tests/test.h"

enum {
        N_MAX = 4
};

/* A container as a word: its role (init, sidecar, main), then its state: Waiting, Running or
 * Terminated with a code, and "/T<code>" for how it ended before. */
typedef struct World {
        Container containers[N_MAX];
        ContainerStatus statuses[N_MAX];
        char names[N_MAX][2];
        PodSpec spec;
        PodStatus status;
} World;

static ContainerState state_of(const char **text) {
        static const char kinds[] = "-WRT";
        ContainerState state = { .kind = (ContainerStateKind) (strchr(kinds, **text) - kinds) };
        char *end;

        (*text)++;
        state.exit_code = (int) strtol(*text, &end, 10);
        *text = end;
        return state;
}

static void add_container(World *world, const char *word) {
        size_t n_init = world->spec.init_containers.n, i = n_init + world->spec.containers.n;
        ContainerStatus *status = &world->statuses[i];
        bool is_main = *word == 'm';

        world->names[i][0] = (char) ('a' + (char) i);
        world->containers[i] = (Container){
                .name = world->names[i],
                .restart_policy = *word == 's' ? RESTART_POLICY_ALWAYS : RESTART_POLICY_UNSET,
        };
        word++;
        *status = (ContainerStatus){ .name = world->names[i], .state = state_of(&word) };
        if (*word++ == '/')
                status->last_state = state_of(&word);
        status->ready = status->started = status->state.kind == STATE_RUNNING;
        world->spec.init_containers.n += !is_main;
        world->spec.containers.n += is_main;
        n_init = world->spec.init_containers.n;
        world->spec.init_containers.items = world->containers;
        world->spec.containers.items = world->containers + n_init;
        world->status.init_containers = (ContainerStatusList){ world->statuses, n_init };
        world->status.containers =
                (ContainerStatusList){ world->statuses + n_init, world->spec.containers.n };
}

/* 'pod' consists of words separated by blanks, init containers first. */
static void make_pod(World *world, RestartPolicy policy, const char *pod) {
        char text[64], *rest = text, *word;

        *world = (World){ .spec.restart_policy = policy };
        (void) snprintf(text, sizeof(text), "%s", pod);
        while ((word = strsep(&rest, " ")))
                add_container(world, word);
}

TEST(the_phase_follows_the_rules_of_the_kubelet)
{
        enum {
                A = RESTART_POLICY_ALWAYS,
                F = RESTART_POLICY_ON_FAILURE,
                N = RESTART_POLICY_NEVER
        };
        static const struct {
                int policy;
                const char *pod;
                PodPhase phase;
        } cases[] = {
                { A, "mW mR", POD_PENDING },       { A, "mR mR", POD_RUNNING },
                { A, "mW/T1 mW/T1", POD_RUNNING }, { A, "mT1 mT0", POD_RUNNING },
                { N, "mT0 mT0", POD_SUCCEEDED },   { N, "mT0 mT3", POD_FAILED },
                { N, "mT0 mR", POD_RUNNING },      { F, "mT0 mT0", POD_SUCCEEDED },
                { F, "mT0 mW/T1", POD_RUNNING },   { A, "iR mW", POD_PENDING },
                { A, "iT0 mW", POD_PENDING },      { A, "iT0 mR", POD_RUNNING },
                { A, "iW/T3 mW", POD_PENDING },    { N, "iT3 mW", POD_FAILED },
                { N, "iT0 mT0", POD_SUCCEEDED },   { A, "iR/T0 mW/T1", POD_PENDING },
                { A, "sW mW", POD_PENDING },       { A, "sR mR", POD_RUNNING },
                { N, "sW/T1 mR", POD_RUNNING },    { N, "sR mT0", POD_RUNNING },
                { N, "sT7 mT0", POD_SUCCEEDED },   { N, "sW/T7 mT1", POD_FAILED },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                World world;
                PodPhase phase;

                make_pod(&world, (RestartPolicy) cases[i].policy, cases[i].pod);
                phase = pod_phase(&world.spec, &world.status, false, false);
                if (phase != cases[i].phase)
                        test_fail(__FILE__, __LINE__, cases[i].pod, "gives %s, not %s",
                                  pod_phase_names[phase], pod_phase_names[cases[i].phase]);
        }
}

TEST(a_pod_does_not_complete_during_a_restart_of_all_containers)
{
        World world;

        make_pod(&world, RESTART_POLICY_NEVER, "iT0 mT1 mT0");
        EXPECT_EQ(pod_phase(&world.spec, &world.status, true, false), POD_RUNNING);
        EXPECT_EQ(pod_phase(&world.spec, &world.status, false, false), POD_FAILED);
}

TEST(conditions_name_the_unready_containers)
{
        World world;
        char *text;

        make_pod(&world, RESTART_POLICY_ALWAYS, "iR sW mW mW");
        world.statuses[0].ready = false; /* not ready until it has completed */
        text = list_incomplete_containers(&world.spec, &world.status);
        EXPECT_STREQ(text, "containers with incomplete status: [a b]");
        free(text);
        text = list_unready_containers(&world.spec, &world.status);
        EXPECT_STREQ(text, "containers with unready status: [b c d]");
        free(text);
        EXPECT(!pod_was_initialized(&world.status));
        make_pod(&world, RESTART_POLICY_ALWAYS, "sR mR");
        EXPECT(list_incomplete_containers(&world.spec, &world.status) == NULL);
        EXPECT(list_unready_containers(&world.spec, &world.status) == NULL);
        EXPECT(pod_was_initialized(&world.status));
}

TEST(readiness_gates_require_a_reported_condition)
{
        ReadinessGate gates[] = { { (char[]){ "PodScheduled" } },
                                  { (char[]){ "example.com/Warm" } },
                                  { (char[]){ "Initialized" } } };
        KeyValue warm = { (char[]){ "example.com/Warm" }, (char[]){ "True" } };
        StringMap external = { 0 };
        World world;
        char *text;

        make_pod(&world, RESTART_POLICY_ALWAYS, "mR");
        EXPECT(list_unready_readiness_gates(&world.spec, &world.status, &external) == NULL);
        world.status.conditions[CONDITION_SCHEDULED].is_true = true;
        world.spec.readiness_gates.items = gates;
        world.spec.readiness_gates.n = 1;
        EXPECT(list_unready_readiness_gates(&world.spec, &world.status, &external) == NULL);
        world.spec.readiness_gates.n = 3;
        text = list_unready_readiness_gates(&world.spec, &world.status, &external);
        EXPECT_STREQ(text, "corresponding condition of pod readiness gate \"example.com/Warm\" "
                           "does not exist., the status of pod readiness gate \"Initialized\" is "
                           "not \"True\", but False");
        free(text);
        external = (StringMap){ &warm, 1 };
        world.spec.readiness_gates.n = 2;
        EXPECT(list_unready_readiness_gates(&world.spec, &world.status, &external) == NULL);
        warm.value = (char[]){ "Unknown" };
        text = list_unready_readiness_gates(&world.spec, &world.status, &external);
        EXPECT_STREQ(text, "the status of pod readiness gate \"example.com/Warm\" is not \"True\", "
                           "but Unknown");
        free(text);
}
