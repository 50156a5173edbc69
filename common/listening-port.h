/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Whether a TCP socket of this network namespace listens at the port, on any address: 1 or 0; or
 * -errno. Connects to nothing, so it starts no program that systemd would start. Does not block. */
int port_has_listener(uint16_t port);
