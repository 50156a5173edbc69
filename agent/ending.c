/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ending.h"

#include "agent/supervise/shutdown.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <signal.h>

/* What it takes beside the pods. */
#define MARGIN_USEC (5 * USEC_PER_SEC)

static const char logind_conf_dir[] = "/run/systemd/logind.conf.d";

static uint64_t needed_usec(const Agent *agent) {
        return shutdown_total_usec(agent->config.shutdown_stages, agent->config.n_shutdown_stages);
}

static void leave(Agent *agent, const char *why) {
        log_info("Ending; %s", why);
        (void) sd_event_exit(agent->event, 0);
}

static void on_shut_down(void *userdata) {
        Agent *agent = userdata;

        agent->has_shut_down = true;
        if (agent->inhibitor)
                inhibitor_release(agent->inhibitor);
        if (agent->is_ending)
                leave(agent, "the machine goes down");
        else
                log_info("All pods are stopped, the machine may go down");
}

static void begin_shutdown(Agent *agent) {
        if (agent->is_shutting_down)
                return;
        agent->is_shutting_down = true;
        log_mark(MESSAGE_NODE_SHUTDOWN);
        log_info("The machine goes down, stopping all pods within %us",
                 (unsigned) (needed_usec(agent) / USEC_PER_SEC));
        if (agent->cluster)
                cluster_set_leaving(agent->cluster, true);
        supervisor_shut_down(agent->supervisor, agent->config.shutdown_stages,
                             agent->config.n_shutdown_stages, on_shut_down, agent);
}

static void cancel_shutdown(Agent *agent) {
        if (!agent->is_shutting_down || agent->is_ending)
                return;
        agent->is_shutting_down = agent->has_shut_down = false;
        log_info("The machine does not go down, pods start again");
        if (agent->cluster)
                cluster_set_leaving(agent->cluster, false);
        supervisor_go_on(agent->supervisor);
}

static void on_shutdown(bool begins, void *userdata) {
        if (begins)
                begin_shutdown(userdata);
        else
                cancel_shutdown(userdata);
}

/* We are stopped before the shims are, and systemd waits for us: that is how pods are stopped in
 * their order, whoever it was that said that the machine goes down, and however long logind waited.
 */
static void on_stop_explained(bool is_stopping, void *userdata) {
        Agent *agent = userdata;

        if (!is_stopping || agent->config.n_shutdown_stages == 0) {
                leave(agent, "pods go on");
                return;
        }
        if (agent->has_shut_down) {
                leave(agent, "the machine goes down");
                return;
        }
        publish_stop_takes(agent->publish, needed_usec(agent) + MARGIN_USEC);
        begin_shutdown(agent);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Agent *agent = userdata;

        if (agent->is_ending)
                return 0;
        agent->is_ending = true;
        publish_stopping(agent->publish);
        if (!agent->units || units_ask_shutdown(agent->units, on_stop_explained, agent, NULL) < 0)
                leave(agent, "pods go on");
        return 0;
}

int ending_watch_signals(Agent *agent) {
        int r = sd_event_add_signal(agent->event, NULL, SIGTERM, on_end, agent);

        return r < 0 ? r : sd_event_add_signal(agent->event, NULL, SIGINT, on_end, agent);
}

int ending_watch_logind(Agent *agent) {
        if (!agent->units || agent->config.n_shutdown_stages == 0)
                return 0;
        return inhibitor_new(&(InhibitorConfig){ .event = agent->event,
                                                 .needed_usec = needed_usec(agent),
                                                 .units = agent->units,
                                                 .logind_conf_dir = logind_conf_dir,
                                                 .on_shutdown = on_shutdown,
                                                 .userdata = agent },
                             &agent->inhibitor);
}
