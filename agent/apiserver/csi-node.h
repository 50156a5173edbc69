/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This node's CSINode, and the parts of the Node that belong to CSI drivers: the annotation with
 * their node IDs and the labels of their topology. Nothing is sent until a driver registers. */

#include "agent/kubeclient/kube-client.h"
#include "agent/model/csi-driver.h"

#include <stdio.h>

typedef struct CsiNodeWriter CsiNodeWriter;

/* 'drivers' are borrowed, and are read for each request. 0 or -ENOMEM. */
int csi_node_writer_new(sd_event *event, const char *node_name, const CsiNodeDriverList *drivers,
                        CsiNodeWriter **ret);
CsiNodeWriter *csi_node_writer_free(CsiNodeWriter *writer);
int csi_node_writer_start(CsiNodeWriter *writer, KubeClient *client); /* 0 or -errno */

/* The Node exists with this UID, which owns the CSINode; NULL: it does not exist. */
void csi_node_writer_set_node_uid(CsiNodeWriter *writer, const char *uid);

/* The set of drivers has changed. */
void csi_node_writer_update(CsiNodeWriter *writer);

void csi_node_writer_dump(const CsiNodeWriter *writer, FILE *out);
