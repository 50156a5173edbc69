/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/facts.h"

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
#include "common/sealed.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define OS_RELEASE_MAX (64 * KIB)
#define TAINTS_MAX     (64 * KIB)

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

static int add_taints(const TaintList *taints, const NodeFacts *before, uint64_t now,
                      NodeFacts *facts) {
        facts->taints.items = calloc(taints->n + N_NODE_CONDITIONS, sizeof(Taint));
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
        return add_condition_taints(facts);
}

static int gather(const Config *config, const char *node_name, const char *hostname,
                  const NodeFacts *before, uint64_t now, NodeFacts *facts) {
        const StringMap *labels = &config->mainstay.node_labels;
        int r = 0;

        facts->conditions = before ? before->conditions : 0;
        facts->name = strdup(node_name);
        if (!facts->name)
                return -ENOMEM;
        /* The configuration's first: nothing that we find out is said against it. */
        for (size_t i = 0; i < labels->n && r >= 0; i++)
                r = string_map_set(&facts->labels, labels->items[i].key, labels->items[i].value);
        if (r >= 0)
                r = node_facts_add_known(facts, hostname, machine_architecture());
        if (r >= 0)
                r = add_os_release(facts);
        return r < 0 ? r : add_taints(&config->register_with_taints, before, now, facts);
}

static int facts_gather(const Config *config, const char *node_name, const char *hostname,
                        const NodeFacts *before, const SteadyClock *clock, NodeFacts *ret) {
        cleanup_with(node_facts_done) NodeFacts facts = { 0 };
        int r = gather(config, node_name, hostname, before, steady_now_usec(clock), &facts);

        if (r < 0)
                return r;
        *ret = facts;
        facts = (NodeFacts){ 0 };
        return 0;
}

/* "key=value:effect <time>" */
static int read_taint_line(char *line, NodeFacts *facts) {
        char *time = strchr(line, ' ');
        Taint *longer;
        int r;

        if (!time)
                return 0;
        *time++ = '\0';
        longer = reallocarray(facts->taints.items, facts->taints.n + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        facts->taints.items = longer;
        longer[facts->taints.n] = (Taint){ 0 };
        r = taint_parse(line, &longer[facts->taints.n], NULL);
        longer[facts->taints.n++].time_added = strdup(time);
        return r;
}

/* Damaged, it is none. */
static int load_taints(const char *state_dir, NodeFacts *ret) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_with(node_facts_done) NodeFacts facts = { 0 };
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = fd < 0 ? -errno : sealed_read_at(fd, "taints", TAINTS_MAX, &text);

        if (r == -EBADMSG)
                sealed_set_aside_at(fd, "taints");
        for (rest = text; r >= 0 && (line = strsep(&rest, "\n"));)
                r = read_taint_line(line, &facts);
        if (r == -ENOMEM)
                return r;
        if (r >= 0) {
                *ret = facts;
                facts = (NodeFacts){ 0 };
        } else
                *ret = (NodeFacts){ 0 };
        return 0;
}

static int print_taints(const NodeFacts *facts, char **ret) {
        char buffer[TAINT_SIZE];
        size_t length;
        FILE *out = open_memstream(ret, &length);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < facts->taints.n; i++)
                if (facts->taints.items[i].time_added)
                        fprintf(out, "%s %s\n", taint_format(&facts->taints.items[i], buffer),
                                facts->taints.items[i].time_added);
        return memstream_finish(out, ret) ? 0 : -ENOMEM;
}

static int store_taints(const char *state_dir, const NodeFacts *facts, Error *reterr) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        int r = fd < 0 ? -errno : print_taints(facts, &text);

        if (r < 0)
                return r;
        if (text && !text[0] && faccessat(fd, "taints", F_OK, 0) < 0)
                return 0;
        r = sealed_write_at(fd, "taints", strna(text), 0600);
        return r < 0 ? error_setf(reterr, -r, "cannot write %s/taints: %s", state_dir, strerror(-r))
                     : 0;
}

static void store_or_say(const char *state_dir, const NodeFacts *facts) {
        cleanup_error Error error = ERROR_NULL;
        int r = store_taints(state_dir, facts, &error);

        if (r < 0)
                log_error("%s", error_message(&error, r));
}

int facts_load(const Config *config, const char *node_name, const char *hostname,
               const char *state_dir, const SteadyClock *clock, NodeFacts *ret, Error *reterr) {
        cleanup_with(node_facts_done) NodeFacts before = { 0 };
        int r = load_taints(state_dir, &before);

        if (r >= 0)
                r = facts_gather(config, node_name, hostname, &before, clock, ret);
        if (r < 0)
                return r;
        store_or_say(state_dir, ret);
        return 0;
}

int facts_set_conditions(const Config *config, const char *hostname, const SteadyClock *clock,
                         unsigned conditions, NodeFacts *facts) {
        cleanup_with(node_facts_done) NodeFacts now = { 0 }, before = { 0 };
        unsigned earlier = facts->conditions;
        int r;

        facts->conditions = conditions;
        r = facts_gather(config, facts->name, hostname, facts, clock, &now);
        if (r < 0) {
                facts->conditions = earlier;
                return r;
        }
        before = *facts;
        *facts = now;
        now = (NodeFacts){ 0 };
        return !node_facts_equal(facts, &before);
}

/* Whether something is another that is not looked at before the next start. */
static bool others_differ(const Config *running, Config *read) {
        Config borrowed = *running;

        borrowed.mainstay.node_labels = read->mainstay.node_labels;
        borrowed.register_with_taints = read->register_with_taints;
        return !schema_equal(&config_schema, &borrowed, read);
}

int facts_reload(const char *config_path, const Config *running, const char *hostname,
                 const char *state_dir, const SteadyClock *clock, NodeFacts *facts, Error *reterr) {
        cleanup_with(config_done) Config config = { 0 };
        cleanup_with(node_facts_done) NodeFacts now = { 0 }, before = { 0 };
        cleanup_strv char **warnings = NULL;
        int r;

        if (access(config_path, F_OK) < 0)
                return error_setf(reterr, errno, "%s: %s", config_path, strerror(errno));
        r = config_load(config_path, &config, &warnings, reterr);
        if (r >= 0)
                r = facts_gather(&config, facts->name, hostname, facts, clock, &now);
        if (r < 0)
                return r;
        if (others_differ(running, &config))
                log_warning("%s: labels and taints of the node are used at once, other settings "
                            "from the next start on",
                            config_path);
        if (node_facts_equal(&now, facts))
                return 0;
        before = *facts;
        *facts = now;
        now = (NodeFacts){ 0 };
        store_or_say(state_dir, facts);
        return 1;
}
