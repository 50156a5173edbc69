/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes how the expansion of volumes on this node goes into the status of their claims (kubelet:
 * volume/util.MarkNodeExpansionInProgress and others). Each claim is read before it is written, so
 * that a stage that its controller has begun meanwhile stays. */

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

/* The strategic merge patch of its status that is due for a claim as it was read; NULL: none. The
 * caller frees it. 'now' is realtime. Pure. */
json_t *claim_update_patch(const json_t *claim, const ClaimUpdate *update, uint64_t now);
