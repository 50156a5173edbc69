/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the image store for `mainstay debug dump`: jobs, requests and removals.
 * Credentials of pulls are not printed. */

#include "agent/image/image-store-private.h"

#include "common/clock.h"
#include "common/dump.h"
#include "common/list.h"
#include "common/strv.h"

#include <inttypes.h>

static void dump_image_job(const ImageJob *job, FILE *out) {
        char age[DUMP_DURATION_SIZE] = "";

        if (job->reference)
                dump_line(out, 1, "job: %s %s, %s, %" PRIu64 " of %" PRIu64 " bytes, for %s",
                          job->is_check ? "check the signatures of" : "pull", job->reference,
                          job->child ? "running" : "queued", job->done, job->total,
                          dump_format_duration(age, now_boottime_usec() - job->requested_at));
        else
                dump_line(out, 1, "job: unpack %s from %s, %s", job->digest, job->archive,
                          job->child ? "running" : "queued");
        if (job->failed < 0)
                dump_line(out, 2, "last error: %s", error_message(&job->error, job->failed));
}

void image_store_dump(const ImageStore *store, FILE *out) {
        size_t n_jobs = 0, n_requests = 0, n_indexing = 0, n_broken = 0;

        list_foreach(job, store->jobs.first)
                n_jobs++;
        list_foreach(request, store->requests)
                n_requests++;
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                n_indexing += store->preload.archives.archives[i]->state == ARCHIVE_NEW ||
                              store->preload.archives.archives[i]->state == ARCHIVE_INDEXING;
                n_broken += store->preload.archives.archives[i]->state == ARCHIVE_BROKEN;
        }
        dump_section(out, "Images");
        dump_line(out, 1, "loaded images: %zu", store->n_images);
        dump_line(out, 1, "archives: %zu, %zu to be indexed, %zu broken",
                  store->preload.archives.n_archives, n_indexing, n_broken);
        dump_line(out, 1, "requests: %zu", n_requests);
        list_foreach(request, store->requests)
                dump_line(out, 2, "request: %s, waits for %s", request->reference,
                          !request->job             ? "archives to be indexed"
                          : request->job->reference ? "a pull"
                                                    : "unpacking");
        dump_line(out, 1, "jobs: %zu", n_jobs);
        list_foreach(job, store->jobs.first)
                dump_image_job(job, out);
        if (store->gc.removing_digest)
                dump_line(out, 1, "removing: %s", store->gc.removing_digest);
        strv_foreach(digest, store->gc.removal_queue)
                dump_line(out, 1, "to be removed: %s", *digest);
        dump_line(out, 1, "garbage collection: %s",
                  store->gc.is_freeing_space ? "frees space"
                  : store->gc.is_due         ? "due"
                                             : "idle");
}
