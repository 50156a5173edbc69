/* SPDX-License-Identifier: Apache-2.0 */

/* Images on their way into the store. A job is one child, mainstay-image, for all who wait for the
 * image: it unpacks it from an archive, or pulls it from its registry. */

#include "agent/image/store-internal.h"

#include "agent/image/record.h"
#include "agent/model/config.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"

enum {
        UNPACKING_MAX = 2, /* from archives, at once */
        LINE_BYTES_MAX = 4096
};

#define PROGRESS_USEC (2 * USEC_PER_SEC)

#define UNPACK_TIMEOUT_USEC (120 * (60 * USEC_PER_SEC))
#define PULL_TIMEOUT_USEC   (24 * (60 * (60 * USEC_PER_SEC))) /* it sees by itself when it stalls */

static void forget_secrets(char **strv) {
        strv_foreach(text, strv)
                explicit_bzero(*text, strlen(*text));
        strv_free(strv);
}

static Job *job_free(Job *job) {
        if (!job)
                return NULL;
        child_free(job->child);
        free(job->reference);
        free(job->digest);
        free(job->archive);
        strv_free(job->names);
        forget_secrets(job->auths);
        error_done(&job->error);
        free(job);
        return NULL;
}

DEFINE_CLEANUP(Job *, job_free)

static void unlink_job(Job *job) {
        Job **at = &job->store->jobs;

        while (*at != job)
                at = &(*at)->next;
        *at = job->next;
}

void job_drop(Job *job) {
        unlink_job(job);
        job_free(job);
}

static void append_job(ImageStore *store, Job *job) {
        Job **at = &store->jobs;

        while (*at)
                at = &(*at)->next;
        *at = job;
}

static void on_swept(const ChildResult *result, void *userdata) {
        ImageStore *store = userdata;

        store->sweeper = NULL;
        if (store->sweep_again)
                (void) store_sweep_remains(store);
}

int store_sweep_remains(ImageStore *store) {
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

/* ---- how they end ---- */

static int take_names(Job *job, Error *reterr) {
        if (!job->digest || !image_digest_is_valid(job->digest))
                return error_setf(reterr, EIO, "mainstay-image did not say what came");
        strv_foreach(name, job->names)
                (void) kept_set(&job->store->kept, *name, job->digest);
        return 0;
}

static int explain(const Job *job, const ChildResult *result, Error *reterr) {
        int r = child_explain(result, "mainstay-image", reterr);

        if (r >= 0)
                return 0;
        if (job->reference) {
                log_warning("Cannot pull image '%s': %s", job->reference, error_message(reterr, r));
                return r;
        }
        (void) error_prefixf(reterr, r, "%s", strrchr(job->archive, '/') + 1);
        log_warning("Cannot unpack image %s: %s", job->digest, error_message(reterr, r));
        return r;
}

static void on_done(const ChildResult *result, void *userdata) {
        cleanup_with(job_freep) Job *job = userdata;
        cleanup_error Error error = ERROR_NULL;
        ImageStore *store = job->store;
        int r;

        job->child = NULL;
        unlink_job(job);
        r = explain(job, result, &error);
        if (r >= 0)
                r = take_names(job, &error);
        /* Who was killed could not clear up, and may be killed again for want of room. */
        else if (result->code != CLD_EXITED)
                (void) store_sweep_remains(store);
        store_answer_requests_of(store, job, r, &error);
        collect_soon(store);
        jobs_start(store);
}

/* Said twice a second; told less often, for each pod that waits is written out for each watcher. */
static void take_progress(Job *job, uint64_t done, uint64_t total) {
        uint64_t now = now_boottime_usec();
        bool is_new = done != job->done || total != job->total;

        job->done = done;
        job->total = total;
        if (!is_new || (job->told_at > 0 && now - job->told_at < PROGRESS_USEC))
                return;
        job->told_at = now;
        store_tell_progress(job->store, job);
}

/* What a pull says on its way: {"done":…,"total":…}, and in the end {"digest":"…"}. */
static void on_line(const char *line, void *userdata) {
        unsigned long long done, total;
        Job *job = userdata;
        char digest[128];

        if (sscanf(line, "{\"done\":%llu,\"total\":%llu}", &done, &total) == 2) {
                take_progress(job, done, total);
        } else if (sscanf(line, "{\"digest\":\"%127[a-z0-9:]\"}", digest) == 1) {
                free(job->digest);
                job->digest = strdup(digest);
        }
}

/* ---- how they begin ---- */

static int start_unpacking(Job *job, Error *reterr) {
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
        return child_spawn(store->event,
                           &(ChildSpec){ .argv = argv, .timeout_usec = UNPACK_TIMEOUT_USEC },
                           on_done, job, &job->child, reterr);
}

static int start_pull(Job *job, Error *reterr) {
        ImageStore *store = job->store;
        cleanup_close int settings = pull_settings_open(store, job);
        cleanup_free char *option = NULL;

        if (settings < 0)
                return settings;
        if (asprintf(&option, "--store=%s", store->images_path) < 0) {
                option = NULL;
                return -ENOMEM;
        }
        return child_spawn(store->event,
                           &(ChildSpec){ .argv = (char *[]){ store->helper_path, (char[]){ "pull" },
                                                             option, job->reference, NULL },
                                         .output_max = LINE_BYTES_MAX,
                                         .timeout_usec = PULL_TIMEOUT_USEC,
                                         .input_fd = settings,
                                         .on_line = on_line },
                           on_done, job, &job->child, reterr);
}

static unsigned pulls_max(const ImageStore *store) {
        return store->config && store->config->max_parallel_pulls.is_set
                       ? (unsigned) store->config->max_parallel_pulls.value
                       : PULLS_DEFAULT;
}

/* One that cannot be started fails from the loop, as one that ends badly. */
void jobs_start(ImageStore *store) {
        unsigned unpacking = 0, pulling = 0;

        /* What is being removed must not be built upon. */
        if (store->collector || store->is_ending)
                return;
        for (Job *job = store->jobs; job; job = job->next) {
                unsigned *running = job->reference ? &pulling : &unpacking;
                unsigned max = job->reference ? pulls_max(store) : UNPACKING_MAX;

                if (*running >= max)
                        continue;
                if (!job->child && job->failed >= 0)
                        job->failed = job->reference ? start_pull(job, &job->error)
                                                     : start_unpacking(job, &job->error);
                if (job->failed < 0)
                        (void) store_schedule_work(store);
                else
                        (*running)++;
        }
}

void jobs_fail(ImageStore *store) {
        for (Job *job = store->jobs; job;) {
                cleanup_with(job_freep) Job *failed = NULL;

                if (job->failed >= 0) {
                        job = job->next;
                        continue;
                }
                failed = job;
                unlink_job(job);
                /* Not -ENOENT, which is an image that nobody has. */
                store_answer_requests_of(store, job, -EIO, &job->error);
                job = store->jobs;
        }
}

void jobs_free(ImageStore *store) {
        while (store->jobs) {
                Job *job = store->jobs;

                store->jobs = job->next;
                job_free(job);
        }
}

/* ---- who gets which ---- */

/* What unpacks it is also told the image's other names. */
int job_for_archive(ImageStore *store, const Archive *archive, const ArchiveImage *found,
                    const char *reference, Job **ret) {
        cleanup_with(job_freep) Job *job = NULL;
        int r;

        for (Job *other = store->jobs; other; other = other->next)
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
        if (!job->digest || !job->archive)
                return -ENOMEM;
        r = strv_extend(&job->names, found->names);
        if (r >= 0 && !strv_contains(found->names, reference))
                r = strv_append(&job->names, reference);
        if (r < 0)
                return r;
        append_job(store, job);
        *ret = TAKE_PTR(job);
        return 0;
}

/* Who has other passwords gets what they give. */
int job_for_pull(ImageStore *store, const char *reference, char *const *auths, Job **ret) {
        cleanup_with(job_freep) Job *job = NULL;

        for (Job *other = store->jobs; other; other = other->next)
                if (other->reference && streq(other->reference, reference) &&
                    strv_equal(other->auths, auths)) {
                        *ret = other;
                        return 0;
                }
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        job->store = store;
        job->asked_at = now_boottime_usec();
        job->reference = strdup(reference);
        if (!job->reference || strv_append(&job->names, reference) < 0 ||
            strv_extend(&job->auths, auths) < 0)
                return -ENOMEM;
        append_job(store, job);
        *ret = TAKE_PTR(job);
        return 0;
}
