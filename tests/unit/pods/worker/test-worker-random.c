/* SPDX-License-Identifier: Apache-2.0 */
/* With random events in any order, a pod never has two processes of one container, nothing runs
 * that must not run, an undesired pod ends, and an idle node has no timer that it does not need.
 * The seed is printed; MAINSTAY_TEST_SEED=n repeats one seed, and MAINSTAY_TEST_SEEDS=n sets the
 * number of seeds to try. */

#include "tests/unit/pods/worker/fake-node.h"

#include "common/cleanup.h"
#include "common/text.h"

enum {
        SEEDS = 15,
        EVENTS = 50,
};

static const char *const names[] = { "first", "proxy", "app", "two" };

static uint64_t random_state;

/* xorshift64*: the same on all machines. */
static unsigned choose(unsigned n) {
        random_state ^= random_state >> 12;
        random_state ^= random_state << 25;
        random_state ^= random_state >> 27;
        return (unsigned) ((random_state * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* ---- the pod ---- */

typedef struct RandomPod {
        const char *policy;
        bool has_probes, has_hooks, has_init, has_network;
        unsigned edition;
} RandomPod;

static RandomPod choose_pod(void) {
        static const char *const policies[] = { "Always", "OnFailure", "Never" };

        return (RandomPod){ .policy = policies[choose(N_ELEMENTS(policies))],
                            .has_probes = choose(2),
                            .has_hooks = choose(2),
                            .has_init = choose(2),
                            .has_network = choose(2) };
}

static char *print_random_pod(const RandomPod *pod) {
        return text_format(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {e: '%u'}}\nspec:\n"
                "  restartPolicy: %s\n  hostNetwork: %s\n  terminationGracePeriodSeconds: 5\n%s"
                "  containers:\n  - {name: app, image: busybox, command: [c, '%u']%s%s}\n"
                "  - {name: two, image: busybox}\n",
                pod->edition, pod->policy, pod->has_network ? "false" : "true",
                pod->has_init ? "  initContainers:\n  - {name: first, image: busybox}\n"
                                "  - {name: proxy, image: busybox, restartPolicy: Always}\n"
                              : "",
                pod->edition / 2,
                pod->has_probes ? ", readinessProbe: {exec: {command: [look]}, periodSeconds: 2}, "
                                  "livenessProbe: {exec: {command: [live]}, periodSeconds: 3, "
                                  "failureThreshold: 1}"
                                : "",
                pod->has_hooks ? ", lifecycle: {postStart: {exec: {command: [begin]}}, preStop: "
                                 "{sleep: {seconds: 2}}}"
                               : "");
}

/* ---- events ---- */

static void choose_behaviour(void) {
        static const FakeRun runs[] = { RUN_STARTS, RUN_STARTS,  RUN_STARTS, RUN_HANGS,
                                        RUN_FAILS,  RUN_REFUSED, RUN_EXITS };

        *fake_container(names[choose(N_ELEMENTS(names))]) =
                (FakeContainerBehaviour){ .run = runs[choose(N_ELEMENTS(runs))],
                                          .exit_code = (int) choose(2),
                                          .ignores_signal = choose(3) == 0 };
}

static void exit_a_container(void) {
        const char *name = names[choose(N_ELEMENTS(names))];

        if (fake_count_processes(name) > 0)
                fake_container_exit(name, choose(2) ? 0 : 1);
}

static void choose_failures(void) {
        fake_shims.start_error = choose(4) == 0 ? "it cannot be started" : NULL;
        fake_shims.setup_error = choose(4) == 0 ? "it cannot be mounted" : NULL;
        fake_shims.plugin_error = choose(4) == 0 ? "no address" : NULL;
        fake_shims.n_cleanup_errors = choose(4) == 0 ? 2 : 0;
        fake_image_set("busybox", choose(4) == 0 ? IMAGE_MISSING : IMAGE_PRESENT);
}

static void disturb(FakeNode *node, RandomPod *pod) {
        cleanup_free char *yaml = NULL;

        switch (choose(10)) {
        case 0:
                fake_shims_die();
                break;
        case 1:
                fake_connections_break();
                break;
        case 2:
                fake_node_restart_agent(node);
                break;
        case 3:
                pod->edition++;
                yaml = print_random_pod(pod);
                fake_node_apply(node, yaml);
                break;
        case 4:
                choose_failures();
                pod_manager_on_images_changed(node->manager);
                break;
        case 5:
                choose_behaviour();
                break;
        default:
                exit_a_container();
        }
}

static void run_and_check(FakeNode *node, uint64_t usec) {
        cleanup_free char *status = NULL;

        fake_node_pass(node, usec);
        EXPECT_EQ(fake_count_doubles(), 0);
        EXPECT(fake_count_shims() <= 1);
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                EXPECT(fake_count_processes(names[i]) <= 1);
        /* Without new events, the agent changes nothing. */
        status = strdup(fake_node_status(node, "web"));
        fake_node_run(node);
        EXPECT_STREQ(fake_node_status(node, "web"), status);
}

static void behave_well(void) {
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                *fake_container(names[i]) = (FakeContainerBehaviour){ 0 };
        fake_shims = (FakeShimBehaviour){ 0 };
        fake_image_set("busybox", IMAGE_PRESENT);
}

static void start_what_hangs(void) {
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                fake_container_start_hanging(names[i]);
}

/* Without failures, each container reaches the state that its restart policy requires. */
static void check_that_it_settles(FakeNode *node, const RandomPod *pod) {
        const char *status;

        behave_well();
        start_what_hangs();
        pod_manager_on_images_changed(node->manager);
        fake_node_pass(node, 400 * USEC_PER_SEC);
        if (pod->has_init && fake_count_processes("first") > 0) {
                fake_container_exit("first", 0);
                fake_node_pass(node, 400 * USEC_PER_SEC);
        }
        status = fake_node_status(node, "web");
        if (streq(pod->policy, "Always") && !streq(status, "gone"))
                EXPECT_EQ(strncmp(status, "Running Ready", 13), 0);
        if (strncmp(status, "Succeeded", 9) == 0 || strncmp(status, "Failed", 6) == 0) {
                EXPECT_EQ(fake_count_processes(NULL), 0);
                EXPECT_EQ(fake_count_shims(), 0);
                /* No timer wakes the agent up for the pod. */
                EXPECT(fake_clock_quiet_usec() > 3600 * USEC_PER_SEC);
        }
}

static void check_that_it_ends(FakeNode *node) {
        choose_behaviour();
        pod_manager_stop_pod(node->manager,
                             &(ObjectMeta){ .name = (char[]){ "web-node1" },
                                            .namespace = (char[]){ "default" } },
                             "its file is gone");
        fake_node_pass(node, 60 * USEC_PER_SEC);
        start_what_hangs();
        fake_node_pass(node, 200 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"), "gone");
        EXPECT_EQ(fake_count_processes(NULL), 0);
        EXPECT_EQ(fake_count_shims(), 0);
        EXPECT(fake_clock_quiet_usec() > 3600 * USEC_PER_SEC);
}

static void run_with_seed(unsigned seed) {
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        unsigned before = test_failures;
        cleanup_free char *yaml = NULL;
        RandomPod pod;

        random_state = UINT64_C(88172645463325252) + seed * UINT64_C(7919);
        for (unsigned i = 0; i < 10; i++)
                (void) choose(2);
        pod = choose_pod();
        yaml = print_random_pod(&pod);
        fake_node_apply(node, yaml);
        for (unsigned i = 0; i < EVENTS && test_failures == before; i++) {
                disturb(node, &pod);
                run_and_check(node, choose(3) == 0 ? choose(30) * USEC_PER_SEC : 0);
        }
        check_that_it_settles(node, &pod);
        check_that_it_ends(node);
        behave_well();
        if (test_failures > before)
                printf("the seed was %u; MAINSTAY_TEST_SEED=%u repeats it\n", seed, seed);
}

/* 0: it is not there. */
static unsigned number_in_environment(const char *name) {
        const char *text = getenv(name);

        return text ? (unsigned) strtoul(text, NULL, 10) : 0;
}

TEST(random_events_never_violate_the_invariants_of_a_pod)
{
        unsigned seed = number_in_environment("MAINSTAY_TEST_SEED");
        unsigned n = number_in_environment("MAINSTAY_TEST_SEEDS");

        if (n == 0)
                n = seed > 0 ? 1 : SEEDS;
        for (unsigned i = 0; i < n; i++)
                run_with_seed(MAX(seed, 1u) + i);
}
