/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-peer.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        CGROUP_TEXT_MAX = 64 * 1024,
};

/* Slices contain units; cgroups below that of a unit belong to the unit. */
static bool path_is_of_unit(const char *path, size_t length, const char *unit) {
        static const char slice[] = ".slice";
        const char *end = path + length;

        while (path < end) {
                size_t n;

                path += *path == '/';
                n = strcspn(path, "/\n");
                if (n == strlen(unit) && memcmp(path, unit, n) == 0)
                        return true;
                if (n < strlen(slice) ||
                    memcmp(path + n - strlen(slice), slice, strlen(slice)) != 0)
                        return false;
                path += n;
        }
        return false;
}

/* systemd's hierarchy of cgroup v1, or the v2 hierarchy; systemd has both for each process. */
bool cgroup_text_is_of_unit(const char *text, const char *unit) {
        static const char *const hierarchies[] = { "0::", "1:name=systemd:" };

        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");

                for (size_t i = 0; i < N_ELEMENTS(hierarchies); i++) {
                        size_t n = strlen(hierarchies[i]);

                        if (length > n && memcmp(line, hierarchies[i], n) == 0 && line[n] == '/')
                                return path_is_of_unit(line + n, length - n, unit);
                }
                line += length + (line[length] == '\n');
        }
        return false;
}

static bool is_process_of_unit(pid_t pid, const char *unit) {
        cleanup_free char *text = NULL;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", (int) pid);
        return read_file_at(AT_FDCWD, path, CGROUP_TEXT_MAX, &text, NULL) >= 0 &&
               cgroup_text_is_of_unit(text, unit);
}

bool launch_peer_is_permitted(int connection_fd, const char *unit) {
        struct ucred peer = { 0 };
        socklen_t size = sizeof(peer);

        if (getsockopt(connection_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        if (peer.uid == geteuid() && (!unit || is_process_of_unit(peer.pid, unit)))
                return true;
        log_warning("Refused to start a program for process %d of user %u: only processes of root "
                    "in %s may do that",
                    (int) peer.pid, (unsigned) peer.uid, unit ? unit : "any unit");
        return false;
}
