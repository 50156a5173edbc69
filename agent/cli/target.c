/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/target.h"

#include "agent/cli/client.h"
#include "agent/cli/pods.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

int find_pod(const Options *options, const char *name, json_t **ret, Error *reterr) {
        char *const names[] = { (char *) (uintptr_t) name, NULL };
        cleanup_json json_t *pods = NULL;
        PodFilter filter;
        int r;

        r = pod_filter_init(&filter, options, names, 1, reterr);
        if (r < 0)
                return r;
        r = pods_fetch(options->socket, &filter, &pods, reterr);
        pod_filter_done(&filter);
        if (r < 0)
                return r;
        if (json_array_size(pods) == 0)
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", name);
        *ret = json_incref(json_array_get(pods, 0));
        return 0;
}

const char *container_name(const json_t *pod, size_t i) {
        return json_text(json_array_get(json_at(pod, "spec", "containers"), i), "name");
}

const char *choose_container(const json_t *pod, const char *named) {
        const char *name = json_text(pod, "metadata", "annotations", DEFAULT_CONTAINER);
        size_t n = json_array_size(json_at(pod, "spec", "containers"));

        if (named)
                return named;
        if (name)
                return name;
        name = strna(container_name(pod, 0));
        if (n < 2)
                return name;
        fprintf(stderr, "Defaulted container \"%s\" out of: ", name);
        for (size_t i = 0; i < n; i++)
                fprintf(stderr, "%s%s", i > 0 ? ", " : "", strna(container_name(pod, i)));
        fputc('\n', stderr);
        return name;
}
