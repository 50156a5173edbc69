/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Failpoints, like fail(9): places where a test can make a program fail or die. They are compiled
 * in with MAINSTAY_FAILPOINTS; otherwise they cost nothing and cannot be enabled. The names of a
 * program's failpoints are in its ELF section "failpoints" (tests/failpoints prints them). The
 * action at each one is in the file that MAINSTAY_FAILPOINTS names in the environment: 4096 bytes
 * of lines, padded with NUL, then a uint32_t for each line, which counts how often any process
 * passed it. A line is
 *
 *     PROGRAM:NAME=[N*]TERM[->[N*]TERM...]
 *
 * "3*off->1*panic" does nothing three times and then kills the process once; after the last term
 * nothing happens. A term without N* applies forever. The terms:
 *
 *     off            nothing
 *     panic          the process gets SIGKILL
 *     return(EIO)    the operation fails with this error (EIO, ENOSPC, EROFS, ENOMEM, EAGAIN)
 *     sleep(MS)      the process waits
 *
 * Every allocation of mainstayd, mainstay-shim, mainstay-image and their libraries passes the
 * failpoint "alloc": malloc(), calloc(), realloc() and strdup(). It always fails with ENOMEM,
 * regardless of the error in the term.
 */

#ifdef MAINSTAY_FAILPOINTS
#include <stdbool.h>

/* 0, or the -errno with which the operation must fail. */
int failpoint_pass(const char *name);

/* For unit tests, without a file: makes only the n-th allocation from now on fail, counted from 1
 * over all threads of this process. 0: none. */
void failpoint_fail_allocation(unsigned n);

/* Whether that allocation was reached. */
bool failpoint_allocation_has_failed(void);

/* For a library that does not survive failed allocations: from here on no allocation fails; the
 * second function ends this, and returns whether one should have failed in the meantime. For one
 * thread only; calls must not be nested. */
void failpoint_hold_allocations(void);
bool failpoint_release_allocations(void);

/* Whether any failpoint is configured. */
bool failpoint_is_armed(void);

/* Called for an allocation that should fail: returns whether allocations are held, in which case it
 * must succeed, and failpoint_release_allocations() reports it. */
bool failpoint_hold_failure(void);

#define FAILPOINT(name)                                                                           \
        ({                                                                                        \
                static const char failpoint_name[] __attribute__((section("failpoints"))) = name; \
                failpoint_pass(failpoint_name);                                                   \
        })

/* In a function that returns 0 or -errno: returns if the failpoint fails. */
#define FAIL_AT(name)                              \
        do {                                       \
                int failpoint_r = FAILPOINT(name); \
                if (failpoint_r < 0)               \
                        return failpoint_r;        \
        } while (false)

/* For a place that cannot fail. */
#define DIE_AT(name) ((void) FAILPOINT(name))
#else
#define FAIL_AT(name) ((void) 0)
#define DIE_AT(name)  ((void) 0)
#endif
