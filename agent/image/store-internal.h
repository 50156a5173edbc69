/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the store share: store.c answers requests, jobs.c brings images, preload.c
 * knows the archives, collect.c makes room. */

#include "agent/image/archive.h"
#include "agent/image/image.h"
#include "agent/image/kept.h"

/* One image on its way, for all who asked for it. */
typedef struct Job {
        ImageStore *store;
        char *reference; /* of a pull; NULL: it is unpacked from an archive */
        char *archive;   /* path */
        char *digest;    /* of a pull only when it has come */
        char **names;
        char **auths;         /* of a pull: documents with passwords */
        uint64_t done, total; /* bytes of a pull; 0: not known yet */
        uint64_t asked_at;    /* boot time */
        uint64_t told_at;     /* boot time: how far it is */
        Child *child;         /* NULL: its turn has not come */
        int failed;           /* to be started: -errno */
        Error error;
        struct Job *next;
} Job;

struct ImageRequest {
        ImageStore *store;
        char *reference;
        PullPolicy policy;
        char **auths;
        image_ready_t ready;
        image_progress_t progress;
        void *userdata;
        Job *job; /* NULL: waits for archives to be indexed */
        ImageRequest *next;
};

typedef struct PersonPull PersonPull;

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
        KeptNames kept;
        Image **images; /* in use, and a few that were */
        size_t n_images;
        Job *jobs; /* oldest first */
        bool is_ending;
        ImageRequest *requests;
        PersonPull *person_pulls;
        Child *collector; /* removes the image 'going'; no job runs meanwhile */
        char *going;      /* its digest */
        char **doomed;    /* digests that a person wants removed */
        bool wants_check,
                makes_room; /* the disk is to be looked at; it was too full, and still is */
        unsigned gc_high_percent, gc_low_percent;
        uint64_t gc_min_age_usec;
        Child *sweeper;
        bool sweep_again; /* something was left behind the sweeper's back */
        sd_event_source *doorbell;
        sd_event_source *work;
};

/* ---- store.c ---- */

/* 0 with a new reference; -ENOENT where it is not there whole. */
int store_load_image(ImageStore *store, const char *reference, const char *digest, Image **ret,
                     Error *reterr);

/* Answers all who wait for a job: with its image, or with why there is none. */
void store_answer_requests_of(ImageStore *store, const Job *job, int r, const Error *error);

/* Tells all who wait for a job, and want to know, that it has come further. */
void store_tell_progress(ImageStore *store, const Job *job);

/* Looks again at the requests that wait for archives. */
void store_settle(ImageStore *store);

/* One look at the directory and the jobs, however many ask for it. */
int store_schedule_work(ImageStore *store);

/* ---- jobs.c ---- */

/* The job that brings the image from an archive, or from its registry; a new one where there is
 * none yet. 0 or -errno. */
int job_for_archive(ImageStore *store, const Archive *archive, const ArchiveImage *found,
                    const char *reference, Job **ret);
int job_for_pull(ImageStore *store, const char *reference, char *const *auths, Job **ret);

/* Ends and forgets one that nobody waits for. */
void job_drop(Job *job);

/* Starts those whose turn has come. */
void jobs_start(ImageStore *store);

/* Fails those that could not be started, from the loop as one that ends badly. */
void jobs_fail(ImageStore *store);

void jobs_free(ImageStore *store);

/* Removes what dead helpers left: gigabytes take a while, so a child does it. 0 or -ENOMEM. */
int store_sweep_remains(ImageStore *store);

/* pull-settings.c: a memory file with what mainstay-image is told of a pull. A descriptor or
 * -errno.
 */
int pull_settings_open(const ImageStore *store, const Job *job);

/* ---- collect.c ---- */

/* Looks, soon, whether the disk is too full. */
void collect_soon(ImageStore *store);

/* The next image to remove, if there is one to remove and nobody is at work. */
void collect_next(ImageStore *store);

void collect_done(ImageStore *store);

/* ---- person-pulls.c ---- */

void person_pulls_free(ImageStore *store);

/* ---- preload.c ---- */

int preload_scan(ImageStore *store); /* 1: something is another; 0; -errno */
void preload_index(ImageStore *store);
