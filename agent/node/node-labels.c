/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the node's labels and taints, and keeps the times of NoExecute taints. */

#include "agent/node/node-labels-private.h"

#include "agent/manifest/manifest.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "agent/model/pod.h"
#include "agent/model/schema.h"
#include "common/architecture.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define OS_RELEASE_MAX (64 * KIB)

/* The names that node-feature-discovery uses, so that selectors written for it match here. */
#define OS_LABEL "feature.node.kubernetes.io/system-os_release."

static int add_os_label(NodeLabelsTaints *node, const char *key, const char *value) {
        if (check_label_value(value, NULL) < 0 || string_map_get(&node->labels, key))
                return 0;
        return string_map_set(&node->labels, key, value);
}

/* For "12.5": the full, the major and the minor version. */
static int add_os_version(NodeLabelsTaints *node, const char *version) {
        cleanup_free char *major = strndup(version, strcspn(version, "."));
        const char *dot = strchr(version, '.');
        cleanup_free char *minor = strndup(dot ? dot + 1 : "", dot ? strcspn(dot + 1, ".") : 0);
        int r;

        if (!major || !minor)
                return -ENOMEM;
        r = add_os_label(node, OS_LABEL "VERSION_ID", version);
        if (r < 0)
                return r;
        r = add_os_label(node, OS_LABEL "VERSION_ID.major", major);
        if (r < 0)
                return r;
        if (minor[0])
                return add_os_label(node, OS_LABEL "VERSION_ID.minor", minor);
        return 0;
}

/* One line of os-release, a shell assignment; a value is quoted as a whole or not at all. */
static int add_os_line(NodeLabelsTaints *node, char *line) {
        char *value = strchr(line, '='), *end;

        if (!value)
                return 0;
        *value++ = '\0';
        value += *value == '"' || *value == '\'';
        end = value + strcspn(value, "\"'");
        *end = '\0';
        if (streq(line, "ID"))
                return add_os_label(node, OS_LABEL "ID", value);
        return streq(line, "VERSION_ID") ? add_os_version(node, value) : 0;
}

static int add_os_release(NodeLabelsTaints *node) {
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = read_file_at(AT_FDCWD, "/etc/os-release", OS_RELEASE_MAX, &text, NULL);

        if (r < 0)
                r = read_file_at(AT_FDCWD, "/usr/lib/os-release", OS_RELEASE_MAX, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (rest = text; (line = strsep(&rest, "\n"));) {
                r = add_os_line(node, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static const Taint *find_same_taint(const NodeLabelsTaints *node, const Taint *taint) {
        for (size_t i = 0; node && i < node->taints.n; i++) {
                const Taint *other = &node->taints.items[i];

                if (streq(other->key, taint->key) && other->effect == taint->effect &&
                    streq_ptr(other->value, taint->value))
                        return other;
        }
        return NULL;
}

/* After a clock has been set back, a time may be in the future, from which no duration can be
 * computed. */
static bool has_time_passed(const char *time_added, uint64_t now) {
        uint64_t time;

        return parse_rfc3339(time_added, &time) >= 0 && time <= now;
}

static int set_taint_time(Taint *taint, const NodeLabelsTaints *before, uint64_t now) {
        const Taint *known = find_same_taint(before, taint);
        char text[RFC3339_SIZE];

        if (taint->time_added || taint->effect != TAINT_NO_EXECUTE)
                return 0;
        if (!known || !known->time_added || !has_time_passed(known->time_added, now))
                known = NULL;
        taint->time_added = strdup(known ? known->time_added : format_rfc3339(text, now));
        return taint->time_added ? 0 : -ENOMEM;
}

/* ---- local labels and taints ---- */
static int add_local_taints(const TaintList *taints, const NodeLabelsTaints *before, uint64_t now,
                            NodeLabelsTaints *node) {
        node->taints.items = calloc(taints->n + 1, sizeof(Taint));
        if (!node->taints.items)
                return -ENOMEM;
        for (size_t i = 0; i < taints->n; i++) {
                Taint *taint = &node->taints.items[node->taints.n++];
                int r = schema_copy(&taint_schema, taint, &taints->items[i]);

                if (r < 0)
                        return r;
                r = set_taint_time(taint, before, now);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_given_label(NodeLabelsTaints *given, char *word, Error *reterr) {
        char *value = strchr(word, '=');
        int r;

        if (!value)
                return error_setf(reterr, EINVAL, "must be key=value");
        *value++ = '\0';
        r = check_label_key(word, reterr);
        if (r < 0)
                return r;
        r = check_label_value(value, reterr);
        if (r < 0)
                return r;
        return string_map_set(&given->labels, word, value);
}

static int add_given_taint(NodeLabelsTaints *given, char *word, Error *reterr) {
        return taint_parse(word, &given->taints.items[given->taints.n++], reterr);
}

/* The words between commas; surrounding blanks are ignored, as in the kubelet. */
static int add_given_words(NodeLabelsTaints *given, const char *text, const char *option,
                           int (*add)(NodeLabelsTaints *given, char *word, Error *reterr),
                           Error *reterr) {
        cleanup_free char *copy = strdup(text);
        char *rest = copy, *word;

        if (!copy)
                return -ENOMEM;
        while ((word = strsep(&rest, ","))) {
                cleanup_free char *whole = NULL;
                int r;

                word += strspn(word, " ");
                word[strcspn(word, " ")] = '\0';
                if (!word[0])
                        continue;
                whole = strdup(word);
                if (!whole)
                        return -ENOMEM;
                r = add(given, word, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s: '%s'", option, whole);
        }
        return 0;
}

int node_labels_set_given(MergedNodeLabels *node, const char *labels, const char *taints,
                          Error *reterr) {
        size_t n_taints = 1;
        int r = labels ? add_given_words(&node->given, labels, "--node-labels", add_given_label,
                                         reterr)
                       : 0;

        if (r < 0 || !taints)
                return r;
        for (const char *comma = taints; (comma = strchr(comma, ',')); comma++)
                n_taints++;
        node->given.taints.items = calloc(n_taints, sizeof(Taint));
        if (!node->given.taints.items)
                return -ENOMEM;
        node->has_given_taints = true;
        return add_given_words(&node->given, taints, "--register-with-taints", add_given_taint,
                               reterr);
}

static int collect_local_labels(const MergedNodeLabels *node, const Config *config, uint64_t now,
                                NodeLabelsTaints *local) {
        const StringMap *labels = &config->mainstay.node_labels, *given = &node->given.labels;
        const TaintList *taints =
                node->has_given_taints ? &node->given.taints : &config->register_with_taints;
        int r = 0;

        local->name = strdup(node->node_name);
        if (!local->name)
                return -ENOMEM;
        /* The configuration comes first: discovered labels do not override it. */
        for (size_t i = 0; i < labels->n && r >= 0; i++)
                r = string_map_set(&local->labels, labels->items[i].key, labels->items[i].value);
        for (size_t i = 0; i < given->n && r >= 0; i++)
                r = string_map_set(&local->labels, given->items[i].key, given->items[i].value);
        if (r < 0)
                return r;
        r = node_labels_taints_add_well_known(local, node->hostname, machine_architecture());
        if (r < 0)
                return r;
        r = add_os_release(local);
        return r < 0 ? r : add_local_taints(taints, &node->effective, now, local);
}

/* ---- effective labels and taints ---- */

/* Key and effect identify a taint; the first one is used. */
static bool has_taint_key(const NodeLabelsTaints *node, const Taint *taint) {
        for (size_t i = 0; i < node->taints.n; i++)
                if (streq(node->taints.items[i].key, taint->key) &&
                    node->taints.items[i].effect == taint->effect)
                        return true;
        return false;
}

static int add_missing_taints(const TaintList *taints, const NodeLabelsTaints *before, uint64_t now,
                              NodeLabelsTaints *node) {
        int r = 0;

        for (size_t i = 0; i < taints->n && r >= 0; i++) {
                Taint *taint = &node->taints.items[node->taints.n];

                if (has_taint_key(node, &taints->items[i]))
                        continue;
                r = schema_copy(&taint_schema, taint, &taints->items[i]);
                if (r < 0)
                        break;
                node->taints.n++;
                r = set_taint_time(taint, before, now);
        }
        return r;
}

/* As in the node lifecycle controller. */
static int add_condition_taints(NodeLabelsTaints *node) {
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                const Taint taint = { .key = (char *) (uintptr_t) node_conditions[c].taint,
                                      .effect = TAINT_NO_SCHEDULE };
                int r;

                if (!(node->conditions & NODE_CONDITION_BIT(c)) || find_same_taint(node, &taint))
                        continue;
                r = schema_copy(&taint_schema, &node->taints.items[node->taints.n++], &taint);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Local labels and taints come first, because external ones must not override them. */
static int merge_node_labels(const NodeLabelsTaints *local, const NodeLabelsTaints *external,
                             unsigned conditions, const NodeLabelsTaints *before, uint64_t now,
                             NodeLabelsTaints *effective) {
        int r;

        effective->conditions = conditions;
        effective->name = strdup(local->name);
        effective->taints.items =
                calloc(local->taints.n + external->taints.n + N_NODE_CONDITIONS, sizeof(Taint));
        if (!effective->name || !effective->taints.items)
                return -ENOMEM;
        r = node_labels_taints_add_labels(effective, &local->labels);
        if (r < 0)
                return r;
        r = node_labels_taints_add_labels(effective, &external->labels);
        if (r < 0)
                return r;
        r = add_missing_taints(&local->taints, before, now, effective);
        if (r < 0)
                return r;
        r = add_missing_taints(&external->taints, before, now, effective);
        if (r < 0)
                return r;
        return add_condition_taints(effective);
}

static void replace_node_labels(NodeLabelsTaints *node, NodeLabelsTaints *with) {
        node_labels_taints_done(node);
        *node = *with;
        *with = (NodeLabelsTaints){ 0 };
}

/* 1 if they changed; 0; -ENOMEM, without any change. */
static int update_effective_labels(MergedNodeLabels *node, const NodeLabelsTaints *local,
                                   const NodeLabelsTaints *external, unsigned conditions) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints effective = { 0 };
        int r = merge_node_labels(local, external, conditions, &node->effective,
                                  steady_now_usec(node->clock), &effective);
        bool is_same;

        if (r < 0)
                return r;
        is_same = node_labels_taints_equal(&effective, &node->effective);
        replace_node_labels(&node->effective, &effective);
        return !is_same;
}

int node_labels_load(MergedNodeLabels *node, const Config *config, bool is_joined) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        int r = node_labels_load_taints(node->state_dir, &node->effective);

        if (r < 0)
                return r;
        if (is_joined)
                r = node_labels_load_external(node->state_dir, &node->external);
        if (r < 0)
                return r;
        r = collect_local_labels(node, config, steady_now_usec(node->clock), &local);
        if (r < 0)
                return r;
        r = update_effective_labels(node, &local, &node->external, 0);
        if (r < 0)
                return r;
        replace_node_labels(&node->local, &local);
        node_labels_save_taints(node->state_dir, &node->effective);
        return 0;
}

void node_labels_done(MergedNodeLabels *node) {
        node_labels_taints_done(&node->given);
        node_labels_taints_done(&node->local);
        node_labels_taints_done(&node->external);
        node_labels_taints_done(&node->effective);
}

int node_labels_set_conditions(MergedNodeLabels *node, unsigned conditions) {
        return update_effective_labels(node, &node->local, &node->external, conditions);
}

int node_labels_set_external(MergedNodeLabels *node, const NodeLabelsTaints *external) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints copy = { 0 };
        int r;

        if (node_labels_taints_equal(external, &node->external))
                return 0;
        r = schema_copy(&node_labels_taints_schema, &copy, external);
        if (r < 0)
                return r;
        r = update_effective_labels(node, &node->local, &copy, node->effective.conditions);
        if (r < 0)
                return r;
        replace_node_labels(&node->external, &copy);
        node_labels_save_external(node->state_dir, &node->external);
        node_labels_save_taints(node->state_dir, &node->effective);
        return r;
}

/* Whether a setting that takes effect only at the next start has changed. */
static bool other_settings_differ(const Config *running, Config *read) {
        Config borrowed = *running;

        borrowed.mainstay.node_labels = read->mainstay.node_labels;
        borrowed.register_with_taints = read->register_with_taints;
        return !schema_equal(&config_schema, &borrowed, read);
}

int node_labels_reload(MergedNodeLabels *node, const ConfigFiles *files, const Config *running,
                       Error *reterr) {
        cleanup_with(config_done) Config config = { 0 };
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        cleanup_strv char **warnings = NULL;
        int r;

        r = config_files_load(files, &config, &warnings, reterr);
        if (r < 0)
                return r;
        r = collect_local_labels(node, &config, steady_now_usec(node->clock), &local);
        if (r < 0)
                return r;
        r = update_effective_labels(node, &local, &node->external, node->effective.conditions);
        if (r < 0)
                return r;
        if (other_settings_differ(running, &config))
                log_warning(
                        "Changed settings of %s, except labels and taints, take effect when the "
                        "agent restarts",
                        files->file);
        /* If an external label has the same value, nothing changes here, but the Node object is
         * updated. */
        r = r > 0 || !node_labels_taints_equal(&local, &node->local);
        replace_node_labels(&node->local, &local);
        if (r > 0)
                node_labels_save_taints(node->state_dir, &node->effective);
        return r;
}
