/* SPDX-License-Identifier: Apache-2.0 */
/* The container's state machine, with a recorder that replaces its environment. */

#include "agent/pods/machine/container-machine.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

/* The requests of the state machine, and their effects. */
typedef struct World {
        ContainerMachine *machine;
        char script[4096];
        bool image_is_here, run_fails;
        bool request, slot, retry, hook;
        unsigned processes; /* that are running or being created */
        uint64_t retry_delay_usec;
        unsigned attempts_run[512];
        unsigned n_removed[512];
} World;

static World world;

static void record_effect(const char *what) {
        size_t n = strlen(world.script);

        (void) snprintf(world.script + n, sizeof(world.script) - n, "%s%s", n > 0 ? " " : "", what);
}

static void get_image(void *userdata) {
        record_effect("image");
        if (world.image_is_here)
                container_machine_on_image_ready(world.machine);
        else
                world.request = true;
}

static void drop_image(void *userdata) {
        world.request = false;
}

static void acquire_slot(void *userdata) {
        world.slot = true;
        container_machine_on_start_slot(world.machine);
}

static void release_slot(void *userdata) {
        world.slot = false;
}

static int driver_run(void *userdata, unsigned attempt, Error *reterr) {
        record_effect("run");
        if (world.run_fails)
                return error_setf(reterr, EIO, "no bundle");
        world.processes++;
        world.attempts_run[attempt % 512]++;
        return 0;
}

static void run_hook(void *userdata, LifecycleHook hook, unsigned attempt, bool for_good) {
        record_effect(hook == HOOK_POST_START ? "post-start" : "pre-stop");
        world.hook = true;
}

static void drop_hook(void *userdata) {
        world.hook = false;
}

static void driver_stop(void *userdata, unsigned attempt, bool for_good) {
        record_effect(for_good ? "stop" : "kill");
}

static void driver_shorten_grace(void *userdata) {
        record_effect("hurry");
}

static void remove_remains(void *userdata, unsigned attempt) {
        record_effect("remove");
        world.n_removed[attempt % 512]++;
}

static void arm_retry(void *userdata, uint64_t delay_usec) {
        record_effect("wait");
        world.retry = true;
        world.retry_delay_usec = delay_usec;
}

static void disarm_retry(void *userdata) {
        world.retry = false;
}

static void changed(void *userdata) {
}

static const ContainerDriver recorder = {
        .request_images = get_image,
        .cancel_image_request = drop_image,
        .acquire_start_slot = acquire_slot,
        .release_start_slot = release_slot,
        .run = driver_run,
        .run_hook = run_hook,
        .cancel_hook = drop_hook,
        .stop = driver_stop,
        .shorten_grace = driver_shorten_grace,
        .remove_attempt = remove_remains,
        .arm_retry = arm_retry,
        .disarm_retry = disarm_retry,
        .status_changed = changed,
};

static const BackOffLimits back_off = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };

static void start_machine_with_hooks(RestartPolicy policy, Lifecycle *lifecycle) {
        static char name[] = "c", image[] = "i";
        static Container spec = { .name = name, .image = image };
        static char pod_name[] = "p", pod_namespace[] = "default", uid[] = "u";
        static ObjectMeta pod = { .name = pod_name, .namespace = pod_namespace, .uid = uid };

        world = (World){ .image_is_here = true };
        spec.lifecycle = lifecycle;
        REQUIRE(container_machine_new(&pod, &spec, &(ContainerRestartPolicy){ .policy = policy },
                                      "ContainerCreating", &back_off, &recorder, NULL,
                                      &world.machine) >= 0);
}

static void start_machine(RestartPolicy policy) {
        start_machine_with_hooks(policy, NULL);
}

static void world_done(void) {
        world.machine = container_machine_free(world.machine);
}

static void process_exits(unsigned attempt, int exit_code) {
        uint64_t now = now_realtime_usec();

        world.processes--;
        container_machine_on_exited(
                world.machine, attempt,
                &(ContainerExit){ .exit_code = exit_code, .started_at = now, .finished_at = now });
}

static void expect_state(ContainerStateKind kind, const char *reason, unsigned restarts) {
        ContainerStatus status;

        REQUIRE(container_machine_status(world.machine, "u", &status) >= 0);
        EXPECT_EQ(status.state.kind, kind);
        EXPECT_STREQ(status.state.reason, reason);
        EXPECT_EQ(status.restart_count, restarts);
        container_state_done(&status.state);
        container_state_done(&status.last_state);
        free(status.container_id);
        free(status.name);
}

TEST(a_container_restarts_before_its_last_attempt_is_removed)
{
        start_machine(RESTART_POLICY_ALWAYS);
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        process_exits(0, 1);
        container_machine_on_started(world.machine, 1, 2);
        expect_state(STATE_RUNNING, NULL, 1);
        EXPECT_STREQ(world.script, "image run image run remove");
        process_exits(1, 0);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 1);
        EXPECT(world.retry_delay_usec <= back_off.initial_usec);
        EXPECT(world.retry_delay_usec > back_off.initial_usec - USEC_PER_SEC);
        world_done();
}

TEST(a_completed_container_stays_completed)
{
        start_machine(RESTART_POLICY_NEVER);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 3);
        EXPECT(container_machine_is_finished(world.machine));
        expect_state(STATE_TERMINATED, "Error", 0);
        container_machine_start(world.machine);
        EXPECT_STREQ(world.script, "image run remove");
        world_done();
}

TEST(a_missing_image_is_retried_with_back_off_and_at_once_when_it_appears)
{
        start_machine(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.machine);
        EXPECT(world.request);
        container_machine_on_image_failed(world.machine, "ImagePullBackOff", "no archive has it");
        expect_state(STATE_WAITING, "ImagePullBackOff", 0);
        EXPECT_EQ(world.retry_delay_usec, 10 * USEC_PER_SEC);
        container_machine_on_retry(world.machine, true);
        container_machine_on_image_failed(world.machine, "ImagePullBackOff", "no archive has it");
        EXPECT_EQ(world.retry_delay_usec, 20 * USEC_PER_SEC);
        world.image_is_here = true;
        container_machine_retry_now(world.machine, true);
        container_machine_on_started(world.machine, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        EXPECT(!world.retry);
        world_done();
}

TEST(a_start_refused_by_the_runtime_shows_its_message_and_counts_as_a_restart)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        world.processes--;
        container_machine_on_start_failed(world.machine, 0, true, "exec: no such file");
        expect_state(STATE_WAITING, "RunContainerError", 0);
        container_machine_on_retry(world.machine, true);
        container_machine_on_started(world.machine, 1, 1);
        expect_state(STATE_RUNNING, NULL, 1);
        world_done();

        start_machine(RESTART_POLICY_NEVER);
        container_machine_start(world.machine);
        world.processes--;
        container_machine_on_start_failed(world.machine, 0, true, "exec: no such file");
        expect_state(STATE_TERMINATED, "StartError", 0);
        world_done();
}

TEST(a_start_that_the_shim_refused_keeps_the_last_state_and_uses_up_no_attempt)
{
        ContainerStatus status;

        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 137);
        for (unsigned i = 0; i < 2; i++) {
                container_machine_on_retry(world.machine, true);
                world.processes--;
                container_machine_on_start_failed(world.machine, 1, false, "cannot fork");
                expect_state(STATE_WAITING, "CreateContainerError", 1);
        }
        container_machine_on_retry(world.machine, true);
        container_machine_on_started(world.machine, 1, 2);
        expect_state(STATE_RUNNING, NULL, 1);
        REQUIRE(container_machine_status(world.machine, "u", &status) >= 0);
        EXPECT_EQ(status.last_state.kind, STATE_TERMINATED);
        EXPECT_EQ(status.last_state.exit_code, 137);
        container_state_done(&status.state);
        container_state_done(&status.last_state);
        free(status.container_id);
        free(status.name);
        world_done();
}

TEST(a_failed_bundle_does_not_use_up_an_attempt)
{
        start_machine(RESTART_POLICY_NEVER);
        world.run_fails = true;
        container_machine_start(world.machine);
        expect_state(STATE_WAITING, "CreateContainerError", 0);
        world.run_fails = false;
        container_machine_on_retry(world.machine, true);
        container_machine_on_started(world.machine, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        world_done();
}

TEST(a_lost_shim_gives_an_unknown_exit_code_and_a_failure)
{
        start_machine(RESTART_POLICY_ON_FAILURE);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        world.processes--;
        container_machine_on_sandbox_lost(world.machine, 2);
        EXPECT(container_machine_is_waiting(world.machine));
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 1, 3);
        expect_state(STATE_RUNNING, NULL, 1);
        world_done();

        start_machine(RESTART_POLICY_NEVER);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        world.processes--;
        container_machine_on_sandbox_lost(world.machine, 2);
        expect_state(STATE_TERMINATED, "ContainerStatusUnknown", 0);
        world_done();
}

TEST(a_stop_during_creation_takes_effect_when_it_runs)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_stop(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        EXPECT_STREQ(world.script, "image run stop stop");
        process_exits(0, 143);
        EXPECT(container_machine_is_finished(world.machine));
        world_done();
}

static Handler handler;
static Lifecycle with_hooks = { .post_start = &handler, .pre_stop = &handler };

TEST(post_start_runs_before_running_and_pre_stop_before_the_stop)
{
        start_machine_with_hooks(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        EXPECT(!container_machine_is_up(world.machine));
        container_machine_on_hook_done(world.machine, NULL);
        expect_state(STATE_RUNNING, NULL, 0);
        EXPECT(container_machine_is_up(world.machine));
        container_machine_stop(world.machine);
        container_machine_stop(world.machine);
        EXPECT(world.hook && container_machine_is_stopping(world.machine));
        container_machine_on_hook_done(world.machine, "it does not matter");
        EXPECT(!world.hook);
        process_exits(0, 143);
        EXPECT(container_machine_is_finished(world.machine));
        EXPECT_STREQ(world.script, "image run post-start pre-stop stop remove");
        world_done();
}

TEST(a_failed_post_start_hook_kills_the_container_and_shows_its_message)
{
        start_machine_with_hooks(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_on_hook_done(world.machine, "PostStart hook failed: no");
        container_machine_on_hook_done(world.machine, NULL);
        process_exits(0, 143);
        expect_state(STATE_WAITING, "PostStartHookError", 0);
        EXPECT_STREQ(world.script, "image run post-start pre-stop kill remove wait");
        container_machine_on_retry(world.machine, true);
        container_machine_on_started(world.machine, 1, 2);
        EXPECT(world.hook);
        world_done();
}

TEST(a_checkpointed_termination_is_restored_unchanged)
{
        ContainerStatus *status = calloc(1, sizeof(*status));
        PodStatus all = { .containers = { status, 1 } };

        REQUIRE(status);
        start_machine(RESTART_POLICY_ON_FAILURE);
        container_machine_recover_exit(
                world.machine, 2,
                &(ContainerExit){
                        .exit_code = 0, .started_at = 1, .finished_at = 2, .message = "words" },
                "Completed");
        EXPECT(container_machine_is_finished(world.machine) &&
               container_machine_has_succeeded(world.machine));
        REQUIRE(container_machine_terminated_state(world.machine));
        EXPECT_STREQ(container_machine_terminated_state(world.machine)->message, "words");
        container_machine_recover_last(
                world.machine,
                &(ContainerExit){ .exit_code = 137, .started_at = 1, .finished_at = 1 },
                "OOMKilled");
        EXPECT_EQ(container_machine_last_state(world.machine)->exit_code, 137);
        EXPECT_EQ(container_machine_status(world.machine, "u", status), 0);
        EXPECT_EQ(status->restart_count, 2U);
        EXPECT_EQ(status->last_state.exit_code, 137);
        EXPECT_STREQ(status->last_state.reason, "OOMKilled");
        EXPECT_EQ(status->state.exit_code, 0);
        pod_status_done(&all);
        container_machine_recover(world.machine, 5, 3); /* it already has an attempt */
        EXPECT_EQ(container_machine_attempt(world.machine), 2U);
        container_machine_restart_edited(world.machine);
        EXPECT(!container_machine_terminated_state(world.machine));
        container_machine_start(world.machine);
        EXPECT_EQ(world.attempts_run[3], 1U);
        world_done();
}

TEST(a_final_stop_shortens_the_pre_stop_hook_of_a_kill)
{
        Handler hook = { 0 };
        Lifecycle lifecycle = { .pre_stop = &hook };

        start_machine_with_hooks(RESTART_POLICY_ALWAYS, &lifecycle);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        EXPECT(container_machine_can_be_killed(world.machine));
        container_machine_kill(world.machine, "why");
        EXPECT(!container_machine_can_be_killed(world.machine));
        container_machine_stop(world.machine);
        container_machine_stop(world.machine); /* requested only once */
        EXPECT_STREQ(world.script, "image run pre-stop hurry");
        EXPECT(world.hook);
        container_machine_on_hook_done(world.machine, NULL);
        container_machine_on_exited(world.machine, 0,
                                    &(ContainerExit){ .exit_code = 143, .started_at = 1 });
        EXPECT_STREQ(world.script, "image run pre-stop hurry stop remove");
        EXPECT(container_machine_is_finished(world.machine));
        world_done();
}

TEST(a_killed_container_restarts_unless_the_policy_is_never)
{
        static const struct {
                RestartPolicy policy;
                bool restarts;
        } cases[] = { { RESTART_POLICY_ALWAYS, true },
                      { RESTART_POLICY_ON_FAILURE, true },
                      { RESTART_POLICY_NEVER, false } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                start_machine(cases[i].policy);
                container_machine_start(world.machine);
                container_machine_on_started(world.machine, 0, 1);
                container_machine_kill(world.machine, "Container c failed liveness probe");
                container_machine_kill(world.machine, "again");
                process_exits(0, 0);
                EXPECT_EQ(container_machine_is_finished(world.machine), !cases[i].restarts);
                EXPECT_STREQ(world.script, cases[i].restarts ? "image run kill image run"
                                                             : "image run kill remove");
                world_done();
        }
}

TEST(a_container_that_is_being_killed_can_be_stopped_permanently)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_kill(world.machine, "why");
        container_machine_stop(world.machine);
        process_exits(0, 137);
        EXPECT(container_machine_is_finished(world.machine));
        EXPECT_STREQ(world.script, "image run kill stop remove");
        world_done();
}

TEST(a_restarted_agent_does_not_repeat_a_post_start_hook)
{
        start_machine_with_hooks(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_adopt(world.machine, 2, 0);
        container_machine_adopt_post_started(world.machine);
        container_machine_on_started(world.machine, 2, 1);
        expect_state(STATE_RUNNING, NULL, 2);
        EXPECT_STREQ(world.script, "");
        world_done();

        start_machine_with_hooks(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_adopt(world.machine, 2, 0);
        container_machine_on_started(world.machine, 2, 1);
        EXPECT_STREQ(world.script, "post-start");
        world_done();
}

TEST(a_restarted_agent_adopts_the_containers_state)
{
        ContainerExit last = { .exit_code = 7, .started_at = 1, .finished_at = 2 };

        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.machine, 4, 40 * USEC_PER_SEC);
        container_machine_adopt_last(world.machine, 3, &last);
        container_machine_on_started(world.machine, 4, 5);
        expect_state(STATE_RUNNING, NULL, 4);
        EXPECT_STREQ(world.script, "");
        world.processes++;
        process_exits(4, 1);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 4);
        EXPECT(world.retry_delay_usec > 39 * USEC_PER_SEC);
        world_done();
}

TEST(a_container_that_waited_keeps_its_reason_until_it_runs)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 1);
        container_machine_on_started(world.machine, 1, 2);
        process_exits(1, 1);
        container_machine_on_retry(world.machine, /* sandbox_is_ready= */ true);
        EXPECT(container_machine_is_creating(world.machine));
        expect_state(STATE_WAITING, "CrashLoopBackOff", 2);
        container_machine_on_started(world.machine, 2, 3);
        expect_state(STATE_RUNNING, NULL, 2);
        world_done();

        start_machine(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.machine);
        container_machine_on_image_failed(world.machine, "ImagePullBackOff", "no archive has it");
        world.image_is_here = true;
        container_machine_retry_now(world.machine, /* sandbox_is_ready= */ true);
        EXPECT(container_machine_is_creating(world.machine));
        expect_state(STATE_WAITING, "ImagePullBackOff", 0);
        container_machine_on_sandbox_lost(world.machine, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        world_done();
}

TEST(an_image_that_appears_without_a_sandbox_is_requested_with_the_next_sandbox)
{
        start_machine(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.machine);
        container_machine_on_image_failed(world.machine, "ImagePullBackOff", "no archive has it");
        container_machine_on_sandbox_lost(world.machine, 1);
        world.image_is_here = true;
        container_machine_retry_now(world.machine, /* sandbox_is_ready= */ false);
        EXPECT_STREQ(world.script, "image wait");
        EXPECT(container_machine_is_waiting(world.machine));
        container_machine_start(world.machine);
        EXPECT_STREQ(world.script, "image wait image run");
        world_done();
}

TEST(a_container_known_only_by_its_log_has_an_unknown_exit_code)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_recover(world.machine, 3, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 3);
        container_machine_recover(world.machine, 9, 1); /* known already */
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 4, 2);
        expect_state(STATE_RUNNING, NULL, 4);
        EXPECT_STREQ(world.script, "image run remove");
        world_done();

        start_machine(RESTART_POLICY_NEVER);
        container_machine_recover(world.machine, 0, 1);
        expect_state(STATE_TERMINATED, "ContainerStatusUnknown", 0);
        container_machine_start(world.machine);
        EXPECT_STREQ(world.script, "remove");
        world_done();
}

TEST(a_retired_container_continues_and_is_not_restarted)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_disable_restart(world.machine);
        expect_state(STATE_RUNNING, NULL, 0);
        process_exits(0, 1);
        EXPECT(container_machine_is_finished(world.machine));
        EXPECT(!container_machine_has_succeeded(world.machine));
        EXPECT_STREQ(world.script, "image run remove");
        world_done();

        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 1);
        container_machine_on_started(world.machine, 1, 2);
        process_exits(1, 1);
        EXPECT(world.retry);
        container_machine_disable_restart(world.machine);
        EXPECT(container_machine_is_finished(world.machine) && !world.retry);
        world_done();
}

TEST(a_finished_container_can_run_again_as_a_new_attempt)
{
        start_machine(RESTART_POLICY_ON_FAILURE);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 0);
        EXPECT(container_machine_has_succeeded(world.machine));
        container_machine_reset(world.machine);
        EXPECT(container_machine_is_waiting(world.machine));
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 1, 1);
        expect_state(STATE_RUNNING, NULL, 1);
        EXPECT_EQ(world.attempts_run[1], 1);
        world_done();
}

TEST(an_edited_container_restarts_whatever_its_policy)
{
        static const RestartPolicy policies[] = { RESTART_POLICY_ALWAYS, RESTART_POLICY_NEVER };

        for (size_t i = 0; i < N_ELEMENTS(policies); i++) {
                start_machine(policies[i]);
                container_machine_start(world.machine);
                container_machine_on_started(world.machine, 0, 1);
                container_machine_restart_edited(world.machine);
                container_machine_restart_edited(world.machine);
                expect_state(STATE_RUNNING, NULL, 0);
                process_exits(0, 0);
                EXPECT(container_machine_is_waiting(world.machine));
                EXPECT(container_machine_has_run(world.machine, 0));
                container_machine_start(world.machine);
                EXPECT(!container_machine_has_run(world.machine, 0));
                container_machine_on_started(world.machine, 1, 2);
                expect_state(STATE_RUNNING, NULL, 1);
                EXPECT_STREQ(world.script, "image run kill remove image run");
                world_done();
        }
}

TEST(an_edit_during_a_failing_creation_runs_it_again_once)
{
        start_machine(RESTART_POLICY_NEVER);
        container_machine_start(world.machine);
        container_machine_restart_edited(world.machine);
        world.processes--;
        container_machine_on_start_failed(world.machine, 0, /* by_runtime= */ true,
                                          "no such program");
        EXPECT(container_machine_is_waiting(world.machine));
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 1, 1);
        process_exits(1, 0);
        EXPECT(container_machine_is_finished(world.machine));
        expect_state(STATE_TERMINATED, "Completed", 1);
        world_done();
}

TEST(an_edit_ends_the_back_off_of_a_waiting_container)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        process_exits(0, 1);
        container_machine_on_started(world.machine, 1, 2);
        process_exits(1, 1);
        EXPECT(world.retry);
        container_machine_restart_edited(world.machine);
        EXPECT(container_machine_is_waiting(world.machine) && !world.retry);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 2, 3);
        process_exits(2, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 3); /* the back-off starts again */
        world_done();

        start_machine(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.machine);
        container_machine_restart_edited(world.machine);
        EXPECT(container_machine_is_waiting(world.machine) && !world.request);
        world_done();
}

TEST(an_edit_does_not_restart_a_container_that_is_being_stopped)
{
        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_restart_edited(world.machine);
        container_machine_stop(world.machine);
        container_machine_restart_edited(world.machine);
        process_exits(0, 0);
        EXPECT(container_machine_is_finished(world.machine));
        world_done();
}

TEST(the_pod_decides_about_a_restart_after_an_exit_found_by_a_new_agent)
{
        ContainerExit found = {
                .exit_code = 1, .started_at = 1, .finished_at = 2, .is_found = true
        };

        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.machine, 0, 0);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_on_exited(world.machine, 0, &found);
        EXPECT(container_machine_is_waiting(world.machine));
        EXPECT_STREQ(world.script, "");
        world_done();

        start_machine(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.machine, 3, 300 * USEC_PER_SEC);
        container_machine_on_started(world.machine, 3, 1);
        found.started_at = found.finished_at = now_realtime_usec();
        container_machine_on_exited(world.machine, 3, &found);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 3);
        world_done();
}

/* Random events: there are never two processes, no resource is held that the state does not use,
 * each attempt runs at most once, and a stopped container ends. */
static void start_sidecar(Lifecycle *lifecycle) {
        start_machine_with_hooks(RESTART_POLICY_ALWAYS, lifecycle);
        container_machine_start(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        container_machine_on_hook_done(world.machine, NULL);
}

TEST(an_ordered_stop_runs_the_hook_at_once_and_signals_after_the_others_have_ended)
{
        start_sidecar(&with_hooks);
        container_machine_stop_in_turn(world.machine);
        EXPECT(world.hook && container_machine_is_stopping(world.machine));
        container_machine_on_hook_done(world.machine, NULL);
        EXPECT(container_machine_holds_stop_signal(world.machine));
        EXPECT_STREQ(world.script, "image run post-start pre-stop hurry");
        container_machine_stop(world.machine);
        EXPECT(!container_machine_holds_stop_signal(world.machine));
        process_exits(0, 0);
        EXPECT(container_machine_is_finished(world.machine));
        world_done();

        start_sidecar(&with_hooks); /* it is stopped in turn while the hook still runs */
        container_machine_stop_in_turn(world.machine);
        container_machine_stop(world.machine);
        EXPECT(world.hook);
        container_machine_on_hook_done(world.machine, NULL);
        EXPECT_STREQ(world.script, "image run post-start pre-stop stop");
        process_exits(0, 0);
        world_done();
}

TEST(a_container_that_ends_before_its_turn_is_not_started_again)
{
        start_sidecar(NULL);
        container_machine_stop_in_turn(world.machine);
        EXPECT_STREQ(world.script, "image run hurry");
        process_exits(0, 1);
        EXPECT(container_machine_is_finished(world.machine));
        world_done();

        start_machine(RESTART_POLICY_ALWAYS); /* no signal during creation either */
        container_machine_start(world.machine);
        container_machine_stop_in_turn(world.machine);
        container_machine_on_started(world.machine, 0, 1);
        EXPECT_STREQ(world.script, "image run hurry hurry");
        container_machine_stop(world.machine);
        EXPECT_STREQ(world.script, "image run hurry hurry stop");
        process_exits(0, 1);
        world_done();
}

static void random_event(unsigned dice) {
        unsigned attempt = container_machine_attempt(world.machine);

        switch (dice % 11) {
        case 0:
                container_machine_start(world.machine);
                break;
        case 1:
                container_machine_on_image_ready(world.machine);
                break;
        case 2:
                container_machine_on_image_failed(world.machine, "ImagePullBackOff", "x");
                break;
        case 3:
                if (world.processes > 0)
                        container_machine_on_started(world.machine, attempt, now_realtime_usec());
                break;
        case 4:
                if (world.processes > 0 && container_machine_has_process(world.machine)) {
                        container_machine_on_started(world.machine, attempt, now_realtime_usec());
                        process_exits(attempt, (int) (dice >> 8) % 3);
                }
                break;
        case 5:
                if (world.retry)
                        container_machine_on_retry(world.machine, dice & 0x100);
                break;
        case 7:
                if (world.hook)
                        container_machine_on_hook_done(world.machine,
                                                       dice & 0x100 ? "failed" : NULL);
                break;
        case 8:
                container_machine_kill(world.machine, "killed");
                break;
        case 9:
                if ((dice & 0xf00) == 0)
                        container_machine_stop_in_turn(world.machine);
                break;
        case 10:
                container_machine_restart_edited(world.machine);
                break;
        case 6:
                world.processes = 0;
                container_machine_on_sandbox_lost(world.machine, now_realtime_usec());
                break;
        default:
                world.run_fails = dice & 0x100;
                world.image_is_here = dice & 0x200;
                break;
        }
}

TEST(no_order_of_events_duplicates_or_leaks_a_resource)
{
        uint32_t seed = 12345;

        for (unsigned round = 0; round < 400; round++) {
                start_machine_with_hooks((RestartPolicy) (1 + round % 3),
                                         round % 2 ? &with_hooks : NULL);
                for (unsigned i = 0; i < 60; i++) {
                        seed = seed * 1664525 + 1013904223;
                        random_event(seed >> 8);
                        EXPECT(world.processes <= 1);
                        for (size_t a = 0; a < 512; a++)
                                EXPECT(world.attempts_run[a] <= 1 && world.n_removed[a] <= 1);
                }
                container_machine_stop(world.machine);
                if (world.processes > 0) {
                        container_machine_on_started(world.machine,
                                                     container_machine_attempt(world.machine), 1);
                        process_exits(container_machine_attempt(world.machine), 0);
                }
                EXPECT(container_machine_is_finished(world.machine));
                EXPECT(!world.request && !world.slot && !world.retry && !world.hook);
                world_done();
                if (test_failures > 0)
                        return; /* one failing sequence is enough */
        }
}

TEST(the_transition_table_of_the_readme_matches_the_code)
{
        cleanup_free char *readme = NULL, *table = NULL;
        size_t length;
        FILE *out = open_memstream(&table, &length);

        REQUIRE(out);
        container_machine_print_table(out);
        fclose(out);
        REQUIRE(read_file_at(AT_FDCWD, SOURCE_DIR "/agent/README.md", MIB, &readme, NULL) >= 0);
        if (!strstr(readme, table)) {
                printf("%s", table);
                test_fail(__FILE__, __LINE__, "agent/README.md", "does not hold the table above");
        }
}
