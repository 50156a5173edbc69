/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet: becomes mainstayd, with the kubelet's flags converted to options of mainstayd. This
 * program is for kubeadm, which writes such flags, and runs the kubelet to get its version. */

#include "agent/kubelet/flags.h"
#include "agent/model/agent-options.h"
#include "agent/model/node-status.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        EXIT_USAGE = 2
};

static const char help_text[] =
        "Usage: kubelet [FLAG...]\n"
        "Runs mainstayd, the node agent of Mainstay, with the kubelet's flags.\n"
        "\n"
        "  --config FILE, --config-dir DIR, --kubeconfig FILE, --bootstrap-kubeconfig FILE,\n"
        "  --cert-dir DIR,\n"
        "  --pod-manifest-path DIR, --hostname-override NAME, --node-ip ADDRESS,\n"
        "  --node-labels LABELS, --register-with-taints TAINTS, --root-dir DIR\n"
        "                        as for the kubelet\n"
        "  -v LEVEL              4 or more: log at level debug\n"
        "  --version             print the version of Kubernetes\n"
        "  --help                print this\n"
        "\n"
        "Other flags are without effect, and are named in the log. See mainstay-kubeadm(7).\n";

/* mainstayd is next to this program in a build directory, otherwise at the installed path. */
static const char *find_mainstayd(char path[PATH_MAX]) {
        static const char name[] = "mainstayd", installed[] = MAINSTAY_SBIN_DIR "/mainstayd";
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(name));
        char *slash;

        if (n <= 0)
                return installed;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return installed;
        memcpy(slash + 1, name, sizeof(name));
        return access(path, X_OK) >= 0 ? path : installed;
}

/* Logs the flags, and passes them on for `mainstay describe node`. */
static void report_flags_without_effect(const KubeletFlags *flags) {
        char text[1024] = "";
        size_t n = 0;

        strv_foreach(flag, flags->without_effect)
                if (n < sizeof(text))
                        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s",
                                               n > 0 ? ", " : "", *flag);
        (void) setenv(KUBELET_FLAGS_VARIABLE, text, true);
        if (n > 0)
                log_warning("Ignoring kubelet flags that do not apply to Mainstay: %s", text);
}

static int run_mainstayd(const KubeletFlags *flags) {
        char path[PATH_MAX];
        const char *program = find_mainstayd(path);
        cleanup_strv char **argv = NULL;

        if (strv_append(&argv, program) < 0 || strv_extend(&argv, flags->options) < 0)
                return log_error_errno(-ENOMEM, "Cannot start %s", program);
        if (flags->is_verbose)
                (void) setenv("MAINSTAY_DEBUG", "1", true);
        (void) execv(program, argv);
        return log_error_errno(-errno, "Cannot start %s", program);
}

int main(int argc, char **argv) {
        cleanup_with(kubelet_flags_done) KubeletFlags flags = { 0 };
        int r = argc > 0 ? kubelet_flags_read(argv + 1, &flags) : 0;

        if (r < 0) {
                (void) log_error_errno(r, "Cannot read the flags");
                return EXIT_FAILURE;
        }
        if (flags.prints_version) {
                (void) printf("Kubernetes %s\n", NODE_KUBELET_VERSION);
                return EXIT_SUCCESS;
        }
        if (flags.prints_help) {
                (void) fputs(help_text, stdout);
                return EXIT_SUCCESS;
        }
        if (flags.stray) {
                (void) fprintf(stderr, "kubelet: unexpected argument '%s'\n", flags.stray);
                return EXIT_USAGE;
        }
        report_flags_without_effect(&flags);
        return run_mainstayd(&flags) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
