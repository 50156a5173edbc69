/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/slices.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/pod-paths.h"
#include "agent/sandbox/systemd-client.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <inttypes.h>

static const QosClass classes[] = { QOS_BURSTABLE, QOS_BEST_EFFORT, QOS_GUARANTEED };

static void set_slice_properties(const PodContext *context, const char *group,
                                 const CgroupValue *values, size_t n) {
        SliceProperty properties[SLICE_PROPERTIES_MAX];
        cleanup_error Error error = ERROR_NULL;
        size_t n_properties = cgroup_slice_properties(values, n, properties);
        int r = systemd_client_set_slice(context->sandbox->systemd, cgroup_unit_name(group),
                                         properties, n_properties, &error);

        if (r < 0)
                log_warning_message(&error, r);
}

/* Values that a resize could not set, such as a memory limit below the usage, must not be set by
 * systemd either: it gets the values from the cgroup files. */
static void keep_present_values(const char *group, CgroupValue *values, size_t n) {
        for (size_t i = 0; i < n; i++) {
                cleanup_free char *present =
                        cgroup_read_value(group, values[i].controller, values[i].file);

                if (present)
                        (void) snprintf(values[i].value, sizeof(values[i].value), "%.*s",
                                        (int) strcspn(present, "\n"), present);
        }
}

static void set_pod_slice(const PodContext *context, const Pod *pod, const char *group,
                          bool is_there) {
        CgroupValue values[CGROUP_VALUES_MAX];
        size_t n = pod_cgroup_values(&pod->spec, cgroup_version(), context->bundle->pod_pids_limit,
                                     values);

        n = cgroup_values_complete(values, n, cgroup_version());
        cgroup_round_values(values, n);
        if (is_there)
                keep_present_values(group, values, n);
        set_slice_properties(context, group, values, n);
}

/* NULL: systemd does not manage this pod's cgroups, or out of memory. */
static char *load_pod_slice(const PodContext *context, const Pod *pod) {
        cleanup_free char *group = NULL;

        if (!context->sandbox->systemd)
                return NULL;
        group = cgroup_of_pod(context->bundle, pod_qos_class(&pod->spec), pod->metadata.uid);
        return group && cgroup_is_slice(group) ? TAKE_PTR(group) : NULL;
}

void slices_set_pod(const PodContext *context, const Pod *pod) {
        cleanup_free char *group = load_pod_slice(context, pod);

        if (group)
                set_pod_slice(context, pod, group, /* is_there= */ false);
}

static void set_container_scope(const PodContext *context, const Pod *pod, const char *pod_group,
                                const RunningContainer *running) {
        CgroupValue values[CGROUP_VALUES_MAX];
        SliceProperty properties[SLICE_PROPERTIES_MAX];
        cleanup_free char *scope = NULL;
        char id[65];
        size_t n = container_cgroup_values(context->bundle, &pod->spec, running->spec,
                                           cgroup_version(), values);

        n = cgroup_values_complete(values, n, cgroup_version());
        container_id(pod->metadata.uid, running->spec->name, running->attempt, id);
        scope = cgroup_of_container(pod_group, id);
        if (!scope)
                return;
        cgroup_round_values(values, n);
        keep_present_values(scope, values, n);
        (void) systemd_client_set_properties(context->sandbox->systemd, cgroup_unit_name(scope),
                                             properties,
                                             cgroup_slice_properties(values, n, properties), NULL);
}

void slices_resize(const PodContext *context, const Pod *pod, const RunningContainer *running,
                   size_t n_running) {
        cleanup_free char *group = load_pod_slice(context, pod);

        if (!group)
                return;
        set_pod_slice(context, pod, group, /* is_there= */ true);
        for (size_t i = 0; i < n_running; i++)
                set_container_scope(context, pod, group, &running[i]);
}

bool slices_restore_pod(const PodContext *context, const Pod *pod) {
        cleanup_free char *group = load_pod_slice(context, pod);
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!group)
                return false;
        r = bundle_restore_pod_cgroup(context->bundle, pod, group, &error);
        if (r < 0)
                log_warning_message(&error, r);
        if (r != 0) /* its parents may have been stopped as well */
                slices_set_qos(context);
        return r != 0;
}

void slices_stop(const PodContext *context, const char *group) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!context->sandbox->systemd || !cgroup_is_slice(group))
                return;
        r = systemd_client_stop_unit(context->sandbox->systemd, cgroup_unit_name(group), &error);
        if (r < 0)
                log_warning_message(&error, r);
}

void slices_set_qos(const PodContext *context) {
        if (!context->sandbox->systemd || !context->bundle->has_slices)
                return;
        for (size_t i = N_ELEMENTS(classes); i > 0; i--) { /* parents first */
                CgroupValue all[CGROUP_VALUES_MAX];
                cleanup_free char *group = cgroup_of_qos_class(context->bundle, classes[i - 1]);
                CgroupValue weight = { .controller = "cpu", .file = "cpu.weight" };
                uint64_t shares = cpu_shares(
                        classes[i - 1] == QOS_BURSTABLE ? context->burstable_milli_cpu : 0);

                (void) snprintf(weight.value, sizeof(weight.value), "%" PRIu64,
                                cpu_weight_of_group(shares));
                if (group && classes[i - 1] == QOS_GUARANTEED)
                        set_slice_properties(
                                context, group, all,
                                all_pods_cgroup_values(context->bundle, cgroup_version(), all));
                else if (group)
                        set_slice_properties(context, group, &weight, 1);
        }
}

/* systemd stops pod slices some time after the request, so the slices of the classes are stopped
 * together with them when no pod is left. */
static void remove_empty_groups(const PodContext *context, bool are_slices, bool all) {
        BundleConfig config = *context->bundle;

        config.has_slices = are_slices;
        for (size_t i = 0; i < N_ELEMENTS(classes); i++) {
                cleanup_free char *group = cgroup_of_qos_class(&config, classes[i]);

                if (group &&
                    (cgroup_remove_if_empty(group) >= 0 || (all && !cgroup_has_processes(group))))
                        slices_stop(context, group);
        }
}

void slices_remove_empty(const PodContext *context, bool all) {
        bool are_slices = context->bundle->has_slices;

        /* Cgroups of the former cgroup driver. */
        if (context->sandbox->systemd)
                remove_empty_groups(context, !are_slices, /* all= */ false);
        if (!all)
                return;
        remove_empty_groups(context, are_slices, /* all= */ true);
        (void) cgroup_remove_if_empty(context->sandbox->shim_cgroup);
}
