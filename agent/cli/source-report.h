/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `mainstay source report`: prints reports that nodes have written to a stick. */

#include "agent/cli/cli.h"

/* The words after "report" are files. An exit status. */
int show_reports(const Options *options);
