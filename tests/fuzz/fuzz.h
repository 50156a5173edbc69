/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The entry point for libFuzzer, and for replay.c without libFuzzer. The bytes may be anything; a
 * crash, a sanitizer's report, or a violation of the module's header is a failure. */

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's: NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
