/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/pods/manager/pod-images.h"

#include "agent/model/containers.h"
#include "agent/pods/manager/pod-manager-private.h"

void pod_list_images(const Pod *pod, ImageSet *ret) {
        const PodSpec *spec = &pod->spec;
        const Container *container;

        pod_foreach_container(container, spec)
                image_set_add(ret, container->image);
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (spec->volumes.items[i].image)
                        image_set_add(ret, spec->volumes.items[i].image->reference);
}

void pod_manager_list_images(const PodManager *manager, ImageSet *ret) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                if (!entry->worker)
                        continue;
                pod_list_images(pod_worker_pod(entry->worker), ret);
                pod_worker_list_images(entry->worker, ret);
        }
}
