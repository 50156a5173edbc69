/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Affinity between the pods of one node. A term asks for pods in the same domain, which is all
 * nodes with the same value of a label; this node knows its own pods only. So what is here counts,
 * and what would have to be elsewhere is not there. */

#include "agent/daemonset/daemonset.h"

typedef struct PeerTrouble {
        const char *rule; /* static */
        char *why;
} PeerTrouble;

void peer_trouble_done(PeerTrouble *trouble);

/* 1 with what keeps a pod of the set from starting beside these; 0 where nothing does; -ENOMEM. */
int peers_find_trouble(const DaemonSet *set, const NodeFacts *node, const DaemonPeers *peers,
                       PeerTrouble *ret);
