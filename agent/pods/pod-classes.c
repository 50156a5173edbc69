/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod-classes.h"

#include "agent/model/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const DataObject *find_class_object(const ObjectLookup *lookup, ObjectKind kind,
                                           const char *name) {
        return lookup->find ? lookup->find(kind, "", name, lookup->userdata) : NULL;
}

/* Only pods that say nothing of their priority get the default one. */
static int resolve_default_priority(const ObjectLookup *lookup, PodSpec *spec) {
        const DataObject *class = spec->priority.is_set
                                          ? NULL
                                          : find_class_object(lookup, OBJECT_PRIORITY_CLASS, NULL);

        if (!class)
                return 0;
        spec->priority_class_name = strdup(class->metadata.name);
        if (!spec->priority_class_name)
                return -ENOMEM;
        spec->priority = class->priority.value;
        return 0;
}

static int resolve_pod_priority(const ObjectLookup *lookup, const PodSpec *running,
                                bool is_resolved, PodSpec *spec) {
        const DataObject *class;

        if (is_resolved)
                return 0;
        if (!spec->priority_class_name)
                return resolve_default_priority(lookup, spec);
        if (system_priority_class_value(spec->priority_class_name) != 0)
                return 0; /* defaulted when it was read */
        class = find_class_object(lookup, OBJECT_PRIORITY_CLASS, spec->priority_class_name);
        if (class)
                spec->priority = class->priority.value;
        else if (running && streq_ptr(running->priority_class_name, spec->priority_class_name))
                spec->priority = running->priority;
        return 0;
}

static int copy_overhead(ResourceList *to, const ResourceList *from) {
        schema_done(&resource_list_schema, to);
        return schema_copy(&resource_list_schema, to, from);
}

static bool has_pod_overhead(const PodSpec *spec) {
        return quantity_is_set(&spec->overhead.cpu) || quantity_is_set(&spec->overhead.memory);
}

static int resolve_pod_overhead(const ObjectLookup *lookup, const PodSpec *running, PodSpec *spec) {
        const DataObject *class;

        if (!spec->runtime_class_name)
                return 0;
        class = find_class_object(lookup, OBJECT_RUNTIME_CLASS, spec->runtime_class_name);
        if (has_pod_overhead(spec))
                return 0; /* it must be the same; check_pod_classes() says so */
        if (class)
                return copy_overhead(&spec->overhead, &class->runtime.overhead.pod_fixed);
        if (running && streq_ptr(running->runtime_class_name, spec->runtime_class_name))
                return copy_overhead(&spec->overhead, &running->overhead);
        return 0;
}

int resolve_pod_classes(const ObjectLookup *lookup, const Pod *running, Pod *pod) {
        const PodSpec *spec = running ? &running->spec : NULL;
        /* An API server has worked it out by its own classes. */
        bool is_resolved = pod_is_of_api(pod) && pod->spec.priority.is_set;
        int r = resolve_pod_priority(lookup, spec, is_resolved, &pod->spec);

        return r < 0 ? r : resolve_pod_overhead(lookup, spec, &pod->spec);
}

/* The runtime that needs no class may be named by one all the same: "runc". */
static const char *find_handler_runtime(const OciRuntimes *runtimes, const char *handler) {
        const char *path = runtimes->handlers ? string_map_get(runtimes->handlers, handler) : NULL;
        const char *slash = strrchr(runtimes->path, '/');

        if (path)
                return path;
        return streq(slash ? slash + 1 : runtimes->path, handler) ? runtimes->path : NULL;
}

static int check_pod_runtime_class(const ObjectLookup *lookup, const OciRuntimes *runtimes,
                                   const PodSpec *spec, const char **ret_runtime, Error *reterr) {
        const char *name = spec->runtime_class_name, *runtime;
        const DataObject *class = find_class_object(lookup, OBJECT_RUNTIME_CLASS, name);

        if (!class)
                return error_setf(reterr, ENOENT, "RuntimeClass \"%s\" not found", name);
        runtime = find_handler_runtime(runtimes, class->runtime.handler);
        if (!runtime)
                return error_setf(reterr, ENOENT,
                                  "no runtime for \"%s\" is configured, which RuntimeClass \"%s\" "
                                  "names",
                                  class->runtime.handler, name);
        if (has_pod_overhead(spec) && !schema_equal(&resource_list_schema, &spec->overhead,
                                                    &class->runtime.overhead.pod_fixed))
                return error_setf(reterr, EINVAL,
                                  "the pod's overhead does not match that of RuntimeClass \"%s\"",
                                  name);
        *ret_runtime = runtime;
        return 0;
}

int check_pod_classes(const ObjectLookup *lookup, const OciRuntimes *runtimes, const Pod *pod,
                      const char **ret_runtime, Error *reterr) {
        const PodSpec *spec = &pod->spec;

        if (spec->priority_class_name && !spec->priority.is_set)
                return error_setf(reterr, ENOENT, "no PriorityClass with name %s was found",
                                  spec->priority_class_name);
        if (spec->runtime_class_name)
                return check_pod_runtime_class(lookup, runtimes, spec, ret_runtime, reterr);
        *ret_runtime = runtimes->path;
        return 0;
}
