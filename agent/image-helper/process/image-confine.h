/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops privileges that the parser of untrusted bytes does not need. */

#include "common/error.h"

/* Dies with its parent, runs at low priority, never dumps core, limits memory and file size. To be
 * called first. */
void confine_process(void);

/* For the parser of untrusted documents and tars, after everything else has been opened: no
 * network, only system calls of a list, only files below 'store_fd'; and no capability, except, if
 * 'unpacking', those for owners, modes, whiteouts, file capabilities and trusted attributes. 0 or
 * -errno. */
int confine_parser(bool unpacking, int store_fd, Error *reterr);

/* For the process that reads and verifies fetched manifests: the same, without any capability.
 * Writes below 'store_fd', reads below 'stick_fd' too, unless that is negative. */
int confine_source_reader(int store_fd, int stick_fd, Error *reterr);

/* For what fetches an image from a signed index's place: as the parser that unpacks, and reads
 * below 'stick_fd' too, unless that is negative. */
int confine_image_fetch(int store_fd, int stick_fd, Error *reterr);

/* For what writes a report: as the parser, and with the privilege to write to a stick whose owner
 * is another user. Writes below 'directory_fd', reads below 'log_fd' too, unless that is negative.
 */
int confine_report_writer(int directory_fd, int log_fd, Error *reterr);

/* For the child of those that unpack an image, one layer of it: reads below 'store_fd', writes
 * below 'fd'. */
int confine_layer_unpacker(int fd, int store_fd, Error *reterr);

/* For a fetcher, which talks to registries: user "mainstay-image" or the user of UID 65534; no
 * capability; no file can be opened for writing. Descriptors that it holds stay writable. */
int confine_fetcher(Error *reterr);
