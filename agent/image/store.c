/* SPDX-License-Identifier: Apache-2.0 */

/* The store's life in the loop. Three kinds of work, none of it done here: children index archives,
 * children unpack images, and requests wait for them.
 *
 * A request is answered at once when a record says that all layers are there. Else it waits for its
 * job, the one child that unpacks this image for everybody; or, while there are archives that
 * nobody has read yet, for what they turn out to hold. Callbacks may make and cancel requests, so
 * each list is looked at anew after each callback.
 *
 * inotify is a doorbell: whatever rings, the directory is scanned and compared. */

#include "agent/image/archive.h"
#include "agent/image/image.h"
#include "agent/image/kept.h"
#include "agent/image/record.h"
#include "agent/image/reference.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sysexits.h>

enum {
        INDEXERS_MAX = 2,
        JOBS_MAX = 2,
        OUTPUT_BYTES_MAX = 4 * 1024 * 1024,
        SPARE_IMAGES_MAX = 4
};

#define INDEX_TIMEOUT_USEC  (30 * (60 * USEC_PER_SEC))
#define UNPACK_TIMEOUT_USEC (120 * (60 * USEC_PER_SEC))

#define PRELOAD_EVENTS                                                                           \
        (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_DELETE_SELF | \
         IN_MOVE_SELF | IN_ONLYDIR)

/* One image being unpacked, for all who asked for it. */
typedef struct Job {
        ImageStore *store;
        char *digest;
        char *archive; /* path */
        char **names;
        Child *child; /* NULL: its turn has not come */
        int failed;   /* to be started: -errno */
        Error error;
        struct Job *next;
} Job;

struct ImageRequest {
        ImageStore *store;
        char *reference;
        image_ready_t ready;
        void *userdata;
        Job *job; /* NULL: waits for archives to be indexed */
        ImageRequest *next;
};

struct ImageStore {
        sd_event *event;
        image_store_changed_t on_changed;
        void *userdata;
        char *helper_path;
        char *images_path;
        char *preload_path;
        int images_fd;
        ArchiveSet archives;
        KeptNames kept;
        Image **images; /* in use, and a few that were */
        size_t n_images;
        Job *jobs; /* oldest first */
        ImageRequest *requests;
        Child *sweeper;
        bool sweep_again; /* something was left behind the sweeper's back */
        sd_event_source *doorbell;
        sd_event_source *work;
};

static const char *const preload_name = "preload", *const images_name = "images";

static Job *job_free(Job *job) {
        if (!job)
                return NULL;
        child_free(job->child);
        free(job->digest);
        free(job->archive);
        strv_free(job->names);
        error_done(&job->error);
        free(job);
        return NULL;
}

DEFINE_CLEANUP(Job *, job_free)

static ImageRequest *request_free(ImageRequest *request) {
        free(request->reference);
        free(request);
        return NULL;
}

static void unlink_request(ImageRequest *request) {
        ImageRequest **at = &request->store->requests;

        while (*at != request)
                at = &(*at)->next;
        *at = request->next;
}

ImageRequest *image_request_cancel(ImageRequest *request) {
        if (!request)
                return NULL;
        unlink_request(request);
        return request_free(request);
}

/* The request is gone before its owner hears of it, so that the owner may do as he likes. */
static void answer(ImageRequest *request, int r, Image *image, const Error *error) {
        image_ready_t ready = request->ready;
        void *userdata = request->userdata;

        image_request_cancel(request);
        ready(r, image, error, userdata);
}

/* Keeps what is in use, so that pods of one image share one description, and lets go of the rest.
 */
static int remember_image(ImageStore *store, Image *image) {
        Image **larger;
        size_t spare = 0;

        for (size_t i = store->n_images; i-- > 0;)
                if (store->images[i]->n_refs == 1 && ++spare > SPARE_IMAGES_MAX) {
                        image_unref(store->images[i]);
                        store->images[i] = store->images[--store->n_images];
                }
        larger = reallocarray(store->images, store->n_images + 1, sizeof(*larger));
        if (!larger)
                return -ENOMEM;
        store->images = larger;
        larger[store->n_images++] = image_ref(image);
        return 0;
}

/* 0 with a new reference; -ENOENT where it is not there whole. */
static int load_image(ImageStore *store, const char *reference, const char *digest, Image **ret,
                      Error *reterr) {
        cleanup_with(image_unrefp) Image *image = NULL;
        int r;

        for (size_t i = 0; i < store->n_images; i++)
                if (streq(store->images[i]->digest, digest) &&
                    streq(store->images[i]->reference, reference)) {
                        *ret = image_ref(store->images[i]);
                        return 0;
                }
        r = image_record_load(store->images_fd, store->images_path, reference, digest, &image,
                              reterr);
        if (r >= 0)
                r = remember_image(store, image);
        if (r >= 0)
                *ret = TAKE_PTR(image);
        return r;
}

static void start_jobs(ImageStore *store);

/* One look at the directory and the jobs, however many ask for it. */
static int schedule_work(ImageStore *store) {
        return sd_event_source_set_enabled(store->work, SD_EVENT_ONESHOT);
}

static Job *find_job(const ImageStore *store, const char *digest) {
        for (Job *job = store->jobs; job; job = job->next)
                if (streq(job->digest, digest))
                        return job;
        return NULL;
}

static void unlink_job(Job *job) {
        Job **at = &job->store->jobs;

        while (*at != job)
                at = &(*at)->next;
        *at = job->next;
}

static ImageRequest *next_request_of(const ImageStore *store, const Job *job) {
        for (ImageRequest *request = store->requests; request; request = request->next)
                if (request->job == job)
                        return request;
        return NULL;
}

static void answer_requests_of(ImageStore *store, const Job *job, int r, const Error *error) {
        ImageRequest *request;

        while ((request = next_request_of(store, job))) {
                cleanup_with(image_unrefp) Image *image = NULL;
                cleanup_error Error own = ERROR_NULL;
                int q = r;

                if (q >= 0)
                        q = load_image(store, request->reference, job->digest, &image, &own);
                if (q == -ENOENT)
                        q = error_setf(&own, EIO, "the image was unpacked and is not there");
                answer(request, q, image, r < 0 ? error : &own);
        }
}

static int start_sweeper(ImageStore *store);

static void on_swept(const ChildResult *result, void *userdata) {
        ImageStore *store = userdata;

        store->sweeper = NULL;
        if (store->sweep_again)
                (void) start_sweeper(store);
}

/* Removing gigabytes takes a while; it is no more our own work than writing them. */
static int start_sweeper(ImageStore *store) {
        cleanup_free char *option = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        store->sweep_again = store->sweeper;
        if (store->sweeper)
                return 0;
        if (asprintf(&option, "--store=%s", store->images_path) < 0) {
                option = NULL;
                return -ENOMEM;
        }
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "sweep" },
                                                          option, NULL } },
                        on_swept, store, &store->sweeper, &error);
        if (r < 0)
                log_warning("%s", error_message(&error, r));
        return r == -ENOMEM ? r : 0;
}

static void on_unpacked(const ChildResult *result, void *userdata) {
        cleanup_with(job_freep) Job *job = userdata;
        cleanup_error Error error = ERROR_NULL;
        ImageStore *store = job->store;
        int r;

        job->child = NULL;
        unlink_job(job);
        r = child_explain(result, "mainstay-image", &error);
        if (r < 0) {
                (void) error_prefixf(&error, r, "%s", strrchr(job->archive, '/') + 1);
                log_warning("Cannot unpack image %s: %s", job->digest, error_message(&error, r));
                /* Who was killed could not clear up, and may be killed again for want of room. */
                if (result->code != CLD_EXITED)
                        (void) start_sweeper(store);
        } else {
                strv_foreach(name, job->names)
                        (void) kept_set(&store->kept, *name, job->digest);
        }
        answer_requests_of(store, job, r, &error);
        start_jobs(store);
}

static int start_job(Job *job, Error *reterr) {
        ImageStore *store = job->store;
        cleanup_strv char **argv = NULL;
        int r;

        r = strv_append(&argv, store->helper_path);
        if (r >= 0)
                r = strv_append(&argv, "unpack");
        if (r >= 0)
                r = strv_appendf(&argv, "--store=%s", store->images_path);
        if (r >= 0)
                r = strv_appendf(&argv, "--digest=%s", job->digest);
        strv_foreach(name, job->names)
                if (r >= 0)
                        r = strv_appendf(&argv, "--name=%s", *name);
        if (r >= 0)
                r = strv_append(&argv, job->archive);
        if (r < 0)
                return r;
        return child_spawn(
                store->event,
                &(ChildSpec){ .argv = argv, .output_max = 0, .timeout_usec = UNPACK_TIMEOUT_USEC },
                on_unpacked, job, &job->child, reterr);
}

/* One that cannot be started fails from the loop, as one that ends badly. */
static void start_jobs(ImageStore *store) {
        unsigned running = 0;

        for (Job *job = store->jobs; job && running < JOBS_MAX; job = job->next) {
                if (!job->child && job->failed >= 0)
                        job->failed = start_job(job, &job->error);
                if (job->failed < 0)
                        (void) schedule_work(store);
                else
                        running++;
        }
}

static void fail_jobs(ImageStore *store) {
        for (Job *job = store->jobs; job;) {
                cleanup_with(job_freep) Job *failed = NULL;

                if (job->failed >= 0) {
                        job = job->next;
                        continue;
                }
                failed = job;
                unlink_job(job);
                /* Not -ENOENT, which is an image that nobody has. */
                answer_requests_of(store, job, -EIO, &job->error);
                job = store->jobs;
        }
}

/* What unpacks it is also told the image's other names. */
static int make_job(ImageStore *store, const Archive *archive, const ArchiveImage *found,
                    const char *reference, Job **ret) {
        cleanup_with(job_freep) Job *job = calloc(1, sizeof(*job));
        Job **at = &store->jobs;
        bool known = false;
        int r;

        if (!job)
                return -ENOMEM;
        job->store = store;
        job->digest = strdup(found->digest);
        job->archive = path_join(store->preload_path, archive->file);
        if (!job->digest || !job->archive)
                return -ENOMEM;
        strv_foreach(name, found->names)
                known = known || streq(*name, reference);
        r = strv_extend(&job->names, found->names);
        if (r >= 0 && !known)
                r = strv_append(&job->names, reference);
        if (r < 0)
                return r;
        while (*at)
                at = &(*at)->next;
        *ret = *at = TAKE_PTR(job);
        return 0;
}

/* 1 with the image; 0 with the job to wait for, or NULL for the archives; or -errno. */
static int resolve(ImageStore *store, const char *reference, Image **ret_image, Job **ret_job,
                   Error *reterr) {
        const Archive *archive = NULL;
        const ArchiveImage *found = archive_set_find(&store->archives, reference, &archive);
        const char *digest;
        int r;

        *ret_job = NULL;
        if (!found && archive_set_is_pending(&store->archives))
                return 0;
        if (found && found->refusal)
                return error_setf(reterr, ENOEXEC, "%s: %s", archive->file, found->refusal);
        digest = found ? found->digest : kept_find(&store->kept, reference);
        if (!found && !digest)
                digest = reference_digest(reference);
        r = found || digest ? load_image(store, reference, digest, ret_image, reterr) : -ENOENT;
        if (r >= 0)
                return 1;
        if (r != -ENOENT)
                return r;
        if (!found || !digest)
                return error_setf(reterr, ENOENT, "no archive in '%s' has '%s'",
                                  store->preload_path, reference);
        *ret_job = find_job(store, found->digest);
        return *ret_job ? 0 : make_job(store, archive, found, reference, ret_job);
}

static void start_indexers(ImageStore *store);

/* A disk that was full when an archive came may have room by now; who asks again asks for this,
 * too. */
static void retry_archives(ImageStore *store, const char *reference) {
        const Archive *archive;

        if (!archive_set_find(&store->archives, reference, &archive) &&
            !kept_find(&store->kept, reference) && archive_set_retry(&store->archives))
                start_indexers(store);
}

int image_store_request(ImageStore *store, const char *reference, image_ready_t ready,
                        void *userdata, Image **ret_image, ImageRequest **ret_request,
                        Error *reterr) {
        cleanup_free char *normal = NULL;
        ImageRequest *request;
        Job *job;
        int r;

        r = image_reference_normalise(reference, &normal, reterr);
        if (r < 0)
                return r;
        retry_archives(store, normal);
        r = resolve(store, normal, ret_image, &job, reterr);
        if (r != 0)
                return r;
        request = calloc(1, sizeof(*request));
        if (!request)
                return -ENOMEM;
        *request = (ImageRequest){
                .store = store,
                .reference = TAKE_PTR(normal),
                .ready = ready,
                .userdata = userdata,
                .job = job,
                .next = store->requests,
        };
        store->requests = request;
        *ret_request = request;
        start_jobs(store);
        return 0;
}

/* Looks again at the requests that wait for archives. True when one was answered: then all has to
 * be looked at anew. */
static bool settle_one(ImageStore *store) {
        for (ImageRequest *request = store->requests; request; request = request->next) {
                cleanup_with(image_unrefp) Image *image = NULL;
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (request->job)
                        continue;
                r = resolve(store, request->reference, &image, &request->job, &error);
                if (r == 0)
                        continue;
                answer(request, MIN(r, 0), image, &error);
                return true;
        }
        return false;
}

static void settle(ImageStore *store) {
        while (settle_one(store))
                ;
        start_jobs(store);
}

static void on_indexed(const ChildResult *result, void *userdata) {
        Archive *archive = userdata;
        ImageStore *store = archive->store;
        cleanup_error Error error = ERROR_NULL;
        bool same = false;
        int r;

        archive->child = NULL;
        r = child_explain(result, "mainstay-image", &error);
        if (r >= 0 && archive_take_index(archive, result->output) < 0)
                r = error_setf(&error, EBADMSG, "mainstay-image said something else than JSON");
        if (r < 0) {
                same = streq_ptr(archive->trouble, error_message(&error, r));
                archive_break(archive, error_message(&error, r));
                archive->may_pass = result->code != CLD_EXITED || result->status == EX_TEMPFAIL;
                log_mark(MESSAGE_ARCHIVE_BROKEN);
                log_warning("Image archive '%s': %s", archive->file, error_message(&error, r));
        } else {
                r = archive_set_save(&store->archives, store->images_fd);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot save the index of the image archives");
        }
        start_indexers(store);
        settle(store);
        /* Who asks again on every change would be told of every try that he caused. */
        if (!same)
                store->on_changed(store->userdata);
}

static int start_indexer(ImageStore *store, Archive *archive, Error *reterr) {
        cleanup_free char *path = path_join(store->preload_path, archive->file), *option = NULL;
        int r;

        if (!path || asprintf(&option, "--store=%s", store->images_path) < 0)
                return -ENOMEM;
        archive->store = store;
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "index" },
                                                          option, path, NULL },
                                      .output_max = OUTPUT_BYTES_MAX,
                                      .timeout_usec = INDEX_TIMEOUT_USEC },
                        on_indexed, archive, &archive->child, reterr);
        if (r >= 0)
                archive->state = ARCHIVE_INDEXING;
        return r;
}

static void start_indexers(ImageStore *store) {
        unsigned running = 0;

        for (size_t i = 0; i < store->archives.n_archives; i++)
                running += store->archives.archives[i]->state == ARCHIVE_INDEXING;
        for (size_t i = 0; i < store->archives.n_archives && running < INDEXERS_MAX; i++) {
                Archive *archive = store->archives.archives[i];
                cleanup_error Error error = ERROR_NULL;
                int r = 0;

                if (archive->state != ARCHIVE_NEW)
                        continue;
                r = start_indexer(store, archive, &error);
                if (r < 0) {
                        archive_break(archive, error_message(&error, r));
                        log_mark(MESSAGE_ARCHIVE_BROKEN);
                        log_warning("Image archive '%s': %s", archive->file, archive->trouble);
                } else {
                        running++;
                }
        }
}

/* A file that begins is not looked at before it is closed; a link is whole from the start. */
static bool is_link(const ImageStore *store, const char *name) {
        cleanup_free char *path = path_join(store->preload_path, name);
        struct stat st;

        return path && lstat(path, &st) >= 0 && (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

static int on_doorbell(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        ImageStore *store = userdata;

        if ((event->mask & IN_CREATE) && !is_link(store, event->name))
                return 0;
        if (event->len > 0)
                archive_set_touch(&store->archives, event->name);
        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
                store->doorbell = sd_event_source_disable_unref(store->doorbell);
        return schedule_work(store);
}

/* Hangs the doorbell up, again where somebody took the directory away. */
static int watch_preload(ImageStore *store) {
        int r;

        if (store->doorbell)
                return 0;
        r = sd_event_add_inotify(store->event, &store->doorbell, store->preload_path,
                                 PRELOAD_EVENTS, on_doorbell, store);
        return r < 0 ? r : sd_event_source_set_description(store->doorbell, "preload-doorbell");
}

/* The directory is not held open: one that is never tells that it was removed. */
static int scan_preload(ImageStore *store) {
        cleanup_close int fd = open_directory_at(AT_FDCWD, store->preload_path, 0700);
        int r = fd < 0 ? fd : watch_preload(store);

        if (r >= 0)
                r = archive_set_scan(&store->archives, fd);
        if (r < 0)
                return log_warning_errno(r, "Cannot read '%s', keeping what is known of it",
                                         store->preload_path);
        start_indexers(store);
        return r;
}

static int on_work(sd_event_source *source, void *userdata) {
        ImageStore *store = userdata;

        fail_jobs(store);
        if (scan_preload(store) > 0) {
                settle(store);
                store->on_changed(store->userdata);
        }
        return 0;
}

static int open_directories(ImageStore *store, const char *state_dir, Error *reterr) {
        cleanup_free char *whole = NULL;
        int r;

        r = mkdir_parents_at(AT_FDCWD, state_dir, 0700);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", state_dir);
        whole = realpath(state_dir, NULL);
        if (!whole)
                return error_prefixf(reterr, -errno, "%s", state_dir);
        store->images_path = path_join(whole, images_name);
        store->preload_path = path_join(whole, preload_name);
        if (!store->images_path || !store->preload_path)
                return -ENOMEM;
        store->images_fd = open_directory_at(AT_FDCWD, store->images_path, 0700);
        if (store->images_fd < 0)
                return error_prefixf(reterr, store->images_fd, "%s", store->images_path);
        r = mkdir_parents_at(AT_FDCWD, store->preload_path, 0700);
        return r < 0 ? error_prefixf(reterr, r, "%s", store->preload_path) : 0;
}

static int add_work_source(ImageStore *store) {
        int r;

        r = sd_event_add_defer(store->event, &store->work, on_work, store);
        if (r >= 0)
                r = sd_event_source_set_enabled(store->work, SD_EVENT_OFF);
        /* After the doorbell: what has rung is heard first. */
        if (r >= 0)
                r = sd_event_source_set_priority(store->work, SD_EVENT_PRIORITY_NORMAL + 1);
        return r;
}

int image_store_new(const ImageStoreConfig *config, image_store_changed_t on_changed,
                    void *userdata, ImageStore **ret, Error *reterr) {
        cleanup_with(image_store_freep) ImageStore *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return -ENOMEM;
        store->images_fd = -EBADF;
        store->event = sd_event_ref(config->event);
        store->on_changed = on_changed;
        store->userdata = userdata;
        store->helper_path = strdup(config->helper_path);
        if (!store->helper_path)
                return -ENOMEM;
        r = open_directories(store, config->state_dir, reterr);
        if (r >= 0)
                r = add_work_source(store);
        if (r >= 0)
                r = start_sweeper(store);
        if (r < 0)
                return r;
        kept_load(&store->kept, store->images_fd);
        archive_set_load(&store->archives, store->images_fd);
        (void) scan_preload(store);
        *ret = TAKE_PTR(store);
        return 0;
}

void image_store_foreach_trouble(ImageStore *store,
                                 void (*each)(const char *archive, const char *message,
                                              void *userdata),
                                 void *userdata) {
        for (size_t i = 0; i < store->archives.n_archives; i++) {
                const Archive *archive = store->archives.archives[i];

                if (archive->state == ARCHIVE_BROKEN)
                        each(archive->file, strna(archive->trouble), userdata);
                for (size_t j = 0; j < archive->n_images; j++)
                        if (archive->images[j].refusal)
                                each(archive->file, archive->images[j].refusal, userdata);
        }
}

ImageStore *image_store_free(ImageStore *store) {
        if (!store)
                return NULL;
        while (store->requests)
                image_request_cancel(store->requests);
        while (store->jobs) {
                Job *job = store->jobs;

                store->jobs = job->next;
                job_free(job);
        }
        child_free(store->sweeper);
        archive_set_done(&store->archives);
        kept_done(&store->kept);
        for (size_t i = 0; i < store->n_images; i++)
                image_unref(store->images[i]);
        free(store->images);
        sd_event_source_disable_unref(store->doorbell);
        sd_event_source_disable_unref(store->work);
        close_fd(store->images_fd);
        free(store->helper_path);
        free(store->images_path);
        free(store->preload_path);
        sd_event_unref(store->event);
        free(store);
        return NULL;
}
