/* SPDX-License-Identifier: Apache-2.0 */
/* Graceful node shutdown: handles logind's announcement and SIGTERM, and has the pods stopped. */

#include "agent/pods/manager/node-shutdown-manager.h"

#include "agent/pods/manager/shutdown-stages.h"
#include "agent/sandbox/shutdown-inhibitor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* The time that the agent itself needs, in addition to the pods. */
#define SHUTDOWN_MARGIN_USEC (5 * USEC_PER_SEC)

static const char logind_conf_dir[] = "/run/systemd/logind.conf.d";

struct NodeShutdownManager {
        NodeShutdownConfig config;
        ShutdownInhibitor *inhibitor; /* NULL: shutdowns are not delayed */
        sd_event_source *sigterm_source;
        sd_event_source *sigint_source;
        bool is_terminating;   /* the agent will exit */
        bool is_shutting_down; /* pods are being stopped, */
        bool has_shut_down;    /* and none of their containers runs */
};

static uint64_t shutdown_needed_usec(const NodeShutdownManager *manager) {
        return shutdown_total_usec(manager->config.stages, manager->config.n_stages);
}

static void exit_agent(const NodeShutdownManager *manager, const char *why) {
        log_info("Exiting: %s", why);
        (void) sd_event_exit(manager->config.event, 0);
}

static void on_pods_shut_down(void *userdata) {
        NodeShutdownManager *manager = userdata;

        manager->has_shut_down = true;
        if (manager->inhibitor)
                shutdown_inhibitor_release(manager->inhibitor);
        if (manager->is_terminating)
                exit_agent(manager, "the machine is shutting down");
        else
                log_info("All pods have terminated; the shutdown may continue");
}

static void begin_node_shutdown(NodeShutdownManager *manager) {
        const NodeShutdownConfig *config = &manager->config;

        if (manager->is_shutting_down)
                return;
        manager->is_shutting_down = true;
        log_set_message_id(MESSAGE_NODE_SHUTDOWN);
        log_info("The machine is shutting down; stopping all pods within %us",
                 (unsigned) (shutdown_needed_usec(manager) / USEC_PER_SEC));
        config->on_shutting_down(true, config->userdata);
        pod_manager_shut_down(config->pod_manager, config->stages, config->n_stages,
                              on_pods_shut_down, manager);
}

static void cancel_node_shutdown(NodeShutdownManager *manager) {
        const NodeShutdownConfig *config = &manager->config;

        if (!manager->is_shutting_down || manager->is_terminating)
                return;
        manager->is_shutting_down = manager->has_shut_down = false;
        log_info("The shutdown of the machine was cancelled, starting pods again");
        config->on_shutting_down(false, config->userdata);
        pod_manager_cancel_shutdown(config->pod_manager);
}

static void on_logind_shutdown(bool is_starting, void *userdata) {
        if (is_starting)
                begin_node_shutdown(userdata);
        else
                cancel_node_shutdown(userdata);
}

/* The agent is stopped before the shims, and systemd waits for it. Therefore pods are stopped in
 * their order even if logind did not announce the shutdown, or did not wait long enough. */
static void on_stop_reason_known(bool is_stopping, void *userdata) {
        NodeShutdownManager *manager = userdata;

        if (!is_stopping || manager->config.n_stages == 0) {
                exit_agent(manager, "pods continue to run");
                return;
        }
        if (manager->has_shut_down) {
                exit_agent(manager, "the machine is shutting down");
                return;
        }
        service_notifier_extend_stop_timeout(manager->config.notifier,
                                             shutdown_needed_usec(manager) + SHUTDOWN_MARGIN_USEC);
        begin_node_shutdown(manager);
}

static int on_termination_signal(sd_event_source *source, const struct signalfd_siginfo *si,
                                 void *userdata) {
        NodeShutdownManager *manager = userdata;
        const NodeShutdownConfig *config = &manager->config;

        if (manager->is_terminating)
                return 0;
        manager->is_terminating = true;
        config->on_terminating(config->userdata);
        service_notifier_stopping(config->notifier);
        if (!config->systemd ||
            systemd_client_query_shutdown(config->systemd, on_stop_reason_known, manager, NULL) < 0)
                exit_agent(manager, "pods continue to run");
        return 0;
}

int node_shutdown_manager_new(const NodeShutdownConfig *config, NodeShutdownManager **ret) {
        cleanup_with(node_shutdown_manager_freep) NodeShutdownManager *manager =
                calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->config = *config;
        r = sd_event_add_signal(config->event, &manager->sigterm_source, SIGTERM,
                                on_termination_signal, manager);
        if (r < 0)
                return r;
        r = sd_event_add_signal(config->event, &manager->sigint_source, SIGINT,
                                on_termination_signal, manager);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

NodeShutdownManager *node_shutdown_manager_free(NodeShutdownManager *manager) {
        if (!manager)
                return NULL;
        shutdown_inhibitor_free(manager->inhibitor);
        sd_event_source_disable_unref(manager->sigterm_source);
        sd_event_source_disable_unref(manager->sigint_source);
        free(manager);
        return NULL;
}

int node_shutdown_manager_start(NodeShutdownManager *manager) {
        const NodeShutdownConfig *config = &manager->config;

        if (!config->systemd || config->n_stages == 0)
                return 0;
        return shutdown_inhibitor_new(
                &(ShutdownInhibitorConfig){ .event = config->event,
                                            .needed_usec = shutdown_needed_usec(manager),
                                            .systemd = config->systemd,
                                            .logind_conf_dir = logind_conf_dir,
                                            .on_shutdown = on_logind_shutdown,
                                            .userdata = manager },
                &manager->inhibitor);
}
