/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the node keeps from its pods (systemReserved, kubeReserved): in the resources that it admits
 * pods by, and in control groups. */

#include "agent/model/event.h"
#include "agent/node/machine-info.h"

/* What pods may have together, for their admission. 'storage' is machine_storage_capacity(). */
NodeResources find_allocatable_resources(const Config *config, const MachineInfo *machine,
                                         int64_t storage);

/* What the control group of all pods is limited by; all zero: it is without a limit. Pure. */
NodeReservation find_enforced_reservation(const Config *config);

typedef void (*reserved_resources_event_t)(const PodEvent *event, void *userdata);

/* Limits the control groups that reservations are for, as enforceNodeAllocatable asks. Each is an
 * event; a failure is logged as well. */
void enforce_reservations(const Config *config, reserved_resources_event_t on_event,
                          void *userdata);

/* The events of a node that starts. */
void report_settings_without_effect(const Config *config, reserved_resources_event_t on_event,
                                    void *userdata);
void report_node_start(const Config *config, int64_t storage, reserved_resources_event_t on_event,
                       void *userdata);
