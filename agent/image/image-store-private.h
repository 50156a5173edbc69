/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the store share: store.c answers requests, jobs.c brings images, preload.c
 * knows the archives, collect.c makes room. */

#include "agent/image/image-archive.h"
#include "agent/image/image-names.h"
#include "agent/image/image-store.h"

/* One image on its way, for all who asked for it. */
typedef struct ImageJob {
        ImageStore *store;
        char *reference; /* of a pull; NULL: it is unpacked from an archive */
        char *archive;   /* path */
        char *digest;    /* of a pull only when it has come */
        char **names;
        char **auths;          /* of a pull: documents with passwords */
        uint64_t done, total;  /* bytes of a pull; 0: not known yet */
        uint64_t requested_at; /* boot time */
        uint64_t reported_at;  /* boot time: how far it is */
        Child *child;          /* NULL: its turn has not come */
        int failed;            /* to be started: -errno */
        Error error;
        struct ImageJob *next;
} ImageJob;

struct ImageRequest {
        ImageStore *store;
        char *reference;
        PullPolicy policy;
        char **auths;
        image_ready_t ready;
        image_progress_t progress;
        void *userdata;
        ImageJob *job; /* NULL: waits for archives to be indexed */
        ImageRequest *next;
};

typedef struct ManualPull ManualPull;

struct ImageStore {
        sd_event *event;
        image_store_changed_t on_changed;
        image_is_wanted_t is_wanted;
        void *userdata;
        const MainstayConfig *config; /* NULL: defaults. Borrowed. */
        char *helper_path;
        char *images_path;
        char *preload_path;
        int images_fd;
        ArchiveSet archives;
        ImageNames image_names;
        Image **images; /* in use, and a few that were */
        size_t n_images;
        ImageJob *jobs; /* oldest first */
        bool is_ending;
        ImageRequest *requests;
        ManualPull *manual_pulls;
        Child *removal_child;  /* removes the image 'going'; no job runs meanwhile */
        char *removing_digest; /* its digest */
        char **removal_queue;  /* digests that a person wants removed */
        bool gc_is_due,
                is_freeing_space; /* the disk is to be looked at; it was too full, and still is */
        unsigned gc_high_percent, gc_low_percent;
        uint64_t gc_min_age_usec;
        Child *sweeper;
        bool sweep_again; /* something was left behind the sweeper's back */
        sd_event_source *preload_watch;
        sd_event_source *work_source;
};

/* ---- store.c ---- */

/* 0 with a new reference; -ENOENT where it is not there whole. */
int image_store_load_image(ImageStore *store, const char *reference, const char *digest,
                           Image **ret, Error *reterr);

/* Answers all who wait for a job: with its image, or with why there is none. */
void image_store_answer_job_requests(ImageStore *store, const ImageJob *job, int r,
                                     const Error *error);

/* Tells all who wait for a job, and want to know, that it has come further. */
void image_store_report_progress(ImageStore *store, const ImageJob *job);

/* Looks again at the requests that wait for archives. */
void image_store_settle_requests(ImageStore *store);

/* One look at the directory and the jobs, however many ask for it. */
int image_store_schedule_work(ImageStore *store);

/* ---- jobs.c ---- */

/* The job that brings the image from an archive, or from its registry; a new one where there is
 * none yet. 0 or -errno. */
int image_job_for_archive(ImageStore *store, const Archive *archive, const ArchivedImage *found,
                          const char *reference, ImageJob **ret);
int image_job_for_pull(ImageStore *store, const char *reference, char *const *auths,
                       ImageJob **ret);

/* Ends and forgets one that nobody waits for. */
void image_job_cancel(ImageJob *job);

/* Starts those whose turn has come. */
void image_jobs_start(ImageStore *store);

/* Fails those that could not be started, from the loop as one that ends badly. */
void image_jobs_fail_unstarted(ImageStore *store);

void image_jobs_free(ImageStore *store);

/* Removes what dead helpers left: gigabytes take a while, so a child does it. 0 or -ENOMEM. */
int image_store_sweep_leftovers(ImageStore *store);

/* pull-settings.c: a memory file with what mainstay-image is told of a pull. A descriptor or
 * -errno.
 */
int pull_settings_open(const ImageStore *store, const ImageJob *job);

/* ---- collect.c ---- */

/* Looks, soon, whether the disk is too full. */
void image_gc_schedule(ImageStore *store);

/* The next image to remove, if there is one to remove and nobody is at work. */
void image_gc_remove_next(ImageStore *store);

void image_gc_done(ImageStore *store);

/* ---- person-pulls.c ---- */

void manual_pulls_free(ImageStore *store);

/* ---- preload.c ---- */

int preload_scan_directory(ImageStore *store); /* 1: something is another; 0; -errno */
void preload_index_archives(ImageStore *store);
