/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the server listens: the socket unit of that name, unless the variable names another one. */

#define LAUNCH_SOCKET          "/run/mainstay-launch.sock"
#define LAUNCH_SOCKET_VARIABLE "MAINSTAY_LAUNCH_SOCKET"
