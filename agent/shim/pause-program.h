/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The program of agent/pause/, which is part of this one. */

/* A sealed memory file that is the program, executable by everybody; the caller closes it. Nothing
 * can change its bytes, and its mode and owner are those of no file of the node. -errno, such as
 * -EACCES if the sysctl vm.memfd_noexec is 2. */
int pause_program_open(void);
