/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The internals of the image store. Its parts work on the same images, so seven files include this,
 * but each part of the state is changed by only one of them:
 *
 *   image-store.c   the requests, and the images that are loaded
 *   image-jobs.c    ImageJobs: unpacks and pulls images
 *   preload.c       PreloadArchives: the archives in preload/
 *   image-gc.c      ImageGc: image garbage collection and manual removal
 *   image-admission.c  ImagePolicy: which images the signature policy accepts
 *   pulled-credentials.c  changes nothing
 *   image-dump.c    changes nothing
 *
 * The functions that they call in one another are declared below. Image names (image-names.h) are
 * set by a job and removed with the image. */

#include "agent/image/image-names.h"
#include "agent/image/image-policy.h"
#include "agent/image/image-store.h"
#include "agent/image/preload-archives.h"

/* One image that is being unpacked or pulled, on behalf of all requests for it. */
typedef struct ImageJob {
        ImageStore *store;
        char *reference; /* for a pull or a check; NULL: the image is unpacked from an archive */
        bool is_check;   /* checks the signatures of an image in the store */
        char *fleet;     /* fleet whose signed index contains the image; NULL: not from an index */
        char *directory; /* directory of that index */
        bool is_offline; /* contact no registry */
        bool is_of_node; /* also requested for something other than a pod of an API server */
        char *policy_reference; /* name under which the image must meet the policy */
        char *archive;          /* path */
        char *digest;           /* for a pull, known only at its end */
        char **names;
        PullSecretList secrets; /* for a pull */
        char **secret_problems; /* for each of these, why it cannot be used, or NULL */
        uint64_t done, total;   /* bytes of a pull; 0: unknown */
        uint64_t requested_at;  /* boot time */
        uint64_t started_at;    /* boot time of the child's start */
        uint64_t reported_at;   /* boot time of the last progress report */
        Child *child;           /* NULL: it is queued */
        int failed;             /* -errno if it could not be started */
        Error error;
        struct ImageJob *next;
} ImageJob;

struct ImageRequest {
        ImageStore *store;
        char *reference;
        PullPolicy policy;
        PullSecretList secrets;
        char *fleet;         /* fleet whose signed index contains the image; NULL: none */
        char *directory;     /* directory of that index */
        char *source_digest; /* the image's digest in that index */
        bool is_of_api;      /* see ImageRequestOptions */
        image_ready_t ready;
        image_progress_t progress;
        void *userdata;
        ImageJob *job;   /* NULL: waits until archives are indexed */
        unsigned n_jobs; /* number of jobs that it has waited for */
        ImageRequest *next;
};

typedef struct ImageJobs {
        ImageJob *first; /* oldest first */
        bool is_ending;
        Child *sweeper;
        bool sweep_again; /* files were left that can only be removed by a sweep */
} ImageJobs;

typedef struct PreloadArchives {
        ArchiveSet archives;
        sd_event_source *watch;
} PreloadArchives;

typedef struct ImageGc {
        Child *child;          /* removes an image; no job runs at the same time */
        char *removing_digest; /* digest of the image that is being removed */
        char **removal_queue;  /* digests of images to remove on request */
        bool is_due;           /* disk usage must be checked */
        bool is_freeing_space; /* usage was above the threshold, and has not reached the target
                                * yet */
        unsigned high_percent; /* imageGCHighThresholdPercent */
        unsigned low_percent;  /* imageGCLowThresholdPercent */
        uint64_t min_age_usec; /* imageMinimumGCAge */
        uint64_t max_age_usec; /* imageMaximumGCAge; 0: none */
        uint64_t started_at;   /* boot time: images count as used until then */
        ImageSet used;         /* images that were in use at the last check of ages */
        bool is_age_due;       /* ages of images must be checked */
        sd_event_source *age_timer;
} ImageGc;

struct ImageStore {
        sd_event *event;
        image_store_changed_t on_changed;
        image_list_wanted_t list_wanted;
        void *userdata;
        const MainstayConfig *config; /* NULL: defaults. Borrowed. */
        const Config *node_config;    /* likewise */
        char *helper_path;
        char *images_path;
        char *preload_path;
        int images_fd;
        sd_event_source *work_source;
        Image **images; /* images in use, and a few recently used ones */
        size_t n_images;
        ImageRequest *requests;
        ImageNames image_names;
        SourceImages source_images, kept_images;
        ImagePolicy policy;
        ImageJobs jobs;
        PreloadArchives preload;
        ImageGc gc;
};

/* ---- image-store.c ---- */

/* Marks the image as used now, for garbage collection. */
void image_store_touch_record(const ImageStore *store, const char *digest);

/* Completes all requests of a job with its image or its error. */
void image_store_answer_job_requests(ImageStore *store, const ImageJob *job, int r,
                                     const Error *error);

/* Resolves again the requests of a job that has ended without serving them. */
void image_store_resolve_job_requests(ImageStore *store, const ImageJob *job);

/* Reports progress to those requests of a job that have requested it. */
void image_store_report_progress(ImageStore *store, const ImageJob *job);

/* Rechecks the requests that wait for archives. */
void image_store_settle_requests(ImageStore *store);

/* Schedules one check of the directory and the jobs, regardless of the number of requests. */
int image_store_schedule_work(ImageStore *store);

/* ---- image-jobs.c ---- */

/* The job that provides the image from an archive, or from its registry; created if missing. 0 or
 * -errno. */
int image_job_for_archive(ImageStore *store, const Archive *archive, const ArchivedImage *found,
                          const char *reference, ImageJob **ret);
int image_job_for_pull(ImageStore *store, const char *reference, const PullSecretList *secrets,
                       ImageJob **ret);

/* The job that fetches an image named by a signed index. */
int image_job_for_source(ImageStore *store, const ImageRequest *request, ImageJob **ret);

/* The job that checks the signatures of an image that is present. */
int image_job_for_check(ImageStore *store, const ImageRequest *request, const char *digest,
                        ImageJob **ret);

/* Ends and frees a job without requests. */
void image_job_cancel(ImageJob *job);

/* Starts queued jobs. */
void image_jobs_start(ImageStore *store);

/* Whether a running job prevents the removal of images now. */
bool image_jobs_keep_images(const ImageStore *store);

/* Ends the children of all jobs; image_jobs_start() continues with the data that they have. */
void image_jobs_interrupt(ImageStore *store);

/* Fails the jobs that could not be started, from the loop, like any job that fails. */
void image_jobs_fail_unstarted(ImageStore *store);

void image_jobs_stop(ImageStore *store); /* starts no further jobs */
void image_jobs_done(ImageStore *store);

/* Removes files left by dead helpers, in a child, because removing gigabytes takes a while. 0 or
 * -ENOMEM. */
int image_store_sweep_leftovers(ImageStore *store);

/* ---- image-admission.c ---- */

/* 1: the image may run under this name; 0: its signatures must be checked; -EKEYREJECTED with a
 * message; -ENOMEM. */
int image_admission_check(ImageStore *store, const char *reference, const char *digest,
                          Error *reterr);

/* The same for an image that a pod uses through the signed index of a fleet. */
int image_admission_check_source(ImageStore *store, const char *reference, const char *digest,
                                 const char *fleet, Error *reterr);

/* The record of an image that mainstay-image has verified, which the caller frees. 0, possibly with
 * NULL: there is none. -errno: it is damaged or cannot be read, so that its content is unknown.
 */
int image_verified_load(const ImageStore *store, const char *digest, json_t **ret);

/* Whether the policy could accept any image with this name from a registry. 0; -EKEYREJECTED with a
 * message; -ENOMEM. */
int image_admission_check_pull(ImageStore *store, const char *reference, Error *reterr);

/* The settings that a job passes to mainstay-image: a descriptor that the caller closes, or -errno
 * with a message. */
int image_admission_open_settings(ImageStore *store, const ImageJob *job, Error *reterr);

/* ---- pulled-credentials.c ---- */

/* Whether a pod with these documents of imagePullSecrets may use the image without contacting the
 * registry (imagePullCredentialsVerificationPolicy). 'is_archived': an archive contains it. */
bool image_access_is_open(const ImageStore *store, const ImageRequest *request, const char *digest,
                          bool is_archived);

/* Whether the image was fetched for pods of this fleet's index. */
bool image_access_is_of_source(const ImageStore *store, const char *digest, const char *fleet);

/* The rules by which mainstay-image decides from which images of the store a pull may reuse layers:
 * {"opensAll": …, "opensPreloaded": …, "allowlist": […], "archived": ["<digest>", …]}, the members
 * of ImageAccessRules and the images that archives contain. The caller frees it; NULL: out of
 * memory. */
json_t *image_access_to_json(const ImageStore *store);

/* ---- image-gc.c ---- */

/* Schedules a check of disk usage. */
void image_gc_schedule(ImageStore *store);

/* Removes the next image, if one is due and no job is running. */
void image_gc_remove_next(ImageStore *store);

/* 0 or -errno. */
int image_gc_init(ImageStore *store, const ImageStoreConfig *config);
void image_gc_done(ImageStore *store);

/* ---- preload.c ---- */

int preload_scan_directory(ImageStore *store); /* 1: something has changed; 0; -errno */
void preload_index_archives(ImageStore *store);
void preload_init(ImageStore *store);
void preload_done(ImageStore *store);
