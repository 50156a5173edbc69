/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup-usage.h"

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>

enum {
        FILE_MAX = 64 * 1024,
        PROCESSES_FILE_MAX = 1024 * 1024,
        WEIGHT_MAX = 10000,
};

/* Version 1 expresses "no limit" by the largest number of pages. */
#define LIMIT_MAX (UINT64_C(1) << 62)

/* The files that contain several of the numbers. */
typedef struct CgroupTexts {
        char *cpu;    /* text of cpu.stat of version 2; with version 1, only the usage */
        char *memory; /* memory.stat */
} CgroupTexts;

static void cgroup_texts_done(CgroupTexts *texts) {
        free(texts->cpu);
        free(texts->memory);
}

/* The text after a key at the start of a line; NULL: none. */
static const char *find_cgroup_stat_key(const char *text, const char *key) {
        size_t length = strlen(key);

        while (text && strncmp(text, key, length) != 0) {
                text = strchr(text, '\n');
                text = text ? text + 1 : NULL;
        }
        return text ? text + length : NULL;
}

static int parse_cgroup_number(const char *text, const char *key, uint64_t *ret) {
        const char *number = find_cgroup_stat_key(text, key);
        char *end;

        if (!number)
                return -EBADMSG;
        *ret = strtoull(number, &end, 10);
        return end > number ? 0 : -EBADMSG;
}

static int read_usage_file(const char *file, size_t max_bytes, char **ret) {
        cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : read_stream(fd, max_bytes, ret, NULL);
}

static int read_cgroup_text(const char *path, const char *controller, const char *file,
                            size_t max_bytes, char **ret) {
        cleanup_free char *name = cgroup_file(path, controller, file);

        return name ? read_usage_file(name, max_bytes, ret) : -ENOMEM;
}

int machine_memory_usage(MachineMemory *ret) {
        cleanup_free char *text = NULL;
        uint64_t total_kib = 0, free_kib = 0, inactive_kib = 0;
        int r = read_usage_file("/proc/meminfo", FILE_MAX, &text);

        if (r < 0)
                return r;
        r = parse_cgroup_number(text, "MemTotal:", &total_kib);
        if (r < 0)
                return r;
        r = parse_cgroup_number(text, "MemFree:", &free_kib);
        if (r < 0)
                return r;
        r = parse_cgroup_number(text, "Inactive(file):", &inactive_kib);
        if (r < 0)
                return r;
        *ret = (MachineMemory){ total_kib * KIB, MIN(free_kib, total_kib) * KIB,
                                inactive_kib * KIB };
        return 0;
}

static int read_inactive_files(const char *path, char **ret_text, uint64_t *ret) {
        int r = read_cgroup_text(path, "memory", "memory.stat", FILE_MAX, ret_text);

        return r < 0 ? r
                     : parse_cgroup_number(*ret_text,
                                           cgroup_version() == 1 ? "total_inactive_file "
                                                                 : "inactive_file ",
                                           ret);
}

/* '*ret_text' is the content of memory.stat. */
static int read_memory_usage(const char *path, char **ret_text, uint64_t *ret,
                             uint64_t *ret_inactive) {
        cleanup_free char *text = NULL;
        bool is_v1 = cgroup_version() == 1;
        int r;

        if (!is_v1 && streq(path, "/")) {
                MachineMemory machine;

                /* For the root of version 2, the kernel does not provide the usage, and provides
                 * inactive files only if the memory controller is enabled. */
                r = machine_memory_usage(&machine);
                if (r < 0)
                        return r;
                *ret = machine.total_bytes - machine.free_bytes;
                *ret_inactive = machine.inactive_file_bytes;
                r = read_inactive_files(path, ret_text, ret_inactive);
                return r == -ENOENT ? 0 : r;
        }
        r = read_cgroup_text(path, "memory", is_v1 ? "memory.usage_in_bytes" : "memory.current",
                             FILE_MAX, &text);
        if (r < 0)
                return r;
        r = parse_cgroup_number(text, "", ret);
        return r < 0 ? r : read_inactive_files(path, ret_text, ret_inactive);
}

static int read_cpu_usage(const char *path, char **ret_text, uint64_t *ret_nsec) {
        bool is_v1 = cgroup_version() == 1;
        int r = read_cgroup_text(path, "cpuacct", is_v1 ? "cpuacct.usage" : "cpu.stat", FILE_MAX,
                                 ret_text);

        if (r < 0)
                return r;
        r = parse_cgroup_number(*ret_text, is_v1 ? "" : "usage_usec ", ret_nsec);
        if (r < 0)
                return r;
        if (!is_v1)
                *ret_nsec *= 1000;
        return 0;
}

/* '*ret_memory' is the content of memory_bytes. The caller frees the texts, even after a
 * failure. */
static int read_cgroup_usage(const char *path, CgroupTexts *ret_texts, uint64_t *ret_memory,
                             CgroupUsage *ret) {
        CgroupUsage usage = { .taken_at = now_realtime_usec() };
        uint64_t inactive = 0;
        int r = read_cpu_usage(path, &ret_texts->cpu, &usage.cpu_nsec);

        if (r < 0)
                return r;
        r = read_memory_usage(path, &ret_texts->memory, ret_memory, &inactive);
        usage.lacks_memory = r == -ENOENT && !cgroup_has_controller("memory");
        if (r < 0 && !usage.lacks_memory)
                return r;
        usage.working_set_bytes = *ret_memory - MIN(*ret_memory, inactive);
        *ret = usage;
        return 0;
}

int cgroup_usage(const char *path, CgroupUsage *ret) {
        cleanup_with(cgroup_texts_done) CgroupTexts texts = { 0 };
        uint64_t memory = 0;

        return read_cgroup_usage(path, &texts, &memory, ret);
}

/* ---- statistics ---- */

static uint64_t find_cgroup_number(const char *text, const char *key) {
        uint64_t number = 0;

        return parse_cgroup_number(text, key, &number) < 0 ? 0 : number;
}

/* Also 0 for "max" and "-1". */
static uint64_t read_cgroup_number(const char *path, const char *controller, const char *file) {
        cleanup_free char *text = NULL;

        if (read_cgroup_text(path, controller, file, FILE_MAX, &text) < 0 || !text ||
            text[0] == '-')
                return 0;
        return find_cgroup_number(text, "");
}

static uint64_t read_cgroup_limit(const char *path, const char *controller, const char *file) {
        uint64_t limit = read_cgroup_number(path, controller, file);

        return limit < LIMIT_MAX ? limit : 0;
}

static uint64_t ticks_to_nsec(uint64_t ticks) {
        static long per_second;

        if (per_second <= 0)
                per_second = MAX(sysconf(_SC_CLK_TCK), 1);
        return ticks * (UINT64_C(1000000000) / (uint64_t) per_second);
}

static void read_cpu_statistics_v1(const char *path, CgroupStatistics *s) {
        cleanup_free char *times = NULL, *text = NULL;

        (void) read_cgroup_text(path, "cpuacct", "cpuacct.stat", FILE_MAX, &times);
        (void) read_cgroup_text(path, "cpu", "cpu.stat", FILE_MAX, &text);
        s->cpu_user_nsec = ticks_to_nsec(find_cgroup_number(times, "user "));
        s->cpu_system_nsec = ticks_to_nsec(find_cgroup_number(times, "system "));
        s->cpu_periods = find_cgroup_number(text, "nr_periods ");
        s->cpu_throttled_periods = find_cgroup_number(text, "nr_throttled ");
        s->cpu_throttled_nsec = find_cgroup_number(text, "throttled_time ");
}

static void find_cpu_statistics(const char *text, CgroupStatistics *s) {
        s->cpu_user_nsec = find_cgroup_number(text, "user_usec ") * 1000;
        s->cpu_system_nsec = find_cgroup_number(text, "system_usec ") * 1000;
        s->cpu_periods = find_cgroup_number(text, "nr_periods ");
        s->cpu_throttled_periods = find_cgroup_number(text, "nr_throttled ");
        s->cpu_throttled_nsec = find_cgroup_number(text, "throttled_usec ") * 1000;
}

/* With version 1, keys that include the cgroups below have a prefix. */
static void find_memory_statistics(const char *text, bool is_v1, CgroupStatistics *s) {
        s->rss_bytes = find_cgroup_number(text, is_v1 ? "total_rss " : "anon ");
        s->cache_bytes = find_cgroup_number(text, is_v1 ? "total_cache " : "file ");
        s->mapped_file_bytes =
                find_cgroup_number(text, is_v1 ? "total_mapped_file " : "file_mapped ");
        s->page_faults = find_cgroup_number(text, is_v1 ? "total_pgfault " : "pgfault ");
        s->major_page_faults =
                find_cgroup_number(text, is_v1 ? "total_pgmajfault " : "pgmajfault ");
        s->own_page_faults = find_cgroup_number(text, "pgfault ");
        s->own_major_page_faults = find_cgroup_number(text, "pgmajfault ");
}

static void read_memory_statistics(const char *path, const char *text, CgroupStatistics *s) {
        bool is_v1 = cgroup_version() == 1;

        find_memory_statistics(text, is_v1, s);
        s->swap_bytes = is_v1 ? find_cgroup_number(text, "total_swap ")
                              : read_cgroup_number(path, "memory", "memory.swap.current");
        s->memory_limit =
                read_cgroup_limit(path, "memory", is_v1 ? "memory.limit_in_bytes" : "memory.max");
}

static uint64_t count_processes(const char *path) {
        cleanup_free char *text = NULL;
        uint64_t n = 0;

        if (read_cgroup_text(path, "pids", "cgroup.procs", PROCESSES_FILE_MAX, &text) < 0 || !text)
                return 0;
        for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
                n++;
        return n;
}

int cgroup_statistics(const char *path, CgroupStatistics *ret) {
        cleanup_with(cgroup_texts_done) CgroupTexts texts = { 0 };
        CgroupStatistics statistics = { 0 };
        int r = read_cgroup_usage(path, &texts, &statistics.memory_bytes, &statistics.usage);

        if (r < 0)
                return r;
        if (cgroup_version() == 1)
                read_cpu_statistics_v1(path, &statistics);
        else
                find_cpu_statistics(texts.cpu, &statistics);
        read_memory_statistics(path, texts.memory, &statistics);
        statistics.n_processes = count_processes(path);
        statistics.n_threads = read_cgroup_number(path, "pids", "pids.current");
        cgroup_pressure(path, "cpu", &statistics.cpu_pressure);
        cgroup_pressure(path, "memory", &statistics.memory_pressure);
        cgroup_pressure(path, "io", &statistics.io_pressure);
        cgroup_disk_usages(path, &statistics.disks);
        *ret = statistics;
        return 0;
}

/* ---- details ---- */

uint64_t cgroup_shares_of_weight(uint64_t weight) {
        if (weight < 1 || weight > WEIGHT_MAX)
                return 0;
        return 2 + (weight - 1) * 262142 / (WEIGHT_MAX - 1);
}

static void read_details_v1(const char *path, CgroupDetails *d) {
        cleanup_free char *events = NULL;

        (void) read_cgroup_text(path, "memory", "memory.oom_control", FILE_MAX, &events);
        d->oom_kills = find_cgroup_number(events, "oom_kill ");
        d->cpu_shares = read_cgroup_number(path, "cpu", "cpu.shares");
        d->cpu_period_usec = read_cgroup_number(path, "cpu", "cpu.cfs_period_us");
        d->cpu_quota_usec = read_cgroup_number(path, "cpu", "cpu.cfs_quota_us");
        d->memory_failures = read_cgroup_number(path, "memory", "memory.failcnt");
        d->memory_peak = read_cgroup_number(path, "memory", "memory.max_usage_in_bytes");
        d->memory_reservation = read_cgroup_limit(path, "memory", "memory.soft_limit_in_bytes");
        d->swap_limit = read_cgroup_limit(path, "memory", "memory.memsw.limit_in_bytes");
}

static void read_details_v2(const char *path, CgroupDetails *d) {
        cleanup_free char *events = NULL, *cpu = NULL;
        const char *period;

        (void) read_cgroup_text(path, "", "memory.events", FILE_MAX, &events);
        d->oom_kills = find_cgroup_number(events, "oom_kill ");
        d->memory_failures = find_cgroup_number(events, "max ");
        (void) read_cgroup_text(path, "", "cpu.max", FILE_MAX, &cpu); /* "max 100000" */
        period = cpu ? strchr(cpu, ' ') : NULL;
        d->cpu_quota_usec = find_cgroup_number(cpu, "");
        d->cpu_period_usec = period ? find_cgroup_number(period + 1, "") : 0;
        d->cpu_shares = cgroup_shares_of_weight(read_cgroup_number(path, "", "cpu.weight"));
        d->memory_peak = read_cgroup_number(path, "", "memory.peak");
        d->memory_reservation = read_cgroup_limit(path, "", "memory.min");
        d->swap_limit = read_cgroup_limit(path, "", "memory.swap.max");
}

void cgroup_details(const char *path, CgroupDetails *ret) {
        *ret = (CgroupDetails){ .threads_max = read_cgroup_limit(path, "pids", "pids.max") };
        if (cgroup_version() == 1)
                read_details_v1(path, ret);
        else
                read_details_v2(path, ret);
}
