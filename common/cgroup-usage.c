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
        if (r >= 0)
                r = read_number("/proc/meminfo", "MemFree:", &free_kib);
        if (r >= 0)
                *ret = (total_kib - MIN(free_kib, total_kib)) * KIB;
        return r;
}

int cgroup_usage(const char *path, CgroupUsage *ret) {
        CgroupUsage usage = { .taken_at = now_realtime_usec() };
        uint64_t inactive = 0;
        int r = read_cgroup_counter(path, cpu_counters, &usage.cpu_nsec);

        if (r >= 0)
                r = read_root_memory_usage(path, &usage.working_set_bytes);
        if (r >= 0)
                r = read_cgroup_counter(path, inactive_counters, &inactive);
        if (r < 0)
                return r;
        if (cgroup_version() == 2)
                usage.cpu_nsec *= 1000; /* in microseconds there */
        usage.working_set_bytes -= MIN(usage.working_set_bytes, inactive);
        *ret = usage;
        return 0;
}
