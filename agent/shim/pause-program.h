/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The program of agent/pause/, which is embedded in this one. */

/* A sealed memory file with the program, executable by everybody; the caller closes it. Its bytes
 * cannot be changed, and its mode and owner do not belong to any file of the node. -errno, such as
 * -EACCES if the sysctl vm.memfd_noexec is 2. */
int pause_program_open(void);
