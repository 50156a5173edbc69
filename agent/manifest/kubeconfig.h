/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads a kubeconfig, v1 Config as kubectl writes it: its current context, worked out. */

#include "agent/model/kubeconfig.h"

/* Relative paths in it begin at its own directory. What the current context does not refer to is
 * not looked at; fields that nobody knows are warnings; a way to log in that an agent cannot go is
 * an error. No sentence shows a key or a token. The files that it names need not be there. 0,
 * -errno with "<path>:<line>:<column>: <field>: …". */
int kubeconfig_load(const char *path, Kubeconfig *ret, char ***ret_warnings, Error *reterr);
