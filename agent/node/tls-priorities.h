/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* tlsMinVersion, tlsCipherSuites and tlsCurvePreferences of a KubeletConfiguration, as GnuTLS's
 * priority strings for mainstay-api. */

#include "agent/model/config.h"
#include "common/json-text.h"

/* Adds to the settings "tlsPriorities", and if tlsCipherSuites is set those for connections of TLS
 * 1.2 by the key of the certificate, "tls12EcdsaPriorities" and "tls12RsaPriorities": "" if none of
 * the suites is for such a key. 0; -EINVAL with a message; -ENOMEM. */
int tls_priorities_add_settings(const Config *config, json_t *settings, Error *reterr);
