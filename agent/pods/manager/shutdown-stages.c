/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/shutdown-stages.h"

size_t shutdown_stage_of(const ShutdownStage *stages, size_t n_stages, int64_t priority) {
        size_t stage = 0;

        for (size_t i = 1; i < n_stages && stages[i].priority <= priority; i++)
                stage = i;
        return stage;
}

uint64_t shutdown_total_usec(const ShutdownStage *stages, size_t n_stages) {
        uint64_t total = 0;

        for (size_t i = 0; i < n_stages; i++)
                total += stages[i].period_usec;
        return total;
}
