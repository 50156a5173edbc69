/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which network configuration pods get: a file of the administrator's directory, or the default of
 * Mainstay. */

#include "agent/cni/built-in-network.h"
#include "common/error.h"

/* The directories of network configurations and plugins. Strings are borrowed. */
typedef struct CniSettings {
        const char *config_dir;      /* /etc/cni/net.d */
        const char *plugin_path;     /* directories separated by ':', as CNI_PATH */
        bool has_default;            /* without a configuration pods get the built-in network */
        CniBuiltInNetwork *built_in; /* NULL: that of IPv4 with the default range */
        bool is_ipv6_first;          /* of a pod's addresses, because the node's address is one */
        const char *not_ready;       /* why no pod can be attached, as the kubelet puts it; NULL: it
                                        can. It changes, see node/network-readiness.h */
} CniSettings;

/* The text of the first valid *.conflist, *.conf or *.json by name, or the default if there is no
 * file and the settings allow it. Files named *mainstay.conflist, copies of ours, come last. A file
 * that is skipped is logged. The caller frees the text and the name of the file (NULL: the
 * default). 0; -ENOENT: there is no file; or another -errno: none is valid; with a message. */
int cni_config_load(const CniSettings *settings, char **ret_text, char **ret_file, Error *reterr);
