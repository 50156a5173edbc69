/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/cpu-rates.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"

typedef struct CpuRate {
        char *cgroup;
        uint64_t taken_at, cpu_nsec;
        uint64_t nano_cores;
        bool is_seen;
} CpuRate;

struct CpuRates {
        CpuRate *items;
        size_t n;
};

CpuRates *cpu_rates_new(void) {
        return calloc(1, sizeof(CpuRates));
}

CpuRates *cpu_rates_free(CpuRates *rates) {
        if (!rates)
                return NULL;
        for (size_t i = 0; i < rates->n; i++)
                free(rates->items[i].cgroup);
        free(rates->items);
        free(rates);
        return NULL;
}

static uint64_t compute_nano_cores(uint64_t cpu_nsec, uint64_t usec) {
        return usec > 0 ? (uint64_t) ((double) cpu_nsec * 1e6 / (double) usec) : 0;
}

static CpuRate *find_cpu_rate(CpuRates *rates, const char *cgroup) {
        for (size_t i = 0; i < rates->n; i++)
                if (streq(rates->items[i].cgroup, cgroup))
                        return &rates->items[i];
        if (!ARRAY_RESERVE(rates->items, rates->n, 1))
                return NULL;
        rates->items[rates->n] = (CpuRate){ .cgroup = strdup(cgroup) };
        return rates->items[rates->n].cgroup ? &rates->items[rates->n++] : NULL;
}

uint64_t cpu_rates_update(CpuRates *rates, const char *cgroup, const CgroupUsage *usage,
                          uint64_t started_at) {
        CpuRate *rate = find_cpu_rate(rates, cgroup);
        uint64_t age = usage->taken_at - MIN(started_at, usage->taken_at);

        if (!rate)
                return compute_nano_cores(usage->cpu_nsec, age);
        rate->is_seen = true;
        if (rate->taken_at == 0 || usage->cpu_nsec < rate->cpu_nsec ||
            usage->taken_at < rate->taken_at)
                rate->nano_cores = compute_nano_cores(usage->cpu_nsec, age);
        else if (usage->taken_at - rate->taken_at < USEC_PER_SEC)
                return rate->nano_cores;
        else
                rate->nano_cores = compute_nano_cores(usage->cpu_nsec - rate->cpu_nsec,
                                                      usage->taken_at - rate->taken_at);
        rate->taken_at = usage->taken_at;
        rate->cpu_nsec = usage->cpu_nsec;
        return rate->nano_cores;
}

void cpu_rates_forget_old(CpuRates *rates) {
        size_t n = 0;

        for (size_t i = 0; i < rates->n; i++) {
                CpuRate *rate = &rates->items[i];

                if (!rate->is_seen) {
                        free(rate->cgroup);
                        continue;
                }
                rate->is_seen = false;
                rates->items[n++] = *rate;
        }
        rates->n = n;
}
