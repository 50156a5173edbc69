/* SPDX-License-Identifier: Apache-2.0 */
/* Computes config.json: process, mounts, namespaces, cgroup, devices, masked paths. Defaults are
 * those that the kubelet and containerd give an unprivileged container. User, capabilities and
 * seccomp are resolved in resolved-security.c. An image has no influence on the node. */

#include "agent/bundle/runtime-spec.h"

#include "agent/bundle/anonymous-volumes.h"
#include "agent/bundle/cdi-edits.h"
#include "agent/bundle/cgroup-resources.h"
#include "agent/bundle/cgroups.h"
#include "agent/bundle/device-edits.h"
#include "agent/bundle/environment.h"
#include "agent/bundle/guarded-root.h"
#include "agent/bundle/huge-pages.h"
#include "agent/bundle/masked-paths.h"
#include "agent/bundle/pod-dns.h"
#include "agent/bundle/pod-paths.h"
#include "agent/bundle/pod-user-namespace.h"
#include "agent/bundle/resize.h"
#include "agent/bundle/resolved-security.h"
#include "agent/bundle/swap.h"
#include "agent/bundle/volume-mounts.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>

static json_t *strv_array(char *const *strv) {
        json_t *array = json_array();

        for (size_t i = 0; strv && strv[i]; i++)
                json_array_append_new(array, json_string(strv[i]));
        return array;
}

static json_t *make_process_user(ContainerSecurity *security) {
        return json_pack("{s:I, s:I, s:O}", "uid", (json_int_t) security->uid, "gid",
                         (json_int_t) security->gid, "additionalGids", security->groups);
}

static const char *working_directory(const RuntimeSpecInput *input) {
        if (input->container->working_dir)
                return input->container->working_dir;
        return input->image->working_dir ? input->image->working_dir : "/";
}

/* Whether the text of the path leads through /proc. A path that leaves it again with ".." also
 * counts, because after a descriptor ".." does not lead where the text suggests. */
static bool passes_proc(const char *path) {
        size_t depth = 0, length;

        for (; *path; path += length + (path[length] == '/')) {
                length = strcspn(path, "/");
                if (length == 0 || (length == 1 && path[0] == '.'))
                        continue;
                if (length == 2 && strncmp(path, "..", 2) == 0)
                        depth -= depth > 0;
                else if (depth++ == 0 && length == 4 && strncmp(path, "proc", 4) == 0)
                        return true;
        }
        return false;
}

/* A working directory below /proc could name a descriptor that a runtime left open
 * (CVE-2024-21626). */
static int check_working_directory(const char *directory, Error *reterr) {
        if (directory[0] != '/')
                return error_setf(reterr, EINVAL, "the working directory '%s' is not absolute",
                                  directory);
        if (passes_proc(directory))
                return error_setf(reterr, EINVAL, "the working directory '%s' is in /proc",
                                  directory);
        return 0;
}

static int make_process_section(const RuntimeSpecInput *input, ContainerSecurity *security,
                                json_t **ret, Error *reterr) {
        const BundleConfig *config = input->config;
        cleanup_with(variable_set_done) VariableSet variables = VARIABLE_SET_NULL;
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        cleanup_strv char **argv = NULL;
        cleanup_free char *hostname = NULL;
        const char *directory = working_directory(input);
        int adjust, r;

        r = check_working_directory(directory, reterr);
        if (r < 0)
                return r;
        r = pod_hostname(config, input->pod, &hostname, reterr);
        if (r < 0)
                return r;
        r = container_variables(config, input->pod, input->container, &variables, reterr);
        if (r < 0)
                return r;
        r = container_environment(input->image, hostname, &variables, &env, reterr);
        if (r >= 0)
                r = device_edit_environment(config, &variables, &env);
        if (r >= 0 && input->container->tty)
                r = variable_set_put_default(&env, "TERM", "xterm");
        if (r == -E2BIG)
                return too_large_environment(reterr);
        if (r < 0)
                return r;
        r = container_argv(input->container, input->image, &variables, &argv, reterr);
        if (r < 0)
                return r;
        adjust = oom_score_adj(&input->pod->spec, input->container, config->memory_capacity);
        *ret = json_pack("{s:b, s:o, s:o, s:o, s:s, s:o, s:b, s:i}", "terminal",
                         (int) input->container->tty, "user", make_process_user(security), "args",
                         strv_array(argv), "env", strv_array(env.strv), "cwd", directory,
                         "capabilities", capabilities_section(security->capabilities),
                         "noNewPrivileges", security->no_new_privileges, "oomScoreAdj",
                         MAX(adjust, config->oom_score_adj_min));
        if (*ret && security->app_armor_profile)
                json_object_set_new(*ret, "apparmorProfile",
                                    json_string(security->app_armor_profile));
        if (*ret && input->labels.process)
                json_object_set_new(*ret, "selinuxLabel", json_string(input->labels.process));
        return *ret ? 0 : -ENOMEM;
}

static void add_mount(json_t *mounts, const char *destination, const char *type, const char *source,
                      const char *options) {
        json_t *list = json_array();

        for (size_t length; *options; options += length + (options[length] == ',')) {
                length = strcspn(options, ",");
                json_array_append_new(list, json_stringn(options, length));
        }
        json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:o}", "destination", destination,
                                                "type", type, "source", source, "options", list));
}

static int add_volume_mounts(const RuntimeSpecInput *input, json_t *mounts) {
        cleanup_with(mount_list_done) MountList list = { 0 };
        int r = container_mounts(input, &list);

        if (r < 0)
                return r;
        for (size_t i = 0; i < list.n; i++)
                add_mount(mounts, list.items[i].destination, "bind", list.items[i].source,
                          list.items[i].options);
        return 0;
}

static json_t *mounts_section(const RuntimeSpecInput *input, const ContainerSecurity *security) {
        const char *mode = security->is_privileged ? "rw" : "ro";
        json_t *mounts = json_array();
        char sysfs[64], cgroup[64];

        (void) snprintf(sysfs, sizeof(sysfs), "nosuid,noexec,nodev,%s", mode);
        (void) snprintf(cgroup, sizeof(cgroup), "nosuid,noexec,nodev,relatime,%s", mode);
        add_mount(mounts, "/proc", "proc", "proc", "nosuid,noexec,nodev");
        add_mount(mounts, "/dev", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k");
        add_mount(mounts, "/dev/pts", "devpts", "devpts",
                  "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5");
        /* /dev/mqueue. A runtime would relabel an mqueue that it mounts itself, which would be the
         * node's. */
        if (input->pod->spec.host_ipc && input->labels.file)
                add_mount(mounts, "/dev/mqueue", "bind", "/dev/mqueue", "rbind,rprivate,rw");
        else
                add_mount(mounts, "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev");
        add_mount(mounts, "/sys", "sysfs", "sysfs", sysfs);
        add_mount(mounts, "/sys/fs/cgroup", "cgroup", "cgroup", cgroup);
        if (device_edit_mounts(input, mounts) >= 0 && add_volume_mounts(input, mounts) >= 0)
                return mounts;
        json_decref(mounts);
        return NULL;
}

static void join_sandbox(json_t *namespaces, const RuntimeSpecInput *input, const char *type,
                         const char *file) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int) input->sandbox_pid, file);
        json_array_append_new(namespaces, json_pack("{s:s, s:s}", "type", type, "path", path));
}

/* The path at which the shim binds the namespace of the target container. */
static char *target_pid_namespace(const RuntimeSpecInput *input) {
        cleanup_free char *bundle = container_bundle_dir(input->config, input->pod->metadata.uid,
                                                         input->container->name, input->attempt);

        return bundle ? path_join(bundle, "pid-namespace") : NULL;
}

/* shareProcessNamespace, targetContainerName, hostPID: the container's own namespace; its target's;
 * the pod's, which the shim holds; or the node's, which is expressed by omitting it. */
static void add_pid_namespace(const RuntimeSpecInput *input, json_t *list) {
        const PodSpec *spec = &input->pod->spec;
        bool has_target = input->container->target_container_name;
        cleanup_free char *path =
                has_target
                        ? target_pid_namespace(input)
                        : pod_file_path(input->config, input->pod->metadata.uid, "/pid-namespace");

        if ((has_target || spec->share_process_namespace) && path)
                json_array_append_new(list, json_pack("{s:s, s:s}", "type", "pid", "path", path));
        else if (!spec->host_pid)
                json_array_append_new(list, json_pack("{s:s}", "type", "pid"));
}

/* hostNetwork, hostUsers: a namespace that is not listed is inherited from the runtime, so it is
 * the node's. With hostIPC the sandbox's IPC namespace is the node's. */
static json_t *namespaces_section(const RuntimeSpecInput *input) {
        json_t *list = json_pack("[{s:s}]", "type", "mount");

        if (input->users)
                json_array_append_new(
                        list, json_pack("{s:s, s:s}", "type", "user", "path", input->users));
        add_pid_namespace(input, list);

        join_sandbox(list, input, "ipc", "ipc");
        if (!input->pod->spec.host_network) {
                join_sandbox(list, input, "network", "net");
                join_sandbox(list, input, "uts", "uts");
        }
        if (input->cgroup_version == 2)
                json_array_append_new(list, json_pack("{s:s}", "type", "cgroup"));
        return list;
}

/* Without a memory limit, a container in cgroup v1 has unlimited swap, and there is no file to
 * limit it. */
static void add_memory_limits(json_t *result, const RuntimeSpecInput *input) {
        const PodSpec *spec = &input->pod->spec;
        int64_t limit = container_memory_limit(spec, input->container);
        json_t *memory = limit > 0 ? json_pack("{s:I}", "limit", (json_int_t) limit) : NULL;
        char swap[24];

        if (memory && input->cgroup_version == 1 && input->config->can_limit_swap)
                json_object_set_new(memory, "swap", json_integer(limit));
        if (memory)
                json_object_set_new(result, "memory", memory);
        if (input->cgroup_version != 2 || !input->config->can_limit_swap)
                return;
        (void) snprintf(
                swap, sizeof(swap), "%" PRId64,
                container_swap_bytes(input->config, spec, input->container, input->cgroup_version));
        json_object_set_new(json_object_get(result, "unified"), "memory.swap.max",
                            json_string(swap));
}

/* memory.oom.group: an OOM kill ends the whole container, unless singleProcessOOMKill is set. NULL:
 * the file is missing with its controller. */
static const char *oom_group_value(const RuntimeSpecInput *input) {
        if (input->config->lacks_memory_controller)
                return NULL;
        return input->config->has_single_oom_kill ? "0" : "1";
}

static json_t *make_resources_section(const RuntimeSpecInput *input,
                                      const ContainerSecurity *security) {
        const PodSpec *spec = &input->pod->spec;
        uint64_t shares = cpu_shares(container_milli_cpu_request(spec, input->container));
        int64_t quota = cpu_quota_usec(container_milli_cpu_limit(spec, input->container));
        bool is_slice = input->pod_group && cgroup_is_slice(input->pod_group);
        json_t *cpu = json_object();
        json_t *result = json_pack("{s:[{s:b, s:s}]}", "devices", "allow", security->is_privileged,
                                   "access", "rwm");

        if (input->cgroup_version == 2) {
                char weight[24];

                /* Runtimes differ in the conversion of shares to weight, so it is written here. */
                (void) snprintf(weight, sizeof(weight), "%" PRIu64,
                                cpu_weight_of_container(shares));
                json_object_set_new(result, "unified",
                                    json_pack("{s:s, s:s*}", "cpu.weight", weight,
                                              "memory.oom.group", oom_group_value(input)));
        } else
                json_object_set_new(cpu, "shares", json_integer((json_int_t) shares));
        if (quota > 0) {
                json_object_set_new(cpu, "quota",
                                    json_integer(is_slice ? cgroup_round_quota(quota) : quota));
                json_object_set_new(cpu, "period", json_integer(CPU_PERIOD_USEC));
        }
        json_object_set_new(result, "cpu", cpu);
        /* systemd sets a default TasksMax for units without one; here the pod's limit applies. */
        if (is_slice && !input->config->lacks_pids_controller)
                json_object_set_new(result, "pids", json_pack("{s:i}", "limit", -1));
        add_memory_limits(result, input);
        if (input->config->huge_pages)
                json_object_set_new(result, "hugepageLimits",
                                    huge_pages_limits(&input->pod->spec, input->container,
                                                      input->config->huge_pages));
        return result;
}

/* Includes procMount: with Unmasked, nothing in /proc is masked. */
static json_t *linux_section(const RuntimeSpecInput *input, const ContainerSecurity *security) {
        cleanup_free char *group =
                input->pod_group
                        ? strdup(input->pod_group)
                        : cgroup_of_new_pod(input->config, pod_qos_class(&input->pod->spec),
                                            input->pod->metadata.uid);
        cleanup_free char *cgroup = group ? cgroups_path_for_runtime(group, input->id) : NULL;
        json_t *section = json_pack("{s:s, s:o, s:o}", "cgroupsPath", cgroup, "namespaces",
                                    namespaces_section(input), "resources",
                                    make_resources_section(input, security));

        const char *propagation = rootfs_propagation(input->container);

        if (propagation)
                json_object_set_new(section, "rootfsPropagation", json_string(propagation));
        if (input->labels.file)
                json_object_set_new(section, "mountLabel", json_string(input->labels.file));
        if (security->is_privileged)
                json_object_set_new(section, "devices", node_devices("/dev"));
        else if (input->container->security_context.proc_mount != PROC_MOUNT_UNMASKED) {
                json_object_set_new(section, "maskedPaths", masked_paths_section(input->config));
                json_object_set_new(section, "readonlyPaths", readonly_paths_section());
        }
        if (input->users)
                userns_add_id_mappings(section, input->first_id);
        if (security->seccomp)
                json_object_set(section, "seccomp", security->seccomp);
        return section;
}

/* Properties of a container's systemd scope beyond those that the runtime sets. */
static void add_scope_properties(json_t *annotations, const RuntimeSpecInput *input) {
        /* OOMPolicy keeps memory.oom.group when systemd rewrites the cgroup files. CollectMode lets
         * systemd unload a scope whose container was killed. */
        json_object_set_new(
                annotations, "org.systemd.property.OOMPolicy",
                json_string(input->config->has_single_oom_kill ? "'continue'" : "'kill'"));
        json_object_set_new(annotations, "org.systemd.property.CollectMode",
                            json_string("'inactive-or-failed'"));
        /* At shutdown systemd stops slices with all their processes at once, unless they are
         * ordered to stop after the agent. */
        json_object_set_new(annotations, "org.systemd.property.Before",
                            json_string("['mainstay.service']"));
        /* crun creates a subgroup in the scope unless this annotation is empty; limits are read and
         * changed in the scope itself. */
        json_object_set_new(annotations, "run.oci.systemd.subgroup", json_string(""));
}

/* runc also sets the limits as unit properties. crun (1.8) only writes the cgroup files, which a
 * daemon-reload would reset. */
static void add_scope_limits(json_t *annotations, const RuntimeSpecInput *input) {
        SliceProperty properties[SLICE_PROPERTIES_MAX];
        CgroupValue values[CGROUP_VALUES_MAX];
        size_t n = container_cgroup_values(input->config, &input->pod->spec, input->container,
                                           input->cgroup_version, values);

        cgroup_round_values(values, n);
        n = cgroup_slice_properties(values, n, properties);
        properties[n++] = (SliceProperty){ "TasksMax", UINT64_MAX };
        for (size_t i = 0; i < n; i++) {
                char key[64], value[32];

                (void) snprintf(key, sizeof(key), "org.systemd.property.%s", properties[i].name);
                (void) snprintf(value, sizeof(value), "uint64 %" PRIu64, properties[i].value);
                json_object_set_new(annotations, key, json_string(value));
        }
}

/* The annotations by which tools that read a runtime's state recognize the containers of a kubelet.
 */
static json_t *annotations_section(const RuntimeSpecInput *input) {
        const ObjectMeta *metadata = &input->pod->metadata;
        char attempt[16];
        json_t *result;

        (void) snprintf(attempt, sizeof(attempt), "%u", input->attempt);
        result = json_pack("{s:s, s:s, s:s, s:s, s:s}", "io.kubernetes.pod.name", metadata->name,
                           "io.kubernetes.pod.namespace", metadata->namespace,
                           "io.kubernetes.pod.uid", metadata->uid, "io.kubernetes.container.name",
                           input->container->name, "io.kubernetes.container.restartCount", attempt);
        if (input->pod_group && cgroup_is_slice(input->pod_group)) {
                add_scope_properties(result, input);
                add_scope_limits(result, input);
        }
        return result;
}

/* The runtime runs this hook outside of the container, after all mounts and after the hooks of CDI
 * devices. The hook masks paths in place of the runtime, because the mount points may be links in a
 * volume. */
static void add_root_guard(json_t *document, const char *shim) {
        json_t *section = json_object_get(document, "linux");

        json_t *hooks = json_object_get(document, "hooks"), *list;

        if (!hooks) {
                json_object_set_new(document, "hooks", json_object());
                hooks = json_object_get(document, "hooks");
        }
        if (!json_object_get(hooks, "createRuntime"))
                json_object_set_new(hooks, "createRuntime", json_array());
        list = json_object_get(hooks, "createRuntime");
        json_array_append_new(
                list, json_pack("{s:s, s:[s, s]}", "path", shim, "args", "mainstay-shim", "guard"));
        if (!json_object_get(document, "mainstay"))
                json_object_set_new(document, "mainstay", json_object());
        if (json_object_get(section, "maskedPaths"))
                json_object_set(json_object_get(document, "mainstay"), "maskedPaths",
                                json_object_get(section, "maskedPaths"));
        (void) json_object_del(section, "maskedPaths");
}

int make_runtime_spec(const RuntimeSpecInput *input, char **ret, Error *reterr) {
        cleanup_with(container_security_done) ContainerSecurity security = { 0 };
        unsigned failures = json_failed_allocations();
        json_t *process_section = NULL, *document;
        char *text;
        int r;

        r = check_container_mounts(input->container, reterr);
        if (r < 0)
                return r;
        r = resolve_container_security(input, &security, reterr);
        if (r < 0)
                return r;
        r = make_process_section(input, &security, &process_section, reterr);
        if (r < 0)
                return r;
        document = json_pack(
                "{s:s, s:o, s:{s:s, s:b}, s:o, s:o, s:o}", "ociVersion", "1.0.2", "process",
                process_section, "root", "path", "rootfs", "readonly", security.has_read_only_root,
                "mounts", mounts_section(input, &security), "linux",
                linux_section(input, &security), "annotations", annotations_section(input));
        r = document ? device_edit_runtime_spec(input, document, reterr) : -ENOMEM;
        if (r >= 0)
                r = cdi_edit_runtime_spec(input, document, reterr);
        if (r < 0) {
                json_decref(document);
                return r;
        }
        if (input->config->shim_path && !security.is_privileged &&
            root_needs_guard(input, json_object_get(document, "mounts"), working_directory(input)))
                add_root_guard(document, input->config->shim_path);
        text = document ? json_to_text(document, JSON_COMPACT) : NULL;
        json_decref(document);
        if (json_failed_allocations() != failures) { /* a limit or a filter would be missing */
                free(text);
                return -ENOMEM;
        }
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}
