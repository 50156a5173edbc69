/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Called by libFuzzer, or by replay.c if libFuzzer is not available. For any bytes there must be no
 * crash, no report of a sanitizer, and no violation of the contract in the module's header. */

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's: NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
