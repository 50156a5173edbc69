/* SPDX-License-Identifier: Apache-2.0 */
/* Adds an ephemeral container to a running pod. It becomes part of the pod's spec and record like
 * an edit in place; the manifest does not contain it. */

#include "agent/manifest/manifest.h"
#include "agent/model/containers.h"
#include "agent/model/json-tree.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <sys/random.h>

enum {
        EPHEMERAL_CONTAINERS_MAX = 32, /* per pod; each has a log and an entry in the status */
        SUFFIX_LENGTH = 5,
};

static int check_debuggable(const PodEntry *entry, Error *reterr) {
        const Pod *pod = pod_worker_pod(entry->worker);
        const char *name = pod->metadata.name;

        if (pod_is_of_api(pod))
                return error_setf(reterr, EINVAL,
                                  "pod \"%s\" belongs to an API server, which would not have the "
                                  "container; use 'kubectl debug'",
                                  name);
        if (!pod_worker_is_desired(entry->worker))
                return error_setf(reterr, EAGAIN, "pod \"%s\" is being terminated", name);
        if (!pod_worker_is_editable(entry->worker))
                return error_setf(reterr, EAGAIN,
                                  "the containers of pod \"%s\" are not known yet; try again",
                                  name);
        if (pod_worker_has_terminated(entry->worker))
                return error_setf(reterr, EAGAIN, "pod \"%s\" has terminated", name);
        if (pod->spec.ephemeral_containers.n >= EPHEMERAL_CONTAINERS_MAX)
                return error_setf(reterr, EINVAL,
                                  "pod \"%s\" already has %d ephemeral containers, the maximum",
                                  name, EPHEMERAL_CONTAINERS_MAX);
        return 0;
}

/* As kubectl names them: "debugger-x7k2p". */
static json_t *make_container_name(const Pod *pod) {
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        unsigned char random[SUFFIX_LENGTH];
        char name[32] = "debugger-";
        size_t length = strlen(name);

        do {
                if (getrandom(random, sizeof(random), 0) != sizeof(random))
                        return NULL;
                for (size_t i = 0; i < SUFFIX_LENGTH; i++)
                        name[length + i] = letters[random[i] % (sizeof(letters) - 1)];
        } while (pod_find_container(pod, name));
        return json_string(name);
}

/* Appends the container to "spec.ephemeralContainers". */
static int add_container_json(json_t *pod, json_t *container) {
        json_t *spec = json_object_get(pod, "spec");
        json_t *list = json_object_get(spec, "ephemeralContainers");

        if (!list) {
                list = json_array();
                if (json_object_set_new(spec, "ephemeralContainers", list) < 0)
                        return -ENOMEM;
        }
        return json_array_append(list, container) < 0 ? -ENOMEM : 0;
}

static int parse_debugged_pod(const char *text, const Pod *pod, Pod **ret, Error *reterr) {
        int r = manifest_parse_changed_record(text, strlen(text), ret, reterr);

        if (r >= 0)
                (*ret)->metadata.source = pod->metadata.source;
        return r;
}

/* The pod including the container, with defaults applied, and validated. */
static int make_debugged_pod(const Pod *pod, const char *json, Pod **ret, Error *reterr) {
        cleanup_json json_t *container = json_loads(json, 0, NULL);
        cleanup_json json_t *tree = NULL;
        cleanup_free char *text = NULL;
        int r;

        if (!json_is_object(container))
                return error_setf(reterr, EINVAL, "the container must be a JSON object");
        if (!json_object_get(container, "name") &&
            json_object_set_new(container, "name", make_container_name(pod)) < 0)
                return -ENOMEM;
        tree = pod_to_json_tree(pod, NULL);
        r = tree ? add_container_json(tree, container) : -ENOMEM;
        if (r < 0)
                return r;
        text = json_to_text(tree, JSON_COMPACT);
        return text ? parse_debugged_pod(text, pod, ret, reterr) : -ENOMEM;
}

static int store_and_apply(PodManager *manager, PodEntry *entry, Pod **debugged, Error *reterr) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        int r = edit_plan_make(pod_worker_pod(entry->worker), *debugged, &plan);

        if (r < 0)
                return r;
        if (plan.effect != EDIT_IN_PLACE)
                return error_setf(reterr, EINVAL, "the pod of its record differs from the pod");
        r = pod_entry_store_record(manager, entry, *debugged, &entry->source, NULL, reterr);
        if (r < 0)
                return r;
        pod_worker_apply_edit_take(entry->worker, TAKE_PTR(*debugged), &plan);
        pod_entry_mark_dirty(entry);
        return 0;
}

int pod_manager_add_ephemeral_container(PodManager *manager, const char *namespace, const char *pod,
                                        const char *json, char **ret_name, Error *reterr) {
        cleanup_with(pod_freep) Pod *debugged = NULL;
        cleanup_free char *name = NULL;
        PodEntry *entry = pod_manager_find_running(manager, namespace, pod, reterr);
        const PodSpec *spec;
        int r;

        if (!entry)
                return -ENOENT;
        r = check_debuggable(entry, reterr);
        if (r < 0)
                return r;
        r = make_debugged_pod(pod_worker_pod(entry->worker), json, &debugged, reterr);
        if (r < 0)
                return r;
        spec = &debugged->spec;
        name = strdup(spec->ephemeral_containers.items[spec->ephemeral_containers.n - 1].name);
        r = name ? store_and_apply(manager, entry, &debugged, reterr) : -ENOMEM;
        if (r < 0)
                return r;
        *ret_name = TAKE_PTR(name);
        return 0;
}
