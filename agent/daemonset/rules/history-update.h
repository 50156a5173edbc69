/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The changes of a desired DaemonSet to its revision history. Pure: the caller stores the
 * history. */

#include "agent/daemonset/rules/history.h"

typedef enum SelectorChange {
        SELECTOR_SAME,
        SELECTOR_REPLACED, /* there were no pods */
        SELECTOR_MISMATCH, /* the selector is immutable while there are pods, so the history keeps
                            * the old one */
} SelectorChange;

/* Compares the selector with the one in the history, and updates the latter if possible. A
 * SelectorChange or -ENOMEM. */
int daemonset_history_update_selector(DaemonSetHistory *history, const DaemonSet *set,
                                      bool has_pods);

/* Records the set, its source, and its template as a revision. 'is_available': whether the replaced
 * revision was available. 1: the history has changed; 0; -ENOMEM. */
int daemonset_history_update_set(DaemonSetHistory *history, const DaemonSet *set,
                                 const char *source, bool is_available, uint64_t now);
