/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/inhibit-delay-max.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>

int inhibit_delay_max_raise(SystemdClient *systemd, const char *conf_dir, uint64_t usec,
                            Error *reterr) {
        cleanup_close int dir_fd = -EBADF;
        char text[96];
        int n, r;

        if (mkdir(conf_dir, 0755) < 0 && errno != EEXIST)
                return error_setf(reterr, errno, "cannot create %s: %s", conf_dir, strerror(errno));
        dir_fd = open(conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return error_setf(reterr, errno, "cannot open %s: %s", conf_dir, strerror(errno));
        n = snprintf(text, sizeof(text),
                     "# Written by mainstayd, until the next boot.\n"
                     "[Login]\nInhibitDelayMaxSec=%" PRIu64 "\n",
                     (usec + USEC_PER_SEC - 1) / USEC_PER_SEC);
        r = write_file_atomic_at(dir_fd, "50-mainstay.conf", text, (size_t) n, 0644);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot write %s/50-mainstay.conf", conf_dir);
        return systemd_client_kill_unit(systemd, "systemd-logind.service", SIGHUP, reterr);
}
