/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops all privileges of mainstay-plugins, except its open descriptors, before the first byte from
 * a plugin is read. */

#include "common/error.h"

/* If started as root, becomes the user "mainstay-plugins", or UID 65534; drops all capabilities and
 * disables core dumps; then permits only the system calls of a loop on existing sockets. 0 or
 * -errno with a message. */
int confine_plugin_host(Error *reterr);
