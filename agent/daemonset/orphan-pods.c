/* SPDX-License-Identifier: Apache-2.0 */

/* The list of orphan pods. claimed-pods.c finds the DaemonSet that adopts them. */

#include "agent/daemonset/orphan-pods.h"

#include "agent/daemonset/rules/rules.h"
#include "agent/model/object-identity.h"
#include "common/array.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>

struct OrphanPods {
        Pod **items;
        size_t n;
};

OrphanPods *orphan_pods_new(void) {
        return calloc(1, sizeof(OrphanPods));
}

OrphanPods *orphan_pods_free(OrphanPods *orphans) {
        if (!orphans)
                return NULL;
        for (size_t i = 0; i < orphans->n; i++)
                pod_free(orphans->items[i]);
        free(orphans->items);
        free(orphans);
        return NULL;
}

int orphan_pods_add(OrphanPods *orphans, const Pod *pod) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        Pod **added;
        int r;

        r = pod_copy(pod, &copy);
        if (r < 0)
                return r;
        r = daemonset_set_pod_owner(NULL, copy);
        if (r < 0)
                return r;
        added = ARRAY_APPEND(orphans->items, orphans->n);
        if (!added)
                return -ENOMEM;
        *added = TAKE_PTR(copy);
        return 0;
}

bool orphan_pods_contain(const OrphanPods *orphans, const char *uid) {
        for (size_t i = 0; i < orphans->n; i++)
                if (object_has_uid(&orphans->items[i]->metadata, uid))
                        return true;
        return false;
}

const Pod *orphan_pods_get(const OrphanPods *orphans, size_t i) {
        return i < orphans->n ? orphans->items[i] : NULL;
}

static void drop_orphan_at(OrphanPods *orphans, size_t i) {
        pod_free(orphans->items[i]);
        orphans->items[i] = orphans->items[--orphans->n];
}

void orphan_pods_drop(OrphanPods *orphans, const char *uid) {
        for (size_t i = 0; i < orphans->n; i++)
                if (object_has_uid(&orphans->items[i]->metadata, uid)) {
                        drop_orphan_at(orphans, i);
                        return;
                }
}

void orphan_pods_drop_named(OrphanPods *orphans, const char *namespace, const char *name) {
        for (size_t i = 0; i < orphans->n; i++)
                if (object_has_name(&orphans->items[i]->metadata, namespace, name)) {
                        drop_orphan_at(orphans, i);
                        return;
                }
}
