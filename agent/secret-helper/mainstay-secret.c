/* SPDX-License-Identifier: Apache-2.0 */
/* The agent starts this program with the request as standard input. */

#include "agent/secret-helper/secret-open.h"
#include "agent/secrets/opening-protocol.h"
#include "common/call-filter.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/privileges.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>

#define REQUEST_BYTES_MAX (2 * (size_t) OPENING_BYTES_MAX)
#define ADDRESS_BYTES_MAX (128 * MIB)

enum {
        EXIT_USAGE = 2
};

static void limit_opener(void) {
        static const struct rlimit none = { 0, 0 },
                                   memory = { ADDRESS_BYTES_MAX, ADDRESS_BYTES_MAX };

        (void) setrlimit(RLIMIT_NPROC, &none);
        (void) setrlimit(RLIMIT_FSIZE, &none);
        if (!HAS_SANITIZER)
                (void) setrlimit(RLIMIT_AS, &memory);
}

/* Nothing of the request has been read. From here on the process has only standard input, output
 * and error, and memory. It runs as root without capabilities, so that no other user can send it a
 * signal.
 */
static int confine_opener(void) {
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        privileges_hide_memory();
        limit_opener();
        r = privileges_keep_capabilities(0);
        return r < 0 ? r : call_filter_install();
}

static int answer_request(void) {
        cleanup_with(buffer_erase) Buffer answer = { 0 };
        cleanup_free char *request = NULL;
        size_t length = 0;
        int r = read_stream(STDIN_FILENO, REQUEST_BYTES_MAX, &request, &length);

        if (r >= 0)
                r = open_values(request, length, &answer);
        return r < 0 ? r : write_all(STDOUT_FILENO, strna(answer.data), answer.length);
}

int main(int argc, char **argv) {
        struct stat st;
        int r;

        if (argc > 1 || fstat(STDIN_FILENO, &st) < 0 || S_ISCHR(st.st_mode)) {
                (void) fputs("mainstay-secret is started by mainstayd. See mainstay-secrets(7).\n",
                             stderr);
                return EXIT_USAGE;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        r = confine_opener();
        if (r >= 0)
                r = answer_request();
        if (r < 0)
                (void) fprintf(stderr, "mainstay-secret: %s\n", strerror(-r));
        (void) fflush(stderr);
        /* The filter may not permit the exit handlers of libraries. */
        _exit(r < 0 ? EX_TEMPFAIL : EXIT_SUCCESS);
}
