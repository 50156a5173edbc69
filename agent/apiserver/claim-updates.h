/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the progress of volume expansions on this node to the status of their claims (kubelet:
 * volume/util.MarkNodeExpansionInProgress and others). Each claim is read before it is written, so
 * that a stage that its controller has started in the meantime is not overwritten. */

#include "agent/kubeclient/kube-client.h"
#include "agent/model/volume-expansion.h"
#include "common/json-text.h"

#include <stdio.h>

typedef struct ClaimUpdates ClaimUpdates;

/* 'on_claim' gets each claim that was read or written, as JSON. 0 or -ENOMEM. */
int claim_updates_new(sd_event *event,
                      void (*on_claim)(const ObjectKey *key, const char *json, size_t length,
                                       void *userdata),
                      void *userdata, ClaimUpdates **ret);
ClaimUpdates *claim_updates_free(ClaimUpdates *updates);
int claim_updates_start(ClaimUpdates *updates, KubeClient *client); /* 0 or -errno */

/* See ClaimAccess. An error is logged. */
void claim_updates_add(ClaimUpdates *updates, const DataObject *claim, const ClaimUpdate *update);

void claim_updates_dump(const ClaimUpdates *updates, FILE *out);

/* Computes the strategic merge patch for the status of a claim, as it was read; NULL: none is
 * needed. The caller frees it. 'now' is realtime. Pure. */
json_t *claim_update_patch(const json_t *claim, const ClaimUpdate *update, uint64_t now);
