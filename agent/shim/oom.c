/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/oom.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <signal.h>

/* "oom_kill <n>" is a line in memory.events and in version 1's memory.oom_control; on version 2 it
 * includes the cgroups below. */
static int read_oom_kills(const char *events_file, uint64_t *ret) {
        static const char key[] = "oom_kill ";
        cleanup_close int fd = open(events_file, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = fd < 0 ? -errno : read_stream(fd, 4 * KIB, &text, NULL);

        if (r < 0)
                return r;
        *ret = 0;
        rest = text;
        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, key, strlen(key)) == 0)
                        *ret = strtoull(line + strlen(key), NULL, 10);
        return 0;
}

/* <pod>/<container>/memory.events -> <pod>/memory.events */
static char *file_of_pod(const char *events_file) {
        const char *name = strrchr(events_file, '/');
        const char *group = name ? memrchr(events_file, '/', (size_t) (name - events_file)) : NULL;

        return group ? text_format("%.*s%s", (int) (group - events_file), events_file, name) : NULL;
}

uint64_t oom_kills_of_pod(const char *events_file) {
        cleanup_free char *file = file_of_pod(events_file);
        uint64_t kills = 0;

        if (file)
                (void) read_oom_kills(file, &kills);
        return kills;
}

bool oom_killed(const char *events_file, int signal, uint64_t before) {
        uint64_t kills = 0;

        if (read_oom_kills(events_file, &kills) >= 0)
                return kills > 0;
        return signal == SIGKILL && oom_kills_of_pod(events_file) > before;
}
