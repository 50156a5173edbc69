/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `mainstay source report`: prints reports that nodes have written to a USB stick. */

#include "agent/cli/cli.h"

/* The words after "report" are files. Returns an exit status. */
int show_reports(const Options *options);
