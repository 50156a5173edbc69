/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What host-local, the allocator of addresses that everybody has, keeps on disk: a file for each
 * address, named by it, with the container's ID in its first line. */

/* Appends to '*ret' the addresses of the network 'name' that are given to the container 'id'.
 * 'data_dir' is of the configuration, "" where that has none. What cannot be read has none. 0 or
 * -ENOMEM. */
int host_local_list_addresses(const char *data_dir, const char *name, const char *id, char ***ret);
