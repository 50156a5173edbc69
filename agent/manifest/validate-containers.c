/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for containers within their pod: unique names, restart policies and rules. */

#include "agent/manifest/validate-pod.h"

#include <errno.h>
#include <string.h>

/* Kubernetes' limits (pkg/apis/core/validation). */
enum {
        RULES_MAX = 20,
        EXIT_CODES_MAX = 255,
};

/* The names of all containers of a pod must be different. */
static int check_container_name(const Rules *rules, const ContainerAt *at) {
        for (size_t i = 0; i < at->n; i++) {
                const Container *container = pod_nth_container(&rules->pod->spec, i);
                ContainerAt other;
                int r;

                if (!streq(at->container->name, container->name))
                        continue;
                other = container_at(rules, i);
                r = error_setf(rules->reterr, EINVAL, "must be unique; '%s' is also %s",
                               at->container->name, other.path + strlen("spec."));
                return rules_at(rules, r, "%s.name", at->path);
        }
        return 0;
}

static int check_restart_rules(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;
        int r;

        if (container->restart_policy_rules.n == 0)
                return 0;
        if (container->restart_policy == RESTART_POLICY_UNSET) {
                r = error_setf(rules->reterr, EINVAL,
                               "must specify restartPolicy when restart rules are used");
                return rules_at(rules, r, "%s.restartPolicy", at->path);
        }
        if (container->restart_policy_rules.n > RULES_MAX) {
                r = error_setf(rules->reterr, EINVAL, "must have at most %d items", RULES_MAX);
                return rules_at(rules, r, "%s.restartPolicyRules", at->path);
        }
        for (size_t i = 0; i < container->restart_policy_rules.n; i++) {
                const RestartRuleExitCodes *codes =
                        container->restart_policy_rules.items[i].exit_codes;

                if (!codes || codes->values.n <= EXIT_CODES_MAX)
                        continue;
                r = error_setf(rules->reterr, EINVAL, "must have at most %d items", EXIT_CODES_MAX);
                return rules_at(rules, r, "%s.restartPolicyRules[%zu].exitCodes.values", at->path,
                                i);
        }
        return 0;
}

static int resize_broken(const Rules *rules, const ContainerAt *at, size_t i, const char *field,
                         const char *sentence) {
        return rules_at(rules, error_setf(rules->reterr, EINVAL, "%s", sentence),
                        "%s.resizePolicy[%zu]%s", at->path, i, field);
}

static int check_resize_policy(const Rules *rules, const ContainerAt *at) {
        const Container *container = at->container;

        for (size_t i = 0; i < container->resize_policy.n; i++) {
                const ResizePolicy *policy = &container->resize_policy.items[i];

                if (rules_are_of_api(rules)) /* it may have resources that are unknown here */
                        return 0;
                if (at->role == ROLE_INIT)
                        return resize_broken(rules, at, i, "",
                                             "must not be set for init containers");
                for (size_t j = 0; j < i; j++)
                        if (container->resize_policy.items[j].resource_name ==
                            policy->resource_name)
                                return resize_broken(rules, at, i, ".resourceName",
                                                     "must be unique");
                if (rules->pod->spec.restart_policy == RESTART_POLICY_NEVER &&
                    policy->restart_policy != RESIZE_RESTART_NOT_REQUIRED)
                        return resize_broken(
                                rules, at, i, ".restartPolicy",
                                "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
        return 0;
}

/* A container of the pod that is not ephemeral itself. */
static int check_target_container(const Rules *rules, const ContainerAt *at) {
        const char *name = at->container->target_container_name;
        const Container *target = name ? pod_find_container(rules->pod, name) : NULL;

        if (!name || (target && container_role(&rules->pod->spec, target) != ROLE_EPHEMERAL))
                return 0;
        return rules_at(rules,
                        error_setf(rules->reterr, EINVAL,
                                   "must be an init container or container of the pod, not '%s'",
                                   name),
                        "%s.targetContainerName", at->path);
}

int check_container_kind(const Rules *rules, const ContainerAt *at) {
        int r = check_container_name(rules, at);

        if (r < 0)
                return r;
        r = check_target_container(rules, at);
        if (r < 0)
                return r;
        r = check_restart_rules(rules, at);
        if (r < 0)
                return r;
        return check_resize_policy(rules, at);
}
