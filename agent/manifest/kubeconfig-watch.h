/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A kubeconfig and all the files that it names, read again whenever one of them may be another.
 * Whoever uses them says whether they can be used; what cannot is trouble, and was not read. Files
 * that belong together are not exchanged in one instant, so trouble is told only when it lasts. */

#include "agent/manifest/kubeconfig.h"

#include <systemd/sd-event.h>

typedef struct KubeconfigWatch KubeconfigWatch;

typedef struct KubeconfigWatchSpec {
        sd_event *event;
        const char *path; /* copied */
        /* Takes what the files say, which is borrowed: < 0 with a sentence where it is no good. */
        int (*use)(const Kubeconfig *kubeconfig, void *userdata, Error *reterr);
        /* NULL: there is none any more. 'warnings' are those of the file, NULL: none. */
        void (*on_error)(const char *error_text, char *const *warnings, void *userdata);
        void *userdata;
} KubeconfigWatchSpec;

/* Reads once, and calls both as need be, before it returns. 0 or -errno where it cannot watch. */
int kubeconfig_watch_new(const KubeconfigWatchSpec *spec, KubeconfigWatch **ret);
KubeconfigWatch *kubeconfig_watch_free(KubeconfigWatch *watch);
DEFINE_CLEANUP(KubeconfigWatch *, kubeconfig_watch_free)

/* Reads once more; for who has reason to. */
void kubeconfig_watch_reload(KubeconfigWatch *watch);
