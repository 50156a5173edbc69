/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod-order.h"

#include "agent/model/names.h"
#include "agent/model/own-values.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = ", \t\n";

/* ---- names ---- */

bool pod_after_next(const Pod *pod, const char **cursor, PodAfterName *ret) {
        const char *text = *cursor ? *cursor : own_pod_value(pod, OWN_KEY_AFTER);
        const char *slash;
        size_t n;

        if (!text)
                return false;
        text += strspn(text, separators);
        n = strcspn(text, separators);
        if (n == 0)
                return false;
        *cursor = text + n;
        slash = memchr(text, '/', n);
        *ret = (PodAfterName){ .namespace = slash ? text : strna(pod->metadata.namespace),
                               .name = slash ? slash + 1 : text,
                               .source = pod->metadata.source };
        ret->namespace_length = slash ? (size_t) (slash - text) : strlen(ret->namespace);
        ret->name_length = (size_t) (text + n - ret->name);
        return true;
}

static bool is_word(const char *word, size_t length, const char *text, size_t text_length) {
        return length == text_length && strncmp(word, text, length) == 0;
}

bool pod_after_means(const PodAfterName *name, const Pod *pod) {
        const ObjectMeta *metadata = &pod->metadata;

        if (!object_source_heeds(name->source, metadata->source) ||
            !is_word(name->namespace, name->namespace_length, metadata->namespace,
                     strlen(metadata->namespace)))
                return false;
        return is_word(name->name, name->name_length, metadata->name, strlen(metadata->name)) ||
               is_word(name->name, name->name_length, metadata->name, pod_plain_name_length(pod));
}

bool pod_is_after(const Pod *pod, const Pod *other) {
        const char *cursor = NULL;
        PodAfterName name;

        while (pod_after_next(pod, &cursor, &name))
                if (pod_after_means(&name, other))
                        return true;
        return false;
}

static int check_after_name(const PodAfterName *name, Error *reterr) {
        cleanup_free char *namespace = strndup(name->namespace, name->namespace_length);
        cleanup_free char *pod = strndup(name->name, name->name_length);

        if (!namespace || !pod)
                return -ENOMEM;
        if (check_dns_label(namespace, NULL) >= 0 && check_dns_subdomain(pod, NULL) >= 0)
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be names of pods such as 'db' or 'default/db', separated by "
                          "commas");
}

int pod_after_check(const Pod *pod, Error *reterr) {
        const char *cursor = own_value_as_written(&pod->metadata, OWN_KEY_AFTER);
        PodAfterName name;
        size_t n = 0;

        if (!cursor)
                return 0;
        while (pod_after_next(pod, &cursor, &name)) {
                int r = check_after_name(&name, reterr);

                if (r < 0)
                        return r;
                if (pod_after_means(&name, pod))
                        return error_setf(reterr, EINVAL, "must not name the pod itself");
                if (++n > POD_AFTER_NAMES_MAX)
                        return error_setf(reterr, EINVAL, "must be at most %d names",
                                          POD_AFTER_NAMES_MAX);
        }
        return 0;
}

/* ---- the graph ---- */

/* 'from' is after 'to'. */
typedef struct OrderEdge {
        size_t from, to;
} OrderEdge;

typedef struct OrderGraph {
        const Pod *const *pods;
        size_t n;
        LIST_OF(OrderEdge) edges;
        bool *is_removed; /* one for each pod */
} OrderGraph;

static void order_graph_done(OrderGraph *graph) {
        free(graph->edges.items);
        free(graph->is_removed);
}

static int add_order_edge(OrderGraph *graph, size_t from, size_t to) {
        if (!ARRAY_RESERVE(graph->edges.items, graph->edges.n, 1))
                return -ENOMEM;
        graph->edges.items[graph->edges.n++] = (OrderEdge){ from, to };
        return 0;
}

static int add_edges_of_pod(OrderGraph *graph, size_t from) {
        const char *cursor = NULL;
        PodAfterName name;

        while (pod_after_next(graph->pods[from], &cursor, &name))
                for (size_t to = 0; to < graph->n; to++)
                        if (to != from && pod_after_means(&name, graph->pods[to]) &&
                            add_order_edge(graph, from, to) < 0)
                                return -ENOMEM;
        return 0;
}

static int order_graph_make(const Pod *const *pods, size_t n, OrderGraph *ret) {
        *ret = (OrderGraph){ .pods = pods,
                             .n = n,
                             .is_removed = calloc(n + 1, sizeof(*ret->is_removed)) };
        if (!ret->is_removed)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (add_edges_of_pod(ret, i) < 0)
                        return -ENOMEM;
        return 0;
}

static bool has_edge(const OrderGraph *graph, size_t pod, bool is_from) {
        for (size_t i = 0; i < graph->edges.n; i++) {
                const OrderEdge *edge = &graph->edges.items[i];

                if ((is_from ? edge->from : edge->to) == pod &&
                    !graph->is_removed[is_from ? edge->to : edge->from])
                        return true;
        }
        return false;
}

/* The first and the last pod of a path are not in a cycle; once they are removed, the same applies
 * to the next ones. */
static void remove_ends(OrderGraph *graph) {
        bool has_changed = graph->edges.n > 0;

        while (has_changed) {
                has_changed = false;
                for (size_t i = 0; i < graph->n; i++)
                        if (!graph->is_removed[i] &&
                            (!has_edge(graph, i, true) || !has_edge(graph, i, false)))
                                graph->is_removed[i] = has_changed = true;
        }
}

int pod_order_find_cycles(const Pod *const *pods, size_t n, size_t *ret_next) {
        cleanup_with(order_graph_done) OrderGraph graph = { 0 };
        int r = order_graph_make(pods, n, &graph);

        if (r < 0)
                return r;
        remove_ends(&graph);
        for (size_t i = 0; i < n; i++)
                ret_next[i] = n;
        for (size_t i = graph.edges.n; i > 0; i--) {
                const OrderEdge *edge = &graph.edges.items[i - 1];

                if (!graph.is_removed[edge->from] && !graph.is_removed[edge->to])
                        ret_next[edge->from] = edge->to;
        }
        return 0;
}

static void print_ordered_pod(const Pod *pod, FILE *out) {
        fprintf(out, "%s/%.*s", pod->metadata.namespace, (int) pod_plain_name_length(pod),
                pod->metadata.name);
}

char *pod_order_format_cycle(const Pod *const *pods, size_t n, const size_t *next, size_t from) {
        cleanup_free bool *is_printed = calloc(n + 1, sizeof(*is_printed));
        size_t length, i = from;
        char *text = NULL;
        FILE *out = is_printed ? open_memstream(&text, &length) : NULL;

        if (!out)
                return NULL;
        for (; i < n && !is_printed[i]; i = next[i]) {
                is_printed[i] = true;
                print_ordered_pod(pods[i], out);
                fputs(" after ", out);
        }
        if (i < n)
                print_ordered_pod(pods[i], out);
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

char *pod_order_explain_cycle(const char *file, const Pod *const *pods, size_t n,
                              const size_t *next, size_t from) {
        cleanup_free char *cycle = pod_order_format_cycle(pods, n, next, from);
        const Pod *pod = pods[from];

        return cycle ? text_format("%s: pod %s/%.*s: metadata.annotations[%s]: pods wait for one "
                                   "another: %s",
                                   file, pod->metadata.namespace, (int) pod_plain_name_length(pod),
                                   pod->metadata.name, own_key_name(OWN_KEY_AFTER), cycle)
                     : NULL;
}

/* ---- stop order ---- */

/* Chooses the pods that no remaining pod names; if only cycles are left, all of their pods. */
static void choose_step(OrderGraph *graph, size_t step, size_t *steps) {
        bool is_empty = true;

        for (size_t i = 0; i < graph->n; i++)
                if (!graph->is_removed[i] && !has_edge(graph, i, false)) {
                        steps[i] = step;
                        is_empty = false;
                }
        for (size_t i = 0; i < graph->n; i++) {
                if (!graph->is_removed[i] && is_empty)
                        steps[i] = step;
                graph->is_removed[i] = graph->is_removed[i] || steps[i] == step;
        }
}

static bool is_graph_empty(const OrderGraph *graph) {
        for (size_t i = 0; i < graph->n; i++)
                if (!graph->is_removed[i])
                        return false;
        return true;
}

int pod_order_stop_steps(const Pod *const *pods, size_t n, size_t *ret_steps, size_t *ret_n_steps) {
        cleanup_with(order_graph_done) OrderGraph graph = { 0 };
        int r = order_graph_make(pods, n, &graph);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                ret_steps[i] = n; /* none yet */
        for (*ret_n_steps = 0; !is_graph_empty(&graph); (*ret_n_steps)++)
                choose_step(&graph, *ret_n_steps, ret_steps);
        return 0;
}
