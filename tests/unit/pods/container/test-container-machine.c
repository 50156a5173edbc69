/* SPDX-License-Identifier: Apache-2.0 */
/* The container's machine over a recorder in place of the world. */

#include "agent/pods/container/container-machine.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

/* What the machine asked for, and what there is because of it. */
typedef struct World {
        ContainerMachine *life;
        char script[4096];
        bool image_is_here, run_fails;
        bool request, turn, retry, hook;
        unsigned processes; /* that run or are being created */
        uint64_t retry_delay_usec;
        unsigned attempts_run[512];
        unsigned n_removed[512];
} World;

static World world;

static void say(const char *what) {
        size_t n = strlen(world.script);

        (void) snprintf(world.script + n, sizeof(world.script) - n, "%s%s", n > 0 ? " " : "", what);
}

static void get_image(void *userdata) {
        say("image");
        if (world.image_is_here)
                container_machine_on_image_ready(world.life);
        else
                world.request = true;
}

static void drop_image(void *userdata) {
        world.request = false;
}

static void ask_turn(void *userdata) {
        world.turn = true;
        container_machine_on_start_slot(world.life);
}

static void leave_turn(void *userdata) {
        world.turn = false;
}

static int run(void *userdata, unsigned attempt, Error *reterr) {
        say("run");
        if (world.run_fails)
                return error_setf(reterr, EIO, "no bundle");
        world.processes++;
        world.attempts_run[attempt % 512]++;
        return 0;
}

static void run_hook(void *userdata, ContainerHook hook, unsigned attempt, bool for_good) {
        say(hook == HOOK_POST_START ? "post-start" : "pre-stop");
        world.hook = true;
}

static void drop_hook(void *userdata) {
        world.hook = false;
}

static void stop(void *userdata, unsigned attempt, bool for_good) {
        say(for_good ? "stop" : "kill");
}

static void hurry(void *userdata) {
        say("hurry");
}

static void remove_remains(void *userdata, unsigned attempt) {
        say("remove");
        world.n_removed[attempt % 512]++;
}

static void arm_retry(void *userdata, uint64_t delay_usec) {
        say("wait");
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
        .acquire_start_slot = ask_turn,
        .release_start_slot = leave_turn,
        .run = run,
        .run_hook = run_hook,
        .cancel_hook = drop_hook,
        .stop = stop,
        .shorten_grace = hurry,
        .remove_attempt = remove_remains,
        .arm_retry = arm_retry,
        .disarm_retry = disarm_retry,
        .status_changed = changed,
};

static const BackOffLimits back_off = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };

static void begin_with(RestartPolicy policy, Lifecycle *lifecycle) {
        static char name[] = "c", image[] = "i";
        static Container spec = { .name = name, .image = image };
        static char pod_name[] = "p", pod_namespace[] = "default", uid[] = "u";
        static ObjectMeta pod = { .name = pod_name, .namespace = pod_namespace, .uid = uid };

        world = (World){ .image_is_here = true };
        spec.lifecycle = lifecycle;
        REQUIRE(container_machine_new(&pod, &spec, &(ContainerRestartPolicy){ .policy = policy },
                                      "ContainerCreating", &back_off, &recorder, NULL,
                                      &world.life) >= 0);
}

static void begin(RestartPolicy policy) {
        begin_with(policy, NULL);
}

static void end(void) {
        world.life = container_machine_free(world.life);
}

static void exits(unsigned attempt, int exit_code) {
        uint64_t now = now_realtime_usec();

        world.processes--;
        container_machine_on_exited(
                world.life, attempt,
                &(ContainerExit){ .exit_code = exit_code, .started_at = now, .finished_at = now });
}

static void expect_state(ContainerStateKind kind, const char *reason, unsigned restarts) {
        ContainerStatus status;

        REQUIRE(container_machine_status(world.life, "u", &status) >= 0);
        EXPECT_EQ(status.state.kind, kind);
        EXPECT_STREQ(status.state.reason, reason);
        EXPECT_EQ(status.restart_count, restarts);
        container_state_done(&status.state);
        container_state_done(&status.last_state);
        free(status.container_id);
        free(status.name);
}

TEST(a_container_starts_runs_dies_and_is_restarted_before_anything_is_tidied_up)
{
        begin(RESTART_POLICY_ALWAYS);
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        exits(0, 1);
        container_machine_on_started(world.life, 1, 2);
        expect_state(STATE_RUNNING, NULL, 1);
        EXPECT_STREQ(world.script, "image run image run remove");
        exits(1, 0);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 1);
        EXPECT(world.retry_delay_usec <= back_off.initial_usec);
        EXPECT(world.retry_delay_usec > back_off.initial_usec - USEC_PER_SEC);
        end();
}

TEST(a_container_that_is_done_stays_done)
{
        begin(RESTART_POLICY_NEVER);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        exits(0, 3);
        EXPECT(container_machine_is_finished(world.life));
        expect_state(STATE_TERMINATED, "Error", 0);
        container_machine_start(world.life);
        EXPECT_STREQ(world.script, "image run remove");
        end();
}

TEST(a_missing_image_is_waited_for_with_a_doubling_wait_and_at_once_when_it_comes)
{
        begin(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.life);
        EXPECT(world.request);
        container_machine_on_image_failed(world.life, "ImagePullBackOff", "no archive has it");
        expect_state(STATE_WAITING, "ImagePullBackOff", 0);
        EXPECT_EQ(world.retry_delay_usec, 10 * USEC_PER_SEC);
        container_machine_on_retry(world.life, true);
        container_machine_on_image_failed(world.life, "ImagePullBackOff", "no archive has it");
        EXPECT_EQ(world.retry_delay_usec, 20 * USEC_PER_SEC);
        world.image_is_here = true;
        container_machine_retry_now(world.life, true);
        container_machine_on_started(world.life, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        EXPECT(!world.retry);
        end();
}

TEST(what_the_runtime_refuses_waits_with_its_sentence_and_counts_as_a_restart)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        world.processes--;
        container_machine_on_start_failed(world.life, 0, true, "exec: no such file");
        expect_state(STATE_WAITING, "RunContainerError", 0);
        container_machine_on_retry(world.life, true);
        container_machine_on_started(world.life, 1, 1);
        expect_state(STATE_RUNNING, NULL, 1);
        end();

        begin(RESTART_POLICY_NEVER);
        container_machine_start(world.life);
        world.processes--;
        container_machine_on_start_failed(world.life, 0, true, "exec: no such file");
        expect_state(STATE_TERMINATED, "StartError", 0);
        end();
}

TEST(a_bundle_that_cannot_be_written_uses_up_no_attempt)
{
        begin(RESTART_POLICY_NEVER);
        world.run_fails = true;
        container_machine_start(world.life);
        expect_state(STATE_WAITING, "CreateContainerError", 0);
        world.run_fails = false;
        container_machine_on_retry(world.life, true);
        container_machine_on_started(world.life, 0, 1);
        expect_state(STATE_RUNNING, NULL, 0);
        end();
}

TEST(a_lost_shim_is_an_unknown_end_and_a_failure)
{
        begin(RESTART_POLICY_ON_FAILURE);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        world.processes--;
        container_machine_on_sandbox_lost(world.life, 2);
        EXPECT(container_machine_is_waiting(world.life));
        container_machine_start(world.life);
        container_machine_on_started(world.life, 1, 3);
        expect_state(STATE_RUNNING, NULL, 1);
        end();

        begin(RESTART_POLICY_NEVER);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        world.processes--;
        container_machine_on_sandbox_lost(world.life, 2);
        expect_state(STATE_TERMINATED, "ContainerStatusUnknown", 0);
        end();
}

TEST(a_stop_while_it_is_being_created_stops_it_when_it_runs)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_stop(world.life);
        container_machine_on_started(world.life, 0, 1);
        EXPECT_STREQ(world.script, "image run stop stop");
        exits(0, 143);
        EXPECT(container_machine_is_finished(world.life));
        end();
}

static Handler handler;
static Lifecycle with_hooks = { .post_start = &handler, .pre_stop = &handler };

TEST(a_container_runs_once_its_hook_has_and_is_stopped_after_the_other)
{
        begin_with(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        EXPECT(!container_machine_is_up(world.life));
        container_machine_on_hook_done(world.life, NULL);
        expect_state(STATE_RUNNING, NULL, 0);
        EXPECT(container_machine_is_up(world.life));
        container_machine_stop(world.life);
        container_machine_stop(world.life);
        EXPECT(world.hook && container_machine_is_stopping(world.life));
        container_machine_on_hook_done(world.life, "it does not matter");
        EXPECT(!world.hook);
        exits(0, 143);
        EXPECT(container_machine_is_finished(world.life));
        EXPECT_STREQ(world.script, "image run post-start pre-stop stop remove");
        end();
}

TEST(a_container_whose_hook_fails_is_killed_and_waits_with_its_sentence)
{
        begin_with(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        container_machine_on_hook_done(world.life, "PostStart hook failed: no");
        container_machine_on_hook_done(world.life, NULL);
        exits(0, 143);
        expect_state(STATE_WAITING, "PostStartHookError", 0);
        EXPECT_STREQ(world.script, "image run post-start pre-stop kill remove wait");
        container_machine_on_retry(world.life, true);
        container_machine_on_started(world.life, 1, 2);
        EXPECT(world.hook);
        end();
}

TEST(an_end_that_an_earlier_agent_kept_is_known_as_it_was)
{
        ContainerStatus *status = calloc(1, sizeof(*status));
        PodStatus all = { .containers = { status, 1 } };

        REQUIRE(status);
        begin(RESTART_POLICY_ON_FAILURE);
        container_machine_recover_exit(
                world.life, 2,
                &(ContainerExit){
                        .exit_code = 0, .started_at = 1, .finished_at = 2, .message = "words" },
                "Completed");
        EXPECT(container_machine_is_finished(world.life) &&
               container_machine_has_succeeded(world.life));
        REQUIRE(container_machine_terminated_state(world.life));
        EXPECT_STREQ(container_machine_terminated_state(world.life)->message, "words");
        EXPECT_EQ(container_machine_status(world.life, "u", status), 0);
        EXPECT_EQ(status->restart_count, 2U);
        EXPECT_EQ(status->state.exit_code, 0);
        pod_status_done(&all);
        container_machine_recover(world.life, 5, 3); /* it knows of one already */
        EXPECT_EQ(container_machine_attempt(world.life), 2U);
        container_machine_restart_edited(world.life);
        EXPECT(!container_machine_terminated_state(world.life));
        container_machine_start(world.life);
        EXPECT_EQ(world.attempts_run[3], 1U);
        end();
}

TEST(who_is_stopped_for_good_while_the_hook_of_his_kill_runs_is_hurried)
{
        Handler hook = { 0 };
        Lifecycle lifecycle = { .pre_stop = &hook };

        begin_with(RESTART_POLICY_ALWAYS, &lifecycle);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        EXPECT(container_machine_can_be_killed(world.life));
        container_machine_kill(world.life, "why");
        EXPECT(!container_machine_can_be_killed(world.life));
        container_machine_stop(world.life);
        container_machine_stop(world.life); /* said once */
        EXPECT_STREQ(world.script, "image run pre-stop hurry");
        EXPECT(world.hook);
        container_machine_on_hook_done(world.life, NULL);
        container_machine_on_exited(world.life, 0,
                                    &(ContainerExit){ .exit_code = 143, .started_at = 1 });
        EXPECT_STREQ(world.script, "image run pre-stop hurry stop remove");
        EXPECT(container_machine_is_finished(world.life));
        end();
}

TEST(who_is_killed_is_restarted_unless_the_policy_is_never_and_however_he_ends)
{
        static const struct {
                RestartPolicy policy;
                bool restarts;
        } cases[] = { { RESTART_POLICY_ALWAYS, true },
                      { RESTART_POLICY_ON_FAILURE, true },
                      { RESTART_POLICY_NEVER, false } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                begin(cases[i].policy);
                container_machine_start(world.life);
                container_machine_on_started(world.life, 0, 1);
                container_machine_kill(world.life, "Container c failed liveness probe");
                container_machine_kill(world.life, "again");
                exits(0, 0);
                EXPECT_EQ(container_machine_is_finished(world.life), !cases[i].restarts);
                EXPECT_STREQ(world.script, cases[i].restarts ? "image run kill image run"
                                                             : "image run kill remove");
                end();
        }
}

TEST(who_is_being_killed_can_be_stopped_for_good)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        container_machine_kill(world.life, "why");
        container_machine_stop(world.life);
        exits(0, 137);
        EXPECT(container_machine_is_finished(world.life));
        EXPECT_STREQ(world.script, "image run kill stop remove");
        end();
}

TEST(a_hook_that_was_run_is_not_run_again_by_a_new_agent)
{
        begin_with(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_adopt(world.life, 2, 0);
        container_machine_adopt_post_started(world.life);
        container_machine_on_started(world.life, 2, 1);
        expect_state(STATE_RUNNING, NULL, 2);
        EXPECT_STREQ(world.script, "");
        end();

        begin_with(RESTART_POLICY_ALWAYS, &with_hooks);
        container_machine_adopt(world.life, 2, 0);
        container_machine_on_started(world.life, 2, 1);
        EXPECT_STREQ(world.script, "post-start");
        end();
}

TEST(a_new_agent_goes_on_where_the_old_one_was)
{
        ContainerExit last = { .exit_code = 7, .started_at = 1, .finished_at = 2 };

        begin(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.life, 4, 40 * USEC_PER_SEC);
        container_machine_adopt_last(world.life, 3, &last);
        container_machine_on_started(world.life, 4, 5);
        expect_state(STATE_RUNNING, NULL, 4);
        EXPECT_STREQ(world.script, "");
        world.processes++;
        exits(4, 1);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 4);
        EXPECT(world.retry_delay_usec > 39 * USEC_PER_SEC);
        end();
}

TEST(an_image_that_comes_while_there_is_no_shim_is_asked_for_when_there_is_one)
{
        begin(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.life);
        container_machine_on_image_failed(world.life, "ImagePullBackOff", "no archive has it");
        container_machine_on_sandbox_lost(world.life, 1);
        world.image_is_here = true;
        container_machine_retry_now(world.life, /* sandbox_is_ready= */ false);
        EXPECT_STREQ(world.script, "image wait");
        EXPECT(container_machine_is_waiting(world.life));
        container_machine_start(world.life);
        EXPECT_STREQ(world.script, "image wait image run");
        end();
}

TEST(what_ran_and_is_known_by_its_log_only_is_an_unknown_end_and_a_failure)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_recover(world.life, 3, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 3);
        container_machine_recover(world.life, 9, 1); /* known already */
        container_machine_start(world.life);
        container_machine_on_started(world.life, 4, 2);
        expect_state(STATE_RUNNING, NULL, 4);
        EXPECT_STREQ(world.script, "image run remove");
        end();

        begin(RESTART_POLICY_NEVER);
        container_machine_recover(world.life, 0, 1);
        expect_state(STATE_TERMINATED, "ContainerStatusUnknown", 0);
        container_machine_start(world.life);
        EXPECT_STREQ(world.script, "remove");
        end();
}

TEST(a_container_that_is_retired_runs_on_and_is_not_started_any_more)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        container_machine_disable_restart(world.life);
        expect_state(STATE_RUNNING, NULL, 0);
        exits(0, 1);
        EXPECT(container_machine_is_finished(world.life));
        EXPECT(!container_machine_has_succeeded(world.life));
        EXPECT_STREQ(world.script, "image run remove");
        end();

        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        exits(0, 1);
        container_machine_on_started(world.life, 1, 2);
        exits(1, 1);
        EXPECT(world.retry);
        container_machine_disable_restart(world.life);
        EXPECT(container_machine_is_finished(world.life) && !world.retry);
        end();
}

TEST(what_is_finished_can_be_run_once_more_as_another_attempt)
{
        begin(RESTART_POLICY_ON_FAILURE);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        exits(0, 0);
        EXPECT(container_machine_has_succeeded(world.life));
        container_machine_reset(world.life);
        EXPECT(container_machine_is_waiting(world.life));
        expect_state(STATE_WAITING, "ContainerCreating", 0);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 1, 1);
        expect_state(STATE_RUNNING, NULL, 1);
        EXPECT_EQ(world.attempts_run[1], 1);
        end();
}

TEST(who_is_edited_is_stopped_and_runs_again_whatever_the_policy_says)
{
        static const RestartPolicy policies[] = { RESTART_POLICY_ALWAYS, RESTART_POLICY_NEVER };

        for (size_t i = 0; i < N_ELEMENTS(policies); i++) {
                begin(policies[i]);
                container_machine_start(world.life);
                container_machine_on_started(world.life, 0, 1);
                container_machine_restart_edited(world.life);
                container_machine_restart_edited(world.life);
                expect_state(STATE_RUNNING, NULL, 0);
                exits(0, 0);
                EXPECT(container_machine_is_waiting(world.life));
                EXPECT(container_machine_has_run(world.life, 0));
                container_machine_start(world.life);
                EXPECT(!container_machine_has_run(world.life, 0));
                container_machine_on_started(world.life, 1, 2);
                expect_state(STATE_RUNNING, NULL, 1);
                EXPECT_STREQ(world.script, "image run kill remove image run");
                end();
        }
}

TEST(who_is_edited_while_he_is_created_and_fails_runs_again_once_and_by_the_policy_from_then_on)
{
        begin(RESTART_POLICY_NEVER);
        container_machine_start(world.life);
        container_machine_restart_edited(world.life);
        world.processes--;
        container_machine_on_start_failed(world.life, 0, /* by_runtime= */ true, "no such program");
        EXPECT(container_machine_is_waiting(world.life));
        container_machine_start(world.life);
        container_machine_on_started(world.life, 1, 1);
        exits(1, 0);
        EXPECT(container_machine_is_finished(world.life));
        expect_state(STATE_TERMINATED, "Completed", 1);
        end();
}

TEST(who_waits_is_tried_at_once_when_he_is_edited)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        exits(0, 1);
        container_machine_on_started(world.life, 1, 2);
        exits(1, 1);
        EXPECT(world.retry);
        container_machine_restart_edited(world.life);
        EXPECT(container_machine_is_waiting(world.life) && !world.retry);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 2, 3);
        exits(2, 1);
        expect_state(STATE_WAITING, "ContainerCreating", 3); /* the back-off begins anew */
        end();

        begin(RESTART_POLICY_ALWAYS);
        world.image_is_here = false;
        container_machine_start(world.life);
        container_machine_restart_edited(world.life);
        EXPECT(container_machine_is_waiting(world.life) && !world.request);
        end();
}

TEST(who_is_being_stopped_for_good_is_not_run_again_for_an_edit)
{
        begin(RESTART_POLICY_ALWAYS);
        container_machine_start(world.life);
        container_machine_on_started(world.life, 0, 1);
        container_machine_restart_edited(world.life);
        container_machine_stop(world.life);
        container_machine_restart_edited(world.life);
        exits(0, 0);
        EXPECT(container_machine_is_finished(world.life));
        end();
}

TEST(an_end_that_a_new_agent_finds_leaves_what_follows_to_the_pod)
{
        ContainerExit found = {
                .exit_code = 1, .started_at = 1, .finished_at = 2, .is_found = true
        };

        begin(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.life, 0, 0);
        container_machine_on_started(world.life, 0, 1);
        container_machine_on_exited(world.life, 0, &found);
        EXPECT(container_machine_is_waiting(world.life));
        EXPECT_STREQ(world.script, "");
        end();

        begin(RESTART_POLICY_ALWAYS);
        container_machine_adopt(world.life, 3, 300 * USEC_PER_SEC);
        container_machine_on_started(world.life, 3, 1);
        found.started_at = found.finished_at = now_realtime_usec();
        container_machine_on_exited(world.life, 3, &found);
        expect_state(STATE_WAITING, "CrashLoopBackOff", 3);
        end();
}

/* Random news, whatever it is: never two processes, nothing held that the state does not use, every
 * attempt run at most once, and who is stopped ends. */
static void random_event(unsigned dice) {
        unsigned attempt = container_machine_attempt(world.life);

        switch (dice % 11) {
        case 0:
                container_machine_start(world.life);
                break;
        case 1:
                container_machine_on_image_ready(world.life);
                break;
        case 2:
                container_machine_on_image_failed(world.life, "ImagePullBackOff", "x");
                break;
        case 3:
                if (world.processes > 0)
                        container_machine_on_started(world.life, attempt, now_realtime_usec());
                break;
        case 4:
                if (world.processes > 0 && container_machine_has_process(world.life)) {
                        container_machine_on_started(world.life, attempt, now_realtime_usec());
                        exits(attempt, (int) (dice >> 8) % 3);
                }
                break;
        case 5:
                if (world.retry)
                        container_machine_on_retry(world.life, dice & 0x100);
                break;
        case 7:
                if (world.hook)
                        container_machine_on_hook_done(world.life, dice & 0x100 ? "failed" : NULL);
                break;
        case 8:
                container_machine_kill(world.life, "killed");
                break;
        case 10:
                container_machine_restart_edited(world.life);
                break;
        case 6:
                world.processes = 0;
                container_machine_on_sandbox_lost(world.life, now_realtime_usec());
                break;
        default:
                world.run_fails = dice & 0x100;
                world.image_is_here = dice & 0x200;
                break;
        }
}

TEST(no_order_of_events_doubles_or_leaks_anything)
{
        uint32_t seed = 12345;

        for (unsigned round = 0; round < 400; round++) {
                begin_with((RestartPolicy) (1 + round % 3), round % 2 ? &with_hooks : NULL);
                for (unsigned i = 0; i < 60; i++) {
                        seed = seed * 1664525 + 1013904223;
                        random_event(seed >> 8);
                        EXPECT(world.processes <= 1);
                        for (size_t a = 0; a < 512; a++)
                                EXPECT(world.attempts_run[a] <= 1 && world.n_removed[a] <= 1);
                }
                container_machine_stop(world.life);
                if (world.processes > 0) {
                        container_machine_on_started(world.life,
                                                     container_machine_attempt(world.life), 1);
                        exits(container_machine_attempt(world.life), 0);
                }
                EXPECT(container_machine_is_finished(world.life));
                EXPECT(!world.request && !world.turn && !world.retry && !world.hook);
                end();
                if (test_failures > 0)
                        return; /* one report is enough */
        }
}

TEST(the_table_of_moves_in_the_readme_is_the_one_in_the_code)
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
