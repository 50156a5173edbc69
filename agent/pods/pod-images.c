/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/pods/pod-images.h"

#include "agent/model/containers.h"
#include "agent/pods/pod-manager-private.h"
#include "common/cleanup.h"

static bool is_same_image(const char *image, const char *reference) {
        cleanup_free char *normal = NULL;

        return image && image_reference_normalise(image, &normal, NULL) >= 0 &&
               streq(normal, reference);
}

bool pod_uses_image(const Pod *pod, const char *reference) {
        const PodSpec *spec = &pod->spec;
        const Container *container;

        pod_foreach_container(container, spec)
                if (is_same_image(container->image, reference))
                        return true;
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (spec->volumes.items[i].image &&
                    is_same_image(spec->volumes.items[i].image->reference, reference))
                        return true;
        return false;
}

bool pod_manager_uses_image(const PodManager *s, const char *reference) {
        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (entry->worker && pod_uses_image(pod_worker_pod(entry->worker), reference))
                        return true;
        return false;
}
