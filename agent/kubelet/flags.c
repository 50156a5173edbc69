/* SPDX-License-Identifier: Apache-2.0 */
/* Reads flags as the kubelet does: "--flag=value", "--flag value", "-v=4", "-v 4", "-v4". This
 * program does not know which of the kubelet's flags take a value. A word after a flag that is not
 * a flag itself is that flag's value, because the kubelet takes no other arguments. */

#include "agent/kubelet/flags.h"

#include <errno.h>
#include <stdlib.h>

enum {
        VERBOSE_LEVEL = 4 /* klog's level for debugging */
};

/* The options of mainstayd for the kubelet's flags, in the kubelet's alphabetical order. */
static const struct {
        const char *flag, *option;
} translations[] = {
        { "bootstrap-kubeconfig", "bootstrap-kubeconfig" },
        { "cert-dir", "cert-dir" },
        { "config", "config" },
        { "config-dir", "config-dir" },
        { "hostname-override", "node-name" },
        { "kubeconfig", "kubeconfig" },
        { "node-ip", "node-ip" },
        { "node-labels", "node-labels" },
        { "pod-manifest-path", "manifest-dir" },
        { "register-with-taints", "register-with-taints" },
        { "root-dir", "kubelet-dir" },
};

static const char *find_mainstayd_option(const char *flag) {
        for (size_t i = 0; i < N_ELEMENTS(translations); i++)
                if (streq(translations[i].flag, flag))
                        return translations[i].option;
        return NULL;
}

/* An option with an empty value is ignored. */
static int add_kubelet_flag(KubeletFlags *flags, const char *flag, const char *value) {
        const char *option = find_mainstayd_option(flag);

        if (streq(flag, "version"))
                flags->prints_version = true;
        else if (streq(flag, "help") || streq(flag, "h"))
                flags->prints_help = true;
        else if (streq(flag, "v"))
                flags->is_verbose = value && strtol(value, NULL, 10) >= VERBOSE_LEVEL;
        else if (option && value && value[0])
                return strv_appendf(&flags->options, "--%s=%s", option, value);
        else if (!option)
                return strv_appendf(&flags->without_effect, "%s%s", flag[1] ? "--" : "-", flag);
        return 0;
}

/* Returns the number of words that the flag takes, or -ENOMEM. */
static int read_kubelet_flag(KubeletFlags *flags, char *const *words) {
        const char *word = words[0], *equals = strchr(word, '='), *value = NULL;
        bool is_long = word[1] == '-';
        size_t dashes = is_long ? 2 : 1, length = is_long ? strlen(word) - 2 : 1;
        char *flag;
        int r, n = 1;

        if (equals) {
                length = (size_t) (equals - word) - dashes;
                value = equals + 1;
        } else if (!is_long && word[2]) {
                value = word + 2;
        } else if (words[1] && words[1][0] != '-') {
                value = words[1];
                n = 2;
        }
        flag = strndup(word + dashes, length);
        if (!flag)
                return -ENOMEM;
        r = add_kubelet_flag(flags, flag, value);
        free(flag);
        return r < 0 ? r : n;
}

static bool has_cert_dir(const KubeletFlags *flags) {
        strv_foreach(option, flags->options)
                if (strncmp(*option, "--cert-dir=", strlen("--cert-dir=")) == 0)
                        return true;
        return false;
}

int kubelet_flags_read(char *const *arguments, KubeletFlags *ret) {
        while (*arguments) {
                int r;

                if (arguments[0][0] != '-' || !arguments[0][1]) {
                        ret->stray = strdup(arguments[0]);
                        return ret->stray ? 0 : -ENOMEM;
                }
                r = read_kubelet_flag(ret, arguments);
                if (r < 0)
                        return r;
                arguments += r;
        }
        return has_cert_dir(ret) ? 0 : strv_append(&ret->options, "--cert-dir=" KUBELET_CERT_DIR);
}

void kubelet_flags_done(KubeletFlags *flags) {
        strv_free(flags->options);
        strv_free(flags->without_effect);
        free(flags->stray);
        *flags = (KubeletFlags){ 0 };
}
