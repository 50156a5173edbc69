/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the delays of the back-off. Pure. */

#include "agent/kubeclient/request-back-off.h"

#include "common/clock.h"

enum {
        RESET_SEC = 120,
        RETRY_AFTER_JITTER = 25, /* percent */
};

const BackOffLimits kube_back_off_default = { 800 * USEC_PER_MSEC, 30 * USEC_PER_SEC };
const BackOffLimits kube_back_off_slow = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };

/* A refusal, or a missing resource, is unlikely to be resolved within a second. */
const BackOffLimits *kube_back_off_limits_for_status(unsigned status) {
        bool is_refused = status >= 400 && status < 500 && status != 401 && status != 408 &&
                          status != 410 && status != 429;

        return is_refused ? &kube_back_off_slow : &kube_back_off_default;
}

/* Twice the longest delay, because of the jitter. */
const char *kube_back_off_retry_hint(unsigned status) {
        return kube_back_off_limits_for_status(status) == &kube_back_off_slow
                       ? "retrying within 10 minutes"
                       : "retrying within a minute";
}

uint64_t kube_back_off_next(KubeBackOff *back_off, const BackOffLimits *limits, uint64_t now,
                            uint64_t retry_after_usec, uint32_t chance) {
        uint64_t delay = 0, asked;

        if (back_off->n_failures > 0 &&
            now - back_off->failed_at > limits->max_usec * 2 + RESET_SEC * USEC_PER_SEC)
                back_off->n_failures = 0;
        back_off->n_failures++;
        for (unsigned i = 0; i < back_off->n_failures && delay < limits->max_usec; i++)
                delay = back_off_next_delay(delay, limits);
        back_off->failed_at = now;
        asked = back_off_add_jitter(retry_after_usec, RETRY_AFTER_JITTER, chance);
        return MAX(back_off_add_jitter(delay, 100, chance), asked);
}

void kube_back_off_reset(KubeBackOff *back_off) {
        *back_off = (KubeBackOff){ 0 };
}
