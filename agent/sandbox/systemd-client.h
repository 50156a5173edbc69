/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's requests to systemd, if it is PID 1: run a shim as a transient service, so that it
 * inherits only what the request names, and set the properties of pods' slices, so that systemd
 * writes the agent's values into their cgroups.
 *
 * Requests use PID 1's private socket, which exists before any bus. The agent never waits for them:
 * a daemon-reload may keep PID 1 busy for seconds. Requests are handled in order. A refused request
 * is logged. */

#include "agent/model/slice.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct SystemdClient SystemdClient;

/* Whether systemd is PID 1 on this machine. */
bool systemd_is_init(void);

/* Connects at the first request, and again after the connection has ended. 0 or -ENOMEM. */
int systemd_client_new(sd_event *event, SystemdClient **ret);
SystemdClient *systemd_client_free(SystemdClient *systemd);
DEFINE_CLEANUP(SystemdClient *, systemd_client_free)

/* Whether all requests have been answered. */
bool systemd_client_is_idle(const SystemdClient *systemd);

/* Queries whether the system is shutting down. 'answer' is called from the loop, with false if PID
 * 1 does not confirm it within a few seconds. 0 or -errno. */
int systemd_client_query_shutdown(SystemdClient *systemd,
                                  void (*answer)(bool is_stopping, void *userdata), void *userdata,
                                  Error *reterr);

/* A transient service, removed when its main process has exited. At shutdown it is stopped after
 * mainstay.service. */
typedef struct TransientService {
        const char *name; /* "….service" */
        const char *description;
        const char *slice;
        char *const *argv; /* argv[0] is a path */
        int input_fd;      /* its standard input, which is copied */
} TransientService;

/* Requests the service. If that fails, the copy of 'input_fd' is closed. 0 or -errno. */
int systemd_client_start_service(SystemdClient *systemd, const TransientService *service,
                                 Error *reterr);

/* Requests a slice with these properties; for an existing slice they are changed. 0 or -errno. */
int systemd_client_set_slice(SystemdClient *systemd, const char *name,
                             const SliceProperty *properties, size_t n_properties, Error *reterr);

/* Requests a change of properties of an existing unit. 0 or -errno. */
int systemd_client_set_properties(SystemdClient *systemd, const char *name,
                                  const SliceProperty *properties, size_t n_properties,
                                  Error *reterr);

/* Requests that a unit and everything in it be stopped; a missing unit is not an error. */
int systemd_client_stop_unit(SystemdClient *systemd, const char *name, Error *reterr);

/* Requests a signal to the main process of a unit. 0 or -errno. */
int systemd_client_kill_unit(SystemdClient *systemd, const char *name, int signal, Error *reterr);
