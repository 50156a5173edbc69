/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads a kubeconfig (v1 Config in the format of kubectl), and resolves its current context. */

#include "agent/model/kubeconfig.h"

/* Relative paths are relative to the directory of the file. Entries that the current context does
 * not refer to are ignored; unknown fields are warnings; an authentication method that an agent
 * does not support is an error. No message shows a key or a token. The referenced files need not
 * exist. 0, -errno with "<path>:<line>:<column>: <field>: …". */
int kubeconfig_load(const char *path, Kubeconfig *ret, char ***ret_warnings, Error *reterr);
