/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail on demand, for programs and tests. LeakSanitizer recognizes allocations of
 * the dynamic linker by their caller, and otherwise reads all debug information at each exit. So
 * that it sees this caller, the functions must tail-call those of the sanitizer, as they do with
 * optimization. */

#include "common/failpoint.h"

#ifdef MAINSTAY_FAILPOINTS

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the program defines functions with these names, its libraries, including libc, also call them.
 * They may be called before a sanitizer is ready, so they are not instrumented. */
#ifdef __SANITIZE_ADDRESS__
#define REAL(name) __interceptor_##name
#define PLAIN      __attribute__((no_sanitize("address", "undefined")))
#else
#define REAL(name) __libc_##name
#define PLAIN
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *old, size_t size);

static unsigned failing_allocation, passed_allocations;

void failpoint_fail_allocation(unsigned n) {
        failing_allocation = n;
        passed_allocations = 0;
}

bool failpoint_allocation_has_failed(void) {
        return failing_allocation > 0 && passed_allocations >= failing_allocation;
}

/* For a program that does not continue without memory. */
__attribute__((weak)) void end_for_lack_of_memory(void);

PLAIN static bool is_failing_allocation(void) {
        if (failing_allocation > 0 &&
            __atomic_add_fetch(&passed_allocations, 1, __ATOMIC_SEQ_CST) == failing_allocation)
                return true;
        return failpoint_is_armed() && FAILPOINT("alloc") < 0;
}

PLAIN static bool allocation_fails(void) {
        if (!is_failing_allocation() || failpoint_hold_failure())
                return false;
        if (end_for_lack_of_memory)
                end_for_lack_of_memory();
        errno = ENOMEM;
        return true;
}

PLAIN void *malloc(size_t size) {
        return allocation_fails() ? NULL : REAL(malloc)(size);
}

PLAIN void *calloc(size_t n, size_t size) {
        return allocation_fails() ? NULL : REAL(calloc)(n, size);
}

PLAIN void *realloc(void *old, size_t size) {
        return allocation_fails() ? NULL : REAL(realloc)(old, size);
}

/* The sanitizer's own version would not call malloc(). */
PLAIN void *reallocarray(void *old, size_t n, size_t size) {
        size_t total;

        if (__builtin_mul_overflow(n, size, &total)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(old, total);
}

#undef strdup
PLAIN char *strdup(const char *text) {
        size_t size = strlen(text) + 1;
        char *copy = malloc(size);

        return copy ? memcpy(copy, text, size) : NULL;
}

#undef strndup
PLAIN char *strndup(const char *text, size_t n) {
        size_t length = strnlen(text, n);
        char *copy = malloc(length + 1);

        if (!copy)
                return NULL;
        copy[length] = '\0';
        return memcpy(copy, text, length);
}

/* libc's version writes one byte too many if the text has 100 characters and cannot be moved. */
#undef vasprintf
PLAIN int vasprintf(char **ret, const char *format, va_list arguments) {
        va_list again;
        int length;

        va_copy(again, arguments);
        length = vsnprintf(NULL, 0, format, again);
        va_end(again);
        if (length < 0)
                return -1;
        *ret = malloc((size_t) length + 1);
        return *ret ? vsnprintf(*ret, (size_t) length + 1, format, arguments) : -1;
}

#undef asprintf
PLAIN int asprintf(char **ret, const char *format, ...) {
        va_list arguments;
        int length;

        va_start(arguments, format);
        length = vasprintf(ret, format, arguments);
        va_end(arguments);
        return length;
}

#endif
