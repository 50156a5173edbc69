/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/fetched-manifests.h"

#include "agent/desired/index-images.h"
#include "agent/manifest/reader.h"
#include "agent/model/pod-source.h"
#include "agent/model/source-index.h"
#include "agent/source/fetch-settings.h"
#include "agent/source/manifest-source.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/text.h"

/* A source; 'source' is NULL if it is not configured. */
typedef struct FetchedSource {
        FetchedManifests *fetched;
        const char *prefix; /* prefix of the names of its manifests */
        ManifestSource *source;
} FetchedSource;

struct FetchedManifests {
        FetchedManifestsConfig config;
        FetchedSource url, index;
        IndexRollout *rollout; /* for an index; NULL: not configured */
        IndexImages *images;   /* likewise */
        SourceImages named;    /* named by the index that is being fetched */
        bool is_preparing;     /* the images of "next" have been requested, and it is not in use
                                * yet */
};

#define URL_TIMEOUT_USEC (15 * (60 * USEC_PER_SEC))
#define INDEX_TIMEOUT_USEC                                                    \
        (24 * (60 * (60 * USEC_PER_SEC))) /* the helper detects stalls itself \
                                           */

/* ---- callbacks of a source ---- */

static int open_url_settings(bool was_refused, void *userdata) {
        const FetchedSource *one = userdata;

        return fetch_settings_of_url(one->fetched->config.config, MANIFEST_BYTES_MAX, was_refused);
}

static int open_index_settings(bool was_refused, void *userdata) {
        const FetchedSource *one = userdata;

        return fetch_settings_of_index(one->fetched->config.config, MANIFEST_BYTES_MAX,
                                       was_refused);
}

static int check_fetched_manifests(int dir_fd, Error *reterr, void *userdata) {
        const FetchedSource *one = userdata;

        return manifest_directory_check_fetched(one->fetched->config.manifests, one->prefix, dir_fd,
                                                reterr);
}

/* ---- images of an index ---- */

static void load_index_images(const FetchedManifests *fetched, const char *which,
                              SourceImages *ret) {
        cleanup_free char *path = manifest_source_path(fetched->index.source, which);
        int r = path ? source_images_load(path, ret) : -ENOMEM;

        if (r < 0)
                (void) log_warning_errno(r, "Cannot read which images the index in '%s' names",
                                         strna(path));
}

/* The manifests of the previous index are kept while the index in use may be rolled back, and those
 * of the next index while they are being fetched. */
static void update_source_images(FetchedManifests *fetched) {
        cleanup_with(source_images_done) SourceImages in_use = { 0 }, kept = { 0 };
        uint64_t since;

        load_index_images(fetched, "current", &in_use);
        if (fetched->is_preparing || manifest_source_is_on_trial(fetched->index.source, &since))
                load_index_images(fetched, "next", &kept);
        image_store_set_source_images(fetched->config.images, &in_use, &kept);
}

static int prepare_nothing(int dir_fd, Error *reterr, void *userdata) {
        return 1;
}

static char *describe_nothing(void *userdata) {
        return NULL;
}

static int prepare_index_images(int dir_fd, Error *reterr, void *userdata) {
        FetchedManifests *fetched = ((const FetchedSource *) userdata)->fetched;
        cleanup_free char *path = manifest_source_path(fetched->index.source, "next");
        int r;

        source_images_done(&fetched->named);
        r = path ? source_images_load(path, &fetched->named) : -ENOMEM;
        if (r < 0)
                return error_prefixf(reterr, r, "the images that the index names");
        fetched->is_preparing = true;
        update_source_images(fetched);
        return index_images_begin(fetched->images, dir_fd, &fetched->named, reterr);
}

static char *describe_index_images(void *userdata) {
        return index_images_progress(((const FetchedSource *) userdata)->fetched->images);
}

static bool may_fetch_index_images(Error *reterr, void *userdata) {
        const FetchedManifests *fetched = userdata;

        return manifest_source_may_ask(fetched->index.source, reterr);
}

static void on_index_images(int r, const Error *error, void *userdata) {
        FetchedManifests *fetched = userdata;

        manifest_source_on_prepared(fetched->index.source, r, error);
}

static void on_index_proven(void *userdata) {
        update_source_images(userdata);
}

static void take_fetched_manifests(int dir_fd, void *userdata) {
        const FetchedSource *one = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (one == &one->fetched->index && one->source) {
                one->fetched->is_preparing = false;
                update_source_images(one->fetched);
        }
        r = manifest_directory_set_fetched(one->fetched->config.manifests, one->prefix, dir_fd,
                                           &error);
        if (r < 0)
                log_error("%s", error_message(&error, r));
        if (one == &one->fetched->index)
                index_rollout_begin(one->fetched->rollout);
}

static void record_source_event(const FetchedManifestsConfig *config,
                                const NodeSourceStatus *status) {
        cleanup_free char *message = NULL;

        message = text_format("%s: %s", status->name,
                              status->has_failed ? status->message
                                                 : "its latest manifests are in use");
        if (!message)
                return;
        config->on_event(
                &(PodEvent){ .kind = status->has_failed ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                             .reason = status->is_refused   ? "SourceRefused"
                                       : status->has_failed ? "SourceFailed"
                                                            : "SourceInUse",
                             .message = message },
                config->userdata);
}

static void report_source_status(const NodeSourceStatus *status, void *userdata) {
        const FetchedManifestsConfig *config = &((const FetchedSource *) userdata)->fetched->config;

        if (status->has_failed) {
                log_set_message_id(MESSAGE_MANIFEST_INVALID);
                log_error("Cannot use the manifests of %s: %s; the last good ones stay in use",
                          status->name, status->message);
        }
        record_source_event(config, status);
        config->on_status(config->userdata);
}

/* ---- the interface ---- */

static void load_fetched_source(FetchedSource *one) {
        cleanup_close int fd = one->source ? manifest_source_open_current(one->source) : -EBADF;

        /* If the disk cannot be read, or was never written to, no manifests are dropped. */
        if (one->source && fd < 0) {
                if (fd != -ENOENT)
                        (void) log_error_errno(fd, "Cannot read the stored manifests of %s",
                                               one->prefix);
                return;
        }
        take_fetched_manifests(fd, one);
}

void fetched_manifests_load(FetchedManifests *fetched) {
        load_fetched_source(&fetched->url);
        load_fetched_source(&fetched->index);
}

int fetched_manifests_start(FetchedManifests *fetched) {
        int r = fetched->url.source ? manifest_source_start(fetched->url.source) : 0;

        return r >= 0 && fetched->index.source ? manifest_source_start(fetched->index.source) : r;
}

bool fetched_manifests_have_deadline(const FetchedManifests *fetched) {
        return fetched->index.source && manifest_source_deadline_usec(fetched->index.source) > 0;
}

IndexRollout *fetched_manifests_rollout(const FetchedManifests *fetched) {
        return fetched->rollout;
}

NodeSources fetched_manifests_status(const FetchedManifests *fetched) {
        NodeSources sources = { 0 };

        if (fetched->url.source)
                sources.items[sources.n++] = manifest_source_status(fetched->url.source);
        if (fetched->index.source)
                sources.items[sources.n++] = manifest_source_status(fetched->index.source);
        return sources;
}

/* Members of both sources. */
static int add_fetched_source(FetchedSource *one, ManifestSourceConfig *source) {
        const FetchedManifestsConfig *config = &one->fetched->config;

        source->event = config->event;
        source->state_dir = config->paths->state_dir;
        source->helper_path = config->paths->image_helper;
        source->check = check_fetched_manifests;
        source->prepare = one == &one->fetched->index ? prepare_index_images : prepare_nothing;
        source->describe_progress =
                one == &one->fetched->index ? describe_index_images : describe_nothing;
        source->on_accepted = take_fetched_manifests;
        source->on_status = report_source_status;
        source->userdata = one;
        return manifest_source_new(source, &one->source);
}

static int add_url_source(FetchedManifests *fetched, const Config *config) {
        if (!strna(config->static_pod_url)[0])
                return 0;
        return add_fetched_source(
                &fetched->url, &(ManifestSourceConfig){ .name = "staticPodURL",
                                                        .interval_usec = config->http_check_usec,
                                                        .jitter_usec = config->http_check_usec / 10,
                                                        .timeout_usec = URL_TIMEOUT_USEC,
                                                        .open_settings = open_url_settings });
}

static int add_index_source(FetchedManifests *fetched, const SourceConfig *config) {
        IndexRolloutConfig rollout = fetched->config.rollout;
        int r;

        if (!config)
                return 0;
        r = add_fetched_source(
                &fetched->index,
                &(ManifestSourceConfig){ .name = "source",
                                         .interval_usec = config->interval_usec,
                                         .jitter_usec = config->jitter_usec,
                                         .timeout_usec = INDEX_TIMEOUT_USEC,
                                         .window = config->download_window,
                                         .stick_path = source_stick_path(config->url),
                                         .open_settings = open_index_settings });
        if (r < 0)
                return r;
        r = index_images_new(&(IndexImagesConfig){ .event = fetched->config.event,
                                                   .store = fetched->config.images,
                                                   .node = fetched->config.node,
                                                   .may_continue = may_fetch_index_images,
                                                   .on_done = on_index_images,
                                                   .userdata = fetched },
                             &fetched->images);
        if (r < 0)
                return r;
        update_source_images(fetched); /* running pods may need them immediately */
        rollout.event = fetched->config.event;
        rollout.source = fetched->index.source;
        rollout.on_proven = on_index_proven;
        rollout.proven_userdata = fetched;
        return index_rollout_new(&rollout, &fetched->rollout);
}

int fetched_manifests_new(const FetchedManifestsConfig *config, FetchedManifests **ret) {
        cleanup_with(fetched_manifests_freep) FetchedManifests *fetched =
                calloc(1, sizeof(*fetched));
        int r;

        if (!fetched)
                return -ENOMEM;
        fetched->config = *config;
        fetched->url = (FetchedSource){ fetched, POD_SOURCE_URL_NAME, NULL };
        fetched->index = (FetchedSource){ fetched, POD_SOURCE_INDEX_PREFIX, NULL };
        r = add_url_source(fetched, config->config);
        if (r < 0)
                return r;
        r = add_index_source(fetched, config->config->mainstay.source);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(fetched);
        return 0;
}

FetchedManifests *fetched_manifests_free(FetchedManifests *fetched) {
        if (!fetched)
                return NULL;
        index_rollout_free(fetched->rollout);
        index_images_free(fetched->images);
        source_images_done(&fetched->named);
        manifest_source_free(fetched->url.source);
        manifest_source_free(fetched->index.source);
        free(fetched);
        return NULL;
}
