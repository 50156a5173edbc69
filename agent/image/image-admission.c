/* SPDX-License-Identifier: Apache-2.0 */
/* Determines whether the signature policy permits an image of the store to run. mainstay-image
 * verifies an image when it arrives, and records its origin and the policies that it has passed in
 * verified/<digest>.json; when a container starts, only that record is compared. */

#include "agent/image/image-store-private.h"

#include "agent/image/image-record.h"
#include "agent/image/pull-settings.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <limits.h>

enum {
        VERIFIED_BYTES_MAX = 64 * 1024,
        VERIFIED_PATH_SIZE = 96
};

/* The origin of an image, with the owners of its strings. */
typedef struct FoundOrigin {
        ImageOrigin origin;
        char *path;       /* path of an existing archive */
        json_t *verified; /* mainstay-image's record; NULL: none */
} FoundOrigin;

static void found_origin_done(FoundOrigin *found) {
        free(found->path);
        json_decref(found->verified);
        *found = (FoundOrigin){ 0 };
}

int image_verified_load(const ImageStore *store, const char *digest, json_t **ret) {
        cleanup_free char *text = NULL;
        char path[VERIFIED_PATH_SIZE];
        int r;

        *ret = NULL;
        if (!image_digest_is_valid(digest))
                return -EINVAL;
        (void) snprintf(path, sizeof(path), "verified/%.64s.json", digest + strlen("sha256:"));
        r = checksummed_read_at(store->images_fd, path, VERIFIED_BYTES_MAX, &text);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        *ret = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        return *ret ? 0 : -EBADMSG;
}

static char *resolve_archive_path(const ImageStore *store, const char *file) {
        cleanup_free char *path = path_join(store->preload_path, file);
        char *resolved = path ? realpath(path, NULL) : NULL;

        return resolved ? resolved : TAKE_PTR(path);
}

/* The origin of an image: the archive that contains it, otherwise its recorded origin, otherwise a
 * registry. */
static int find_image_origin(const ImageStore *store, const char *reference, const char *digest,
                             FoundOrigin *ret) {
        const Archive *archive = NULL;
        const ArchivedImage *image =
                archive_set_find(&store->preload.archives, reference, &archive);
        const json_t *origin;
        const char *transport;

        /* Without a record, or with a damaged one, the image has passed no policy. */
        (void) image_verified_load(store, digest, &ret->verified);
        if (image && streq(image->digest, digest)) {
                ret->path = resolve_archive_path(store, archive->file);
                ret->origin = (ImageOrigin){ image->transport, ret->path, NULL };
                return ret->path ? 0 : -ENOMEM;
        }
        origin = json_object_get(ret->verified, "origin");
        transport = json_text(origin, "transport");
        ret->origin =
                (ImageOrigin){ transport ? transport : "docker", json_text(origin, "path"), NULL };
        return 0;
}

static bool has_passed_signature_policy(const json_t *verified, const json_t *demand) {
        const char *fingerprint = json_text(demand, "fingerprint");
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(verified, "passed"), i, item)
                if (streq_ptr(json_string_value(item), fingerprint))
                        return true;
        return false;
}

int image_admission_check(ImageStore *store, const char *reference, const char *digest,
                          Error *reterr) {
        cleanup_with(found_origin_done) FoundOrigin found = { 0 };
        cleanup_json json_t *demand = NULL;
        int r = find_image_origin(store, reference, digest, &found);

        if (r < 0)
                return r;
        r = image_policy_demand(&store->policy, &found.origin, reference, &demand, reterr);
        if (r < 0)
                return r;
        return !demand || has_passed_signature_policy(found.verified, demand);
}

int image_admission_check_source(ImageStore *store, const char *reference, const char *digest,
                                 const char *fleet, Error *reterr) {
        cleanup_json json_t *demand = NULL, *verified = NULL;
        int r = image_policy_demand(&store->policy, &(ImageOrigin){ "docker", NULL, fleet },
                                    reference, &demand, reterr);

        if (r < 0 || !demand)
                return r < 0 ? r : 1;
        (void) image_verified_load(store, digest, &verified);
        return has_passed_signature_policy(verified, demand);
}

int image_admission_check_pull(ImageStore *store, const char *reference, Error *reterr) {
        cleanup_json json_t *demand = NULL;

        return image_policy_demand(&store->policy, &(ImageOrigin){ "docker", NULL, NULL },
                                   reference, &demand, reterr);
}

int image_admission_open_settings(ImageStore *store, const ImageJob *job, Error *reterr) {
        cleanup_with(found_origin_done)
                FoundOrigin found = { .origin = { "docker", NULL, job->fleet } };
        bool is_pull = job->reference && !job->is_check;
        cleanup_json json_t *demand = NULL, *access = is_pull ? image_access_to_json(store) : NULL;
        cleanup_json json_t *source =
                job->fleet ? pull_source_to_json(store->config, job->fleet, job->directory) : NULL;
        int r = is_pull ? 0 : find_image_origin(store, job->policy_reference, job->digest, &found);

        if (r < 0)
                return r;
        r = image_policy_demand(&store->policy, &found.origin, job->policy_reference, &demand,
                                reterr);
        if (r < 0)
                return r;
        if ((is_pull && !access) || (job->fleet && !source))
                return -ENOMEM;
        return pull_settings_open(
                store->config, job->policy_reference, &job->secrets,
                &(PullDemand){ .document = demand,
                               .origin = &found.origin,
                               .source = source,
                               .access = access,
                               .is_offline = job->is_offline || found.origin.path });
}
