/* SPDX-License-Identifier: Apache-2.0 */

/* The policy of a namespace, and the table of controls: which ones are in force at a level and in a
 * version. The controls themselves are in pod-security-controls.c. */

#include "agent/daemonset/rules/pod-security.h"

#include "agent/daemonset/rules/pod-security-controls.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char pod_security_enforce_label[] = "pod-security.kubernetes.io/enforce";
const char pod_security_version_label[] = "pod-security.kubernetes.io/enforce-version";

static const char *const level_names[N_POD_SECURITY_LEVELS] = {
        [POD_SECURITY_PRIVILEGED] = "privileged",
        [POD_SECURITY_BASELINE] = "baseline",
        [POD_SECURITY_RESTRICTED] = "restricted",
};

/* ---- the policy of a namespace ---- */

static int parse_level(const char *text, PodSecurityLevel *ret, Error *reterr) {
        char buffer[EXCERPT_SIZE];

        for (PodSecurityLevel level = 0; level < N_POD_SECURITY_LEVELS; level++)
                if (streq(text, level_names[level])) {
                        *ret = level;
                        return 0;
                }
        return error_setf(reterr, EINVAL,
                          "its label %s has the unknown level '%s'; it must be privileged, "
                          "baseline or restricted",
                          pod_security_enforce_label, excerpt(buffer, text));
}

/* "v1.<minor>", without leading zeros. */
static bool parse_minor(const char *text, unsigned *ret) {
        static const char prefix[] = "v1.";
        const char *digits = text + strlen(prefix);
        unsigned minor = 0;

        if (strncmp(text, prefix, strlen(prefix)) != 0 || !digits[0] ||
            (digits[0] == '0' && digits[1]))
                return false;
        for (const char *p = digits; *p; p++) {
                if (!isdigit((unsigned char) *p))
                        return false;
                minor = minor * 10 + (unsigned) (*p - '0');
                if (minor > POD_SECURITY_LATEST_MINOR)
                        return false;
        }
        *ret = minor;
        return true;
}

int pod_security_policy_parse(const char *enforce, const char *version, PodSecurityPolicy *ret,
                              Error *reterr) {
        PodSecurityPolicy policy = { .minor = POD_SECURITY_LATEST_MINOR, .is_latest = true };
        char buffer[EXCERPT_SIZE];
        int r = enforce ? parse_level(enforce, &policy.level, reterr) : 0;

        if (r < 0)
                return r;
        if (version && !streq(version, "latest")) {
                policy.is_latest = false;
                if (!parse_minor(version, &policy.minor))
                        return error_setf(reterr, EINVAL,
                                          "its label %s has the unknown version '%s'; this node "
                                          "knows v1.0 to v1.%d and latest",
                                          pod_security_version_label, excerpt(buffer, version),
                                          POD_SECURITY_LATEST_MINOR);
        }
        *ret = policy;
        return 0;
}

/* ---- the table ---- */

enum {
        NEVER = 1000, /* a minor version that will never exist */
};

typedef struct PodSecurityControl {
        PodSecurityLevel level;
        unsigned since; /* the minor version that introduced it */
        /* Since this version, a stricter control replaces this one at the level restricted. */
        unsigned replaced_since;
        void (*check)(PodSecurityReview *review);
} PodSecurityControl;

/* The order is that in which an API server lists violations. */
static const PodSecurityControl controls[] = {
        { POD_SECURITY_BASELINE, 0, NEVER, check_app_armor_profiles },
        { POD_SECURITY_BASELINE, 0, 22, check_added_capabilities },
        { POD_SECURITY_BASELINE, 0, NEVER, check_host_namespaces },
        { POD_SECURITY_BASELINE, 0, 0, check_host_path_volumes },
        { POD_SECURITY_BASELINE, 0, NEVER, check_ports_of_host },
        { POD_SECURITY_BASELINE, 34, NEVER, check_handler_hosts },
        { POD_SECURITY_BASELINE, 0, NEVER, check_privileged_containers },
        { POD_SECURITY_BASELINE, 0, 35, check_proc_mounts },
        { POD_SECURITY_BASELINE, 0, NEVER, check_se_linux_options },
        { POD_SECURITY_BASELINE, 0, 19, check_seccomp_profiles },
        { POD_SECURITY_BASELINE, 0, NEVER, check_sysctls },
        { POD_SECURITY_BASELINE, 0, NEVER, check_windows_host_process },
        { POD_SECURITY_RESTRICTED, 8, NEVER, check_privilege_escalation },
        { POD_SECURITY_RESTRICTED, 22, NEVER, check_dropped_capabilities },
        { POD_SECURITY_RESTRICTED, 35, NEVER, check_proc_mounts_of_all },
        { POD_SECURITY_RESTRICTED, 0, NEVER, check_volume_types },
        { POD_SECURITY_RESTRICTED, 0, NEVER, check_run_as_non_root },
        { POD_SECURITY_RESTRICTED, 23, NEVER, check_run_as_user },
        { POD_SECURITY_RESTRICTED, 19, NEVER, check_required_seccomp_profiles },
};

static bool is_in_force(const PodSecurityControl *control, const PodSecurityPolicy *policy) {
        bool is_replaced =
                policy->level > control->level && policy->minor >= control->replaced_since;

        return policy->level >= control->level && policy->minor >= control->since && !is_replaced;
}

/* 0 or -ENOMEM. */
static int review_pod(const PodSecurityPolicy *policy, const Pod *pod, PodSecurityReview *review,
                      char **ret_text) {
        char *text = NULL;
        size_t length;

        *review = (PodSecurityReview){ .pod = pod, .minor = policy->minor };
        review->out = open_memstream(&text, &length);
        if (!review->out)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(controls); i++)
                if (is_in_force(&controls[i], policy))
                        controls[i].check(review);
        *ret_text = memstream_finish(review->out, &text);
        return *ret_text && !review->has_failed ? 0 : -ENOMEM;
}

int pod_security_check(const PodSecurityPolicy *policy, const Pod *pod, char **ret_violations) {
        cleanup_free char *violations = NULL;
        PodSecurityReview review;
        char version[16] = "latest";
        int r = review_pod(policy, pod, &review, &violations);

        if (r < 0)
                return r;
        if (review.n_violations == 0)
                return 1;
        if (!policy->is_latest)
                (void) snprintf(version, sizeof(version), "v1.%u", policy->minor);
        *ret_violations = text_format("violates PodSecurity \"%s:%s\": %s",
                                      level_names[policy->level], version, violations);
        return *ret_violations ? 0 : -ENOMEM;
}
