/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the selectors of model/placement.h mean: the rules of Kubernetes' own matchers, as questions
 * that can be asked of labels, of a node, of a taint. */

#include "agent/model/node.h"
#include "agent/model/pod.h"
#include "common/error.h"

/* Whether one requirement holds for a value; NULL: there is none of that key. NotIn holds for what
 * is not there; Gt and Lt compare whole numbers, and hold for nothing else. */
bool requirement_matches(const SelectorRequirement *requirement, const char *value);

/* The first requirement that does not hold, or NULL. */
const SelectorRequirement *requirements_find_miss(const SelectorRequirements *requirements,
                                                  const StringMap *labels);

/* NULL matches nothing, an empty selector everything. */
bool label_selector_matches(const LabelSelector *selector, const StringMap *labels);

/* matchFields ask for the node's name, the only field that can be asked for. */
bool node_selector_term_matches(const NodeSelectorTerm *term, const NodeLabelsTaints *node);
bool node_selector_matches(const NodeSelector *selector, const NodeLabelsTaints *node);

/* The first pair that the node does not have, or NULL: then all are there. */
const KeyValue *node_labels_find_miss(const StringMap *wanted, const NodeLabelsTaints *node);

/* nodeSelector and the required node affinity, as the kubelet asks them before it runs a pod. */
bool pod_matches_node(const PodSpec *spec, const NodeLabelsTaints *node);

bool toleration_tolerates(const Toleration *toleration, const Taint *taint);

/* "disktype In [ssd, nvme]", as sentences have it. Returns the buffer. */
enum {
        REQUIREMENT_SIZE = 256
};
const char *requirement_format(const SelectorRequirement *requirement,
                               char buffer[REQUIREMENT_SIZE]);

/* "dedicated=gpu:NoSchedule", as kubectl writes a taint. Returns the buffer. */
enum {
        TAINT_SIZE = 512
};
const char *taint_format(const Taint *taint, char buffer[TAINT_SIZE]);

/* Reads "key=value:effect" or "key:effect". The caller ends the taint, which was empty, on failure
 * too. 0, -EINVAL with the sentence, -ENOMEM. */
int taint_parse(const char *text, Taint *ret, Error *reterr);
