/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What we ask of systemd, where it is PID 1: to run a shim as a transient service, so that it has
 * nothing of ours but what we name, and to know the slices of pods, so that what it writes into
 * their groups is what we want there.
 *
 * All is asked over PID 1's own socket, which is there before any bus, and nothing is waited for: a
 * daemon-reload may keep PID 1 busy for seconds. Requests are served in the order in which they are
 * made. A request that is refused is said in the log. */

#include "agent/model/slice.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct SystemdClient SystemdClient;

/* Whether systemd is PID 1 here. */
bool systemd_is_init(void);

/* Connects when something is asked for first, and again when the connection has ended. 0 or
 * -ENOMEM. */
int systemd_client_new(sd_event *event, SystemdClient **ret);
SystemdClient *systemd_client_free(SystemdClient *systemd);
DEFINE_CLEANUP(SystemdClient *, systemd_client_free)

/* Whether all that was asked for has been answered. */
bool systemd_client_is_idle(const SystemdClient *systemd);

/* Asks whether the system is on its way down. 'answer' is called from the loop, with false where
 * PID 1 does not say so within a few seconds. 0 or -errno. */
int systemd_client_query_shutdown(SystemdClient *systemd,
                                  void (*answer)(bool is_stopping, void *userdata), void *userdata,
                                  Error *reterr);

/* A transient service, gone once its main process has ended. When the system goes down it is
 * stopped after mainstay.service. */
typedef struct TransientService {
        const char *name; /* "….service" */
        const char *description;
        const char *slice;
        char *const *argv; /* argv[0] is a path */
        int input_fd;      /* its standard input; a copy is taken */
} TransientService;

/* Asks for the service. When it cannot be, nobody holds 'input_fd' any more. 0 or -errno. */
int systemd_client_start_service(SystemdClient *systemd, const TransientService *service,
                                 Error *reterr);

/* Asks for a slice with these properties; one that is there gets them. 0 or -errno. */
int systemd_client_set_slice(SystemdClient *systemd, const char *name,
                             const SliceProperty *properties, size_t n_properties, Error *reterr);

/* Asks for other properties of a unit that is there. 0 or -errno. */
int systemd_client_set_properties(SystemdClient *systemd, const char *name,
                                  const SliceProperty *properties, size_t n_properties,
                                  Error *reterr);

/* Asks for the end of a unit and of all that is in it; one that is not there is none to end. */
int systemd_client_stop_unit(SystemdClient *systemd, const char *name, Error *reterr);

/* Asks for a signal to the main process of a unit. 0 or -errno. */
int systemd_client_kill_unit(SystemdClient *systemd, const char *name, int signal, Error *reterr);
