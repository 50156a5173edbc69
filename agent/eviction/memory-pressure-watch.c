/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/memory-pressure-watch.h"

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* A window that is a multiple of two seconds needs no privilege. */
static const char psi_trigger[] = "some 200000 2000000";

struct MemoryPressureWatch {
        sd_event *event; /* borrowed */
        memory_pressure_t on_pressure;
        void *userdata;
        sd_event_source *stalls;
        bool has_memcg;
        sd_event_source *growth;
        char *usage_path, *control_path; /* directory of the root of the memory hierarchy */
};

static int on_memory_stall(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        MemoryPressureWatch *watch = userdata;

        if (revents & EPOLLERR)
                watch->stalls = sd_event_source_disable_unref(watch->stalls);
        watch->on_pressure(watch->userdata);
        return 0;
}

/* A registration is valid for one notification. */
static int on_memory_growth(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        MemoryPressureWatch *watch = userdata;

        watch->growth = sd_event_source_disable_unref(watch->growth);
        watch->on_pressure(watch->userdata);
        return 0;
}

static int watch_memory_stalls(MemoryPressureWatch *watch) {
        cleanup_close int fd =
                open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        if (write(fd, psi_trigger, sizeof(psi_trigger)) < 0)
                return -errno;
        r = sd_event_add_io(watch->event, &watch->stalls, fd, EPOLLPRI, on_memory_stall, watch);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(watch->stalls, "memory-stalls");
        r = sd_event_source_set_io_fd_own(watch->stalls, true);
        if (r < 0)
                return r;
        fd = -EBADF;
        return 0;
}

int memory_pressure_watch_new(sd_event *event, bool has_memcg, memory_pressure_t on_pressure,
                              void *userdata, MemoryPressureWatch **ret) {
        MemoryPressureWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        *watch = (MemoryPressureWatch){
                .event = event,
                .on_pressure = on_pressure,
                .userdata = userdata,
                .has_memcg = has_memcg && cgroup_version() == 1,
        };
        if (watch->has_memcg) {
                watch->usage_path = cgroup_file("/", "memory", "memory.usage_in_bytes");
                watch->control_path = cgroup_file("/", "memory", "cgroup.event_control");
        }
        r = watch->has_memcg && (!watch->usage_path || !watch->control_path)
                    ? -ENOMEM
                    : watch_memory_stalls(watch);
        if (r == -ENOMEM) {
                memory_pressure_watch_free(watch);
                return r;
        }
        if (r < 0)
                log_info("Memory pressure (PSI) is not available: %s; observing memory more often",
                         strerror(-r));
        *ret = watch;
        return 0;
}

MemoryPressureWatch *memory_pressure_watch_free(MemoryPressureWatch *watch) {
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->stalls);
        sd_event_source_disable_unref(watch->growth);
        free(watch->usage_path);
        free(watch->control_path);
        free(watch);
        return NULL;
}

bool memory_pressure_watch_is_active(const MemoryPressureWatch *watch) {
        return watch->stalls || watch->growth;
}

/* "<eventfd> <descriptor of the usage file> <bytes>"; closing the eventfd unregisters it. */
static int register_memory_growth(const MemoryPressureWatch *watch, int event_fd, int64_t bytes) {
        cleanup_close int usage_fd = open(watch->usage_path, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        char line[64];
        int r = usage_fd < 0 ? -errno : read_stream(usage_fd, sizeof(line), &text, NULL);

        if (r < 0 || !text)
                return r < 0 ? r : -ENODATA;
        (void) snprintf(line, sizeof(line), "%d %d %llu", event_fd, usage_fd,
                        strtoull(text, NULL, 10) + (unsigned long long) bytes);
        return write_value_at(AT_FDCWD, watch->control_path, line);
}

static int watch_memory_growth(MemoryPressureWatch *watch, int64_t bytes) {
        cleanup_close int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r;

        if (fd < 0)
                return -errno;
        r = register_memory_growth(watch, fd, bytes);
        if (r < 0)
                return r;
        r = sd_event_add_io(watch->event, &watch->growth, fd, EPOLLIN, on_memory_growth, watch);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(watch->growth, true);
        if (r < 0)
                return r;
        (void) TAKE_FD(fd);
        return 0;
}

void memory_pressure_watch_set_growth(MemoryPressureWatch *watch, int64_t bytes) {
        int r;

        if (!watch->has_memcg || bytes <= 0)
                return;
        watch->growth = sd_event_source_disable_unref(watch->growth);
        r = watch_memory_growth(watch, bytes);
        if (r >= 0)
                return;
        watch->growth = sd_event_source_disable_unref(watch->growth);
        watch->has_memcg = false;
        log_warning("kernelMemcgNotification is ignored: the kernel does not report memory usage: "
                    "%s",
                    strerror(-r));
}
