/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a TCP socket in this network namespace listens on a port. It does not connect, so it
 * starts no program that systemd would start. */

#include <stdint.h>

/* On any address: 1 or 0; or -errno. Does not block. */
int port_has_listener(uint16_t port);
