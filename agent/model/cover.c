/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/cover.h"

#include "agent/model/schema.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char covers_annotation[] = "mainstay.dev/covers";

static int replace(char **to, const char *from) {
        char *copy = strdup(from);

        if (!copy)
                return -ENOMEM;
        free(*to);
        *to = copy;
        return 0;
}

/* ---- what admission adds ---- */

/* The token of the service account, kube-root-ca.crt and the namespace (the ServiceAccount plugin).
 */
static bool is_added(const Volume *volume, const PodSpec *running) {
        return volume->projected &&
               strncmp(volume->name, "kube-api-access-", strlen("kube-api-access-")) == 0 &&
               !pod_find_volume(running, volume->name);
}

static void drop_mounts(Container *container, const char *volume) {
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

static void drop_mounts_of_all(PodSpec *spec, const char *volume) {
        for (size_t i = 0; i < spec->init_containers.n; i++)
                drop_mounts(&spec->init_containers.items[i], volume);
        for (size_t i = 0; i < spec->containers.n; i++)
                drop_mounts(&spec->containers.items[i], volume);
}

static void drop_added_volumes(const PodSpec *running, PodSpec *spec) {
        size_t n = 0;

        for (size_t i = 0; i < spec->volumes.n; i++) {
                Volume *volume = &spec->volumes.items[i];

                if (is_added(volume, running)) {
                        drop_mounts_of_all(spec, volume->name);
                        schema_done(&volume_schema, volume);
                } else
                        spec->volumes.items[n++] = *volume;
        }
        spec->volumes.n = n;
}

/* Of what a template leaves out the server writes the default into a pod; it means the same. */
static void drop_added_words(const PodSpec *running, PodSpec *spec) {
        if (!running->service_account_name && streq_ptr(spec->service_account_name, "default")) {
                free(spec->service_account_name);
                spec->service_account_name = NULL;
        }
        if (!running->enable_service_links.is_set && spec->enable_service_links.value)
                spec->enable_service_links = running->enable_service_links;
}

/* ---- who stands for whom ---- */

static int note(const Pod *wanted, Pod *cover) {
        cleanup_free char *text = NULL;

        if (asprintf(&text, "%s/%s", wanted->metadata.name, wanted->metadata.uid) < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return string_map_set(&cover->metadata.annotations, covers_annotation, text);
}

static int carry(const Pod *running, const Pod *wanted, Pod **ret) {
        cleanup_with(pod_freep) Pod *cover = NULL;
        int r = pod_copy(wanted, &cover);

        if (r < 0)
                return r;
        drop_added_volumes(&running->spec, &cover->spec);
        drop_added_words(&running->spec, &cover->spec);
        r = replace(&cover->metadata.name, running->metadata.name);
        if (r >= 0)
                r = replace(&cover->metadata.uid, running->metadata.uid);
        if (r >= 0)
                r = note(wanted, cover);
        if (r >= 0)
                *ret = TAKE_PTR(cover);
        return r;
}

int cover_make(const Pod *running, const Pod *wanted, EditEffect limit, Pod **ret) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        cleanup_with(pod_freep) Pod *cover = NULL;
        int r = carry(running, wanted, &cover);

        if (r >= 0)
                r = edit_plan(running, cover, &plan);
        if (r < 0 || plan.effect > limit)
                return r;
        *ret = TAKE_PTR(cover);
        return 1;
}

/* What somebody wrote into a pod says nothing: one of a file's is not of the server, and the UIDs
 * that a server gives have dashes, where ours have none. */
static const char *find_note(const Pod *pod) {
        const char *text = string_map_get(&pod->metadata.annotations, covers_annotation);
        bool may_stand = pod_is_of_api(pod) && !strchr(pod->metadata.uid, '-');

        return may_stand && text && strchr(text, '/') ? text : NULL;
}

const char *cover_uid(const Pod *pod) {
        const char *text = find_note(pod);

        return text ? strchr(text, '/') + 1 : NULL;
}

char *cover_name(const Pod *pod) {
        const char *text = find_note(pod);

        return text ? strndup(text, (size_t) (strchr(text, '/') - text)) : NULL;
}

int cover_restore(const Pod *cover, Pod **ret) {
        cleanup_free char *name = cover_name(cover);
        cleanup_with(pod_freep) Pod *pod = NULL;
        int r = name ? pod_copy(cover, &pod) : -ENOMEM;

        if (r >= 0)
                r = replace(&pod->metadata.name, name);
        if (r >= 0)
                r = replace(&pod->metadata.uid, cover_uid(cover));
        if (r >= 0)
                *ret = TAKE_PTR(pod);
        return r;
}
