/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-classes.h"

#include "agent/model/quantity.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A name of NULL is the default PriorityClass. */
static const DataObject *find_class_object(const ObjectLookup *lookup, const Pod *pod,
                                           ObjectKind kind, const char *name) {
        const ObjectKey key = object_key_referred(&pod->metadata, kind, name);

        return lookup->find ? lookup->find(&key, lookup->userdata) : NULL;
}

/* The values that classes determine for a pod, borrowed from them; NULL or unset: the pod's own
 * values. */
typedef struct PodClassValues {
        const char *priority_class_name;
        OptionalInt priority;
        const ResourceList *overhead;
} PodClassValues;

/* Only pods that name neither a class nor a priority get the default one. */
static void find_default_priority(const ObjectLookup *lookup, const Pod *pod,
                                  PodClassValues *values) {
        const DataObject *class =
                pod->spec.priority.is_set
                        ? NULL
                        : find_class_object(lookup, pod, OBJECT_PRIORITY_CLASS, NULL);

        if (!class)
                return;
        values->priority_class_name = class->metadata.name;
        values->priority = class->priority.value;
}

static void find_pod_priority(const ObjectLookup *lookup, const PodSpec *running, const Pod *pod,
                              PodClassValues *values) {
        const PodSpec *spec = &pod->spec;
        const DataObject *class;

        if (!spec->priority_class_name) {
                find_default_priority(lookup, pod, values);
                return;
        }
        if (system_priority_class_value(spec->priority_class_name) != 0)
                return; /* defaulted when the pod was read */
        class = find_class_object(lookup, pod, OBJECT_PRIORITY_CLASS, spec->priority_class_name);
        if (class)
                values->priority = class->priority.value;
        else if (running && streq_ptr(running->priority_class_name, spec->priority_class_name))
                values->priority = running->priority;
}

static void find_pod_overhead(const ObjectLookup *lookup, const PodSpec *running, const Pod *pod,
                              PodClassValues *values) {
        const PodSpec *spec = &pod->spec;
        const DataObject *class;

        /* The pod's overhead must equal the class's; check_pod_classes() reports this. */
        if (!spec->runtime_class_name || pod_has_overhead(spec))
                return;
        class = find_class_object(lookup, pod, OBJECT_RUNTIME_CLASS, spec->runtime_class_name);
        if (class)
                values->overhead = &class->runtime.overhead.pod_fixed;
        else if (running && streq_ptr(running->runtime_class_name, spec->runtime_class_name))
                values->overhead = running->overhead;
}

static PodClassValues find_class_values(const ObjectLookup *lookup, const Pod *running,
                                        const Pod *pod) {
        /* A pod of another source has values from other classes. */
        const PodSpec *spec =
                running && running->metadata.source == pod->metadata.source ? &running->spec : NULL;
        PodClassValues values = { 0 };

        /* An API server has resolved the priority from its own classes. */
        if (!pod_is_of_api(pod) || !pod->spec.priority.is_set)
                find_pod_priority(lookup, spec, pod, &values);
        find_pod_overhead(lookup, spec, pod, &values);
        return values;
}

int resolve_pod_classes(const ObjectLookup *lookup, const Pod *running, Pod *pod) {
        PodClassValues values = find_class_values(lookup, running, pod);

        if (values.priority.is_set)
                pod->spec.priority = values.priority;
        if (values.priority_class_name) {
                pod->spec.priority_class_name = strdup(values.priority_class_name);
                if (!pod->spec.priority_class_name)
                        return -ENOMEM;
        }
        return values.overhead ? pod_set_overhead(&pod->spec, values.overhead) : 0;
}

bool borrow_class_values(const ObjectLookup *lookup, const Pod *running, const Pod *pod, Pod *ret) {
        PodClassValues values = find_class_values(lookup, running, pod);

        *ret = *pod;
        if (values.priority.is_set)
                ret->spec.priority = values.priority;
        if (values.priority_class_name)
                ret->spec.priority_class_name = (char *) (uintptr_t) values.priority_class_name;
        if (values.overhead)
                ret->spec.overhead = (ResourceList *) (uintptr_t) values.overhead;
        return values.priority.is_set || values.priority_class_name || values.overhead;
}

/* A class may also refer to the default runtime by its program, such as "runc". */
static const char *find_handler_runtime(const OciRuntimes *runtimes, const char *handler) {
        const char *path = runtimes->handlers ? string_map_get(runtimes->handlers, handler) : NULL;
        const char *slash = strrchr(runtimes->path, '/');

        if (path)
                return path;
        return streq(slash ? slash + 1 : runtimes->path, handler) ? runtimes->path : NULL;
}

static int check_pod_runtime_class(const ObjectLookup *lookup, const OciRuntimes *runtimes,
                                   const Pod *pod, const char **ret_runtime, Error *reterr) {
        const PodSpec *spec = &pod->spec;
        const char *name = spec->runtime_class_name, *runtime;
        cleanup_error Error error = ERROR_NULL;
        const DataObject *class;
        int r = object_lookup(lookup, &pod->metadata, OBJECT_RUNTIME_CLASS, name, &class, &error);

        if (r == -EAGAIN)
                return error_setf(reterr, EAGAIN, "%s", error_message(&error, r));
        if (r < 0)
                return error_setf(reterr, ENOENT, "RuntimeClass \"%s\" not found", name);
        runtime = find_handler_runtime(runtimes, class->runtime.handler);
        if (!runtime)
                return error_setf(reterr, ENOENT,
                                  "no runtime for \"%s\" is configured, which RuntimeClass \"%s\" "
                                  "names",
                                  class->runtime.handler, name);
        /* An API server has set the overhead according to the class at that time. */
        if (!pod_is_of_api(pod) && pod_has_overhead(spec) &&
            !schema_equal(&resource_list_schema, spec->overhead,
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
                return check_pod_runtime_class(lookup, runtimes, pod, ret_runtime, reterr);
        *ret_runtime = runtimes->path;
        return 0;
}
