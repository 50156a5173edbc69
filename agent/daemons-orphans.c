/* SPDX-License-Identifier: Apache-2.0 */

/* Pods that a set has left: wanted for their own sake, until a set takes them or a person ends
 * them. Their records name no file. */

#include "agent/daemons-private.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <stdlib.h>

const char orphan_file[] = "(no file)";

int daemons_take_orphan(Daemons *daemons, const Pod *pod) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        Pod **longer;
        int r = pod_copy(pod, &copy);

        if (r >= 0)
                r = daemonset_own_pod(NULL, copy);
        if (r < 0)
                return r;
        longer = reallocarray(daemons->orphans, daemons->n_orphans + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        daemons->orphans = longer;
        longer[daemons->n_orphans++] = TAKE_PTR(copy);
        return 0;
}

static void drop(Daemons *daemons, size_t i) {
        pod_free(daemons->orphans[i]);
        daemons->orphans[i] = daemons->orphans[--daemons->n_orphans];
}

bool daemons_has_orphan(const Daemons *daemons, const Pod *pod) {
        for (size_t i = 0; i < daemons->n_orphans; i++)
                if (streq(daemons->orphans[i]->metadata.uid, pod->metadata.uid))
                        return true;
        return false;
}

void daemons_drop_orphan(Daemons *daemons, const Pod *pod) {
        for (size_t i = 0; i < daemons->n_orphans; i++)
                if (streq(daemons->orphans[i]->metadata.uid, pod->metadata.uid)) {
                        drop(daemons, i);
                        return;
                }
}

void daemons_forget_orphan(Daemons *daemons, const char *namespace, const char *name) {
        for (size_t i = 0; i < daemons->n_orphans; i++) {
                const ObjectMeta *metadata = &daemons->orphans[i]->metadata;

                if (streq(metadata->name, name) && streq(metadata->namespace, namespace)) {
                        drop(daemons, i);
                        return;
                }
        }
}

void daemons_want_orphans(Daemons *daemons) {
        for (size_t i = 0; i < daemons->n_orphans; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = supervisor_want(daemons->config.supervisor, orphan_file,
                                        daemons->orphans[i], &error);

                if (r < 0)
                        log_error("Pod '%s': %s", daemons->orphans[i]->metadata.name,
                                  error_message(&error, r));
                daemons->has_failed = daemons->has_failed || r == -ENOMEM;
        }
}

bool daemons_take_record(Daemons *daemons, const char *file, const Pod *pod) {
        const OwnerReference *owner = object_controller(&pod->metadata);
        const Daemon *daemon = owner ? daemons_find_uid(daemons, owner->uid) : NULL;

        if (streq(file, orphan_file) || (daemon && daemon->history.is_orphaning)) {
                if (daemons_take_orphan(daemons, pod) < 0)
                        log_error("Pod '%s': cannot remember that it was left, so it ends",
                                  pod->metadata.name);
                return true;
        }
        return daemon && daemon->set;
}

/* That the pods are to stay is on the disk before the set's file may go. */
int daemons_orphan(Daemons *daemons, const char *namespace, const char *name, Error *reterr) {
        Daemon *daemon = daemons_find(daemons, namespace, name);
        int r;

        if (!daemon)
                return error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        r = daemons_see(daemons);
        if (r < 0)
                return r;
        daemon->history.is_orphaning = true;
        r = daemon_store(daemons, daemon, reterr);
        daemon->history.is_orphaning = r >= 0;
        for (size_t i = 0; r >= 0 && i < daemons->n_seen; i++) {
                const SeenPod *seen = &daemons->seen[i];
                const OwnerReference *owner = object_controller(&seen->pod->metadata);

                if (!seen->is_ending && owner && streq(owner->uid, daemon->uid))
                        r = daemons_take_orphan(daemons, seen->pod);
        }
        daemons_forget_seen(daemons);
        return r;
}

void daemons_take_back(Daemons *daemons, const char *namespace, const char *name) {
        Daemon *daemon = daemons_find(daemons, namespace, name);

        if (!daemon)
                return;
        daemon->history.is_orphaning = false;
        daemon_store_or_say(daemons, daemon);
        daemons_schedule(daemons);
}
