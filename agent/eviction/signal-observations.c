/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/signal-observations.h"

#include "common/cgroup-usage.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
        FILE_MAX = 64 * 1024
};

/* The kubelet's rule: free memory and inactive file pages are available. */
static void observe_memory(const char *pods_group, SignalObservations *observations) {
        MachineMemory memory;
        CgroupUsage used;
        int64_t total;

        if (machine_memory_usage(&memory) < 0 || memory.total_bytes == 0)
                return;
        total = (int64_t) memory.total_bytes;
        observations->of[EVICTION_MEMORY] = (SignalObservation){
                true, (int64_t) (memory.free_bytes + memory.inactive_file_bytes), total
        };
        /* All of the capacity is allocatable. */
        if (pods_group && cgroup_usage(pods_group, &used) >= 0 && !used.lacks_memory)
                observations->of[EVICTION_ALLOCATABLE_MEMORY] =
                        (SignalObservation){ true, total - (int64_t) used.working_set_bytes,
                                             total };
}

/* Whether it is read-only. */
static bool observe_fs(const char *directory, SignalObservation *ret_bytes,
                       SignalObservation *ret_inodes) {
        struct statvfs st;

        if (statvfs(directory, &st) < 0)
                return false;
        if (st.f_blocks > 0)
                *ret_bytes = (SignalObservation){ true, (int64_t) (st.f_bavail * st.f_frsize),
                                                  (int64_t) (st.f_blocks * st.f_frsize) };
        if (st.f_files > 0) /* some file systems have a dynamic number */
                *ret_inodes =
                        (SignalObservation){ true, (int64_t) st.f_favail, (int64_t) st.f_files };
        return (st.f_flag & ST_RDONLY) != 0;
}

/* The kernel counts threads: the fourth field of loadavg, after the slash. */
static void observe_pids(SignalObservation *ret) {
        cleanup_free char *max = NULL, *threads_max = NULL, *load = NULL;
        const char *slash;
        int64_t capacity;

        if (read_file_at(AT_FDCWD, "/proc/sys/kernel/pid_max", FILE_MAX, &max, NULL) < 0 ||
            read_file_at(AT_FDCWD, "/proc/sys/kernel/threads-max", FILE_MAX, &threads_max, NULL) <
                    0 ||
            read_file_at(AT_FDCWD, "/proc/loadavg", FILE_MAX, &load, NULL) < 0)
                return;
        slash = strchr(load, '/');
        capacity = MIN(strtoll(max, NULL, 10), strtoll(threads_max, NULL, 10));
        if (slash && capacity > 0)
                *ret = (SignalObservation){ true, capacity - strtoll(slash + 1, NULL, 10),
                                            capacity };
}

void observe_eviction_signals(const ObservedPaths *paths, SignalObservations *ret) {
        SignalObservations now = { 0 };

        observe_memory(paths->pods_group, &now);
        now.is_read_only = observe_fs(paths->state_dir, &now.of[EVICTION_NODE_FS],
                                      &now.of[EVICTION_NODE_FS_INODES]);
        (void) observe_fs(paths->images_dir, &now.of[EVICTION_IMAGE_FS],
                          &now.of[EVICTION_IMAGE_FS_INODES]);
        now.of[EVICTION_CONTAINER_FS] = now.of[EVICTION_NODE_FS];
        now.of[EVICTION_CONTAINER_FS_INODES] = now.of[EVICTION_NODE_FS_INODES];
        observe_pids(&now.of[EVICTION_PIDS]);
        *ret = now;
}

bool has_dedicated_image_fs(const ObservedPaths *paths) {
        struct stat state, images;

        return stat(paths->state_dir, &state) >= 0 && stat(paths->images_dir, &images) >= 0 &&
               state.st_dev != images.st_dev;
}

static FilesystemUsage filesystem_usage_of_signals(const SignalObservation *bytes,
                                                   const SignalObservation *inodes) {
        return (FilesystemUsage){ .capacity = (uint64_t) bytes->capacity,
                                  .available = (uint64_t) bytes->available,
                                  .used = (uint64_t) (bytes->capacity - bytes->available),
                                  .inodes = (uint64_t) inodes->capacity,
                                  .inodes_free = (uint64_t) inodes->available };
}

NodeStats node_stats_of_observations(const SignalObservations *observed) {
        const SignalObservation *of = observed->of, *pids = &of[EVICTION_PIDS];

        return (NodeStats){
                .filesystem = filesystem_usage_of_signals(&of[EVICTION_NODE_FS],
                                                          &of[EVICTION_NODE_FS_INODES]),
                .image_filesystem = filesystem_usage_of_signals(&of[EVICTION_IMAGE_FS],
                                                                &of[EVICTION_IMAGE_FS_INODES]),
                .pids_max = (uint64_t) pids->capacity,
                .pids = (uint64_t) (pids->capacity - pids->available),
        };
}
