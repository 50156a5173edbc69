/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads a file of the Container Device Interface. */

#include "agent/model/cdi.h"

/* Parses the bytes of one file, YAML or JSON. Messages start with 'file': "/etc/cdi/gpu.yaml:7:11:
 * devices[0].name: …". The caller frees the result with cdi_spec_free(). 0, -EINVAL, -ENOMEM. */
int cdi_spec_parse(const char *file, const char *data, size_t length, CdiSpec **ret, Error *reterr);

/* Whether the file is a CDI specification and not a manifest: it has a cdiVersion. False if it is
 * not YAML. */
bool cdi_spec_is_one(const char *data, size_t length);
