/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process-usage.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <unistd.h>

enum {
        LIMITS_MAX = 16 * 1024,
        PIDS_SIZE = 1024, /* bytes of a list that are read: PROCESSES_MAX numbers with 7 digits */
};

uint64_t open_files_max_parse(const char *text) {
        static const char name[] = "Max open files";
        const char *line = strstr(text, name);
        char *end;
        uint64_t limit;

        if (!line)
                return 0;
        line += strlen(name);
        line += strspn(line, " ");
        if (strncmp(line, "unlimited", strlen("unlimited")) == 0)
                return OPEN_FILES_UNLIMITED;
        limit = strtoull(line, &end, 10);
        return end > line ? MIN(limit, OPEN_FILES_UNLIMITED) : 0;
}

static uint64_t read_open_files_max(pid_t pid) {
        cleanup_free char *text = NULL;
        cleanup_close int fd = -EBADF;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/limits", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read_stream(fd, LIMITS_MAX, &text, NULL) < 0)
                return 0;
        return open_files_max_parse(text);
}

/* The link names a descriptor's target without touching it: stat(2) on a file may block on its file
 * system. */
static bool is_socket_link(int dir_fd, const char *name) {
        static const char prefix[] = "socket:";
        char target[sizeof(prefix)];

        return readlinkat(dir_fd, name, target, sizeof(target)) >= (ssize_t) strlen(prefix) &&
               memcmp(target, prefix, strlen(prefix)) == 0;
}

static void add_process_descriptors(pid_t pid, ProcessUsage *usage) {
        cleanup_closedir DIR *dir = NULL;
        struct dirent *entry;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
        dir = opendir(path);
        while (dir && usage->n_descriptors < PROCESS_USAGE_DESCRIPTORS_MAX &&
               (entry = readdir(dir))) {
                if (entry->d_name[0] == '.')
                        continue;
                usage->n_descriptors++;
                if (is_socket_link(dirfd(dir), entry->d_name))
                        usage->n_sockets++;
        }
}

int process_usage_of_cgroup(const char *procs_file, pid_t first, ProcessUsage *ret) {
        cleanup_close int fd = open(procs_file, O_RDONLY | O_CLOEXEC);
        ProcessUsage usage = { 0 };
        char pids[PIDS_SIZE + 1], *line = pids, *end;
        ssize_t n = fd < 0 ? -1 : read(fd, pids, PIDS_SIZE);

        if (n < 0)
                return -errno;
        pids[n] = '\0';
        for (unsigned i = 0; i < PROCESS_USAGE_PROCESSES_MAX; i++) {
                long pid = strtol(line, &end, 10);

                if (end == line || *end != '\n') /* the end, or a truncated number */
                        break;
                line = end + 1;
                if (pid > 0) /* 0 stands for a process in another PID namespace */
                        add_process_descriptors((pid_t) pid, &usage);
        }
        usage.open_files_max = read_open_files_max(first);
        *ret = usage;
        return 0;
}
