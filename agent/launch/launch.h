/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server's socket: the one of the socket unit, unless this variable names another one. */

#define LAUNCH_SOCKET          "/run/mainstay-launch.sock"
#define LAUNCH_SOCKET_VARIABLE "MAINSTAY_LAUNCH_SOCKET"
