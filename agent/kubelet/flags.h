/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's command line, converted to options of mainstayd. */

#include "common/strv.h"

#define KUBELET_CERT_DIR "/var/lib/kubelet/pki" /* the kubelet's --cert-dir */

typedef struct KubeletFlags {
        char **options;        /* mainstayd's arguments, without the program name */
        char **without_effect; /* flags, "--flag", for which mainstayd has no option */
        char *stray;           /* an argument that is not a flag; NULL: none */
        bool prints_version;
        bool prints_help;
        bool is_verbose; /* -v 4 or more */
} KubeletFlags;

/* 'arguments' are the arguments after the program name. 0 or -ENOMEM. */
int kubelet_flags_read(char *const *arguments, KubeletFlags *ret);
void kubelet_flags_done(KubeletFlags *flags);
