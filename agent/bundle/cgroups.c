/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/cgroups.h"

#include "agent/bundle/huge-pages.h"
#include "agent/bundle/pod-paths.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>

#define SLICE ".slice"

enum {
        PERIODS_PER_SEC = 10, /* of CPU_PERIOD_USEC */
        QUOTA_STEP_USEC = CPU_PERIOD_USEC / 100,
};

static bool has_suffix(const char *text, const char *end) {
        size_t length = strlen(text);

        return length > strlen(end) && streq(text + length - strlen(end), end);
}

bool cgroup_is_slice(const char *group) {
        return has_suffix(group, SLICE);
}

bool cgroup_is_unit(const char *group) {
        return has_suffix(group, SLICE) || has_suffix(group, ".scope");
}

const char *cgroup_unit_name(const char *group) {
        const char *slash = strrchr(group, '/');

        return slash ? slash + 1 : group;
}

/* The prefix of slice names for a cgroup root: "/a/b-c" gives "a-b_c-", as the kubelet names it. */
static char *slice_prefix(const char *root) {
        char *prefix = strdup(root[0] == '/' ? root + 1 : root), *with_dash;

        for (char *c = prefix; c && *c; c++)
                if (*c == '-')
                        *c = '_';
                else if (*c == '/')
                        *c = '-';
        if (!prefix || !prefix[0])
                return prefix;
        with_dash = text_format("%s-", prefix);
        free(prefix);
        return with_dash;
}

/* The parent directory of a slice: "a-b.slice" is in "a.slice". */
static char *slice_path(const char *name) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        const char *end = name + strlen(name) - strlen(SLICE);

        if (!out)
                return NULL;
        for (const char *c = name; c < end; c++)
                if (*c == '-')
                        (void) fprintf(out, "/%.*s" SLICE, (int) (c - name), name);
        (void) fprintf(out, "/%s", name);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

static char *slice_below(const char *root, const char *name) {
        cleanup_free char *prefix = slice_prefix(root), *full = NULL;

        full = prefix ? text_format("%s%s", prefix, name) : NULL;
        if (!full)
                return NULL;
        return slice_path(full);
}

char *cgroup_of_new_pod(const BundleConfig *config, QosClass qos, const char *uid) {
        cleanup_free char *name = NULL;

        if (!config->has_slices)
                return pod_cgroup_path(config->cgroup_root, qos, uid);
        name = pod_slice_name(qos, uid);
        return name ? slice_below(config->cgroup_root, name) : NULL;
}

char *cgroup_of_qos_class(const BundleConfig *config, QosClass qos) {
        static const char *const names[N_QOS_CLASSES] = {
                [QOS_GUARANTEED] = "kubepods" SLICE,
                [QOS_BURSTABLE] = "kubepods-burstable" SLICE,
                [QOS_BEST_EFFORT] = "kubepods-besteffort" SLICE,
        };

        return config->has_slices ? slice_below(config->cgroup_root, names[qos])
                                  : qos_cgroup_path(config->cgroup_root, qos);
}

/* Whether a recorded path names a cgroup of this pod, for any root and driver. All processes in it
 * are killed in the end, so a truncated record must not name the cgroup of other pods. */
static bool is_cgroup_of_pod(const char *group, const char *uid) {
        cleanup_free char *directory = pod_cgroup_path("/", QOS_GUARANTEED, uid);
        cleanup_free char *slice = pod_slice_name(QOS_GUARANTEED, uid);
        const char *name = cgroup_unit_name(group);

        if (!directory || !slice || group[0] != '/' || strstr(group, "/../"))
                return false;
        return streq(name, cgroup_unit_name(directory)) || has_suffix(name, strstr(slice, "-pod"));
}

static bool cgroup_exists(const char *group) {
        cleanup_free char *file = cgroup_file(group, "memory", "cgroup.procs");

        return file && access(file, F_OK) >= 0;
}

/* Finds the cgroup without a record. If only the UID of a pod is known, the existing cgroup
 * determines the QoS class. */
static char *derive_cgroup_of_pod(const BundleConfig *config, QosClass qos, const char *uid) {
        for (unsigned i = 0; i < N_QOS_CLASSES; i++) {
                cleanup_free char *group = cgroup_of_new_pod(config, (QosClass) i, uid);

                if (group && cgroup_exists(group))
                        return TAKE_PTR(group);
        }
        return cgroup_of_new_pod(config, qos, uid);
}

static char *cgroup_record_path(const BundleConfig *config, const char *uid) {
        cleanup_free char *run_dir = pod_run_dir(config, uid);

        return run_dir ? path_join(run_dir, "cgroup") : NULL;
}

bool pod_has_cgroup_record(const BundleConfig *config, const char *uid) {
        cleanup_free char *file = cgroup_record_path(config, uid);

        return file && access(file, F_OK) >= 0;
}

char *cgroup_of_pod(const BundleConfig *config, QosClass qos, const char *uid) {
        cleanup_free char *file = cgroup_record_path(config, uid);
        cleanup_free char *text = NULL;

        if (!file)
                return NULL;
        if (read_file_at(AT_FDCWD, file, 4 * KIB, &text, NULL) >= 0 && is_cgroup_of_pod(text, uid))
                return TAKE_PTR(text);
        return derive_cgroup_of_pod(config, qos, uid);
}

/* The prefix of scope names. Daemons that find containers by their cgroups recognize only the
 * prefixes of well-known runtimes, and in the slice of a pod only this one; see
 * mainstay-differences(7). */
#define SCOPE_PREFIX "cri-containerd"

/* A container that an agent of version 0.2 has started keeps its scope; the next attempt has
 * another ID. */
#define FORMER_SCOPE_PREFIX "mainstay"

static char *scope_in_slice(const char *slice, const char *prefix, const char *id) {
        return text_format("%s/%s-%s.scope", slice, prefix, id);
}

char *cgroup_of_container(const char *pod_group, const char *id) {
        cleanup_free char *former = NULL;

        if (!cgroup_is_slice(pod_group))
                return path_join(pod_group, id);
        former = scope_in_slice(pod_group, FORMER_SCOPE_PREFIX, id);
        if (former && cgroup_exists(former))
                return TAKE_PTR(former);
        return scope_in_slice(pod_group, SCOPE_PREFIX, id);
}

char *cgroups_path_for_runtime(const char *pod_group, const char *id) {
        if (!cgroup_is_slice(pod_group))
                return path_join(pod_group, id);
        return text_format("%s:" SCOPE_PREFIX ":%s", cgroup_unit_name(pod_group), id);
}

int64_t cgroup_round_quota(int64_t quota_usec) {
        return (quota_usec + QUOTA_STEP_USEC - 1) / QUOTA_STEP_USEC * QUOTA_STEP_USEC;
}

void cgroup_round_values(CgroupValue *values, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (streq(values[i].file, "cpu.max") && values[i].value[0] != 'm') /* "max" */
                        (void) snprintf(values[i].value, sizeof(values[i].value), "%" PRId64 " %d",
                                        cgroup_round_quota(strtoll(values[i].value, NULL, 10)),
                                        CPU_PERIOD_USEC);
}

static uint64_t parse_property_value(const char *text) {
        return strncmp(text, "max", 3) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
}

/* The properties that the kubelet's systemd driver sets. systemd does not manage the other limits,
 * such as huge pages, and leaves their files alone. */
size_t cgroup_slice_properties(const CgroupValue *values, size_t n,
                               SliceProperty ret[SLICE_PROPERTIES_MAX]) {
        static const struct {
                const char *file;
                const char *property;
                unsigned factor;
        } known[] = {
                { "cpu.weight", "CPUWeight", 1 },
                { "cpu.max", "CPUQuotaPerSecUSec", PERIODS_PER_SEC },
                { "memory.max", "MemoryMax", 1 },
                { "memory.swap.max", "MemorySwapMax", 1 },
                { "pids.max", "TasksMax", 1 },
        };
        size_t n_properties = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < N_ELEMENTS(known); j++) {
                        uint64_t value;

                        if (!streq(values[i].file, known[j].file) ||
                            n_properties == SLICE_PROPERTIES_MAX)
                                continue;
                        value = parse_property_value(values[i].value);
                        if (value != UINT64_MAX)
                                value *= known[j].factor;
                        ret[n_properties++] = (SliceProperty){ known[j].property, value };
                }
        return n_properties;
}

size_t pod_cgroup_all_values(const BundleConfig *config, const Pod *pod, const char *group,
                             CgroupValue ret[POD_CGROUP_VALUES_MAX]) {
        int version = cgroup_version();
        size_t n = pod_cgroup_values(&pod->spec, version, config->pod_pids_limit, ret);

        n += huge_pages_cgroup_values(&pod->spec, version, config->huge_pages, &ret[n]);
        if (cgroup_is_slice(group))
                cgroup_round_values(ret, n);
        return n;
}

/* ---- reservations ---- */

static size_t add_reservation_value(CgroupValue *values, size_t n, const char *controller,
                                    const char *file, int64_t amount) {
        values[n] = (CgroupValue){ .controller = controller, .file = file };
        (void) snprintf(values[n].value, sizeof(values[n].value), "%" PRId64, amount);
        return n + 1;
}

static size_t reservation_values(const NodeReservation *amount, int version,
                                 CgroupValue ret[CGROUP_VALUES_MAX]) {
        uint64_t shares = cpu_shares(amount->cpu_milli);
        size_t n = 0;

        if (amount->cpu_milli > 0)
                n = add_reservation_value(
                        ret, n, "cpu", version == 2 ? "cpu.weight" : "cpu.shares",
                        (int64_t) (version == 2 ? cpu_weight_of_group(shares) : shares));
        if (amount->memory > 0)
                n = add_reservation_value(ret, n, "memory",
                                          version == 2 ? "memory.max" : "memory.limit_in_bytes",
                                          amount->memory);
        if (amount->pids > 0)
                n = add_reservation_value(ret, n, "pids", "pids.max", amount->pids);
        return n;
}

static int64_t read_pid_max(void) {
        cleanup_free char *text = NULL;

        return read_file_at(AT_FDCWD, "/proc/sys/kernel/pid_max", 64, &text, NULL) < 0
                       ? 0
                       : strtoll(text, NULL, 10);
}

size_t all_pods_cgroup_values(const BundleConfig *config, int version,
                              CgroupValue ret[CGROUP_VALUES_MAX]) {
        const NodeReservation *reserved = &config->reserved;
        NodeReservation rest = { 0 };

        if (reserved->cpu_milli > 0)
                rest.cpu_milli = MAX(config->cpu_capacity_milli - reserved->cpu_milli, 1);
        if (reserved->memory > 0)
                rest.memory = MAX(config->memory_capacity - reserved->memory, 1);
        if (reserved->pids > 0)
                rest.pids = MAX(read_pid_max() - reserved->pids, 1);
        return reservation_values(&rest, version, ret);
}

int cgroup_enforce_reservation(const char *group, const NodeReservation *reserved,
                               bool is_compressible_only, Error *reterr) {
        const NodeReservation amount = {
                .cpu_milli = reserved->cpu_milli,
                .memory = is_compressible_only ? 0 : reserved->memory,
                .pids = is_compressible_only ? 0 : reserved->pids,
        };
        CgroupValue values[CGROUP_VALUES_MAX];
        size_t n = reservation_values(&amount, cgroup_version(), values);
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++)
                r = cgroup_write(group, values[i].controller, values[i].file, values[i].value,
                                 reterr);
        return r;
}
