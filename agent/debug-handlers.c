/* SPDX-License-Identifier: Apache-2.0 */

/* The handler of /debug/dump: each module prints its own part of the dump; only state of no module
 * is printed here. */

#include "agent/debug-handlers.h"

#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/process-dump.h"

#include <stdlib.h>

static void dump_agent(const Agent *agent, FILE *out) {
        dump_section(out, "Agent");
        dump_line(out, 1, "version: %s", MAINSTAY_VERSION);
        dump_line(out, 1, "node: %s", agent->node.name);
        dump_line(out, 1, "ready: %s", agent->ready_since > 0 ? "yes" : "no");
        dump_line(out, 1, "log level: %s", log_level_name(log_level()));
        agent_paths_dump(&agent->paths, out);
        dump_line(out, 1, "cgroup driver: %s", agent->has_slices ? "systemd" : "cgroupfs");
        dump_timer(out, 1, "memory is released", agent->memory_trim_timer);
}

static void dump_modules(const Agent *agent, FILE *out) {
        desired_state_dump(agent->desired, out);
        pod_manager_dump(agent->pod_manager, out);
        image_store_dump(agent->images, out);
        cdi_registry_dump(agent->cdi, out);
        secret_opener_dump(agent->secrets, out);
        node_device_provider_dump(agent->node_devices, out);
        if (agent->csi)
                csi_manager_dump(agent->csi, out);
        daemonset_controller_dump(agent->daemonset_controller, out);
        eviction_manager_dump(agent->eviction_manager, out);
        if (agent->apiserver)
                apiserver_dump(agent->apiserver, out);
        http_server_dump(agent->http_server, out);
}

char *agent_dump(void *userdata) {
        const Agent *agent = userdata;
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        dump_agent(agent, out);
        process_dump(agent->event, out);
        dump_modules(agent, out);
        if (dump_is_full(out))
                (void) fputs("The dump is cut here\n", out);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}
