/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Manifest files named on the command line, for commands that need no agent. */

#include "agent/manifest/manifest.h"
#include "agent/model/cdi.h"

/* Reads and parses a file ('-': standard input) like the agent on a node with that name. 0, or
 * -errno with a message that names the file; see manifest_parse(). The caller frees the objects. */
int read_manifest(const char *file, const char *node_name, ManifestObjects *ret, Error *reterr);

/* The same, but returns all errors of the file, for strv_free(); see manifest_validate(). A file
 * that cannot be read is one error. A CDI specification is returned in '*ret_cdi', for
 * cdi_spec_free(), without objects; otherwise '*ret_cdi' is NULL. */
int validate_manifest(const char *file, const char *node_name, ManifestObjects *ret,
                      CdiSpec **ret_cdi, char ***ret_errors);

/* The name of the file for messages. */
const char *input_name(const char *file);
