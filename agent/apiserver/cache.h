/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cache of API objects on disk, <state>/cluster: the objects that pods need to start while the
 * API server is unreachable. Files are checksummed; objects and tokens are encrypted. A forked task
 * writes and syncs them, so the loop never waits and a power cut leaves the old file or the new
 * one. */

#include "agent/secrets/secret-storage.h"
#include "common/macros.h"

#include <systemd/sd-event.h>

typedef struct ApiServerCache ApiServerCache;

/* Their directories. */
extern const char cached_objects_directory[], cached_tokens_directory[];

/* If 'state_dir' is the run directory, the cache is <run>/cluster, which is in memory and does not
 * survive a reboot; 'storage' is then NULL, and nothing is encrypted. 'storage' is borrowed. 0 or
 * -errno. */
int apiserver_cache_new(sd_event *event, const char *state_dir, SecretStorage *storage,
                        ApiServerCache **ret);

/* The storage key is available, or it is known that there is none: writes that waited for it are
 * made, and files of earlier versions are encrypted. */
void apiserver_cache_on_key(ApiServerCache *cache);

/* Writes queued content first. */
ApiServerCache *apiserver_cache_free(ApiServerCache *cache);

/* Queues a file below <state>/cluster/<directory>; the directory "." is <state>/cluster itself. If
 * the text is NULL, the file is removed. */
void apiserver_cache_write(ApiServerCache *cache, const char *directory, const char *name,
                           const char *text);

/* Returns the queued text, or the file's. 0; -ENOENT; -EBADMSG for a damaged file, which is set
 * aside; -EAGAIN: the key is still being opened; -EKEYREJECTED: the file cannot be decrypted; or
 * -errno. */
int apiserver_cache_read(const ApiServerCache *cache, const char *directory, const char *name,
                         size_t max_bytes, char **ret);

/* The names of the files of a directory, which the caller frees with strv_free(); NULL: none. Only
 * for names of at most DURABLE_WRITE_NAME_MAX characters; to be called before anything is written
 * to the directory. 0 or -errno. */
int apiserver_cache_list(const ApiServerCache *cache, const char *directory, char ***ret);
/* Removes everything in the directory and everything that is queued for it. To be called only while
 * nothing is being written to it. */
void apiserver_cache_empty(ApiServerCache *cache, const char *directory);
void apiserver_cache_set_aside(const ApiServerCache *cache, const char *directory,
                               const char *name);
