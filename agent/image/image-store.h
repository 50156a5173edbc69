/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images: resolves a reference to the layers of a root file system, by pulling it from a registry
 * or unpacking an archive in <state-dir>/preload. Runs mainstay-image; maintains the index of the
 * archives; collects unused images. Untrusted bytes are not parsed here. */

#include "agent/image/image-set.h"
#include "agent/image/pull-secret.h"
#include "agent/image/source-images.h"
#include "agent/model/config.h"
#include "agent/model/image.h"
#include "agent/model/pod.h"
#include "common/error.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct ImageStore ImageStore;

/* Adds the images that pods use, and those that a rollback needs. */
typedef void (*image_list_wanted_t)(ImageSet *ret, void *userdata);

typedef struct ImageStoreConfig {
        sd_event *event;
        const char *helper_path;      /* the mainstay-image program */
        const char *state_dir;        /* <state-dir>: images/ and preload/ are created below it */
        const MainstayConfig *config; /* settings of registries; NULL: defaults. Borrowed; outlives
                                       * the store */
        const Config *node_config;    /* for imagePullCredentialsVerificationPolicy; otherwise like
                                       * 'config' */
        image_list_wanted_t list_wanted; /* NULL: there are none */
        unsigned gc_high_percent;        /* disk usage above which images are removed … */
        unsigned gc_low_percent;         /* … until it is below this. 0: never */
        uint64_t gc_min_age_usec;        /* minimum time since an image was last used */
        uint64_t gc_max_age_usec; /* time after which an unused image is removed, regardless of disk
                                   * usage; 0: never */
} ImageStoreConfig;

/* Called from the loop when the set of available images may have grown, or when the error of an
 * archive has changed: failed requests may be repeated. */
typedef void (*image_store_changed_t)(void *userdata);

int image_store_new(const ImageStoreConfig *config, image_store_changed_t on_changed,
                    void *userdata, ImageStore **ret, Error *reterr);

/* Ends all children and frees all requests; no callback is called afterwards. */
ImageStore *image_store_free(ImageStore *store);
DEFINE_CLEANUP(ImageStore *, image_store_free)

/* Prints jobs and requests for `mainstay debug dump`. */
void image_store_dump(const ImageStore *store, FILE *out);

/* 0 with an Image (borrowed), or r < 0 with a message. -ENOENT: the image does not exist. */
typedef void (*image_ready_t)(int r, Image *image, const Error *error, void *userdata);

/* Progress of a pull. Called from the loop, at most every two seconds; must not add or cancel
 * requests. */
typedef void (*image_progress_t)(void *userdata);

typedef struct ImageRequest ImageRequest;

typedef struct ImageRequestOptions {
        const char *reference;
        PullPolicy policy;             /* unset means IfNotPresent */
        const PullSecretList *secrets; /* imagePullSecrets; copied. NULL: none */
        image_progress_t progress;     /* may be NULL; gets the userdata of 'ready' */
        const SourceImages *source;    /* images of the index to which the pod belongs: they are
                                        * taken only from there, regardless of the policy; NULL:
                                        * none */
        bool is_of_api; /* for a pod of an API server; pulls for other pods do not wait for it */
} ImageRequestOptions;

/* Requests an image. 1: it is present, and *ret_image is a new reference; 'ready' is not called. 0:
 * *ret_request is in progress, and 'ready' is called once, from the loop, after which the request
 * is freed. -ENOENT: no archive contains it, and the policy is Never. Another -errno if the
 * reference or the store is faulty: -EINVAL for an invalid reference, -ENOEXEC for an image that
 * cannot run here, because it is for a different machine or its user is unknown. Requests for the
 * same image share the work.
 *
 * As in the kubelet, pull policy Always contacts the registry each time, except for an image in an
 * archive in preload/ and for a present image that is named by digest. */
int image_store_request(ImageStore *store, const ImageRequestOptions *options, image_ready_t ready,
                        void *userdata, Image **ret_image, ImageRequest **ret_request,
                        Error *reterr);

/* Whether a request waits for a registry; and the bytes received and expected, both 0 if unknown. A
 * NULL request waits for no registry. */
bool image_request_progress(const ImageRequest *request, uint64_t *ret_done, uint64_t *ret_total);

/* Cancels a request; 'ready' is not called. NULL is allowed. */
ImageRequest *image_request_cancel(ImageRequest *request);
DEFINE_CLEANUP(ImageRequest *, image_request_cancel)

/* Sets the images named by the index in use, and those of another index, which is kept for a
 * rollback or will be used next; garbage collection removes neither of them. Takes ownership of
 * both. */
void image_store_set_source_images(ImageStore *store, SourceImages *in_use, SourceImages *kept);

/* The images of the index in use, for a pod's requests; NULL: the pod does not belong to an index.
 * Borrowed. */
const SourceImages *image_store_source_images(const ImageStore *store, const Pod *pod);

/* Information about one image, for the command line. All members are borrowed. */
typedef struct ImageInfo {
        const char *digest;
        char *const *names;    /* normalised references */
        const char *archive;   /* archive in preload/ that contains it, or NULL */
        uint64_t last_used_at; /* realtime of last use by a container; 0: not unpacked */
        uint64_t size_bytes;   /* size of its compressed layers; 0: unknown */
        bool is_in_use;        /* used by a container, or named by a desired pod */
} ImageInfo;

/* All images that are available without a registry. */
int image_store_foreach(ImageStore *store, void (*each)(const ImageInfo *info, void *userdata),
                        void *userdata);

typedef struct ImagePull {
        const char *reference;
        uint64_t done, total; /* in bytes; both 0: unknown */
        bool is_ended;
        const char *error;  /* NULL: no error */
        const char *digest; /* digest of the pulled image */
} ImagePull;

/* Visits the pulls that are queued or running, both for pods and manual ones (manual-pulls.h). */
void image_store_foreach_pull(const ImageStore *store,
                              void (*each)(const ImagePull *pull, void *userdata), void *userdata);

/* Schedules the removal of an image, by name or digest. -EINVAL, -ENOENT, -EBUSY if a pod uses it
 * or an archive contains it; with a message. */
int image_store_remove(ImageStore *store, const char *name, Error *reterr);

/* Whether a removal is in progress or about to start. False while it waits for a pull to end, which
 * may take hours. */
bool image_store_is_removing(const ImageStore *store);

/* Removes all images that are unused and not in an archive. Returns their number, or -errno. */
int image_store_prune(ImageStore *store);

/* The digest of the image to which a name in a manifest now refers, in an archive or unpacked;
 * borrowed until the next turn of the loop. NULL: none. */
const char *image_store_find_digest(const ImageStore *store, const char *name);

/* The directories of the archives and of the store. */
const char *image_store_preload_path(const ImageStore *store);
const char *image_store_path(const ImageStore *store);

/* A pod has terminated: disk usage may be checked. */
void image_store_check_disk_usage(ImageStore *store);

/* An archive, borrowed for the duration of a call. */
typedef struct ArchiveInfo {
        const char *file; /* name in the preload directory */
        uint64_t inode;   /* inode of the file that was read */
        int64_t mtime_nsec;
        bool is_read;      /* false: not yet */
        const char *error; /* none of its images can be used; NULL: no error */
        bool is_transient; /* the error is caused by the machine: the archive is read again */
} ArchiveInfo;

void image_store_foreach_archive(const ImageStore *store,
                                 void (*each)(const ArchiveInfo *archive, void *userdata),
                                 void *userdata);

/* For the status: calls 'each' with the file name and a message for every archive, and every image
 * in an archive, that cannot be used. */
void image_store_foreach_archive_error(ImageStore *store,
                                       void (*each)(const char *archive, const char *message,
                                                    void *userdata),
                                       void *userdata);
