/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program that reads strangers' bytes need not be able to do, it gives up first. */

#include "common/error.h"

/* Ends with its parent, stands back behind what runs, never dumps core, holds its memory and files
 * to a limit. First of all. */
void confine_process(void);

/* For who reads strangers' documents and tars, after all that needs more is open: no network, no
 * system call but those of a list, no file but below 'store_fd'; and no capability but, where
 * 'unpacking', those that owners, modes, whiteouts, file capabilities and trusted attributes take.
 * 0 or -errno. */
int confine_parser(bool unpacking, int store_fd, Error *reterr);

/* For a child of that one, which unpacks one layer: reads below 'store_fd', writes below 'fd'. */
int confine_layer_unpacker(int fd, int store_fd, Error *reterr);

/* For who speaks to strangers: the user "mainstay-image", or nobody; no capability; no file is
 * opened for writing. What it holds open it may write. */
int confine_fetcher(Error *reterr);
