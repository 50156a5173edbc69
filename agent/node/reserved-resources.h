/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that the node reserves from its pods (systemReserved, kubeReserved). They are
 * deducted when pods are admitted, and enforced by limits of control groups. */

#include "agent/model/event.h"
#include "agent/node/machine-info.h"

/* The resources that are available to all pods together, for admission. 'storage' is
 * machine_storage_capacity(). */
NodeResources find_allocatable_resources(const Config *config, const MachineInfo *machine,
                                         int64_t storage);

/* The limits of the control group of all pods; all zero: no limit. Pure. */
NodeReservation find_enforced_reservation(const Config *config);

typedef void (*reserved_resources_event_t)(const PodEvent *event, void *userdata);

/* Sets the limits of the control groups of reservations, according to enforceNodeAllocatable. Each
 * one is reported as an event; failures are also logged. */
void enforce_reservations(const Config *config, reserved_resources_event_t on_event,
                          void *userdata);

/* Reports the events of a starting node. */
void report_settings_without_effect(const Config *config, reserved_resources_event_t on_event,
                                    void *userdata);
void report_node_start(const Config *config, int64_t storage, reserved_resources_event_t on_event,
                       void *userdata);
