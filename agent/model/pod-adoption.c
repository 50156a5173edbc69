/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod-adoption.h"

#include "agent/model/object-identity.h"
#include "agent/model/own-values.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int replace_pod_name(char **to, const char *from) {
        char *copy = strdup(from);

        if (!copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

/* ---- changes made by admission ---- */

/* The volume that the ServiceAccount admission plugin adds: token, kube-root-ca.crt and namespace.
 */
static bool is_admission_volume(const Volume *volume, const PodSpec *running) {
        return volume->projected &&
               strncmp(volume->name, "kube-api-access-", strlen("kube-api-access-")) == 0 &&
               !pod_find_volume(running, volume->name);
}

static void drop_container_mounts(Container *container, const char *volume) {
        size_t n = 0;

        for (size_t i = 0; i < container->volume_mounts.n; i++) {
                VolumeMount *mount = &container->volume_mounts.items[i];

                if (streq(mount->name, volume))
                        schema_done(&volume_mount_schema, mount);
                else
                        container->volume_mounts.items[n++] = *mount;
        }
        container->volume_mounts.n = n;
}

static void drop_pod_mounts(PodSpec *spec, const char *volume) {
        for (size_t i = 0; i < spec->init_containers.n; i++)
                drop_container_mounts(&spec->init_containers.items[i], volume);
        for (size_t i = 0; i < spec->containers.n; i++)
                drop_container_mounts(&spec->containers.items[i], volume);
        for (size_t i = 0; i < spec->ephemeral_containers.n; i++)
                drop_container_mounts(&spec->ephemeral_containers.items[i], volume);
}

static void drop_admission_volumes(const PodSpec *running, PodSpec *spec) {
        size_t n = 0;

        for (size_t i = 0; i < spec->volumes.n; i++) {
                Volume *volume = &spec->volumes.items[i];

                if (is_admission_volume(volume, running)) {
                        drop_pod_mounts(spec, volume->name);
                        schema_done(&volume_schema, volume);
                } else
                        spec->volumes.items[n++] = *volume;
        }
        spec->volumes.n = n;
}

/* The API server writes defaults for fields that a template omits; the meaning is the same. */
static void drop_admission_defaults(const PodSpec *running, PodSpec *spec) {
        if (!running->service_account_name && streq_ptr(spec->service_account_name, "default")) {
                free(spec->service_account_name);
                spec->service_account_name = NULL;
        }
        if (!running->enable_service_links.is_set && spec->enable_service_links.value)
                spec->enable_service_links = running->enable_service_links;
}

/* ---- which pod may adopt which ---- */

static int record_adopted_pod(const Pod *desired, Pod *adopted) {
        cleanup_free char *text =
                text_format("%s/%s", desired->metadata.name, desired->metadata.uid);

        if (!text)
                return -ENOMEM;
        return own_value_set(&adopted->metadata, OWN_KEY_COVERS, text);
}

static int copy_with_running_identity(const Pod *running, const Pod *desired, Pod **ret) {
        cleanup_with(pod_freep) Pod *adopted = NULL;
        int r = pod_copy(desired, &adopted);

        if (r < 0)
                return r;
        drop_admission_volumes(&running->spec, &adopted->spec);
        drop_admission_defaults(&running->spec, &adopted->spec);
        r = replace_pod_name(&adopted->metadata.name, running->metadata.name);
        if (r < 0)
                return r;
        r = replace_pod_name(&adopted->metadata.uid, running->metadata.uid);
        if (r < 0)
                return r;
        r = record_adopted_pod(desired, adopted);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(adopted);
        return 0;
}

int pod_adoption_make(const Pod *running, const Pod *desired, EditEffect limit, Pod **ret) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        cleanup_with(pod_freep) Pod *adopted = NULL;
        int r;

        /* Only the name may differ. */
        if (!objects_share_namespace(&running->metadata, &desired->metadata))
                return 0;
        r = copy_with_running_identity(running, desired, &adopted);
        if (r < 0)
                return r;
        r = edit_plan_make(running, adopted, &plan);
        if (r < 0 || plan.effect > limit)
                return r;
        *ret = TAKE_PTR(adopted);
        return 1;
}

/* The annotation is used only on a pod of this agent; one that a user wrote into a pod of an API
 * server is ignored. UIDs from an API server contain dashes, and those from this agent do not. */
static const char *find_adoption_record(const Pod *pod) {
        const char *text = own_pod_value(pod, OWN_KEY_COVERS);
        bool can_be_adopted = pod_is_of_api(pod) && !strchr(pod->metadata.uid, '-');

        return can_be_adopted && text && strchr(text, '/') ? text : NULL;
}

const char *pod_adoption_api_uid(const Pod *pod) {
        const char *text = find_adoption_record(pod);

        return text ? strchr(text, '/') + 1 : NULL;
}

char *pod_adoption_api_name(const Pod *pod) {
        const char *text = find_adoption_record(pod);

        return text ? strndup(text, (size_t) (strchr(text, '/') - text)) : NULL;
}

int pod_adoption_restore_api_pod(const Pod *adopted, Pod **ret) {
        cleanup_free char *name = pod_adoption_api_name(adopted);
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r = name ? pod_copy(adopted, &pod) : -ENOMEM;

        if (r < 0)
                return r;
        r = replace_pod_name(&pod->metadata.name, name);
        if (r < 0)
                return r;
        r = replace_pod_name(&pod->metadata.uid, pod_adoption_api_uid(adopted));
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pod);
        return 0;
}
