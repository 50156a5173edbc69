/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/facts-private.h"

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

/* As node-feature-discovery names them, so that selectors that are written for it hold here. */
#define OS_LABEL "feature.node.kubernetes.io/system-os_release."

static int add_label(NodeFacts *facts, const char *key, const char *value) {
        if (check_label_value(value, NULL) < 0 || string_map_get(&facts->labels, key))
                return 0;
        return string_map_set(&facts->labels, key, value);
}

/* "12.5": the whole, the major and the minor version. */
static int add_version(NodeFacts *facts, const char *version) {
        cleanup_free char *major = strndup(version, strcspn(version, "."));
        const char *dot = strchr(version, '.');
        cleanup_free char *minor = strndup(dot ? dot + 1 : "", dot ? strcspn(dot + 1, ".") : 0);
        int r;

        if (!major || !minor)
                return -ENOMEM;
        r = add_label(facts, OS_LABEL "VERSION_ID", version);
        if (r >= 0)
                r = add_label(facts, OS_LABEL "VERSION_ID.major", major);
        if (r >= 0 && minor[0])
                r = add_label(facts, OS_LABEL "VERSION_ID.minor", minor);
        return r;
}

/* One line of os-release, which is a shell's assignment; quotes stand around all or nothing. */
static int add_os_line(NodeFacts *facts, char *line) {
        char *value = strchr(line, '='), *end;

        if (!value)
                return 0;
        *value++ = '\0';
        value += *value == '"' || *value == '\'';
        end = value + strcspn(value, "\"'");
        *end = '\0';
        if (streq(line, "ID"))
                return add_label(facts, OS_LABEL "ID", value);
        return streq(line, "VERSION_ID") ? add_version(facts, value) : 0;
}

static int add_os_release(NodeFacts *facts) {
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = read_file_at(AT_FDCWD, "/etc/os-release", OS_RELEASE_MAX, &text, NULL);

        if (r < 0)
                r = read_file_at(AT_FDCWD, "/usr/lib/os-release", OS_RELEASE_MAX, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (rest = text; (line = strsep(&rest, "\n"));) {
                r = add_os_line(facts, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static const Taint *find_taint(const NodeFacts *facts, const Taint *taint) {
        for (size_t i = 0; facts && i < facts->taints.n; i++) {
                const Taint *other = &facts->taints.items[i];

                if (streq(other->key, taint->key) && other->effect == taint->effect &&
                    streq_ptr(other->value, taint->value))
                        return other;
        }
        return NULL;
}

/* The time of a clock that was set back since is still to come, and no time to count from. */
static bool has_passed(const char *time_added, uint64_t now) {
        uint64_t time;

        return parse_rfc3339(time_added, &time) >= 0 && time <= now;
}

static int set_time(Taint *taint, const NodeFacts *before, uint64_t now) {
        const Taint *known = find_taint(before, taint);
        char text[RFC3339_SIZE];

        if (taint->time_added || taint->effect != TAINT_NO_EXECUTE)
                return 0;
        if (!known || !known->time_added || !has_passed(known->time_added, now))
                known = NULL;
        taint->time_added = strdup(known ? known->time_added : format_rfc3339(text, now));
        return taint->time_added ? 0 : -ENOMEM;
}

/* What this node says of itself. */
static int add_own_taints(const TaintList *taints, const NodeFacts *before, uint64_t now,
                          NodeFacts *facts) {
        facts->taints.items = calloc(taints->n + 1, sizeof(Taint));
        if (!facts->taints.items)
                return -ENOMEM;
        for (size_t i = 0; i < taints->n; i++) {
                Taint *taint = &facts->taints.items[facts->taints.n++];
                int r = schema_copy(&taint_schema, taint, &taints->items[i]);

                if (r >= 0)
                        r = set_time(taint, before, now);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int gather(const Facts *facts, const Config *config, uint64_t now, NodeFacts *own) {
        const StringMap *labels = &config->mainstay.node_labels;
        int r = 0;

        own->name = strdup(facts->node_name);
        if (!own->name)
                return -ENOMEM;
        /* The configuration's first: nothing that we find out is said against it. */
        for (size_t i = 0; i < labels->n && r >= 0; i++)
                r = string_map_set(&own->labels, labels->items[i].key, labels->items[i].value);
        if (r >= 0)
                r = node_facts_add_known(own, facts->hostname, machine_architecture());
        if (r >= 0)
                r = add_os_release(own);
        return r < 0 ? r : add_own_taints(&config->register_with_taints, &facts->all, now, own);
}

/* ---- all of it ---- */

/* A taint is known by its key and effect; the first one of them stands. */
static bool has_taint(const NodeFacts *facts, const Taint *taint) {
        for (size_t i = 0; i < facts->taints.n; i++)
                if (streq(facts->taints.items[i].key, taint->key) &&
                    facts->taints.items[i].effect == taint->effect)
                        return true;
        return false;
}

static int add_taints(const TaintList *taints, const NodeFacts *before, uint64_t now,
                      NodeFacts *facts) {
        int r = 0;

        for (size_t i = 0; i < taints->n && r >= 0; i++) {
                Taint *taint = &facts->taints.items[facts->taints.n];

                if (has_taint(facts, &taints->items[i]))
                        continue;
                r = schema_copy(&taint_schema, taint, &taints->items[i]);
                if (r < 0)
                        break;
                facts->taints.n++;
                r = set_time(taint, before, now);
        }
        return r;
}

/* What the node lifecycle controller adds where there is one. */
static int add_condition_taints(NodeFacts *facts) {
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                const Taint taint = { .key = (char *) (uintptr_t) node_conditions[c].taint,
                                      .effect = TAINT_NO_SCHEDULE };
                int r;

                if (!(facts->conditions & NODE_CONDITION_BIT(c)) || find_taint(facts, &taint))
                        continue;
                r = schema_copy(&taint_schema, &facts->taints.items[facts->taints.n++], &taint);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Ours first: what a node says of itself is not for others to change. */
static int merge(const NodeFacts *own, const NodeFacts *others, unsigned conditions,
                 const NodeFacts *before, uint64_t now, NodeFacts *all) {
        int r;

        all->conditions = conditions;
        all->name = strdup(own->name);
        all->taints.items =
                calloc(own->taints.n + others->taints.n + N_NODE_CONDITIONS, sizeof(Taint));
        if (!all->name || !all->taints.items)
                return -ENOMEM;
        r = node_facts_add_labels(all, &own->labels);
        if (r >= 0)
                r = node_facts_add_labels(all, &others->labels);
        if (r >= 0)
                r = add_taints(&own->taints, before, now, all);
        if (r >= 0)
                r = add_taints(&others->taints, before, now, all);
        return r < 0 ? r : add_condition_taints(all);
}

static void replace(NodeFacts *facts, NodeFacts *with) {
        node_facts_done(facts);
        *facts = *with;
        *with = (NodeFacts){ 0 };
}

/* 1 where all of it is another than before; 0; -ENOMEM, and then it is as it was. */
static int put_together(Facts *facts, const NodeFacts *own, const NodeFacts *others,
                        unsigned conditions) {
        cleanup_with(node_facts_done) NodeFacts all = { 0 };
        int r = merge(own, others, conditions, &facts->all, steady_now_usec(facts->clock), &all);
        bool is_same;

        if (r < 0)
                return r;
        is_same = node_facts_equal(&all, &facts->all);
        replace(&facts->all, &all);
        return !is_same;
}

int facts_load(Facts *facts, const Config *config, bool is_joined) {
        cleanup_with(node_facts_done) NodeFacts own = { 0 };
        int r = facts_recall_taints(facts->state_dir, &facts->all);

        if (r >= 0 && is_joined)
                r = facts_recall_others(facts->state_dir, &facts->others);
        if (r >= 0)
                r = gather(facts, config, steady_now_usec(facts->clock), &own);
        if (r >= 0)
                r = put_together(facts, &own, &facts->others, 0);
        if (r < 0)
                return r;
        replace(&facts->own, &own);
        facts_note_taints(facts->state_dir, &facts->all);
        return 0;
}

void facts_done(Facts *facts) {
        node_facts_done(&facts->own);
        node_facts_done(&facts->others);
        node_facts_done(&facts->all);
}

int facts_set_conditions(Facts *facts, unsigned conditions) {
        return put_together(facts, &facts->own, &facts->others, conditions);
}

int facts_set_others(Facts *facts, const NodeFacts *others) {
        cleanup_with(node_facts_done) NodeFacts copy = { 0 };
        int r;

        if (node_facts_equal(others, &facts->others))
                return 0;
        r = schema_copy(&node_facts_schema, &copy, others);
        if (r >= 0)
                r = put_together(facts, &facts->own, &copy, facts->all.conditions);
        if (r < 0)
                return r;
        replace(&facts->others, &copy);
        facts_note_others(facts->state_dir, &facts->others);
        facts_note_taints(facts->state_dir, &facts->all);
        return r;
}

/* Whether something is another that is not looked at before the next start. */
static bool others_differ(const Config *running, Config *read) {
        Config borrowed = *running;

        borrowed.mainstay.node_labels = read->mainstay.node_labels;
        borrowed.register_with_taints = read->register_with_taints;
        return !schema_equal(&config_schema, &borrowed, read);
}

int facts_reload(Facts *facts, const char *config_path, const Config *running, Error *reterr) {
        cleanup_with(config_done) Config config = { 0 };
        cleanup_with(node_facts_done) NodeFacts own = { 0 };
        cleanup_strv char **warnings = NULL;
        int r;

        if (access(config_path, F_OK) < 0)
                return error_setf(reterr, errno, "%s: %s", config_path, strerror(errno));
        r = config_load(config_path, &config, &warnings, reterr);
        if (r >= 0)
                r = gather(facts, &config, steady_now_usec(facts->clock), &own);
        if (r >= 0)
                r = put_together(facts, &own, &facts->others, facts->all.conditions);
        if (r < 0)
                return r;
        if (others_differ(running, &config))
                log_warning("%s: labels and taints of the node are used at once, other settings "
                            "from the next start on",
                            config_path);
        /* That of which others say the same is no news here, but it is for the server. */
        r = r > 0 || !node_facts_equal(&own, &facts->own);
        replace(&facts->own, &own);
        if (r > 0)
                facts_note_taints(facts->state_dir, &facts->all);
        return r;
}
