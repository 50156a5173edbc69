/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces agent/sandbox/systemd-client.c and agent/sandbox/shutdown-inhibitor.c. */

#include "agent/sandbox/shutdown-inhibitor.h"
#include "agent/sandbox/systemd-client.h"
#include "tests/unit/pods/worker/fakes.h"

#include <errno.h>

bool fake_systemd_is_stopping;

static ShutdownInhibitorConfig inhibitor_config;

int systemd_client_query_shutdown(SystemdClient *systemd,
                                  void (*answer)(bool is_stopping, void *userdata), void *userdata,
                                  Error *reterr) {
        answer(fake_systemd_is_stopping, userdata);
        return 0;
}

int systemd_client_set_slice(SystemdClient *systemd, const char *name,
                             const SliceProperty *properties, size_t n_properties, Error *reterr) {
        if (!strstr(name, "-pod")) /* those of QoS classes */
                return 0;
        fake_request("slice with %zu properties", n_properties);
        return 0;
}

int systemd_client_set_properties(SystemdClient *systemd, const char *name,
                                  const SliceProperty *properties, size_t n_properties,
                                  Error *reterr) {
        fake_request("scope with %zu properties", n_properties);
        return 0;
}

int systemd_client_stop_unit(SystemdClient *systemd, const char *name, Error *reterr) {
        fake_request("stop slice");
        return 0;
}

int shutdown_inhibitor_new(const ShutdownInhibitorConfig *config, ShutdownInhibitor **ret) {
        inhibitor_config = *config;
        *ret = calloc(1, 1);
        return *ret ? 0 : -ENOMEM;
}

void shutdown_inhibitor_release(ShutdownInhibitor *inhibitor) {
        fake_request("shutdown may continue");
}

ShutdownInhibitor *shutdown_inhibitor_free(ShutdownInhibitor *inhibitor) {
        free(inhibitor);
        return NULL;
}

void fake_logind_announce(bool is_starting) {
        inhibitor_config.on_shutdown(is_starting, inhibitor_config.userdata);
}
