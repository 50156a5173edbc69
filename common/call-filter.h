/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A filter of system calls (seccomp) for a process that handles untrusted bytes, such as the output
 * of containers, without libseccomp, which would cost each of these processes memory and time.
 * Allowed are calls that act on descriptors that the process has, and private memory that is not
 * executable; all others fail with EPERM. 0 or -errno. */
int call_filter_install(void);
