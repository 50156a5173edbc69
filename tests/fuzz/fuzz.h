/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What libFuzzer calls, and replay.c where there is no libFuzzer. The bytes may be anything; what
 * must not happen is a crash, a sanitizer's report, or a promise of the room's header broken. */

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's: NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
