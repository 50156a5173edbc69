/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Go's name for the architecture of this machine, which images and node labels use: "amd64",
 * "arm64"; for others, the kernel's name. If 32-bit programs run on a 64-bit kernel, this is the
 * architecture of the programs, as in the kubelet, because the runtime and the plugins are also
 * such programs, and seccomp profiles apply to them. The text is static. */
const char *machine_architecture(void);

/* The highest variant that runs here, such as 8 for "v8"; 0 if the architecture has none. */
unsigned machine_variant(void);
