/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/exit-reason.h"

const char *container_exit_reason(int exit_code, bool oom_killed) {
        if (oom_killed && exit_code != 0)
                return "OOMKilled";
        return exit_code == 0 ? "Completed" : "Error";
}
