/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of host-local, the usual IPAM plugin: one file for each address, named after it, with
 * the container's ID in its first line. */

/* Appends to '*ret' the addresses of the network 'name' that are allocated to the container 'id'.
 * 'data_dir' is from the configuration, "" if it is not set there. Files that cannot be read are
 * ignored. 0 or -ENOMEM. */
int host_local_list_addresses(const char *data_dir, const char *name, const char *id, char ***ret);
