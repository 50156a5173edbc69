/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that the node reserves from its pods (systemReserved, kubeReserved): in the
 * resources by which it admits pods, and in control groups. */

#include "agent/model/event.h"
#include "agent/node/machine-info.h"

/* The resources of all pods together, for their admission. 'storage' is
 * machine_storage_capacity(). */
NodeResources find_allocatable_resources(const Config *config, const MachineInfo *machine,
                                         int64_t storage);

/* The limits of the control group of all pods; all zero: it has no limit. Pure. */
NodeReservation find_enforced_reservation(const Config *config);

typedef void (*reserved_resources_event_t)(const PodEvent *event, void *userdata);

/* Limits the control groups that reservations are for, according to enforceNodeAllocatable. Each is
 * an event; a failure is logged as well. */
void enforce_reservations(const Config *config, reserved_resources_event_t on_event,
                          void *userdata);

/* The events of a node that starts. */
void report_settings_without_effect(const Config *config, reserved_resources_event_t on_event,
                                    void *userdata);
void report_node_start(const Config *config, int64_t storage, reserved_resources_event_t on_event,
                       void *userdata);
