/* SPDX-License-Identifier: Apache-2.0 */
/* A program in the container, run by its shim. */

#include "agent/bundle/runtime-spec.h"
#include "agent/supervise/action-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <inttypes.h>
#include <unistd.h>

/* What the container's variables say as they are written: of those that refer to something nothing
 * is known here, as with the kubelet. */
static int static_environment(const Container *container, char ***ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < container->env.n; i++)
                r = env_set(ret, container->env.items[i].name,
                            strna(container->env.items[i].value));
        return r;
}

static int command(const Action *action, char ***ret) {
        char *const *words = action->spec.handler->exec->command;
        cleanup_strv char **argv = NULL, **env = NULL;
        int r;

        if (action->spec.is_hook)
                return strv_extend(ret, words);
        r = static_environment(action->target.container, &env);
        for (size_t i = 0; r >= 0 && words[i]; i++) {
                cleanup_free char *word = NULL;

                r = expand_variables(words[i], env, &word, NULL);
                if (r >= 0)
                        r = strv_append(&argv, word);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(argv);
        return 0;
}

void action_begin_exec(Action *action) {
        static uint64_t serial;
        cleanup_strv char **argv = NULL;
        int r = command(action, &argv);

        /* An answer to an agent before us must not be taken for ours. */
        if (asprintf(&action->exec_id, "action-%d-%" PRIu64, (int) getpid(), ++serial) < 0) {
                action->exec_id = NULL;
                r = -ENOMEM;
        }
        if (r >= 0)
                r = sandbox_exec_in(action->target.sandbox,
                                    &(SandboxExecIn){ .id = action->exec_id,
                                                      .container = action->target.id,
                                                      .argv = argv,
                                                      .timeout_usec = action->spec.timeout_usec });
        if (r < 0)
                action_finish_soon(action, ACTION_BROKEN, "cannot ask the shim: %s", strerror(-r));
}

bool action_handle(Action *action, const SandboxEvent *event) {
        if (!action || !action->exec_id || !event->id || !streq(action->exec_id, event->id))
                return false;
        if (event->timed_out)
                action_finish(action, ACTION_FAILED,
                              "command timed out: \"%s\" timed out after %" PRIu64 "s",
                              action->spec.handler->exec->command[0],
                              action->spec.timeout_usec / USEC_PER_SEC);
        else if (event->message && event->message[0])
                action_finish(action, ACTION_BROKEN, "%s", event->message);
        else if (event->exit_code == 0)
                action_finish(action, ACTION_SUCCEEDED, "%s", strna(event->output));
        else if (action->spec.is_hook)
                action_finish(action, ACTION_FAILED, "command '%s' exited with %d: %.*s",
                              action->spec.handler->exec->command[0], event->exit_code,
                              ACTION_OUTPUT_MAX, strna(event->output));
        else
                action_finish(action, ACTION_FAILED, "%.*s", ACTION_OUTPUT_MAX,
                              strna(event->output));
        return true;
}
