/* SPDX-License-Identifier: Apache-2.0 */
#include "common/failpoint.h"

#ifdef MAINSTAY_FAILPOINTS

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
        TEXT_SIZE = 4096,
        LINES_MAX = 64,
};

/* The memory is shared by all processes with the variable, including those that may no longer open
 * files. */
typedef struct FailpointFile {
        char text[TEXT_SIZE];
        uint32_t hits[LINES_MAX];
} FailpointFile;

static FailpointFile *failpoint_file;

__attribute__((constructor)) static void map_failpoint_file(void) {
        const char *path = getenv("MAINSTAY_FAILPOINTS");
        cleanup_close int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -EBADF;
        void *mapped;

        if (fd < 0)
                return;
        mapped = mmap(NULL, sizeof(FailpointFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        failpoint_file = mapped == MAP_FAILED ? NULL : mapped;
}

static int parse_failpoint_error(const char *term) {
        static const struct {
                const char *text;
                int error;
        } errors[] = {
                { "return(EIO)", EIO },       { "return(ENOSPC)", ENOSPC },
                { "return(EROFS)", EROFS },   { "return(ENOMEM)", ENOMEM },
                { "return(EAGAIN)", EAGAIN },
        };

        for (size_t i = 0; i < N_ELEMENTS(errors); i++)
                if (strncmp(term, errors[i].text, strlen(errors[i].text)) == 0)
                        return -errors[i].error;
        return 0;
}

static int do_failpoint_term(const char *term) {
        if (strncmp(term, "panic", strlen("panic")) == 0)
                (void) raise(SIGKILL);
        if (strncmp(term, "sleep(", strlen("sleep(")) == 0) {
                unsigned long ms = strtoul(term + strlen("sleep("), NULL, 10);

                (void) nanosleep(&(struct timespec){ .tv_sec = (time_t) (ms / 1000),
                                                     .tv_nsec = (long) (ms % 1000) * 1000000L },
                                 NULL);
        }
        return parse_failpoint_error(term);
}

/* The term for a hit, counted from 0; NULL if the last one is used up. */
static const char *find_failpoint_term(const char *terms, uint32_t hit) {
        for (;;) {
                size_t length = strcspn(terms, "\n");
                const char *next = memmem(terms, length, "->", 2);
                char *end;
                unsigned long n = strtoul(terms, &end, 10);

                if (end == terms || *end != '*')
                        return terms;
                if (hit < n)
                        return end + 1;
                if (!next)
                        return NULL;
                hit -= (uint32_t) n;
                terms = next + 2;
        }
}

/* The terms of a line for a failpoint of this program, or NULL. */
static const char *match_failpoint_line(const char *line, const char *name) {
        size_t program = strlen(program_invocation_short_name), length = strlen(name);

        if (strncmp(line, program_invocation_short_name, program) != 0 || line[program] != ':')
                return NULL;
        line += program + 1;
        return strncmp(line, name, length) == 0 && line[length] == '=' ? line + length + 1 : NULL;
}

int failpoint_pass(const char *name) {
        const char *line = failpoint_file ? failpoint_file->text : "";
        int r = 0;

        for (unsigned i = 0; *line && i < LINES_MAX; i++) {
                const char *terms = match_failpoint_line(line, name);

                if (terms) {
                        uint32_t hit =
                                __atomic_fetch_add(&failpoint_file->hits[i], 1, __ATOMIC_SEQ_CST);
                        const char *term = find_failpoint_term(terms, hit);

                        r = term ? do_failpoint_term(term) : 0;
                }
                line += strcspn(line, "\n");
                line += *line == '\n';
        }
        return r;
}

/* ---- allocations ---- */

static bool are_allocations_held, has_held_failure;

void failpoint_hold_allocations(void) {
        has_held_failure = false;
        are_allocations_held = true;
}

bool failpoint_release_allocations(void) {
        are_allocations_held = false;
        return has_held_failure;
}

/* Called before a sanitizer is ready. */
__attribute__((no_sanitize("address", "undefined"))) bool failpoint_is_armed(void) {
        return failpoint_file && failpoint_file->text[0];
}

bool failpoint_hold_failure(void) {
        has_held_failure |= are_allocations_held;
        return are_allocations_held;
}

#endif
