/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Computes CPU rates from two samples of a cgroup. Nothing is sampled without a request, so the
 * first sample is kept until the next request; before that, the rate is the average since the
 * start. */

#include "common/cgroup-usage.h"

typedef struct CpuRates CpuRates;

/* NULL: out of memory. */
CpuRates *cpu_rates_new(void);
CpuRates *cpu_rates_free(CpuRates *rates);
DEFINE_CLEANUP(CpuRates *, cpu_rates_free)

/* The rate in billionths of a CPU. 'started_at' is realtime. Returns the previous rate if the
 * samples are less than a second apart. */
uint64_t cpu_rates_update(CpuRates *rates, const char *cgroup, const CgroupUsage *usage,
                          uint64_t started_at);

/* Forgets the cgroups that were not updated since the last call. */
void cpu_rates_forget_old(CpuRates *rates);
