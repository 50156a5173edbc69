/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup-usage.h"

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>

enum {
        FILE_MAX = 64 * 1024
};

/* The number after a key at the start of a line, or at the start of the file if the key is "". */
typedef struct CgroupCounter {
        const char *controller;
        const char *file;
        const char *key;
} CgroupCounter;

static const CgroupCounter cpu_counters[] = { { "cpuacct", "cpuacct.usage", "" },
                                              { "", "cpu.stat", "usage_usec " } };
static const CgroupCounter memory_counters[] = { { "memory", "memory.usage_in_bytes", "" },
                                                 { "", "memory.current", "" } };
static const CgroupCounter inactive_counters[] = {
        { "memory", "memory.stat", "total_inactive_file " }, { "", "memory.stat", "inactive_file " }
};

static const char *find_cgroup_stat_key(const char *text, const char *key) {
        size_t length = strlen(key);

        while (text && strncmp(text, key, length) != 0) {
                text = strchr(text, '\n');
                text = text ? text + 1 : NULL;
        }
        return text ? text + length : NULL;
}

static int read_number(const char *file, const char *key, uint64_t *ret) {
        cleanup_free char *text = NULL;
        cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC);
        const char *number;
        char *end;
        int r;

        if (fd < 0)
                return -errno;
        r = read_stream(fd, FILE_MAX, &text, NULL);
        if (r < 0)
                return r;
        number = find_cgroup_stat_key(text, key);
        if (!number)
                return -EBADMSG;
        *ret = strtoull(number, &end, 10);
        return end > number ? 0 : -EBADMSG;
}

/* The first of the two is version 1's. */
static int read_cgroup_counter(const char *path, const CgroupCounter counters[2], uint64_t *ret) {
        const CgroupCounter *counter = &counters[cgroup_version() - 1];
        cleanup_free char *file = cgroup_file(path, counter->controller, counter->file);

        return file ? read_number(file, counter->key, ret) : -ENOMEM;
}

/* the kernel lacks that number for the root of version 2. */
static int read_root_memory_usage(const char *path, uint64_t *ret) {
        uint64_t total_kib = 0, free_kib = 0;
        int r;

        if (cgroup_version() == 1 || !streq(path, "/"))
                return read_cgroup_counter(path, memory_counters, ret);
        r = read_number("/proc/meminfo", "MemTotal:", &total_kib);
        if (r < 0)
                return r;
        r = read_number("/proc/meminfo", "MemFree:", &free_kib);
        if (r < 0)
                return r;
        *ret = (total_kib - MIN(free_kib, total_kib)) * KIB;
        return 0;
}

int cgroup_usage(const char *path, CgroupUsage *ret) {
        CgroupUsage usage = { .taken_at = now_realtime_usec() };
        uint64_t inactive = 0;
        int r = read_cgroup_counter(path, cpu_counters, &usage.cpu_nsec);

        if (r < 0)
                return r;
        r = read_root_memory_usage(path, &usage.working_set_bytes);
        if (r < 0)
                return r;
        r = read_cgroup_counter(path, inactive_counters, &inactive);
        if (r < 0)
                return r;
        if (cgroup_version() == 2)
                usage.cpu_nsec *= 1000; /* in microseconds there */
        usage.working_set_bytes -= MIN(usage.working_set_bytes, inactive);
        *ret = usage;
        return 0;
}

/* ---- statistics ---- */

/* A file, which is kept for several numbers. Version 1's controller; there the keys of memory.stat
 * that count the cgroups below have a prefix. NULL: there is no such file. */
static char *read_cgroup_file(const char *path, const char *controller, const char *file) {
        cleanup_free char *name = cgroup_file(path, controller, file);
        cleanup_close int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -EBADF;
        char *text;

        return fd >= 0 && read_stream(fd, FILE_MAX, &text, NULL) >= 0 ? text : NULL;
}

static uint64_t find_cgroup_number(const char *text, const char *key) {
        const char *number = find_cgroup_stat_key(text, key);

        return number ? strtoull(number, NULL, 10) : 0;
}

static uint64_t read_cgroup_number(const char *path, const char *controller, const char *file) {
        cleanup_free char *text = read_cgroup_file(path, controller, file);

        return text ? strtoull(text, NULL, 10) : 0; /* 0 for "max", too */
}

static void read_cpu_throttling(const char *path, CgroupStatistics *s) {
        cleanup_free char *text = read_cgroup_file(path, "cpu", "cpu.stat");

        s->cpu_periods = find_cgroup_number(text, "nr_periods ");
        s->cpu_throttled_periods = find_cgroup_number(text, "nr_throttled ");
        s->cpu_throttled_nsec = cgroup_version() == 1
                                        ? find_cgroup_number(text, "throttled_time ")
                                        : find_cgroup_number(text, "throttled_usec ") * 1000;
}

static void read_memory_statistics(const char *path, CgroupStatistics *s) {
        bool is_v1 = cgroup_version() == 1;
        cleanup_free char *text = read_cgroup_file(path, "memory", "memory.stat");

        s->rss_bytes = find_cgroup_number(text, is_v1 ? "total_rss " : "anon ");
        s->cache_bytes = find_cgroup_number(text, is_v1 ? "total_cache " : "file ");
        s->page_faults = find_cgroup_number(text, is_v1 ? "total_pgfault " : "pgfault ");
        s->major_page_faults =
                find_cgroup_number(text, is_v1 ? "total_pgmajfault " : "pgmajfault ");
        s->swap_bytes = is_v1 ? find_cgroup_number(text, "total_swap ")
                              : read_cgroup_number(path, "memory", "memory.swap.current");
        s->memory_limit =
                read_cgroup_number(path, "memory", is_v1 ? "memory.limit_in_bytes" : "memory.max");
        if (s->memory_limit > INT64_MAX / 2)
                s->memory_limit = 0; /* version 1's number for no limit */
}

int cgroup_statistics(const char *path, CgroupStatistics *ret) {
        CgroupStatistics statistics = { 0 };
        int r = cgroup_usage(path, &statistics.usage);

        if (r < 0)
                return r;
        r = read_root_memory_usage(path, &statistics.memory_bytes);
        if (r < 0)
                return r;
        read_cpu_throttling(path, &statistics);
        read_memory_statistics(path, &statistics);
        statistics.n_processes = read_cgroup_number(path, "pids", "pids.current");
        cgroup_pressure(path, "cpu", &statistics.cpu_pressure);
        cgroup_pressure(path, "memory", &statistics.memory_pressure);
        cgroup_pressure(path, "io", &statistics.io_pressure);
        cgroup_disk_usages(path, &statistics.disks);
        *ret = statistics;
        return 0;
}
