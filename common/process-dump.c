/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process-dump.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        PROC_PATH_SIZE = 64,
        DESCRIPTOR_TARGET_SIZE = 256,
        PROC_STAT_SIZE = 1024,
};

/* The kinds of descriptors, by the beginning of the link in /proc/self/fd; the last kind is
 * everything else. */
static const struct {
        const char *prefix;
        const char *name;
} descriptor_kinds[] = {
        { "socket:", "sockets" },
        { "anon_inode:[pidfd]", "pidfds" },
        { "anon_inode:inotify", "inotify" },
        { "anon_inode:[timerfd]", "timerfds" },
        { "anon_inode:[signalfd]", "signalfds" },
        { "anon_inode:[eventpoll]", "epoll" },
        { "anon_inode:[eventfd]", "eventfds" },
        { "pipe:", "pipes" },
        { "", "files" },
};

static size_t kind_of_descriptor(int fd) {
        char path[PROC_PATH_SIZE], target[DESCRIPTOR_TARGET_SIZE];
        size_t i = 0;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        target[MAX(n, 0)] = '\0';
        while (strncmp(target, descriptor_kinds[i].prefix, strlen(descriptor_kinds[i].prefix)) != 0)
                i++;
        return i;
}

/* sd-event does not list its sources. The kernel lists the events that its epoll descriptor waits
 * for; all timers on a clock are one timerfd. */
static void dump_watched_descriptors(sd_event *event, FILE *out) {
        size_t counts[N_ELEMENTS(descriptor_kinds)] = { 0 }, n = 0;
        cleanup_fclose FILE *info = NULL;
        char path[PROC_PATH_SIZE], line[DESCRIPTOR_TARGET_SIZE];

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sd_event_get_fd(event));
        info = fopen(path, "re");
        if (!info)
                return;
        while (fgets(line, sizeof(line), info)) {
                int fd;

                if (sscanf(line, "tfd: %d", &fd) != 1)
                        continue;
                counts[kind_of_descriptor(fd)]++;
                n++;
        }
        dump_line(out, 1, "event sources: %zu descriptors", n);
        for (size_t i = 0; i < N_ELEMENTS(counts); i++)
                if (counts[i] > 0)
                        dump_line(out, 2, "%s: %zu", descriptor_kinds[i].name, counts[i]);
}

static void dump_event_loop(sd_event *event, FILE *out) {
        uint64_t iterations = 0;

        if (sd_event_get_iteration(event, &iterations) >= 0)
                dump_line(out, 1, "event loop: %" PRIu64 " iterations", iterations);
        dump_watched_descriptors(event, out);
}

static void dump_memory(FILE *out) {
        static const char *const keys[] = { "VmHWM:", "VmRSS:", "RssAnon:", "VmSwap:" };
        cleanup_fclose FILE *status = fopen("/proc/self/status", "re");
        struct mallinfo2 heap = mallinfo2();
        char line[DESCRIPTOR_TARGET_SIZE];

        while (status && fgets(line, sizeof(line), status)) {
                unsigned long long kib;

                for (size_t i = 0; i < N_ELEMENTS(keys); i++)
                        if (strncmp(line, keys[i], strlen(keys[i])) == 0 &&
                            sscanf(line + strlen(keys[i]), "%llu", &kib) == 1)
                                dump_line(out, 1, "memory %.*s: %llu KiB",
                                          (int) strlen(keys[i]) - 1, keys[i], kib);
        }
        dump_line(out, 1, "heap: %zu KiB in use, %zu KiB free", (heap.uordblks + heap.hblkhd) / KIB,
                  heap.fordblks / KIB);
}

/* Field 22 of proc_pid_stat(5): the start time of the process, in ticks since boot. */
static void dump_uptime(FILE *out) {
        cleanup_fclose FILE *stat = fopen("/proc/self/stat", "re");
        char line[PROC_STAT_SIZE], uptime[DUMP_DURATION_SIZE];
        unsigned long long ticks;
        const char *rest;

        if (!stat || !fgets(line, sizeof(line), stat))
                return;
        rest = strrchr(line, ')');
        if (!rest || sscanf(rest + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu",
                            &ticks) != 1)
                return;
        dump_line(out, 1, "uptime: %s",
                  dump_format_duration(uptime, now_boottime_usec() -
                                                       ticks * USEC_PER_SEC /
                                                               (uint64_t) sysconf(_SC_CLK_TCK)));
}

void process_dump(sd_event *event, FILE *out) {
        dump_section(out, "Process");
        dump_line(out, 1, "pid: %d", (int) getpid());
        dump_uptime(out);
        dump_event_loop(event, out);
        dump_memory(out);
}
