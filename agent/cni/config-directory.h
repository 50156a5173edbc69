/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The network configuration for pods: a file in the administrator's directory, or Mainstay's
 * default. */

#include "agent/cni/built-in-network.h"
#include "common/error.h"

/* The directories of network configurations and plugins. Strings are borrowed. */
typedef struct CniSettings {
        const char *config_dir;      /* /etc/cni/net.d */
        const char *plugin_path;     /* directories separated by ':', like CNI_PATH */
        bool has_default;            /* pods get the built-in network if there is no
                                      * configuration */
        CniBuiltInNetwork *built_in; /* NULL: the default IPv4 range only */
        bool is_ipv6_first;          /* the pods' primary address is IPv6, because the node's is */
        const char *not_ready;       /* why no pod can be attached, in the kubelet's wording; NULL:
                                      * pods can be attached. May change, see
                                      * node/network-readiness.h */
} CniSettings;

/* The text of the first valid *.conflist, *.conf or *.json by name, or the default if there is no
 * file and the settings allow it. Files named *mainstay.conflist, copies of the default, come last.
 * Skipped files are logged. The caller frees the text and the name of the file (NULL: the default).
 * 0; -ENOENT: there is no file; or another -errno if no file is valid; with a message. */
int cni_config_load(const CniSettings *settings, char **ret_text, char **ret_file, Error *reterr);
