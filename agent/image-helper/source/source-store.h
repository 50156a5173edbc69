/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory of a source of manifests, <state>/sources/<name>:
 *   current/           used by the agent; only the agent renames it
 *   next/              offered to the agent, synced; the agent exchanges it with "current"
 *   .../manifests/     the files
 *   .../source.json    their origin
 *   .../index.json     the bytes of a signed index
 *   .../images.json    the images that the index names, if any: source-images.h
 *   parts/             interrupted downloads, by digest */

#include "agent/image-helper/pull/document.h"

typedef struct SourceStore {
        int fd;
        int next_fd, manifests_fd; /* "next" while it is being written; otherwise negative */
} SourceStore;

#define SOURCE_STORE_NULL ((SourceStore){ -EBADF, -EBADF, -EBADF })

/* Creates the directory if it does not exist. 0, or -errno with a message. */
int source_store_open(const char *path, SourceStore *ret, Error *reterr);
void source_store_done(SourceStore *store);

/* source.json of "current" or "next"; NULL: there is none, or it is damaged. The caller frees it.
 */
json_t *source_store_read_state(const SourceStore *store, const char *which);

/* Atomically replaces source.json of "current" or "next". 0 or -errno. */
int source_store_write_state(const SourceStore *store, const char *which, const json_t *state);

/* Starts an empty "next". 0 or -errno. */
int source_store_begin(SourceStore *store, Error *reterr);

/* Adds a file to "next" or, if 'is_manifest', to its manifests. The file is synced. 0 or -errno. */
int source_store_add(const SourceStore *store, bool is_manifest, const char *name, const void *data,
                     size_t length, Error *reterr);

/* Reads a file of at most 'size_max' bytes from "current" or, if 'is_manifest', from its manifests.
 * 0 or -errno; the caller frees the content. */
int source_store_read(const SourceStore *store, bool is_manifest, const char *name,
                      uint64_t size_max, char **ret_data, size_t *ret_length);

/* Opens a download, some bytes of which may already exist: a descriptor, or -errno. */
int source_store_open_part(const SourceStore *store, const char *sha256, Error *reterr);
void source_store_remove_part(const SourceStore *store, const char *sha256);

/* Removes all downloads for which 'is_wanted' is false. */
void source_store_sweep_parts(const SourceStore *store,
                              bool (*is_wanted)(const char *sha256, const void *userdata),
                              const void *userdata);

/* Completes "next" and syncs it. 'state' is borrowed. 0 or -errno. */
int source_store_finish(SourceStore *store, const json_t *state, Error *reterr);
