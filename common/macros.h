/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The few macros that every file may use. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define KIB ((size_t) 1024)
#define MIB (KIB * 1024)

/* Sanitizers inspect their own process, and read files when they report. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

#define printf_like(text, first) __attribute__((format(printf, text, first)))
#define cleanup_with(fn)         __attribute__((cleanup(fn)))

/* Transfer ownership out of a variable, which is reset. */
#define TAKE_PTR(ptr)                              \
        ({                                         \
                __typeof__(ptr) take_ptr_ = (ptr); \
                (ptr) = NULL;                      \
                take_ptr_;                         \
        })

#define TAKE_FD(fd)                  \
        ({                           \
                int take_fd_ = (fd); \
                (fd) = -EBADF;       \
                take_fd_;            \
        })

/* Defines name ## p(), so that a variable of type 'type' can be declared cleanup_with(name ## p).
 */
#define DEFINE_CLEANUP(type, name)                \
        static inline void name##p(type *value) { \
                if (*value)                       \
                        name(*value);             \
        }

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* String equality; NULL equals only NULL. */
static inline bool streq_ptr(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline const char *strna(const char *s) {
        return s ? s : "";
}
