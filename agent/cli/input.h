/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Manifests that are named on the command line, for commands that need no agent. */

#include "agent/manifest/manifest.h"

/* Reads and parses a file, '-' for standard input, as the agent would on a node of that name. 0, or
 * -errno with the sentence, which names the file; see manifest_parse(). The caller ends the
 * objects. */
int read_manifest(const char *file, const char *node_name, ManifestObjects *ret, Error *reterr);

/* The same with all errors of the file, for strv_free(); see manifest_validate(). One that cannot
 * be read is an error of it. */
int validate_manifest(const char *file, const char *node_name, ManifestObjects *ret,
                      char ***ret_errors);

/* What sentences call the file. */
const char *input_name(const char *file);
