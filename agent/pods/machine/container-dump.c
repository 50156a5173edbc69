/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the state machine of a container for `mainstay debug dump`. The termination message is not
 * printed, because it comes from the container. */

#include "agent/pods/machine/container-machine-private.h"

#include "common/clock.h"
#include "common/dump.h"

static void dump_terminated_state(const char *key, const ContainerState *state, FILE *out) {
        char finished[RFC3339_SIZE];

        if (state->kind == STATE_TERMINATED)
                dump_line(out, 3, "%s: exit code %d, reason %s, finished %s", key, state->exit_code,
                          strna(state->reason), format_rfc3339(finished, state->finished_at));
}

void container_machine_dump(const ContainerMachine *c, FILE *out) {
        char started[RFC3339_SIZE], text[DUMP_DURATION_SIZE];

        dump_line(out, 2, "container: %s, state %s, attempt %u%s", c->spec->name,
                  machine_states[c->state].name, c->attempt,
                  c->attempt_is_used ? "" : " (not started)");
        if (machine_states[c->state].api_state == STATE_WAITING)
                dump_line(out, 3, "waiting: %s%s%s", container_machine_waiting_reason(c),
                          c->waiting_message ? ": " : "", strna(c->waiting_message));
        if (c->started_at > 0)
                dump_line(out, 3, "started: %s", format_rfc3339(started, c->started_at));
        dump_terminated_state("terminated", &c->terminated, out);
        dump_terminated_state("last terminated", &c->last_terminated, out);
        if (c->next_delay_usec > 0)
                dump_line(out, 3, "next crash back-off: %s",
                          dump_format_duration(text, c->next_delay_usec));
        if (c->image_delay_usec > 0)
                dump_line(out, 3, "image back-off: %s",
                          dump_format_duration(text, c->image_delay_usec));
        if (c->is_killed)
                dump_line(out, 3, "killed: %s", strna(c->kill_message));
        if (c->stops_for_good || c->restarts_when_stopped)
                dump_line(out, 3, "stopping: %s",
                          c->restarts_when_stopped ? "to restart" : "permanently");
        if (c->is_restart_disabled)
                dump_line(out, 3, "restart: disabled");
        if (c->wants_restart_all)
                dump_line(out, 3, "restart: of all containers requested");
}
