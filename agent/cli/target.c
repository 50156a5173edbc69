/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/target.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/pod-selection.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

/* During a rollout a set may have two pods; one that is running and not terminating is preferred.
 */
static bool is_better_target(const json_t *pod, const json_t *than) {
        return !than || (streq_ptr(json_text(pod, "status", "phase"), "Running") &&
                         !json_text(pod, "metadata", "deletionTimestamp"));
}

static json_t *choose_pod_of_daemonset(const json_t *pods, const char *name) {
        json_t *chosen = NULL, *pod;
        size_t i;

        json_array_foreach(pods, i, pod)
                if (is_owned_by_daemonset(pod, name) && is_better_target(pod, chosen))
                        chosen = pod;
        return chosen;
}

int find_pod(const Options *options, const char *name, json_t **ret, Error *reterr) {
        bool is_daemonset = is_daemonset_word(name);
        char *const names[] = { (char *) (uintptr_t) name, NULL };
        cleanup_json json_t *pods = NULL;
        json_t *pod;
        PodFilter filter;
        int r;

        r = pod_filter_init(&filter, options, names, is_daemonset ? 0 : 1, reterr);
        if (r < 0)
                return r;
        r = pods_fetch(options->socket, &filter, &pods, reterr);
        pod_filter_done(&filter);
        if (r < 0)
                return r;
        pod = is_daemonset ? choose_pod_of_daemonset(pods, strip_resource_prefix(name))
                           : json_array_get(pods, 0);
        if (!pod && is_daemonset)
                return error_setf(reterr, ENOENT,
                                  "daemonsets.apps \"%s\" has none of its pods on this node",
                                  strip_resource_prefix(name));
        if (!pod)
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", name);
        *ret = json_incref(pod);
        return 0;
}

const char *container_name(const json_t *containers, size_t i) {
        return strna(json_text(json_array_get(containers, i), "name"));
}

/* "main, other, first (init)" */
static void print_container_names(const json_t *containers, const json_t *of_init, FILE *out) {
        size_t n = json_array_size(containers);

        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s%s", i > 0 ? ", " : "", container_name(containers, i));
        for (size_t i = 0; i < json_array_size(of_init); i++)
                fprintf(out, ", %s (init)", container_name(of_init, i));
        fputc('\n', out);
}

const char *choose_container(const json_t *pod, const char *named) {
        const char *name = json_text(pod, "metadata", "annotations", DEFAULT_CONTAINER);
        const json_t *containers = json_at(pod, "spec", "containers");
        const json_t *of_init = json_at(pod, "spec", "initContainers");

        if (named)
                return named;
        if (name)
                return name;
        name = container_name(containers, 0);
        if (json_array_size(containers) + json_array_size(of_init) < 2)
                return name;
        fprintf(stderr, "Defaulted container \"%s\" out of: ", name);
        print_container_names(containers, of_init, stderr);
        return name;
}
