/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Matching of label selectors, node selectors and taints (model/placement.h), by the rules of
 * Kubernetes' matchers. */

#include "agent/model/node.h"
#include "agent/model/pod.h"
#include "common/error.h"

/* Whether one requirement matches a value; NULL: the key is absent. NotIn matches an absent key; Gt
 * and Lt compare integers and match nothing else. */
bool requirement_matches(const SelectorRequirement *requirement, const char *value);

/* The first requirement that does not match, or NULL. */
const SelectorRequirement *requirements_find_miss(const SelectorRequirements *requirements,
                                                  const StringMap *labels);

/* A NULL selector matches nothing, an empty selector matches everything. */
bool label_selector_matches(const LabelSelector *selector, const StringMap *labels);

/* matchFields only supports metadata.name. */
bool node_selector_matches(const NodeSelector *selector, const NodeLabelsTaints *node);

/* The first pair that the node does not have; NULL: it has all of them. */
const KeyValue *node_labels_find_miss(const StringMap *wanted, const NodeLabelsTaints *node);

/* nodeSelector and required node affinity, as the kubelet checks them at admission. */
bool pod_matches_node(const PodSpec *spec, const NodeLabelsTaints *node);

bool toleration_tolerates(const Toleration *toleration, const Taint *taint);

/* "disktype In [ssd, nvme]", for messages. Returns the buffer. */
enum {
        REQUIREMENT_SIZE = 256
};
const char *requirement_format(const SelectorRequirement *requirement,
                               char buffer[REQUIREMENT_SIZE]);

/* "dedicated=gpu:NoSchedule", as kubectl prints a taint. Returns the buffer. */
enum {
        TAINT_SIZE = 512
};
const char *taint_format(const Taint *taint, char buffer[TAINT_SIZE]);

/* Parses "key=value:effect" or "key:effect". 'ret' must be empty; the caller frees it, also on
 * failure. 0, -EINVAL with a message, -ENOMEM. */
int taint_parse(const char *text, Taint *ret, Error *reterr);
