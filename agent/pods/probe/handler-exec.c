/* SPDX-License-Identifier: Apache-2.0 */
/* The exec handler of probes and hooks: the shim runs a command in the container, and kills it
 * after the probe's timeoutSeconds. */

#include "agent/bundle/environment.h"
#include "agent/pods/probe/handler-run-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <inttypes.h>

/* The literal values of the container's environment. As in the kubelet, variables with valueFrom
 * are empty here. */
static int build_static_environment(const Container *container, VariableSet *ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < container->env.n; i++)
                r = variable_set_put(ret, container->env.items[i].name,
                                     strna(container->env.items[i].value));
        return r;
}

static int build_exec_command(const HandlerRun *run, char ***ret, Error *reterr) {
        char *const *words = run->spec.handler->exec->command;
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        int r;

        if (run->spec.is_hook)
                return strv_extend(ret, words);
        r = build_static_environment(run->target.container, &env);
        return r < 0 ? r : expand_words("command", words, &env, ret, reterr);
}

static void on_exec_done(const ShimEvent *event, void *userdata) {
        HandlerRun *run = userdata;

        run->exec = NULL;
        if (event->timed_out)
                handler_run_finish(run, HANDLER_FAILED,
                                   "command timed out: \"%s\" timed out after %" PRIu64 "s",
                                   run->spec.handler->exec->command[0],
                                   run->spec.timeout_usec / USEC_PER_SEC);
        else if (event->message && event->message[0])
                handler_run_finish(run, HANDLER_ERROR, "%s", event->message);
        else if (event->exit_code == 0)
                handler_run_finish(run, HANDLER_SUCCEEDED, "%s", strna(event->output));
        else if (run->spec.is_hook)
                handler_run_finish(run, HANDLER_FAILED, "command '%s' exited with %d: %.*s",
                                   run->spec.handler->exec->command[0], event->exit_code,
                                   HANDLER_OUTPUT_MAX, strna(event->output));
        else
                handler_run_finish(run, HANDLER_FAILED, "%.*s", HANDLER_OUTPUT_MAX,
                                   strna(event->output));
}

void handler_begin_exec(HandlerRun *run) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_strv char **argv = NULL;
        int r = build_exec_command(run, &argv, &error);

        if (r >= 0)
                r = sandbox_exec_in_container(
                        run->target.sandbox,
                        &(SandboxContainerExec){ .container = run->target.id,
                                                 .argv = argv,
                                                 .timeout_usec = run->spec.timeout_usec },
                        on_exec_done, run, &run->exec);
        if (r == -EMSGSIZE) /* the command never gets shorter, so a retry cannot succeed */
                handler_run_finish_deferred(run, HANDLER_FAILED,
                                            "the command is too long to be run");
        else if (r == -E2BIG)
                handler_run_finish_deferred(run, HANDLER_FAILED, "%s", error_message(&error, r));
        else if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "cannot ask the shim: %s",
                                            strerror(-r));
}
