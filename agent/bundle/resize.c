/* SPDX-License-Identifier: Apache-2.0 */

/* In-place resize: writes changed limits into existing cgroups.
 *
 * In cgroup v1 the quota of a cgroup may not exceed its parent's, so a limit that grows must be
 * written to the pod first, and one that shrinks must be written to the pod last. Therefore the pod
 * is written before and after its containers, and only the second result is reported. The same
 * applies to the two memory limits of cgroup v1: the limit with swap must not be below the one
 * without.
 *
 * The memory limit of the pod shrinks last, and only if all containers have their new limits: if it
 * were below the sum of theirs, the kernel could kill a container that is within its own limit. */

#include "agent/bundle/resize.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/pod-paths.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>

static const struct {
        int version;
        CgroupValue value;
} no_limits[] = {
        { 1, { "cpu", "cpu.cfs_quota_us", "-1" } },
        { 1, { "memory", "memory.limit_in_bytes", "-1" } },
        { 2, { "cpu", "cpu.max", "max 100000" } },
        { 2, { "memory", "memory.max", "max" } },
};

static bool has_cgroup_file(const CgroupValue *values, size_t n, const char *file) {
        for (size_t i = 0; i < n; i++)
                if (streq(values[i].file, file))
                        return true;
        return false;
}

size_t cgroup_values_complete(CgroupValue values[CGROUP_VALUES_MAX], size_t n, int cgroup_version) {
        for (size_t i = 0; i < N_ELEMENTS(no_limits) && n < CGROUP_VALUES_MAX; i++)
                if (no_limits[i].version == cgroup_version &&
                    !has_cgroup_file(values, n, no_limits[i].value.file))
                        values[n++] = no_limits[i].value;
        return n;
}

static const char with_swap[] = "memory.memsw.limit_in_bytes";

char *cgroup_read_value(const char *group, const char *controller, const char *file) {
        cleanup_free char *path = cgroup_file(group, controller, file);
        cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;
        char *text = NULL;

        if (fd < 0 || read_stream(fd, 64 * KIB, &text, NULL) < 0)
                return NULL;
        return text;
}

/* Memory of a cgroup v2 that cannot easily be reclaimed. */
static uint64_t memory_in_use(const char *group) {
        cleanup_free char *current = cgroup_read_value(group, "memory", "memory.current");
        cleanup_free char *stat = cgroup_read_value(group, "memory", "memory.stat");
        const char *inactive = stat ? strstr(stat, "\ninactive_file ") : NULL;
        uint64_t used = current ? strtoull(current, NULL, 10) : 0;
        uint64_t cached = inactive ? strtoull(strchr(inactive, ' '), NULL, 10) : 0;

        return used > cached ? used - cached : 0;
}

static int refuse_memory_shrink(const char *what, const char *limit, Error *reterr) {
        return error_setf(reterr, EBUSY,
                          "the memory limit of %s cannot become %s bytes: more is in use", what,
                          limit);
}

/* In cgroup v1 the kernel refuses a limit below current usage; in cgroup v2 it would invoke the OOM
 * killer. */
static int check_memory_in_use(const char *group, const char *what, const CgroupValue *value,
                               Error *reterr) {
        if (streq(value->file, "memory.max") && !streq(value->value, "max") &&
            memory_in_use(group) > strtoull(value->value, NULL, 10))
                return refuse_memory_shrink(what, value->value, reterr);
        return 0;
}

/* Compares limits; "max" and "-1" are greater than all numbers. */
static uint64_t parse_memory_limit(const char *text) {
        return text[0] == 'm' || text[0] == '-' ? UINT64_MAX : strtoull(text, NULL, 10);
}

static bool does_shrink_memory(const char *present, const CgroupValue *value) {
        return streq(value->controller, "memory") && present &&
               parse_memory_limit(value->value) < parse_memory_limit(present);
}

static int write_cgroup_value(const char *group, const char *what, const CgroupValue *value,
                              bool keeps_memory, Error *reterr) {
        cleanup_free char *present = cgroup_read_value(group, value->controller, value->file);
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (present)
                present[strcspn(present, "\n")] = '\0';
        if (streq_ptr(present, value->value) ||
            (keeps_memory && does_shrink_memory(present, value)))
                return 0;
        r = check_memory_in_use(group, what, value, reterr);
        if (r < 0)
                return r;
        r = cgroup_write(group, value->controller, value->file, value->value, &error);
        if (r == -EBUSY && streq(value->controller, "memory"))
                return refuse_memory_shrink(what, value->value, reterr);
        return r < 0 ? error_setf(reterr, -r, "%s", error_message(&error, r)) : 0;
}

/* All values are written, even if one fails; the first failure is reported. With 'keeps_memory', no
 * memory limit is lowered. */
static int write_cgroup_values(const char *group, const char *what, CgroupValue *values, size_t n,
                               bool keeps_memory, Error *reterr) {
        int result = 0;

        if (cgroup_is_unit(group))
                cgroup_round_values(values, n);
        for (size_t i = 0; i < n; i++)
                if (streq(values[i].file, with_swap))
                        (void) write_cgroup_value(group, what, &values[i], keeps_memory, NULL);
        for (size_t i = 0; i < n; i++) {
                int r = write_cgroup_value(group, what, &values[i], keeps_memory,
                                           result < 0 ? NULL : reterr);

                result = result < 0 ? result : r;
        }
        return result;
}

static int resize_container_cgroup(const BundleConfig *config, const Pod *pod,
                                   const char *pod_group, const RunningContainer *running,
                                   Error *reterr) {
        CgroupValue values[CGROUP_VALUES_MAX];
        cleanup_free char *group = NULL, *what = NULL;
        char id[65];
        size_t n;

        container_id(pod->metadata.uid, running->spec->name, running->attempt, id);
        group = cgroup_of_container(pod_group, id);
        what = group ? text_format("container '%s'", running->spec->name) : NULL;
        if (!what)
                return -ENOMEM;
        n = container_cgroup_values(config, &pod->spec, running->spec, cgroup_version(), values);
        n = cgroup_values_complete(values, n, cgroup_version());
        return write_cgroup_values(group, what, values, n, /* keeps_memory= */ false, reterr);
}

static int resize_pod_cgroup(const BundleConfig *config, const Pod *pod, const char *group,
                             bool keeps_memory, Error *reterr) {
        CgroupValue values[POD_CGROUP_VALUES_MAX];
        int version = cgroup_version();
        size_t n = pod_cgroup_values(&pod->spec, version, config->pod_pids_limit, values);

        n = cgroup_values_complete(values, n, version);
        n += huge_pages_cgroup_values(&pod->spec, version, config->huge_pages, &values[n]);
        return write_cgroup_values(group, "the pod", values, n, keeps_memory, reterr);
}

int bundle_resize_pod(const BundleConfig *config, const Pod *pod, const RunningContainer *running,
                      size_t n_running, Error *reterr) {
        cleanup_free char *group =
                cgroup_of_pod(config, pod_qos_class(&pod->spec), pod->metadata.uid);
        int result = 0, r;

        if (!group)
                return -ENOMEM;
        (void) resize_pod_cgroup(config, pod, group, /* keeps_memory= */ true, NULL);
        for (size_t i = 0; i < n_running; i++) {
                r = resize_container_cgroup(config, pod, group, &running[i],
                                            result < 0 ? NULL : reterr);
                result = result < 0 ? result : r;
        }
        r = resize_pod_cgroup(config, pod, group, /* keeps_memory= */ result < 0,
                              result < 0 ? NULL : reterr);
        return result < 0 ? result : r;
}

/* The kernel rounds bytes to whole pages. */
static bool is_cgroup_value(const char *text, const CgroupValue *value) {
        const uint64_t page = 4 * KIB;

        if (strncmp(value->file, "memory.", 7) == 0 && value->value[0] != 'm' && text[0] != 'm')
                return strtoull(text, NULL, 10) / page == strtoull(value->value, NULL, 10) / page;
        return strncmp(text, value->value, strlen(value->value)) == 0 &&
               text[strlen(value->value)] == '\n';
}

int bundle_restore_pod_cgroup(const BundleConfig *config, const Pod *pod, const char *group,
                              Error *reterr) {
        CgroupValue values[POD_CGROUP_VALUES_MAX];
        size_t n = pod_cgroup_all_values(config, pod, group, values);
        int r;

        for (size_t i = 0; i < n; i++) {
                cleanup_free char *text =
                        cgroup_read_value(group, values[i].controller, values[i].file);

                if (text && is_cgroup_value(text, &values[i]))
                        continue;
                r = cgroup_create(group, reterr);
                return r < 0 ? r : 1;
        }
        return 0;
}
