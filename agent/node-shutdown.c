/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-shutdown.h"

#include "agent/pods/shutdown-stages.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <signal.h>

/* What it takes beside the pods. */
#define SHUTDOWN_MARGIN_USEC (5 * USEC_PER_SEC)

static const char logind_conf_dir[] = "/run/systemd/logind.conf.d";

static uint64_t shutdown_needed_usec(const Agent *agent) {
        return shutdown_total_usec(agent->config.shutdown_stages, agent->config.n_shutdown_stages);
}

static void exit_agent(Agent *agent, const char *why) {
        log_info("Ending; %s", why);
        (void) sd_event_exit(agent->event, 0);
}

static void on_pods_shut_down(void *userdata) {
        Agent *agent = userdata;

        agent->has_shut_down = true;
        if (agent->inhibitor)
                shutdown_inhibitor_release(agent->inhibitor);
        if (agent->is_terminating)
                exit_agent(agent, "the machine goes down");
        else
                log_info("All pods are stopped, the machine may go down");
}

static void begin_node_shutdown(Agent *agent) {
        if (agent->is_shutting_down)
                return;
        agent->is_shutting_down = true;
        log_set_message_id(MESSAGE_NODE_SHUTDOWN);
        log_info("The machine goes down, stopping all pods within %us",
                 (unsigned) (shutdown_needed_usec(agent) / USEC_PER_SEC));
        if (agent->apiserver)
                apiserver_set_shutting_down(agent->apiserver, true);
        pod_manager_shut_down(agent->pod_manager, agent->config.shutdown_stages,
                              agent->config.n_shutdown_stages, on_pods_shut_down, agent);
}

static void cancel_node_shutdown(Agent *agent) {
        if (!agent->is_shutting_down || agent->is_terminating)
                return;
        agent->is_shutting_down = agent->has_shut_down = false;
        log_info("The machine does not go down, pods start again");
        if (agent->apiserver)
                apiserver_set_shutting_down(agent->apiserver, false);
        pod_manager_cancel_shutdown(agent->pod_manager);
}

static void on_logind_shutdown(bool is_starting, void *userdata) {
        if (is_starting)
                begin_node_shutdown(userdata);
        else
                cancel_node_shutdown(userdata);
}

/* We are stopped before the shims are, and systemd waits for us: that is how pods are stopped in
 * their order, whoever it was that said that the machine goes down, and however long logind waited.
 */
static void on_stop_reason_known(bool is_stopping, void *userdata) {
        Agent *agent = userdata;

        if (!is_stopping || agent->config.n_shutdown_stages == 0) {
                exit_agent(agent, "pods go on");
                return;
        }
        if (agent->has_shut_down) {
                exit_agent(agent, "the machine goes down");
                return;
        }
        service_notifier_extend_stop_timeout(agent->notifier,
                                             shutdown_needed_usec(agent) + SHUTDOWN_MARGIN_USEC);
        begin_node_shutdown(agent);
}

static int on_termination_signal(sd_event_source *source, const struct signalfd_siginfo *si,
                                 void *userdata) {
        Agent *agent = userdata;

        if (agent->is_terminating)
                return 0;
        agent->is_terminating = true;
        desired_state_suspend(agent->desired);
        service_notifier_stopping(agent->notifier);
        if (!agent->systemd ||
            systemd_client_query_shutdown(agent->systemd, on_stop_reason_known, agent, NULL) < 0)
                exit_agent(agent, "pods go on");
        return 0;
}

int watch_termination_signals(Agent *agent) {
        int r = sd_event_add_signal(agent->event, NULL, SIGTERM, on_termination_signal, agent);

        return r < 0 ? r
                     : sd_event_add_signal(agent->event, NULL, SIGINT, on_termination_signal,
                                           agent);
}

int watch_node_shutdown(Agent *agent) {
        if (!agent->systemd || agent->config.n_shutdown_stages == 0)
                return 0;
        return shutdown_inhibitor_new(
                &(ShutdownInhibitorConfig){ .event = agent->event,
                                            .needed_usec = shutdown_needed_usec(agent),
                                            .systemd = agent->systemd,
                                            .logind_conf_dir = logind_conf_dir,
                                            .on_shutdown = on_logind_shutdown,
                                            .userdata = agent },
                &agent->inhibitor);
}
