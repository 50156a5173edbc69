/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pressure/doorbell.h"

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* A window that is a multiple of two seconds takes no privilege. */
static const char trigger[] = "some 200000 2000000";

struct Doorbell {
        sd_event *event; /* borrowed */
        doorbell_rings_t rings;
        void *userdata;
        sd_event_source *stalls;
        bool has_memcg;
        sd_event_source *growth;
        char *usage_path, *control_path; /* of the root of memory's hierarchy */
};

static int on_stall(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Doorbell *doorbell = userdata;

        if (revents & EPOLLERR)
                doorbell->stalls = sd_event_source_disable_unref(doorbell->stalls);
        doorbell->rings(doorbell->userdata);
        return 0;
}

/* Once: what is registered is behind us. */
static int on_growth(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Doorbell *doorbell = userdata;

        doorbell->growth = sd_event_source_disable_unref(doorbell->growth);
        doorbell->rings(doorbell->userdata);
        return 0;
}

static int listen_to_stalls(Doorbell *doorbell) {
        cleanup_close int fd =
                open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        if (write(fd, trigger, sizeof(trigger)) < 0)
                return -errno;
        r = sd_event_add_io(doorbell->event, &doorbell->stalls, fd, EPOLLPRI, on_stall, doorbell);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(doorbell->stalls, "memory-stalls");
        r = sd_event_source_set_io_fd_own(doorbell->stalls, true);
        if (r >= 0)
                fd = -EBADF;
        return r;
}

int doorbell_new(sd_event *event, bool has_memcg, doorbell_rings_t rings, void *userdata,
                 Doorbell **ret) {
        Doorbell *doorbell = calloc(1, sizeof(*doorbell));
        int r;

        if (!doorbell)
                return -ENOMEM;
        *doorbell = (Doorbell){
                .event = event,
                .rings = rings,
                .userdata = userdata,
                .has_memcg = has_memcg && cgroup_version() == 1,
        };
        if (doorbell->has_memcg) {
                doorbell->usage_path = cgroup_file("/", "memory", "memory.usage_in_bytes");
                doorbell->control_path = cgroup_file("/", "memory", "cgroup.event_control");
        }
        r = doorbell->has_memcg && (!doorbell->usage_path || !doorbell->control_path)
                    ? -ENOMEM
                    : listen_to_stalls(doorbell);
        if (r == -ENOMEM) {
                doorbell_free(doorbell);
                return r;
        }
        if (r < 0)
                log_info("The kernel does not tell of stalls for memory (%s), looking at it more "
                         "often",
                         strerror(-r));
        *ret = doorbell;
        return 0;
}

Doorbell *doorbell_free(Doorbell *doorbell) {
        if (!doorbell)
                return NULL;
        sd_event_source_disable_unref(doorbell->stalls);
        sd_event_source_disable_unref(doorbell->growth);
        free(doorbell->usage_path);
        free(doorbell->control_path);
        free(doorbell);
        return NULL;
}

bool doorbell_is_there(const Doorbell *doorbell) {
        return doorbell->stalls || doorbell->growth;
}

/* "<eventfd> <descriptor of what is counted> <bytes>"; it ends with the eventfd. */
static int register_growth(const Doorbell *doorbell, int event_fd, int64_t bytes) {
        cleanup_close int usage_fd = open(doorbell->usage_path, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        char line[64];
        int r = usage_fd < 0 ? -errno : read_stream(usage_fd, sizeof(line), &text, NULL);

        if (r < 0 || !text)
                return r < 0 ? r : -ENODATA;
        (void) snprintf(line, sizeof(line), "%d %d %llu", event_fd, usage_fd,
                        strtoull(text, NULL, 10) + (unsigned long long) bytes);
        return write_value_at(AT_FDCWD, doorbell->control_path, line);
}

void doorbell_set_distance(Doorbell *doorbell, int64_t bytes) {
        cleanup_close int fd = -EBADF;
        int r;

        if (!doorbell->has_memcg || bytes <= 0)
                return;
        doorbell->growth = sd_event_source_disable_unref(doorbell->growth);
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = fd < 0 ? -errno : register_growth(doorbell, fd, bytes);
        if (r >= 0)
                r = sd_event_add_io(doorbell->event, &doorbell->growth, fd, EPOLLIN, on_growth,
                                    doorbell);
        if (r >= 0)
                r = sd_event_source_set_io_fd_own(doorbell->growth, true);
        if (r >= 0) {
                (void) TAKE_FD(fd);
                return;
        }
        doorbell->growth = sd_event_source_disable_unref(doorbell->growth);
        doorbell->has_memcg = false;
        log_warning("kernelMemcgNotification has no effect: the kernel does not tell when memory "
                    "is used: %s",
                    strerror(-r));
}
