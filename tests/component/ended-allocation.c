/* SPDX-License-Identifier: Apache-2.0 */
/* Run by system/test_failed_allocations_images.py: the allocation that the argument selects fails
 * in the allocator of mainstay-image as it is shipped, without sanitizers and failpoints. Exit
 * status 0: the program survived. */

#include "agent/image-helper/process/parent-check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile size_t large = PTRDIFF_MAX / 2, half = PTRDIFF_MAX / 4;
static volatile int width = 1 << 30;
static void *volatile memory;

static void fail_malloc(void) {
        memory = malloc(large);
}

static void fail_calloc(void) {
        memory = calloc(half, 2);
}

static void fail_overflowing_calloc(void) {
        memory = calloc(large, 8);
}

static void fail_realloc(void) {
        memory = realloc(malloc(10), large);
}

static void fail_reallocarray(void) {
        memory = reallocarray(NULL, half, 2);
}

static void fail_aligned_alloc(void) {
        memory = aligned_alloc(64, large);
}

static void fail_posix_memalign(void) {
        void *aligned = NULL;

        (void) posix_memalign(&aligned, 64, large);
        memory = aligned;
}

/* The function of the C library. */
static void fail_asprintf(void) {
        char *text = NULL;

        (void) !asprintf(&text, "%*s", width, "");
        memory = text;
}

/* Returns its status. */
static void fail_in_child(void) {
        int status = 0;
        pid_t pid = parent_check_fork();

        if (pid == 0) {
                fail_malloc();
                _exit(EXIT_SUCCESS);
        }
        if (pid > 0 && waitpid(pid, &status, 0) == pid)
                exit(WEXITSTATUS(status));
}

/* No allocation fails here. */
static void survive(void) {
        char *text = strdup("a text");
        void *aligned = NULL;
        size_t nothing = strtoul("0", NULL, 10); /* hidden from the analyzer */

        text = realloc(text, 1000);
        if (strcmp(text, "a text") != 0 || !calloc(3, 5) || malloc(nothing) == text ||
            posix_memalign(&aligned, 256, 100) != 0 || (uintptr_t) aligned % 256 != 0 ||
            (uintptr_t) aligned_alloc(4096, 8192) % 4096 != 0)
                abort();
        memory = calloc(nothing, large);
        memory = realloc(text, nothing);
        free(aligned);
}

static const struct {
        const char *name;
        void (*run)(void);
} cases[] = {
        { "malloc", fail_malloc },
        { "calloc", fail_calloc },
        { "overflow", fail_overflowing_calloc },
        { "realloc", fail_realloc },
        { "reallocarray", fail_reallocarray },
        { "aligned_alloc", fail_aligned_alloc },
        { "posix_memalign", fail_posix_memalign },
        { "asprintf", fail_asprintf },
        { "child", fail_in_child },
        { "survive", survive },
};

int main(int argc, char **argv) {
        static const struct rlimit limit = { 256 << 20, 256 << 20 };

        if (setrlimit(RLIMIT_AS, &limit) < 0)
                return EXIT_FAILURE;
        for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
                if (strcmp(argv[1], cases[i].name) == 0) {
                        cases[i].run();
                        return EXIT_SUCCESS;
                }
        return EXIT_FAILURE;
}
