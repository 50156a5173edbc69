/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The socket of the server: that of the socket unit, unless the variable names another one. */

#define LAUNCH_SOCKET          "/run/mainstay-launch.sock"
#define LAUNCH_SOCKET_VARIABLE "MAINSTAY_LAUNCH_SOCKET"
