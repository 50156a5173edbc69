/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images: a reference in, the layers of a root file system out. Drives mainstay-image; keeps the
 * index of the archives in <state-dir>/preload. */

#include "agent/model/config.h"
#include "agent/model/image.h"
#include "agent/model/pod.h"
#include "common/error.h"

#include <stdio.h>
#include <systemd/sd-event.h>

/* Parses as Docker does: "busybox" is "docker.io/library/busybox:latest". 0 with the normalised
 * name, or -EINVAL with the sentence that belongs to Kubernetes' InvalidImageName. */
int image_reference_normalise(const char *reference, char **ret, Error *reterr);

typedef struct ImageStore ImageStore;

/* Whether a pod that is wanted names the image, by its normalised reference. */
typedef bool (*image_is_wanted_t)(const char *reference, void *userdata);

typedef struct ImageStoreConfig {
        sd_event *event;
        const char *helper_path; /* the mainstay-image program */
        const char *state_dir;   /* <state-dir>: images/ and preload/ are made below it */
        const MainstayConfig
                *config; /* registries; NULL: defaults. Borrowed, and outlives the store */
        image_is_wanted_t is_wanted; /* NULL: none is */
        unsigned gc_high_percent;    /* of the disk; beyond it images are removed … */
        unsigned gc_low_percent;     /* … until it is no fuller than this. 0: never */
        uint64_t gc_min_age_usec;    /* since an image was last used */
} ImageStoreConfig;

/* Called from the loop when the set of images that can be had grew, or may have, or an archive's
 * trouble changed: whoever was refused an image may ask again. */
typedef void (*image_store_changed_t)(void *userdata);

int image_store_new(const ImageStoreConfig *config, image_store_changed_t on_changed,
                    void *userdata, ImageStore **ret, Error *reterr);

/* Ends what the store does; nobody is called any more, and requests that are under way are gone. */
ImageStore *image_store_free(ImageStore *store);
DEFINE_CLEANUP(ImageStore *, image_store_free)

/* Prints jobs and requests for `mainstay debug dump`. */
void image_store_dump(const ImageStore *store, FILE *out);

/* 0 with an Image (borrowed), or r < 0 with the sentence. -ENOENT: nobody has it. */
typedef void (*image_ready_t)(int r, Image *image, const Error *error, void *userdata);

/* More has come from a registry. Called from the loop, not more often than every two seconds; asks
 * and cancels nothing. */
typedef void (*image_progress_t)(void *userdata);

typedef struct ImageRequest ImageRequest;

typedef struct ImageRequestOptions {
        const char *reference;
        PullPolicy policy;         /* unset is IfNotPresent */
        char *const *auths;        /* the documents of imagePullSecrets, as JSON; copied */
        image_progress_t progress; /* may be NULL; has the userdata of 'ready' */
} ImageRequestOptions;

/* Asks for an image. 1: it is here, and *ret_image is a new reference; nothing is called. 0:
 * *ret_request is under way, and 'ready' is called once, from the loop, after which the request is
 * gone. -ENOENT: no archive has it, and the policy is Never. Other -errno: the reference or the
 * store is at fault: -EINVAL for a reference that is none, -ENOEXEC for an image that cannot run
 * here, be it for another machine or because its user is unknown. Requests for one image share the
 * work.
 *
 * Always asks the registry each time, as the kubelet does; but not for an image that an archive in
 * preload/ has, nor for one that is named by its digest and is here. */
int image_store_request(ImageStore *store, const ImageRequestOptions *options, image_ready_t ready,
                        void *userdata, Image **ret_image, ImageRequest **ret_request,
                        Error *reterr);

/* Whether a request waits for a registry, and how many bytes came of how many; 0 of 0 while that is
 * not known. NULL waits for nothing. */
bool image_request_progress(const ImageRequest *request, uint64_t *ret_done, uint64_t *ret_total);

/* Forgets a request that is under way; 'ready' is not called. NULL is fine. */
ImageRequest *image_request_cancel(ImageRequest *request);
DEFINE_CLEANUP(ImageRequest *, image_request_cancel)

/* What there is of one image, for a person. All is borrowed. */
typedef struct ImageInfo {
        const char *digest;
        char *const *names;  /* normalised references */
        const char *archive; /* in preload/ that has it, or NULL */
        uint64_t
                last_used_at; /* realtime, when it was last given to a container; 0: not unpacked */
        uint64_t size_bytes;  /* of its layers, packed; 0: not known */
        bool is_in_use;       /* by a container, or wanted by a pod */
} ImageInfo;

/* All that can be had without a registry. */
int image_store_foreach(ImageStore *store, void (*each)(const ImageInfo *info, void *userdata),
                        void *userdata);

/* Pulls an image for a person, whatever is here; nobody need wait for it. 0, or -EINVAL with the
 * sentence. */
int image_store_pull(ImageStore *store, const char *reference, Error *reterr);

typedef struct ImagePull {
        const char *reference;
        uint64_t done, total; /* bytes; 0 of 0: not known yet */
        bool is_ended;
        const char *error;  /* NULL: it has not failed */
        const char *digest; /* of what came */
} ImagePull;

/* The pulls that people asked for, with the last few that have ended; then those under way for
 * pods.
 */
void image_store_foreach_pull(ImageStore *store,
                              void (*each)(const ImagePull *pull, void *userdata), void *userdata);

/* Removes an image, by a name or its digest, soon. -EINVAL, -ENOENT, -EBUSY where a pod uses it or
 * an archive has it; with the sentence. */
int image_store_remove(ImageStore *store, const char *name, Error *reterr);

/* Whether any is being removed, or is soon. */
bool image_store_is_removing(const ImageStore *store);

/* Removes all that nobody uses and no archive has. How many, or -errno. */
int image_store_prune(ImageStore *store);

/* Where archives are found, and where the store is. */
const char *image_store_preload_path(const ImageStore *store);
const char *image_store_path(const ImageStore *store);

/* A pod has ended: the disk may be looked at. */
void image_store_check_disk_usage(ImageStore *store);

/* An archive that cannot be used, or an image of it, for status: file name and sentence. Calls
 * 'each' for all. */
void image_store_foreach_archive_error(ImageStore *store,
                                       void (*each)(const char *archive, const char *message,
                                                    void *userdata),
                                       void *userdata);
