/* SPDX-License-Identifier: Apache-2.0 */

/* This file is only for the program mainstay-image, which exits if an allocation fails, and is
 * started again later. Libraries that parse untrusted bytes do not all survive a failed allocation:
 * libarchive (3.6) writes through a pointer that it has not checked, or returns an entry without
 * its name; libcurl returns partial results. Memory is limited, so an image can provoke this.
 *
 * Functions that a program defines under these names are also called by its libraries. A sanitizer
 * has its own allocators; in tests with failing allocations, failing-allocations.c calls
 * end_for_lack_of_memory(). */

#include "agent/image-helper/process/parent-check.h"
#include "common/failpoint.h"
#include "common/macros.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

void end_for_lack_of_memory(void);

static const char complaint[] = "mainstay-image: Cannot allocate memory\n";

/* Allocates nothing, and no handler runs on incomplete objects. A child leaves the message to its
 * parent. */
void end_for_lack_of_memory(void) {
        if (!parent_check_is_child())
                (void) !write(STDERR_FILENO, complaint, strlen(complaint));
        (void) syscall(SYS_exit_group, EX_TEMPFAIL);
}

#if defined(__GLIBC__) && !defined(MAINSTAY_FAILPOINTS) && !HAS_SANITIZER

/* The names are those of the C library.
 * NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming,
 *             readability-inconsistent-declaration-parameter-name) */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void *check_allocation(void *memory, size_t size) {
        if (!memory && size > 0)
                end_for_lack_of_memory();
        return memory;
}

static void *allocate_or_end(size_t size) {
        return check_allocation(__libc_malloc(size), size);
}

static void *allocate_array_or_end(size_t n, size_t size) {
        return check_allocation(__libc_calloc(n, size), n > 0 ? size : 0);
}

static void *resize_or_end(void *old, size_t size) {
        return check_allocation(__libc_realloc(old, size), size);
}

static void *allocate_aligned_or_end(size_t alignment, size_t size) {
        return check_allocation(__libc_memalign(alignment, size), size);
}

static int set_aligned_or_end(void **ret, size_t alignment, size_t size) {
        *ret = allocate_aligned_or_end(alignment, size);
        return 0;
}

void *malloc(size_t size) __attribute__((alias("allocate_or_end")));
void *calloc(size_t n, size_t size) __attribute__((alias("allocate_array_or_end")));
void *realloc(void *old, size_t size) __attribute__((alias("resize_or_end")));
void *aligned_alloc(size_t alignment, size_t size)
        __attribute__((alias("allocate_aligned_or_end")));
int posix_memalign(void **ret, size_t alignment, size_t size)
        __attribute__((alias("set_aligned_or_end")));
/* NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming,
 *           readability-inconsistent-declaration-parameter-name) */

#endif
