/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this machine is in Go's words, which are those of images and of node labels: "amd64",
 * "arm64". What Go has no word for is called as the kernel does. Static. */
const char *machine_architecture(void);

/* The highest variant of it that runs here, as 8 for "v8"; 0 where there are none. */
unsigned machine_variant(void);
