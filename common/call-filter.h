/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A system call filter (seccomp) for a process that handles untrusted bytes, such as the output of
 * containers. It does without libseccomp, which would cost each of these processes memory and time.
 * It allows calls on descriptors that the process already has, and private memory that is not
 * executable; all others fail with EPERM. 0 or -errno. */
int call_filter_install(void);
