/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that bring images into the store. A job is one child, mainstay-image, for all requests for
 * an image: it unpacks the image from an archive, or pulls it from its registry. */

#include "agent/image/image-store-private.h"

#include "agent/image/image-record.h"
#include "agent/model/config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <sysexits.h>

enum {
        UNPACKING_MAX = 2, /* number of images unpacked from archives at the same time */
        LINE_BYTES_MAX = 4096
};

#define PROGRESS_USEC (2 * USEC_PER_SEC)

#define UNPACK_TIMEOUT_USEC (120 * (60 * USEC_PER_SEC))
/* A registry could prolong a pull, and thus delay all other images, indefinitely. */
#define PATIENCE_USEC     (10 * (60 * USEC_PER_SEC))
#define PULL_TIMEOUT_USEC (24 * (60 * (60 * USEC_PER_SEC))) /* the helper detects stalls itself */

static ImageJob *image_job_free(ImageJob *job) {
        if (!job)
                return NULL;
        child_free(job->child);
        free(job->reference);
        free(job->fleet);
        free(job->directory);
        free(job->policy_reference);
        free(job->digest);
        free(job->archive);
        strv_free(job->names);
        for (size_t i = 0; job->secret_problems && i < job->secrets.n; i++)
                free(job->secret_problems[i]);
        free(job->secret_problems);
        pull_secret_list_done(&job->secrets);
        error_done(&job->error);
        free(job);
        return NULL;
}

DEFINE_CLEANUP(ImageJob *, image_job_free)

void image_job_cancel(ImageJob *job) {
        LIST_REMOVE(job->store->jobs.first, job);
        image_job_free(job);
}

static void on_store_swept(const ChildResult *result, void *userdata) {
        ImageStore *store = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-image", &error);

        store->jobs.sweeper = NULL;
        if (r < 0)
                log_warning("Cannot remove unfinished downloads and layers of the image store: %s",
                            error_message(&error, r));
        if (store->jobs.sweep_again)
                (void) image_store_sweep_leftovers(store);
        image_store_settle_requests(store);
}

int image_store_sweep_leftovers(ImageStore *store) {
        cleanup_free char *option = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        store->jobs.sweep_again = store->jobs.sweeper;
        if (store->jobs.sweeper)
                return 0;
        option = text_format("--store=%s", store->images_path);
        if (!option)
                return -ENOMEM;
        r = child_spawn(store->event,
                        &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "sweep" },
                                                          option, NULL } },
                        on_store_swept, store, &store->jobs.sweeper, &error);
        if (r < 0)
                log_warning_message(&error, r);
        return r == -ENOMEM ? r : 0;
}

/* ---- end of a job ---- */

static int set_job_image_names(ImageJob *job, Error *reterr) {
        if (!job->digest || !image_digest_is_valid(job->digest))
                return error_setf(reterr, EIO, "mainstay-image reported no image");
        strv_foreach(name, job->names)
                (void) image_names_set(&job->store->image_names, *name, job->digest);
        return 0;
}

static int explain_image_job_error(const ImageJob *job, const ChildResult *result, Error *reterr) {
        int r = child_explain(result, "mainstay-image", reterr);

        if (r >= 0)
                return 0;
        if (job->reference) {
                log_warning("Cannot %s image '%s': %s",
                            job->fleet      ? "fetch"
                            : job->is_check ? "verify"
                                            : "pull",
                            job->reference, error_message(reterr, r));
                return r;
        }
        (void) error_prefixf(reterr, r, "%s", strrchr(job->archive, '/') + 1);
        log_warning("Cannot unpack image %s: %s", job->digest, error_message(reterr, r));
        return r;
}

/* Whether a delta in preload/ could not be applied, in which case the requests are resolved without
 * it and the image is pulled. False if the machine caused the error. */
static bool give_up_delta(const ImageJob *job, const ChildResult *result, const char *failure) {
        const char *file = job->archive ? strrchr(job->archive, '/') : NULL;

        if (!file || result->code != CLD_EXITED || result->status == EX_TEMPFAIL ||
            !archive_set_give_up_delta(&job->store->preload.archives, file + 1, job->digest,
                                       failure))
                return false;
        log_warning("Cannot apply delta %s; pulling image %s", failure, job->digest);
        return true;
}

static void on_image_job_done(const ChildResult *result, void *userdata) {
        cleanup_with(image_job_freep) ImageJob *job = userdata;
        cleanup_error Error error = ERROR_NULL;
        ImageStore *store = job->store;
        int r;

        job->child = NULL;
        LIST_REMOVE(job->store->jobs.first, job);
        r = explain_image_job_error(job, result, &error);
        if (r < 0 && give_up_delta(job, result, error_message(&error, r))) {
                image_store_resolve_job_requests(store, job);
                return;
        }
        if (r >= 0)
                r = set_job_image_names(job, &error);
        if (r >= 0)
                archive_set_retry_deltas(&store->preload.archives);
        /* A killed helper could not clean up, and may be killed again because space is
         * insufficient. */
        else if (result->code != CLD_EXITED)
                (void) image_store_sweep_leftovers(store);
        image_store_answer_job_requests(store, job, r, &error);
        image_gc_schedule(store);
        image_jobs_start(store);
}

/* The helper reports twice a second; progress is passed on less often, because every waiting pod's
 * status is then sent to every watcher. */
static void update_pull_progress(ImageJob *job, uint64_t done, uint64_t total) {
        uint64_t now = now_boottime_usec();
        bool is_new = done != job->done || total != job->total;

        job->done = done;
        job->total = total;
        if (!is_new || (job->reported_at > 0 && now - job->reported_at < PROGRESS_USEC))
                return;
        job->reported_at = now;
        image_store_report_progress(job->store, job);
}

/* {"secret":…,"problem":"…"} */
static void take_secret_problem(ImageJob *job, const json_t *message, const char *problem) {
        json_int_t i = json_integer_value(json_object_get(message, "secret"));

        if (i < 0 || (size_t) i >= job->secrets.n)
                return;
        if (!job->secret_problems)
                job->secret_problems = calloc(job->secrets.n, sizeof(*job->secret_problems));
        if (job->secret_problems && !job->secret_problems[i])
                job->secret_problems[i] = strdup(problem);
}

/* A message of the helper about a pull Secret, or about deltas of the image: {"info":"…"} or
 * {"warning":"…"}. */
static void take_pull_message(ImageJob *job, const json_t *message) {
        const char *info = json_text(message, "info");
        const char *warning = json_text(message, "warning");
        const char *problem = json_text(message, "problem");

        if (problem)
                take_secret_problem(job, message, problem);
        if (warning)
                log_warning("Image '%s': %s", job->reference, warning);
        else if (info)
                log_info("Image '%s': %s", job->reference, info);
}

static uint64_t bytes_of(const json_t *message, const char *key) {
        return (uint64_t) MAX(json_integer_value(json_object_get(message, key)), 0);
}

/* The output of a pull: {"done":…,"total":…}, messages, and at the end {"digest":"…"}. */
static void on_pull_output_line(const char *line, void *userdata) {
        cleanup_json json_t *message = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *digest = json_text(message, "digest");
        ImageJob *job = userdata;

        if (digest)
                (void) text_replace(&job->digest, digest);
        else if (json_object_get(message, "done"))
                update_pull_progress(job, bytes_of(message, "done"), bytes_of(message, "total"));
        else
                take_pull_message(job, message);
}

/* ---- start of a job ---- */

static int start_image_unpack(ImageJob *job, Error *reterr) {
        ImageStore *store = job->store;
        cleanup_close int settings = image_admission_open_settings(store, job, reterr);
        cleanup_strv char **argv = NULL;
        int r;

        if (settings < 0)
                return settings;
        r = strv_append(&argv, store->helper_path);
        if (r < 0)
                return r;
        r = strv_append(&argv, "unpack");
        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--store=%s", store->images_path);
        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--digest=%s", job->digest);
        if (r < 0)
                return r;
        strv_foreach(name, job->names) {
                r = strv_appendf(&argv, "--name=%s", *name);
                if (r < 0)
                        return r;
        }
        r = strv_append(&argv, job->archive);
        if (r < 0)
                return r;
        return child_spawn(store->event,
                           &(ChildSpec){ .argv = argv,
                                         .timeout_usec = UNPACK_TIMEOUT_USEC,
                                         .input_fd = settings },
                           on_image_job_done, job, &job->child, reterr);
}

static int make_pull_arguments(const ImageJob *job, char ***argv) {
        int r = strv_append(argv, job->store->helper_path);

        if (r < 0)
                return r;
        r = strv_append(argv, job->fleet ? "fetch" : job->is_check ? "signatures" : "pull");
        if (r < 0)
                return r;
        r = strv_appendf(argv, "--store=%s", job->store->images_path);
        if (r < 0)
                return r;
        if (job->digest) {
                r = strv_appendf(argv, "--digest=%s", job->digest);
                if (r < 0)
                        return r;
        }
        return strv_append(argv, job->reference);
}

static int start_image_pull(ImageJob *job, Error *reterr) {
        ImageStore *store = job->store;
        cleanup_close int settings = image_admission_open_settings(store, job, reterr);
        cleanup_strv char **argv = NULL;
        int r;

        if (settings < 0)
                return settings;
        r = make_pull_arguments(job, &argv);
        if (r < 0)
                return r;
        return child_spawn(store->event,
                           &(ChildSpec){ .argv = argv,
                                         .output_max = LINE_BYTES_MAX,
                                         .timeout_usec = PULL_TIMEOUT_USEC,
                                         .input_fd = settings,
                                         .on_line = on_pull_output_line },
                           on_image_job_done, job, &job->child, reterr);
}

/* maxParallelImagePulls or serializeImagePulls, as manifest/kubelet-config.c resolves them. */
static unsigned parallel_pulls_max(const ImageStore *store) {
        return store->config && store->config->max_parallel_pulls.is_set
                       ? (unsigned) store->config->max_parallel_pulls.value
                       : PULLS_DEFAULT;
}

/* A child that cannot be started is reported from the loop, like one that fails. A registry may be
 * arbitrarily slow, so pulls for pods of an API server, whose users choose the registry, are
 * counted separately. */
void image_jobs_start(ImageStore *store) {
        unsigned unpacking = 0, pulling = 0, pulling_for_api = 0;

        /* No image is unpacked while another one is being removed. */
        if (store->gc.child || store->jobs.is_ending)
                return;
        list_foreach(request, store->requests)
                if (request->job && !request->is_of_api)
                        request->job->is_of_node = true;
        list_foreach(job, store->jobs.first) {
                unsigned *running = !job->reference   ? &unpacking
                                    : job->is_of_node ? &pulling
                                                      : &pulling_for_api;
                unsigned max = job->reference ? parallel_pulls_max(store) : UNPACKING_MAX;

                if (*running >= max)
                        continue;
                if (!job->child && job->failed >= 0) {
                        job->started_at = now_boottime_usec();
                        job->failed = job->reference ? start_image_pull(job, &job->error)
                                                     : start_image_unpack(job, &job->error);
                }
                if (job->failed < 0)
                        (void) image_store_schedule_work(store);
                else
                        (*running)++;
        }
}

bool image_jobs_keep_images(const ImageStore *store) {
        uint64_t now = now_boottime_usec();

        list_foreach(job, store->jobs.first)
                if (job->child && (!job->reference || now - job->started_at < PATIENCE_USEC))
                        return true;
        return false;
}

void image_jobs_interrupt(ImageStore *store) {
        list_foreach(job, store->jobs.first) {
                job->child = child_free(job->child);
                if (!job->is_check && !job->fleet && job->reference) {
                        free(job->digest);
                        job->digest = NULL;
                }
        }
}

void image_jobs_fail_unstarted(ImageStore *store) {
        for (ImageJob *job = store->jobs.first; job;) {
                cleanup_with(image_job_freep) ImageJob *failed = NULL;

                if (job->failed >= 0) {
                        job = job->next;
                        continue;
                }
                failed = job;
                LIST_REMOVE(job->store->jobs.first, job);
                /* The error must not be -ENOENT, which means that no archive or registry has the
                 * image. */
                image_store_answer_job_requests(store, job, -EIO, &job->error);
                job = store->jobs.first;
        }
}

void image_store_foreach_pull(const ImageStore *store,
                              void (*each)(const ImagePull *pull, void *userdata), void *userdata) {
        list_foreach(job, store->jobs.first)
                if (job->reference && !job->is_check)
                        each(&(ImagePull){ .reference = job->reference,
                                           .done = job->done,
                                           .total = job->total },
                             userdata);
}

void image_jobs_stop(ImageStore *store) {
        store->jobs.is_ending = true;
}

void image_jobs_done(ImageStore *store) {
        while (store->jobs.first) {
                ImageJob *job = store->jobs.first;

                store->jobs.first = job->next;
                image_job_free(job);
        }
        child_free(store->jobs.sweeper);
}

/* ---- requests and jobs ---- */

/* The helper also gets the image's other names. */
int image_job_for_archive(ImageStore *store, const Archive *archive, const ArchivedImage *found,
                          const char *reference, ImageJob **ret) {
        cleanup_with(image_job_freep) ImageJob *job = NULL;
        int r;

        list_foreach(other, store->jobs.first)
                if (!other->reference && streq(other->digest, found->digest)) {
                        *ret = other;
                        return 0;
                }
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->store = store;
        job->digest = strdup(found->digest);
        job->archive = path_join(store->preload_path, archive->file);
        job->policy_reference = strdup(reference);
        if (!job->digest || !job->archive || !job->policy_reference)
                return -ENOMEM;
        r = strv_extend(&job->names, found->names);
        if (r < 0)
                return r;
        if (!strv_contains(found->names, reference))
                r = strv_append(&job->names, reference);
        if (r < 0)
                return r;
        LIST_APPEND(store->jobs.first, job);
        *ret = TAKE_PTR(job);
        return 0;
}

/* Requests with different credentials are not shared. */
int image_job_for_pull(ImageStore *store, const char *reference, const PullSecretList *secrets,
                       ImageJob **ret) {
        cleanup_with(image_job_freep) ImageJob *job = NULL;

        list_foreach(other, store->jobs.first)
                if (other->reference && !other->is_check && !other->fleet &&
                    streq(other->reference, reference) &&
                    pull_secret_list_equal(&other->secrets, secrets)) {
                        *ret = other;
                        return 0;
                }
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->store = store;
        job->requested_at = now_boottime_usec();
        job->reference = strdup(reference);
        job->policy_reference = strdup(reference);
        if (!job->reference || !job->policy_reference || strv_append(&job->names, reference) < 0 ||
            pull_secret_list_extend(&job->secrets, secrets) < 0)
                return -ENOMEM;
        LIST_APPEND(store->jobs.first, job);
        *ret = TAKE_PTR(job);
        return 0;
}

/* The image has a name that no pod uses. */
int image_job_for_source(ImageStore *store, const ImageRequest *request, ImageJob **ret) {
        cleanup_with(image_job_freep) ImageJob *job = NULL;

        list_foreach(other, store->jobs.first)
                if (other->fleet && streq(other->reference, request->reference) &&
                    streq(other->digest, request->source_digest) &&
                    streq(other->directory, request->directory)) {
                        *ret = other;
                        return 0;
                }
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->store = store;
        job->requested_at = now_boottime_usec();
        job->reference = strdup(request->reference);
        job->policy_reference = strdup(request->reference);
        job->digest = strdup(request->source_digest);
        job->fleet = strdup(request->fleet);
        job->directory = strdup(request->directory);
        if (!job->reference || !job->policy_reference || !job->digest || !job->fleet ||
            !job->directory)
                return -ENOMEM;
        LIST_APPEND(store->jobs.first, job);
        *ret = TAKE_PTR(job);
        return 0;
}

/* The name of the image does not change. */
int image_job_for_check(ImageStore *store, const ImageRequest *request, const char *digest,
                        ImageJob **ret) {
        cleanup_with(image_job_freep) ImageJob *job = NULL;
        bool is_offline = request->policy == PULL_POLICY_NEVER;

        list_foreach(other, store->jobs.first)
                if (other->is_check && streq(other->reference, request->reference) &&
                    streq(other->digest, digest) && other->is_offline == is_offline &&
                    pull_secret_list_equal(&other->secrets, &request->secrets)) {
                        *ret = other;
                        return 0;
                }
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->store = store;
        job->is_check = true;
        job->is_offline = is_offline;
        job->requested_at = now_boottime_usec();
        job->reference = strdup(request->reference);
        job->policy_reference = strdup(request->reference);
        job->digest = strdup(digest);
        if (!job->reference || !job->policy_reference || !job->digest ||
            pull_secret_list_extend(&job->secrets, &request->secrets) < 0)
                return -ENOMEM;
        LIST_APPEND(store->jobs.first, job);
        *ret = TAKE_PTR(job);
        return 0;
}
