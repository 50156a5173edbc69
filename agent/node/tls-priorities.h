/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* tlsMinVersion, tlsCipherSuites and tlsCurvePreferences of a KubeletConfiguration, converted to
 * GnuTLS priority strings for mainstay-api. */

#include "agent/model/config.h"
#include "common/json-text.h"

/* Adds "tlsPriorities" to the settings and, if tlsCipherSuites is set, the priorities for TLS 1.2
 * connections by the type of the certificate's key, "tls12EcdsaPriorities" and
 * "tls12RsaPriorities": "" if no suite supports such a key. 0; -EINVAL with a message; -ENOMEM. */
int tls_priorities_add_settings(const Config *config, json_t *settings, Error *reterr);
