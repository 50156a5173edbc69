/* SPDX-License-Identifier: Apache-2.0 */

/* DaemonSet from files: the defaults of each of the four API versions, and Kubernetes' validation
 * rules. Its template is validated as a pod. */

#include "agent/manifest/pod-rules.h"
#include "agent/manifest/validate-pod.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

enum {
        UID_LENGTH = 32,
        REVISION_HISTORY_DEFAULT = 10,
};

/* In the v1beta1 versions the selector was optional and OnDelete was the default strategy. */
static const struct {
        const char *version;
        bool has_default_selector;
        DaemonSetStrategy strategy;
} versions[] = {
        { "apps/v1", false, DAEMONSET_ROLLING_UPDATE },
        { "apps/v1beta2", false, DAEMONSET_ROLLING_UPDATE },
        { "apps/v1beta1", true, DAEMONSET_ON_DELETE },
        { "extensions/v1beta1", true, DAEMONSET_ON_DELETE },
};

/* The row of a version, or N_ELEMENTS(versions). */
static size_t find_daemonset_version(const char *version) {
        size_t i = 0;

        while (i < N_ELEMENTS(versions) && !streq(versions[i].version, version))
                i++;
        return i;
}

static int check_daemonset_version(const Decoder *d, const YamlNode *node,
                                   const DecodePath *parent) {
        const DecodePath path = { .parent = parent, .key = "apiVersion" };
        const YamlNode *version = yaml_node_get(node, "apiVersion");
        char text[EXCERPT_SIZE];

        /* An item of a list may omit it. */
        if (!version || find_daemonset_version(version->text) < N_ELEMENTS(versions))
                return 0;
        return decode_error_at(d, version, &path,
                               error_setf(d->reterr, EINVAL,
                                          "must be apps/v1 for a DaemonSet (or apps/v1beta2, "
                                          "apps/v1beta1, extensions/v1beta1), not '%s'",
                                          excerpt(text, version->text)));
}

static void default_number(OptionalInt *number, int64_t value) {
        if (!number->is_set)
                *number = (OptionalInt){ .is_set = true, .value = value };
}

static int set_default_strategy(DaemonSet *set) {
        DaemonSetUpdateStrategy *strategy = &set->spec.update_strategy;
        RollingUpdateDaemonSet *rolling;

        if (strategy->type == DAEMONSET_STRATEGY_UNSET)
                strategy->type = versions[find_daemonset_version(set->api_version)].strategy;
        if (strategy->type != DAEMONSET_ROLLING_UPDATE)
                return 0;
        if (!strategy->rolling_update)
                strategy->rolling_update = calloc(1, sizeof(*strategy->rolling_update));
        rolling = strategy->rolling_update;
        if (!rolling)
                return -ENOMEM;
        if (!rolling->max_unavailable.text)
                default_number(&rolling->max_unavailable.number, 1);
        if (!rolling->max_surge.text)
                default_number(&rolling->max_surge.number, 0);
        return 0;
}

/* Before apps/v1beta2, the selector defaults to the labels of the template. */
static int set_default_selector(DaemonSet *set) {
        const StringMap *labels = &set->spec.template.metadata.labels;

        if (set->spec.selector ||
            !versions[find_daemonset_version(set->api_version)].has_default_selector)
                return 0;
        set->spec.selector = calloc(1, sizeof(*set->spec.selector));
        if (!set->spec.selector)
                return -ENOMEM;
        for (size_t i = 0; i < labels->n; i++) {
                int r = string_map_set(&set->spec.selector->match_labels, labels->items[i].key,
                                       labels->items[i].value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int set_daemonset_uid(DaemonSet *set, const char *node_name) {
        const char *parts[] = { "DaemonSet", node_name, set->metadata.namespace,
                                set->metadata.name };
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        if (!hash)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(parts); i++)
                sha256_update(hash, parts[i], strlen(parts[i]) + 1);
        sha256_finish(hash, hex);
        set->metadata.uid = strndup(hex, UID_LENGTH);
        return set->metadata.uid ? 0 : -ENOMEM;
}

static int set_daemonset_defaults(DaemonSet *set) {
        int r;

        if (!set->metadata.namespace)
                set->metadata.namespace = strdup("default");
        if (!set->metadata.namespace)
                return -ENOMEM;
        default_number(&set->spec.min_ready_seconds, 0);
        default_number(&set->spec.revision_history_limit, REVISION_HISTORY_DEFAULT);
        r = set_default_strategy(set);
        return r < 0 ? r : set_default_selector(set);
}

static int check_selector(const Rules *rules, const DaemonSet *set) {
        const LabelSelector *selector = set->spec.selector;
        int r;

        if (!selector)
                return rules_at(rules, error_setf(rules->reterr, EINVAL, "is required"),
                                "spec.selector");
        r = check_label_selector(rules, selector, "spec.selector");
        if (r < 0)
                return r;
        if (selector->match_labels.n + selector->match_expressions.n == 0) {
                r = error_setf(rules->reterr, EINVAL,
                               "empty selector is invalid for daemonset: it would take every pod");
                return rules_at(rules, r, "spec.selector");
        }
        if (label_selector_matches(selector, &set->spec.template.metadata.labels))
                return 0;
        r = error_setf(rules->reterr, EINVAL, "`selector` does not match template `labels`");
        return rules_at(rules, r, "spec.template.metadata.labels");
}

static int check_strategy(const Rules *rules, const DaemonSet *set) {
        const RollingUpdateDaemonSet *rolling = set->spec.update_strategy.rolling_update;
        bool has_unavailable, has_surge;
        int r;

        if (set->spec.update_strategy.type != DAEMONSET_ROLLING_UPDATE)
                return 0;
        has_unavailable = int_or_percent_of_one(&rolling->max_unavailable, true) > 0;
        has_surge = int_or_percent_of_one(&rolling->max_surge, true) > 0;
        if (has_unavailable && has_surge)
                r = error_setf(rules->reterr, EINVAL,
                               "may not be set when maxUnavailable is non-zero");
        else if (!has_unavailable && !has_surge)
                r = error_setf(rules->reterr, EINVAL, "cannot be 0 when maxUnavailable is 0");
        else
                return 0;
        return rules_at(rules, r, "spec.updateStrategy.rollingUpdate.maxSurge");
}

static int check_restart_policy(const Rules *rules, const DaemonSet *set) {
        RestartPolicy policy = set->spec.template.spec.restart_policy;
        int r;

        if (policy == RESTART_POLICY_ALWAYS)
                return 0;
        r = error_setf(rules->reterr, EINVAL, "must be Always in a DaemonSet, not %s",
                       restart_policy_names[policy]);
        return rules_at(rules, r, "spec.template.spec.restartPolicy");
}

/* A deadline would terminate a pod that is meant to keep running. */
static int check_deadline(const Rules *rules, const DaemonSet *set) {
        if (!set->spec.template.spec.active_deadline_seconds.is_set)
                return 0;
        return rules_at(rules,
                        error_setf(rules->reterr, EINVAL,
                                   "activeDeadlineSeconds in DaemonSet is not Supported"),
                        "spec.template.spec.activeDeadlineSeconds");
}

static int check_set_progress_deadline(const Rules *rules, const DaemonSet *set) {
        return rules_are_of_api(rules) ? 0 : check_progress_deadline(rules, &set->metadata);
}

static int check_uid_is_free(const Rules *rules, const DaemonSet *set) {
        int r;

        if (!set->metadata.uid)
                return 0;
        r = error_setf(rules->reterr, EINVAL, "cannot be chosen; it is computed from the set");
        return rules_at(rules, r, "metadata.uid");
}

static int check_daemonset_metadata(const Rules *rules, const DaemonSet *set) {
        return check_metadata(rules, &set->metadata);
}

static int check_daemonset_spec(const Decoder *d, const YamlNode *node, const DecodePath *path,
                                const DaemonSet *set) {
        const Pod own = { .metadata = set->metadata };
        const Rules rules = {
                .decoder = d, .root = node, .path = path, .pod = &own, .reterr = d->reterr
        };
        static int (*const checks[])(const Rules *rules, const DaemonSet *set) = {
                check_daemonset_metadata, check_set_progress_deadline,
                check_selector,           check_restart_policy,
                check_deadline,           check_strategy,
        };
        int r = d->mode == DECODE_API ? 0 : rules_keep(&rules, check_uid_is_free(&rules, set));

        for (size_t i = 0; i < N_ELEMENTS(checks) && r >= 0; i++)
                r = rules_keep(&rules, checks[i](&rules, set));
        return r;
}

/* While the template is validated as a pod, it has the name of its set, because some rules depend
 * on the name. */
static int decode_template_defaults(Decoder *d, const YamlNode *node, const DecodePath *path,
                                    DaemonSet *set) {
        const DecodePath spec = { .parent = path, .key = "spec" };
        const DecodePath template = { .parent = &spec, .key = "template" };
        const YamlNode *root = yaml_node_get(yaml_node_get(node, "spec"), "template");
        Pod *pod = &set->spec.template;
        int r;

        pod->metadata.name = set->metadata.name;
        pod->metadata.namespace = set->metadata.namespace;
        r = pod_take_old_forms(d, root, &template, pod);
        if (r >= 0)
                r = pod_warn(d, root, &template, pod);
        if (r >= 0)
                r = pod_set_defaults(pod);
        if (r >= 0)
                r = pod_validate_template(d, root, &template, pod);
        pod->metadata.name = NULL;
        pod->metadata.namespace = NULL;
        return r;
}

static int set_string_default(char **text, const char *value) {
        return text_replace(text, value);
}

/* An API server has set it. */
static int require_uid(const Decoder *d, const YamlNode *node, const DecodePath *path,
                       const DaemonSet *set) {
        const DecodePath metadata = { .parent = path, .key = "metadata" };
        const DecodePath uid = { .parent = &metadata, .key = "uid" };

        return set->metadata.uid ? 0
                                 : decode_error_at(d, node, &uid,
                                                   error_setf(d->reterr, EINVAL, "is required"));
}

int daemonset_parse(Decoder *d, const YamlNode *node, const DecodePath *path, const char *node_name,
                    DaemonSet **ret) {
        cleanup_with(daemonset_freep) DaemonSet *set = calloc(1, sizeof(*set));
        bool is_of_api = d->mode == DECODE_API;
        size_t n_errors = decode_count_errors(d);
        int r = 0;

        if (!set)
                return -ENOMEM;
        if (!is_of_api)
                r = check_daemonset_version(d, node, path);
        if (r < 0)
                return r;
        r = decode_object(d, node, &daemonset_schema, path, set);
        if (r < 0)
                return r;
        /* The requested version, because an item of a list may omit it. */
        if (is_of_api || !set->api_version)
                r = set_string_default(&set->api_version, "apps/v1");
        if (r < 0)
                return r;
        r = set_daemonset_defaults(set);
        if (r < 0)
                return r;
        r = decode_keep_error(d, decode_template_defaults(d, node, path, set));
        if (r < 0)
                return r;
        r = decode_result(d, n_errors, check_daemonset_spec(d, node, path, set));
        if (r < 0)
                return r;
        r = is_of_api ? require_uid(d, node, path, set) : set_daemonset_uid(set, node_name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(set);
        return 0;
}
