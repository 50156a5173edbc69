/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops the privileges that a parser of untrusted bytes does not need. */

#include "common/error.h"

/* Makes the process end with its parent, run at low priority, and never dump core; limits memory
 * and file size. To be called first. */
void confine_process(void);

/* For the parser of untrusted documents and tars, to be called after everything else has been
 * opened: no network, only listed system calls, only files below 'store_fd'; and no capabilities
 * except, if 'unpacking', those for owners, modes, whiteouts, file capabilities and trusted
 * attributes. 0 or -errno. */
int confine_parser(bool unpacking, int store_fd, Error *reterr);

/* For the process that reads and verifies fetched manifests: the same, without any capability.
 * Writes below 'store_fd'; also reads below 'stick_fd', unless it is negative. */
int confine_source_reader(int store_fd, int stick_fd, Error *reterr);

/* For the process that fetches an image from the location of a signed index: like the unpacking
 * parser, but also reads below 'stick_fd', unless it is negative. */
int confine_image_fetch(int store_fd, int stick_fd, Error *reterr);

/* For the process that writes a report: like the parser, with the privilege to write to a USB stick
 * of another user. Writes below 'directory_fd'; also reads below 'log_fd', unless it is negative.
 */
int confine_report_writer(int directory_fd, int log_fd, Error *reterr);

/* For a child that unpacks one layer of an image: reads below 'store_fd', writes below 'fd'. */
int confine_layer_unpacker(int fd, int store_fd, Error *reterr);

/* For a fetcher, which communicates with registries: user "mainstay-image" or UID 65534; no
 * capabilities; no file can be opened for writing. Descriptors that are already open stay writable.
 */
int confine_fetcher(Error *reterr);
