/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The disk I/O of a cgroup, and the time for which it has waited for resources (PSI). */

#include "common/macros.h"

#include <stdint.h>

/* A line of a pressure file, see Documentation/accounting/psi.rst of the kernel. */
typedef struct PressureShare {
        double avg10, avg60, avg300; /* percent */
        uint64_t total_usec;
} PressureShare;

typedef struct Pressure {
        bool is_known;            /* the kernel provides it for this cgroup */
        PressureShare some, full; /* time during which some, or all, processes waited */
} Pressure;

enum {
        DISK_USAGES_MAX = 16, /* for one cgroup; further ones are ignored */
        DISK_NAME_SIZE = 64,
};

typedef struct DiskUsage {
        unsigned major, minor;
        uint64_t read_bytes, written_bytes;
        uint64_t reads, writes;
} DiskUsage;

typedef struct DiskUsages {
        DiskUsage items[DISK_USAGES_MAX];
        size_t n;
} DiskUsages;

/* 'resource' is "cpu", "memory" or "io". Version 1 provides it only for "/", which is the
 * machine. */
void cgroup_pressure(const char *path, const char *resource, Pressure *ret);
void cgroup_disk_usages(const char *path, DiskUsages *ret);

/* "/dev/sda"; "" if the kernel has no name for the device. Returns the buffer. */
const char *disk_name(const DiskUsage *disk, char buffer[DISK_NAME_SIZE]);

/* The disk that contains the partition, because cgroups count per disk; a device that is not a
 * partition is returned unchanged. */
DiskUsage disk_of_partition(const DiskUsage *partition);

/* Parse the texts of the files: io.stat of version 2; with version 1, a file for bytes and one for
 * operations. Other lines are ignored; NULL is an empty text. Pure. */
void pressure_parse(const char *text, Pressure *ret);
void disk_usages_parse(const char *text, DiskUsages *ret);
void disk_usages_parse_v1(const char *bytes, const char *operations, DiskUsages *ret);
