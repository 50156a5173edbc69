/* SPDX-License-Identifier: Apache-2.0 */

/* The image store in the agent's loop. Children index archives, children unpack and pull images,
 * and requests wait for them.
 *
 * A request completes immediately if a record exists and all layers are present. Otherwise it waits
 * for its job, the one child that unpacks or pulls this image for all requests; or, while archives
 * are not indexed yet, for their contents. Callbacks may add and cancel requests, so each list is
 * searched again after each callback. find_image_or_pull() applies imagePullPolicy. */

#include "agent/image/image-store-private.h"

#include "agent/image/image-record.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum {
        CACHED_IMAGES_MAX = 4,
        JOBS_MAX = 4 /* limit of retries for one request if the policy changes */
};

#define POLICY_DEFAULT_PATH "/etc/containers/policy.json"

static const char *const preload_name = "preload", *const images_name = "images";

static ImageRequest *image_request_free(ImageRequest *request) {
        free(request->reference);
        free(request->fleet);
        free(request->directory);
        free(request->source_digest);
        pull_secret_list_done(&request->secrets);
        free(request);
        return NULL;
}

static ImageRequest *next_request_of_job(const ImageStore *store, const ImageJob *job) {
        list_foreach(request, store->requests)
                if (request->job == job)
                        return request;
        return NULL;
}

ImageRequest *image_request_cancel(ImageRequest *request) {
        ImageStore *store;
        ImageJob *job;

        if (!request)
                return NULL;
        store = request->store;
        job = request->job;
        LIST_REMOVE(request->store->requests, request);
        image_request_free(request);
        /* A job without requests ends; the next job uses its partial result. */
        if (job && job->reference && !next_request_of_job(store, job)) {
                image_job_cancel(job);
                image_jobs_start(store);
        }
        return NULL;
}

/* The request is freed before the callback, so the callback may do anything. */
static void answer_image_request(ImageRequest *request, int r, Image *image, const Error *error) {
        image_ready_t ready = request->ready;
        void *userdata = request->userdata;

        LIST_REMOVE(request->store->requests, request);
        image_request_free(request);
        ready(r, image, error, userdata);
}

/* Caches images in use, so that pods with the same image share one description, and drops the
 * rest. */
static int cache_image(ImageStore *store, Image *image) {
        size_t spare = 0;

        for (size_t i = store->n_images; i-- > 0;)
                if (store->images[i]->n_refs == 1 && ++spare > CACHED_IMAGES_MAX) {
                        image_unref(store->images[i]);
                        store->images[i] = store->images[--store->n_images];
                }
        if (!ARRAY_RESERVE(store->images, store->n_images, 1))
                return -ENOMEM;
        store->images[store->n_images++] = image_ref(image);
        return 0;
}

void image_store_touch_record(const ImageStore *store, const char *digest) {
        char path[RECORD_PATH_SIZE];

        if (image_record_path(digest, path) >= 0)
                (void) utimensat(store->images_fd, path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* The directory was removed by hand, so it is created again with the necessary content. */
static int reopen_images_directory(ImageStore *store) {
        struct stat st;
        int fd;

        if (fstat(store->images_fd, &st) < 0 || st.st_nlink > 0)
                return 0;
        fd = open_directory_at(AT_FDCWD, store->images_path, 0700);
        if (fd < 0)
                return fd;
        log_warning("'%s' was removed; images are unpacked and pulled again", store->images_path);
        close_fd(store->images_fd);
        store->images_fd = fd;
        return 0;
}

static bool has_all_layers(const Image *image) {
        strv_foreach(layer, image->layers)
                if (access(*layer, F_OK) < 0)
                        return false;
        return true;
}

/* Drops images with a missing layer, and images whose record may meanwhile be complete. */
static Image *find_cached_image(ImageStore *store, const char *reference, const char *digest) {
        for (size_t i = 0; i < store->n_images; i++) {
                Image *image = store->images[i];

                if (!streq(image->digest, digest) || !streq(image->reference, reference))
                        continue;
                if (has_all_layers(image) && !image->lacks_volumes)
                        return image;
                store->images[i] = store->images[--store->n_images];
                image_unref(image);
                return NULL;
        }
        return NULL;
}

/* 0 with a new reference; -ENOENT if it is incomplete. */
static int image_store_load_image(ImageStore *store, const char *reference, const char *digest,
                                  Image **ret, Error *reterr) {
        cleanup_with(image_unrefp) Image *image = NULL;
        Image *cached;
        int r;

        if (streq_ptr(store->gc.removing_digest, digest))
                return -ENOENT;
        image_store_touch_record(store, digest);
        cached = find_cached_image(store, reference, digest);
        if (cached) {
                *ret = image_ref(cached);
                return 0;
        }
        r = reopen_images_directory(store);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", store->images_path);
        r = image_record_load(store->images_fd, store->images_path, reference, digest, &image,
                              reterr);
        if (r < 0)
                return r;
        r = cache_image(store, image);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(image);
        return 0;
}

int image_store_schedule_work(ImageStore *store) {
        return sd_event_source_set_enabled(store->work_source, SD_EVENT_ONESHOT);
}

/* The image that may be used without a registry according to imagePullPolicy; -ENOENT if a registry
 * must be contacted. The administrator has placed archives, and a digest cannot refer to a
 * different image, so neither is requested again. */
static int find_image_by_pull_policy(ImageStore *store, const ImageRequest *request, Image **ret,
                                     Error *reterr) {
        const char *named = image_reference_digest(request->reference), *digest = named;

        /* The digest of a multi-platform index is not that of the image. */
        if (named || request->policy != PULL_POLICY_ALWAYS)
                digest = image_names_find(&store->image_names, request->reference);
        if (!digest)
                digest = named;
        return digest ? image_store_load_image(store, request->reference, digest, ret, reterr)
                      : -ENOENT;
}

/* For an image that is present. 1: the policy admits it; 0 with the job that checks its signatures;
 * or -errno. */
static int admit_image(ImageStore *store, const ImageRequest *request, const Image *image,
                       ImageJob **ret_job, Error *reterr) {
        const Archive *archive = NULL;
        const ArchivedImage *found =
                archive_set_find(&store->preload.archives, request->reference, &archive);
        int r = request->fleet
                        ? image_admission_check_source(store, request->reference, image->digest,
                                                       request->fleet, reterr)
                        : image_admission_check(store, request->reference, image->digest, reterr);

        if (r != 0)
                return r;
        if (request->fleet)
                return image_job_for_source(store, request, ret_job);
        if (found && streq(found->digest, image->digest))
                return image_job_for_archive(store, archive, found, request->reference, ret_job);
        return image_job_for_check(store, request, image->digest, ret_job);
}

/* The result of a successful job. 1 with the image; 0 with another job to wait for: requests with
 * different names share a job, and the policy may have changed; or -errno. */
static int take_job_image(ImageStore *store, ImageRequest *request, const ImageJob *job,
                          Image **ret_image, Error *reterr) {
        cleanup_with(image_unrefp) Image *image = NULL;
        int r = image_store_load_image(store, request->reference, job->digest, &image, reterr);

        if (r == -ENOENT)
                return error_setf(reterr, EIO,
                                  "the image was pulled or unpacked, but is not in the store");
        if (r < 0)
                return r;
        request->job = NULL;
        r = admit_image(store, request, image, &request->job, reterr);
        if (r == 0 && ++request->n_jobs >= JOBS_MAX)
                return error_setf(reterr, EAGAIN, "the signature policy keeps changing");
        if (r > 0)
                *ret_image = TAKE_PTR(image);
        return r;
}

/* Logs the Secrets by the names that this request uses for them. */
static char *describe_secret_problems(const ImageRequest *request, const ImageJob *job) {
        cleanup_free char *text = NULL;

        for (size_t i = 0; job->secret_problems && i < request->secrets.n; i++)
                if (job->secret_problems[i] &&
                    text_appendf(&text, "%sSecret \"%s\": %s", text ? "; " : "",
                                 request->secrets.items[i].name, job->secret_problems[i]) < 0)
                        return NULL;
        return TAKE_PTR(text);
}

static int explain_job_error(const ImageRequest *request, const ImageJob *job, int r,
                             const Error *error, Error *reterr) {
        cleanup_free char *problems = describe_secret_problems(request, job);

        if (problems)
                (void) error_setf(reterr, -r, "%s (imagePullSecrets: %s)", error_message(error, r),
                                  problems);
        else
                (void) error_setf(reterr, -r, "%s", error_message(error, r));
        return r;
}

void image_store_answer_job_requests(ImageStore *store, const ImageJob *job, int r,
                                     const Error *error) {
        ImageRequest *request;

        while ((request = next_request_of_job(store, job))) {
                cleanup_with(image_unrefp) Image *image = NULL;
                cleanup_error Error own = ERROR_NULL;
                int q = r < 0 ? explain_job_error(request, job, r, error, &own)
                              : take_job_image(store, request, job, &image, &own);

                if (q != 0)
                        answer_image_request(request, MIN(q, 0), image, &own);
        }
}

/* Like find_image_or_pull(), for an image that a signed index names. The image may be present
 * because of other pods, which does not imply that this pod may use it. */
static int find_image_of_source(ImageStore *store, const ImageRequest *request, Image **ret_image,
                                ImageJob **ret_job, Error *reterr) {
        int r = image_store_load_image(store, request->reference, request->source_digest, ret_image,
                                       reterr);

        if (r >= 0 && !image_access_is_of_source(store, request->source_digest, request->fleet)) {
                *ret_image = image_unref(*ret_image);
                r = -ENOENT;
        }
        if (r == -ENOENT) {
                r = image_admission_check_source(store, request->reference, request->source_digest,
                                                 request->fleet, reterr);
                return r < 0 ? r : image_job_for_source(store, request, ret_job);
        }
        if (r < 0)
                return r;
        r = admit_image(store, request, *ret_image, ret_job, reterr);
        if (r <= 0)
                *ret_image = image_unref(*ret_image);
        return r;
}

/* 1 with the image; 0 with the job to wait for, or NULL to wait for the archives or the sweep; or
 * -errno.
 */
static int find_image_or_pull(ImageStore *store, const ImageRequest *request, Image **ret_image,
                              ImageJob **ret_job, Error *reterr) {
        const char *reference = request->reference;
        const Archive *archive = NULL;
        const ArchivedImage *found =
                archive_set_find(&store->preload.archives, reference, &archive);
        const char *failure = archive_set_find_failure(&store->preload.archives, reference);
        int r;

        *ret_job = NULL;
        if (request->fleet)
                return find_image_of_source(store, request, ret_image, ret_job, reterr);
        if (found && !image_access_is_open(store, request, found->digest, true))
                found = NULL;
        if (!found && archive_set_is_pending(&store->preload.archives))
                return 0;
        if (found && found->refusal)
                return error_setf(reterr, ENOEXEC, "%s: %s", archive->file, found->refusal);
        r = found ? image_store_load_image(store, reference, found->digest, ret_image, reterr)
                  : find_image_by_pull_policy(store, request, ret_image, reterr);
        if (r >= 0 && !found &&
            !image_access_is_open(store, request, (*ret_image)->digest, false)) {
                *ret_image = image_unref(*ret_image);
                r = -ENOENT;
        }
        if (r >= 0 && (*ret_image)->lacks_volumes && store->jobs.sweeper) {
                *ret_image = image_unref(*ret_image);
                return 0; /* until the record is complete */
        }
        if (r >= 0) {
                r = admit_image(store, request, *ret_image, ret_job, reterr);
                if (r <= 0)
                        *ret_image = image_unref(*ret_image);
                return r;
        }
        if (r != -ENOENT)
                return r;
        if (found)
                return image_job_for_archive(store, archive, found, reference, ret_job);
        if (request->policy == PULL_POLICY_NEVER && failure)
                return error_setf(reterr, ENOENT, "%s", failure);
        if (request->policy == PULL_POLICY_NEVER)
                return error_setf(reterr, ENOENT, "no archive in '%s' contains '%s'",
                                  store->preload_path, reference);
        r = image_admission_check_pull(store, reference, reterr);
        return r < 0 ? r : image_job_for_pull(store, reference, &request->secrets, ret_job);
}

/* A disk that was full when an archive appeared may have space again, so a new request triggers
 * another attempt. */
static void retry_broken_archives(ImageStore *store, const char *reference) {
        const Archive *archive;

        if (!archive_set_find(&store->preload.archives, reference, &archive) &&
            !image_names_find(&store->image_names, reference) &&
            archive_set_retry_transient(&store->preload.archives))
                preload_index_archives(store);
}

/* Sets the pod's index, if it names the image. */
static int set_request_source(ImageRequest *request, const SourceImages *source, Error *reterr) {
        const SourceImage *image = source ? source_images_find(source, request->reference) : NULL;

        if (!image)
                return 0;
        if (!image->digest)
                return error_setf(reterr, ENOEXEC,
                                  "the signed index has image %s for other platforms only",
                                  image->name);
        request->fleet = strdup(source->fleet);
        request->directory = strdup(source->directory);
        request->source_digest = strdup(image->digest);
        return request->fleet && request->directory && request->source_digest ? 0 : -ENOMEM;
}

void image_store_set_source_images(ImageStore *store, SourceImages *in_use, SourceImages *kept) {
        source_images_done(&store->source_images);
        source_images_done(&store->kept_images);
        store->source_images = *in_use;
        store->kept_images = *kept;
        *in_use = *kept = (SourceImages){ 0 };
}

const SourceImages *image_store_source_images(const ImageStore *store, const Pod *pod) {
        return pod->metadata.source == OBJECT_SOURCE_INDEX ? &store->source_images : NULL;
}

int image_store_request(ImageStore *store, const ImageRequestOptions *options, image_ready_t ready,
                        void *userdata, Image **ret_image, ImageRequest **ret_request,
                        Error *reterr) {
        ImageRequest *request = calloc(1, sizeof(*request));
        int r;

        if (!request)
                return -ENOMEM;
        *request = (ImageRequest){
                .store = store,
                .policy = options->policy,
                .ready = ready,
                .is_of_api = options->is_of_api,
                .progress = options->progress,
                .userdata = userdata,
        };
        r = options->secrets ? pull_secret_list_extend(&request->secrets, options->secrets) : 0;
        if (r >= 0)
                r = image_reference_normalise(options->reference, &request->reference, reterr);
        if (r >= 0)
                r = set_request_source(request, options->source, reterr);
        if (r >= 0) {
                retry_broken_archives(store, request->reference);
                r = find_image_or_pull(store, request, ret_image, &request->job, reterr);
        }
        if (r != 0) {
                image_request_free(request);
                return r;
        }
        LIST_PREPEND(store->requests, request);
        *ret_request = request;
        image_jobs_start(store);
        return 0;
}

void image_store_report_progress(ImageStore *store, const ImageJob *job) {
        list_foreach(request, store->requests)
                if (request->job == job && request->progress)
                        request->progress(request->userdata);
}

bool image_request_progress(const ImageRequest *request, uint64_t *ret_done, uint64_t *ret_total) {
        const ImageJob *job = request ? request->job : NULL;

        if (!job || !job->reference || job->is_check)
                return false;
        *ret_done = job->done;
        *ret_total = job->total;
        return true;
}

/* A request that would contact a registry completes without it if an archive now contains the
 * image. An image of a signed index is never taken from an archive. */
static void cancel_superseded_pull(ImageStore *store, ImageRequest *request) {
        const Archive *archive;
        ImageJob *job = request->job;
        const ArchivedImage *found;

        if (!job || !job->reference || request->fleet)
                return;
        found = archive_set_find(&store->preload.archives, request->reference, &archive);
        if (!found || !image_access_is_open(store, request, found->digest, true))
                return;
        request->job = NULL;
        if (!next_request_of_job(store, job))
                image_job_cancel(job);
}

/* Checks the requests that wait for archives or the sweep again. True if one was completed, in
 * which case the search starts again. */
static bool settle_image_request(ImageStore *store) {
        list_foreach(request, store->requests) {
                cleanup_with(image_unrefp) Image *image = NULL;
                cleanup_error Error error = ERROR_NULL;
                int r;

                cancel_superseded_pull(store, request);
                if (request->job)
                        continue;
                r = find_image_or_pull(store, request, &image, &request->job, &error);
                if (r == 0)
                        continue;
                answer_image_request(request, MIN(r, 0), image, &error);
                return true;
        }
        return false;
}

void image_store_resolve_job_requests(ImageStore *store, const ImageJob *job) {
        list_foreach(request, store->requests)
                if (request->job == job)
                        request->job = NULL;
        image_store_settle_requests(store);
}

void image_store_settle_requests(ImageStore *store) {
        while (settle_image_request(store))
                ;
        image_jobs_start(store);
}

static int on_image_store_work(sd_event_source *source, void *userdata) {
        ImageStore *store = userdata;

        image_jobs_fail_unstarted(store);
        image_gc_remove_next(store);
        if (preload_scan_directory(store) > 0) {
                image_store_settle_requests(store);
                store->on_changed(store->userdata);
        }
        return 0;
}

static int open_store_directories(ImageStore *store, const char *state_dir, Error *reterr) {
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

static int add_store_work_source(ImageStore *store) {
        /* The source runs after the inotify sources, so that pending changes are read first. */
        return event_add_disabled_defer(store->event, &store->work_source,
                                        SD_EVENT_PRIORITY_NORMAL + 1, on_image_store_work, store);
}

/* A file that the administrator configures must exist. */
static const char *find_policy_path(const MainstayConfig *config, bool *ret_is_required) {
        *ret_is_required = config && config->signature_policy_file;
        return *ret_is_required ? config->signature_policy_file : POLICY_DEFAULT_PATH;
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
        store->list_wanted = config->list_wanted;
        store->userdata = userdata;
        store->config = config->config;
        store->node_config = config->node_config;
        store->policy.path = find_policy_path(config->config, &store->policy.is_required);
        r = image_gc_init(store, config);
        if (r < 0)
                return r;
        store->helper_path = strdup(config->helper_path);
        if (!store->helper_path)
                return -ENOMEM;
        r = open_store_directories(store, config->state_dir, reterr);
        if (r < 0)
                return r;
        r = add_store_work_source(store);
        if (r < 0)
                return r;
        r = image_store_sweep_leftovers(store);
        if (r < 0)
                return r;
        image_names_load(&store->image_names, store->images_fd);
        preload_init(store);
        *ret = TAKE_PTR(store);
        return 0;
}

const char *image_store_find_digest(const ImageStore *store, const char *name) {
        cleanup_free char *reference = NULL;
        const Archive *archive;
        const ArchivedImage *found;

        if (image_reference_normalise(name, &reference, NULL) < 0)
                return NULL;
        found = archive_set_find(&store->preload.archives, reference, &archive);
        return found && found->digest[0] ? found->digest
                                         : image_names_find(&store->image_names, reference);
}

const char *image_store_preload_path(const ImageStore *store) {
        return store->preload_path;
}

const char *image_store_path(const ImageStore *store) {
        return store->images_path;
}

ImageStore *image_store_free(ImageStore *store) {
        if (!store)
                return NULL;
        image_jobs_stop(store);
        while (store->requests)
                image_request_cancel(store->requests);
        image_jobs_done(store);
        image_gc_done(store);
        preload_done(store);
        image_names_done(&store->image_names);
        source_images_done(&store->source_images);
        source_images_done(&store->kept_images);
        image_policy_done(&store->policy);
        for (size_t i = 0; i < store->n_images; i++)
                image_unref(store->images[i]);
        free(store->images);
        sd_event_source_disable_unref(store->work_source);
        close_fd(store->images_fd);
        free(store->helper_path);
        free(store->images_path);
        free(store->preload_path);
        sd_event_unref(store->event);
        free(store);
        return NULL;
}
