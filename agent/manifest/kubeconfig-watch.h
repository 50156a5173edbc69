/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches a kubeconfig and the files that it refers to, and reads them again after a change. The
 * caller decides whether the result is usable. Related files are not replaced atomically, so an
 * error is reported only if it persists. */

#include "agent/manifest/read-kubeconfig.h"

#include <systemd/sd-event.h>

typedef struct KubeconfigWatch KubeconfigWatch;

typedef struct KubeconfigWatchSpec {
        sd_event *event;
        const char *path; /* copied */
        /* Uses the content, which is borrowed: < 0 with a message if it is unusable. */
        int (*use)(const Kubeconfig *kubeconfig, void *userdata, Error *reterr);
        /* NULL: the error is gone. 'warnings' are those of the file; NULL: none. */
        void (*on_error)(const char *error_text, char *const *warnings, void *userdata);
        void *userdata;
} KubeconfigWatchSpec;

/* Reads once and calls both callbacks as needed before it returns. 0, or -errno if the files cannot
 * be watched. */
int kubeconfig_watch_new(const KubeconfigWatchSpec *spec, KubeconfigWatch **ret);
KubeconfigWatch *kubeconfig_watch_free(KubeconfigWatch *watch);
DEFINE_CLEANUP(KubeconfigWatch *, kubeconfig_watch_free)

/* Reads again, for callers that have noticed a change. */
void kubeconfig_watch_reload(KubeconfigWatch *watch);
