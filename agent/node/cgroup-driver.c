/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/cgroup-driver.h"

#include "common/cgroup.h"
#include "common/log.h"
#include "common/macros.h"

#include <errno.h>

int choose_cgroup_driver(const char *configured, bool has_systemd, int cgroup_version,
                         bool *ret_has_slices, Error *reterr) {
        bool can_be_systemd = has_systemd && cgroup_version == 2;
        bool is_systemd = configured ? streq(configured, "systemd") : can_be_systemd;

        if (is_systemd && !can_be_systemd)
                return error_setf(reterr, EOPNOTSUPP,
                                  "cgroupDriver: systemd needs systemd as PID 1 and cgroup v2");
        *ret_has_slices = is_systemd;
        return 0;
}

void warn_of_cgroups(void) {
        static const struct {
                const char *controller;
                const char *effect;
        } needed[] = {
                { "cpu", "No pod starts" },
                { "memory", "Pods with memory limits do not start" },
                { "pids", "Pods do not start where podPidsLimit is set" },
        };

        if (cgroup_version() == 1)
                log_warning("Control groups v1 are deprecated: systemd 258 and the kubelet 1.35 do "
                            "not accept them; boot with systemd.unified_cgroup_hierarchy=1 for v2");
        for (size_t i = 0; i < N_ELEMENTS(needed); i++)
                if (!cgroup_has_controller(needed[i].controller))
                        log_warning("%s: " CGROUP_CONTROLLER_MISSING, needed[i].effect,
                                    needed[i].controller);
}
