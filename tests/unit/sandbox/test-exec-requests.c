/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/exec-requests.h"
#include "common/cleanup.h"
#include "tests/test.h"

typedef struct Asker {
        SandboxExec *exec;
        unsigned n_results;
        int exit_code;
} Asker;

static void on_result(const ShimEvent *result, void *userdata) {
        Asker *asker = userdata;

        asker->exec = NULL;
        asker->n_results++;
        asker->exit_code = result->exit_code;
}

static void ask(SandboxExec **list, Asker *asker) {
        *asker = (Asker){ .exec = exec_requests_add(list, on_result, asker) };
        REQUIRE(asker->exec);
}

static void finish(SandboxExec **list, const char *id, int exit_code) {
        exec_requests_finish(
                list,
                &(ShimEvent){ .type = SHIM_EVENT_EXEC_DONE, .id = id, .exit_code = exit_code });
}

TEST(each_result_is_delivered_once_to_its_requester)
{
        SandboxExec *list = NULL;
        Asker first, second, third;
        cleanup_free char *id = NULL;

        ask(&list, &first);
        ask(&list, &second);
        ask(&list, &third);
        id = strdup(exec_request_id(second.exec));
        finish(&list, id, 7);
        finish(&list, id, 8);
        EXPECT_EQ(second.n_results, 1);
        EXPECT_EQ(second.exit_code, 7);
        EXPECT_EQ(first.n_results + third.n_results, 0);
        sandbox_exec_cancel(first.exec);
        sandbox_exec_cancel(third.exec);
        EXPECT(!list);
}

TEST(a_result_that_nobody_awaits_is_dropped)
{
        SandboxExec *list = NULL;
        cleanup_free char *id = NULL;
        Asker asker;

        ask(&list, &asker);
        id = strdup(exec_request_id(asker.exec));
        asker.exec = sandbox_exec_cancel(asker.exec);
        finish(&list, id, 0);
        finish(&list, "exec-1-1", 0);
        finish(&list, NULL, 0);
        EXPECT_EQ(asker.n_results, 0);
        EXPECT(!sandbox_exec_cancel(NULL));
}

TEST(a_request_may_outlive_its_sandbox)
{
        SandboxExec *list = NULL;
        Asker first, second;

        ask(&list, &first);
        ask(&list, &second);
        exec_requests_abandon(&list);
        EXPECT(!list);
        sandbox_exec_cancel(first.exec);
        sandbox_exec_cancel(second.exec);
}

static void on_result_ask_again(const ShimEvent *result, void *userdata) {
        SandboxExec **again = userdata;

        *again = exec_requests_add(again + 1, on_result_ask_again, again);
}

TEST(a_callback_may_send_the_next_request)
{
        SandboxExec *again_and_list[2] = { NULL, NULL };
        cleanup_free char *id = NULL;

        again_and_list[0] =
                exec_requests_add(&again_and_list[1], on_result_ask_again, again_and_list);
        id = strdup(exec_request_id(again_and_list[0]));
        finish(&again_and_list[1], id, 0);
        EXPECT(again_and_list[0] && again_and_list[0] == again_and_list[1]);
        EXPECT(!streq(exec_request_id(again_and_list[0]), id));
        sandbox_exec_cancel(again_and_list[0]);
}
