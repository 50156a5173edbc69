/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Determines which clients may start programs. An unprivileged process of root, for example in a
 * container, could obtain the server's privileges, so only processes in the agent's unit may do so.
 */

#include <stdbool.h>

/* Whether /proc/PID/cgroup, whose content is 'text', belongs to a process in this systemd unit. A
 * cgroup of the same name that a container has created below its own does not count. Pure. */
bool cgroup_text_is_of_unit(const char *text, const char *unit);

/* Whether the peer of the connection has the server's user and belongs to the unit; NULL: to any
 * unit. If not, logs the reason. */
bool launch_peer_is_permitted(int connection_fd, const char *unit);
