/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for hostUsers: pods with and without their own user namespace. */

#include "agent/manifest/validate-pod.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
        ID_MAX = 65535
};

static int check_user_namespace_id(const Rules *rules, const OptionalInt *id, const char *path,
                                   const char *field) {
        if (!id->is_set || id->value <= ID_MAX || rules_are_of_api(rules))
                return 0;
        return rules_refuse(rules, "must be between 0 and 65535 when `hostUsers` is false",
                            "%s.securityContext.%s", path, field);
}

static int check_pod_ids(const Rules *rules) {
        const PodSecurityContext *context = &rules->pod->spec.security_context;
        int r = check_user_namespace_id(rules, &context->run_as_user, "spec", "runAsUser");

        if (r < 0)
                return r;
        r = check_user_namespace_id(rules, &context->run_as_group, "spec", "runAsGroup");
        if (r < 0)
                return r;
        r = check_user_namespace_id(rules, &context->fs_group, "spec", "fsGroup");
        if (r < 0)
                return r;
        for (size_t i = 0; i < context->supplemental_groups.n && !rules_are_of_api(rules); i++)
                if (context->supplemental_groups.items[i] > ID_MAX)
                        return rules_refuse(rules,
                                            "must be between 0 and 65535 when `hostUsers` is false",
                                            "spec.securityContext.supplementalGroups[%zu]", i);
        return 0;
}

static int check_container_users(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        bool own_users = pod_has_own_users(&rules->pod->spec);
        int r;

        if (!own_users)
                return container->security_context.proc_mount != PROC_MOUNT_UNMASKED
                               ? 0
                               : rules_refuse(rules, "`hostUsers` must be false to use `Unmasked`",
                                              "%s.securityContext.procMount", at->path);
        r = check_user_namespace_id(rules, &container->security_context.run_as_user, at->path,
                                    "runAsUser");
        if (r < 0)
                return r;
        r = check_user_namespace_id(rules, &container->security_context.run_as_group, at->path,
                                    "runAsGroup");
        if (r < 0)
                return r;
        /* The kernel does not propagate mounts out of a less privileged user namespace. */
        for (size_t i = 0; i < container->volume_mounts.n && !rules_are_of_api(rules); i++)
                if (container->volume_mounts.items[i].mount_propagation ==
                    MOUNT_PROPAGATION_BIDIRECTIONAL)
                        return rules_refuse(rules,
                                            "may not be Bidirectional when `hostUsers` is false",
                                            "%s.volumeMounts[%zu].mountPropagation", at->path, i);
        return 0;
}

int check_users(const Rules *rules) {
        const PodSpec *spec = &rules->pod->spec;
        const struct {
                bool is_shared;
                const char *field;
        } shared[] = { { spec->host_network, "hostNetwork" },
                       { spec->host_pid, "hostPID" },
                       { spec->host_ipc, "hostIPC" } };
        int r = 0;

        for (size_t i = 0; pod_has_own_users(spec) && i < N_ELEMENTS(shared); i++)
                if (shared[i].is_shared)
                        return rules_refuse(rules, "may not be true when `hostUsers` is false",
                                            "spec.%s", shared[i].field);
        if (pod_has_own_users(spec))
                r = check_pod_ids(rules);
        if (r < 0)
                return r;
        for (size_t i = 0; i < pod_count_containers(spec); i++) {
                ContainerAt at = container_at(rules, i);

                r = rules_keep(rules, check_container_users(rules, &at));
                if (r < 0)
                        return r;
        }
        return 0;
}
