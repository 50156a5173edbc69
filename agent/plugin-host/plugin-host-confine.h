/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops everything that mainstay-plugins has, except its descriptors, before the first byte of a
 * plugin is read. */

#include "common/error.h"

/* If started as root, becomes the user "mainstay-plugins", or UID 65534; drops all capabilities and
 * disables core dumps; then permits only the system calls of a loop on existing sockets. 0 or
 * -errno with a message. */
int confine_plugin_host(Error *reterr);
