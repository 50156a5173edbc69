/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who may have programs started. A process of root without privileges, for example of a container,
 * would get those of the server: only processes of the agent's unit may. */

#include <stdbool.h>

/* Whether /proc/PID/cgroup, which is 'text', is of a process of this unit of systemd. A control
 * group of that name which a container has created below its own is another one. Pure. */
bool cgroup_text_is_of_unit(const char *text, const char *unit);

/* Whether the peer of the connection has the server's user, and belongs to the unit; NULL: to any.
 * Logs why not. */
bool launch_peer_is_permitted(int connection_fd, const char *unit);
