/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's configuration, and a kubeconfig, whose errors show no token. */

#include "tests/fuzz/fuzz.h"

#include "agent/manifest/manifest.h"
#include "agent/manifest/read-kubeconfig.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_close int fd = memfd_create("config", MFD_CLOEXEC);
        cleanup_error Error error = ERROR_NULL, kubeconfig_error = ERROR_NULL;
        cleanup_strv char **warnings = NULL, **kubeconfig_warnings = NULL;
        Kubeconfig kubeconfig = { 0 };
        Config config = { 0 };
        char path[64];

        assert(fd >= 0 && write_all(fd, (const char *) data, size) >= 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (kubelet_config_load(path, &config, &warnings, &error) < 0)
                assert(error.message);
        config_done(&config);
        if (kubeconfig_load(path, &kubeconfig, &kubeconfig_warnings, &kubeconfig_error) < 0)
                assert(kubeconfig_error.message);
        else
                assert(kubeconfig.server);
        kubeconfig_done(&kubeconfig);
        return 0;
}
