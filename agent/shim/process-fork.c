/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/process-fork.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t process_fork(void) {
        return (pid_t) syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}
