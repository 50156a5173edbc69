/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for security contexts, shared namespaces, sysctls and priority: contradictions
 * between fields. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "agent/model/sysctl.h"
#include "common/strv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct ProfileRule {
        const char *field;
        const char *missing;
        const char *superfluous;
} ProfileRule;

static const ProfileRule seccomp_rule = {
        "seccompProfile",
        "must be set when seccomp type is Localhost",
        "can only be set when seccomp type is Localhost",
};

static const ProfileRule app_armor_rule = {
        "appArmorProfile",
        "must be set when AppArmor type is Localhost",
        "can only be set when AppArmor type is Localhost",
};

static int check_profile(const Rules *rules, const SecurityProfile *profile,
                         const ProfileRule *rule, const char *context) {
        bool is_local = profile && profile->type == PROFILE_LOCALHOST;

        /* An API server accepts an empty path, which makes the container fail. */
        if (is_local && !profile->localhost_profile && !rules_are_of_api(rules))
                return rules_refuse(rules, rule->missing, "%s.%s.localhostProfile", context,
                                    rule->field);
        if (profile && !is_local && profile->localhost_profile)
                return rules_refuse(rules, rule->superfluous, "%s.%s.localhostProfile", context,
                                    rule->field);
        return 0;
}

/* Kubernetes compares the text, so it accepts SYS_ADMIN, which published manifests contain. */
static bool adds_sys_admin(const Capabilities *capabilities) {
        return capabilities->add && strv_contains(capabilities->add, "CAP_SYS_ADMIN");
}

static int check_container_context(const Rules *rules, size_t n) {
        ContainerAt at = container_at(rules, n);
        const SecurityContext *context = &at.container->security_context;
        bool may_not_escalate = context->allow_privilege_escalation.is_set &&
                                !context->allow_privilege_escalation.value;
        char path[sizeof(at.path) + sizeof(".securityContext")];
        int r;

        (void) snprintf(path, sizeof(path), "%s.securityContext", at.path);
        if (may_not_escalate && context->privileged)
                return rules_refuse(
                        rules,
                        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
                        "%s", path);
        if (may_not_escalate && adds_sys_admin(&context->capabilities))
                return rules_refuse(rules,
                                    "cannot set `allowPrivilegeEscalation` to false and "
                                    "`capabilities.Add` CAP_SYS_ADMIN",
                                    "%s", path);
        r = check_profile(rules, context->seccomp_profile, &seccomp_rule, path);
        if (r < 0)
                return r;
        return check_profile(rules, context->app_armor_profile, &app_armor_rule, path);
}

/* Describes how this sysctl contradicts the rest of the pod, or NULL. An API server has already
 * checked this. */
static const char *explain_sysctl_conflict(const Rules *rules, const char *name, size_t i) {
        const PodSpec *spec = &rules->pod->spec;
        const PodSecurityContext *context = &spec->security_context;
        SysctlNamespace namespace = sysctl_namespace(name);

        for (size_t j = 0; j < i && !rules_are_of_api(rules); j++) {
                char other[SYSCTL_NAME_SIZE];

                if (streq(name, sysctl_dotted(context->sysctls.items[j].name, other)))
                        return "must be unique";
        }
        if (namespace == SYSCTL_OF_NETWORK && spec->host_network)
                return "may not be specified when 'hostNetwork' is true";
        if (namespace == SYSCTL_OF_IPC && spec->host_ipc)
                return "may not be specified when 'hostIPC' is true";
        return NULL;
}

static int check_sysctl(const Rules *rules, size_t i) {
        const Sysctl *sysctl = &rules->pod->spec.security_context.sysctls.items[i];
        char name[SYSCTL_NAME_SIZE];
        const char *problem = explain_sysctl_conflict(rules, sysctl_dotted(sysctl->name, name), i);

        if (problem)
                return rules_refuse(rules, problem, "spec.securityContext.sysctls[%zu].name", i);
        /* An API server accepts this, and the node rejects the pod. */
        if (!rules_are_of_api(rules) && strchr(sysctl->value, '\n'))
                return rules_refuse(rules, "must be one line",
                                    "spec.securityContext.sysctls[%zu].value", i);
        return 0;
}

/* The priority is defaulted from the class; a manifest that sets it must name the class and agree
 * with it. */
static int check_priority(const Rules *rules) {
        const PodSpec *spec = &rules->pod->spec;
        char text[EXCERPT_SIZE];
        int64_t priority;

        /* The API server's admission sets both fields, using classes that are unknown here. */
        if (!spec->priority_class_name || rules_are_of_api(rules))
                return 0;
        priority = system_priority_class_value(spec->priority_class_name);
        if (priority == 0 && strncmp(spec->priority_class_name, "system-", 7) == 0)
                return rules_refuse(
                        rules,
                        "is not a system class; system classes are system-node-critical and "
                        "system-cluster-critical",
                        "spec.priorityClassName");
        if (priority == 0 && spec->priority.is_set)
                return rules_refuse(rules, "must be absent when priorityClassName is set",
                                    "spec.priority");
        if (priority == 0 || spec->priority.value == priority)
                return 0;
        (void) snprintf(text, sizeof(text), "must be that of its class, %" PRId64 ", or absent",
                        priority);
        return rules_refuse(rules, text, "spec.priority");
}

static int check_overhead(const Rules *rules) {
        const ResourceList *overhead = pod_overhead(&rules->pod->spec);

        if (overhead->cpu.milli < 0 || overhead->memory.milli < 0)
                return rules_refuse(rules, "must not be negative", "spec.overhead");
        if (rules->pod->spec.runtime_class_name || rules_are_of_api(rules) ||
            !pod_has_overhead(&rules->pod->spec))
                return 0;
        return rules_refuse(rules, "must be absent without a runtimeClassName", "spec.overhead");
}

/* A pod of the API server for another operating system is rejected when it is to start. */
static int check_pod_os(const Rules *rules) {
        const PodOs *os = rules->pod->spec.os;

        if (!os || os->name == OS_LINUX || rules_are_of_api(rules))
                return 0;
        return rules_refuse(rules, "must be linux, not 'windows'", "spec.os.name");
}

int check_security(const Rules *rules) {
        const PodSpec *spec = &rules->pod->spec;
        const PodSecurityContext *context = &spec->security_context;
        int r;

        if (spec->host_pid && spec->share_process_namespace)
                return rules_refuse(rules,
                                    "ShareProcessNamespace and HostPID cannot both be enabled",
                                    "spec.shareProcessNamespace");
        r = check_profile(rules, context->seccomp_profile, &seccomp_rule, "spec.securityContext");
        if (r < 0)
                return r;
        r = check_profile(rules, context->app_armor_profile, &app_armor_rule,
                          "spec.securityContext");
        if (r < 0)
                return r;
        for (size_t i = 0; i < context->sysctls.n; i++) {
                r = rules_keep(rules, check_sysctl(rules, i));
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < pod_count_containers(spec); i++) {
                r = rules_keep(rules, check_container_context(rules, i));
                if (r < 0)
                        return r;
        }
        if (!rules_are_of_api(rules)) { /* an API server has already compared them */
                r = check_profile_annotations(rules);
                if (r < 0)
                        return r;
        }
        r = check_priority(rules);
        if (r < 0)
                return r;
        r = check_pod_os(rules);
        if (r < 0)
                return r;
        return check_overhead(rules);
}
