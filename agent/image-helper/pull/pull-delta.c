/* SPDX-License-Identifier: Apache-2.0 */

/* Looks for a delta in the registry: it refers to the image with its 'subject', so it is among the
 * image's referrers (OCI distribution specification, "Listing Referrers"); in registries without
 * that API, in the index with the tag "sha256-<hex>" ("Referrers Tag Schema"). The registry is
 * queried only if the store has another image of the repository, so the first pull of a node makes
 * no additional requests. */

#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/pull-private.h"
#include "agent/image-helper/registry/document-fetch.h"
#include "agent/image-helper/store/stored-image.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#define ANNOTATION_NAME   "org.opencontainers.image.ref.name"
#define ANNOTATION_DIGEST "mainstay.image.digest"

enum {
        DELTAS_MAX = 8 /* that are tried */
};

/* ---- whether to query the registry ---- */

/* The reference up to the tag or the digest. */
static size_t repository_length(const char *reference) {
        const char *slash = strrchr(reference, '/');
        size_t start = slash ? (size_t) (slash - reference) : 0;

        return start + strcspn(reference + start, ":@");
}

static bool is_other_image_of_repository(const json_t *item, const char *reference,
                                         const char *digest) {
        const char *name = json_text(item, "annotations", ANNOTATION_NAME);
        const char *own = json_text(item, "digest");
        size_t n = repository_length(reference);

        return name && own && !streq(own, digest) && repository_length(name) == n &&
               strncmp(name, reference, n) == 0;
}

/* Only an image that is visible to the pull is a reason to request a delta. */
static bool may_be_base(const RegistryPull *pull, const json_t *item) {
        const char *digest = json_text(item, "annotations", ANNOTATION_DIGEST);

        return digest && store_view_may_show_image(pull->view, digest);
}

static bool has_other_image(const RegistryPull *pull, const char *reference) {
        cleanup_json json_t *index = NULL;
        cleanup_error Error error = ERROR_NULL;
        const json_t *item;
        size_t i;

        if (stored_images_read_index(pull->store, &index, &error) < 0)
                return false;
        json_array_foreach(json_object_get(index, "manifests"), i, item)
                if (is_other_image_of_repository(item, reference, pull->image.digest) &&
                    may_be_base(pull, item))
                        return true;
        return false;
}

/* ---- choosing a delta ---- */

static int fetch_json(RegistryPull *pull, RegistryObjectKind kind, const char *name,
                      const char *digest, json_t **ret, Error *reterr) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        int r;

        r = document_fetch(&pull->fetchers, kind, name, MANIFEST_SIZE_MAX, &pull->endpoint,
                           &document, reterr);
        if (r < 0)
                return r;
        r = digest ? fetched_document_check(&document, digest, reterr) : 0;
        if (r < 0)
                return r;
        return image_manifest_parse(document.text, document.length, NULL, ret, reterr);
}

static int fetch_referrers(RegistryPull *pull, json_t **ret, Error *reterr) {
        char tag[sizeof("sha256-") + SHA256_HEX_SIZE];
        int r = fetch_json(pull, REGISTRY_DELTAS, pull->image.digest, NULL, ret, NULL);

        if (r == -ENOMEM)
                return r;
        if (r >= 0 && json_is_array(json_object_get(*ret, "manifests")))
                return 0;
        json_decref(*ret);
        *ret = NULL;
        (void) snprintf(tag, sizeof(tag), "sha256-%s", digest_hex(pull->image.digest));
        return fetch_json(pull, REGISTRY_MANIFEST, tag, NULL, ret, reterr);
}

/* Whether it is in the store and visible to the pull. */
static bool is_base_usable(RegistryPull *pull, const char *config_digest) {
        if (delta_base_is_present(pull->store, config_digest))
                return true;
        return pull_ask_for_image_with(pull, NULL, config_digest) > 0 &&
               delta_base_is_present(pull->store, config_digest);
}

/* 1: the image has it now. 0: its base is missing. */
static int try_delta(RegistryPull *pull, const json_t *item, Error *reterr) {
        const char *base = json_text(item, "annotations", ANNOTATION_DELTA_CONFIG);
        cleanup_json json_t *artifact = NULL;
        OciDescriptor descriptor = { 0 };
        int r;

        if (base && digest_is_valid(base) && !is_base_usable(pull, base))
                return 0;
        r = oci_descriptor_parse(item, &descriptor, reterr);
        if (r < 0)
                return r;
        r = fetch_json(pull, REGISTRY_MANIFEST, descriptor.digest, descriptor.digest, &artifact,
                       reterr);
        if (r < 0)
                return r;
        r = image_delta_attach(artifact, &pull->image, reterr);
        if (r < 0)
                return r;
        if (is_base_usable(pull, pull->image.base_config))
                return 1;
        catalog_image_drop_delta(&pull->image);
        return 0;
}

/* 1: one was found. 0: there is none. -ENOENT: all their bases are missing. */
static int choose_delta(RegistryPull *pull, const json_t *referrers, Error *reterr) {
        unsigned n = 0;
        const json_t *item;
        size_t i;
        int last = 0;

        json_array_foreach(json_object_get(referrers, "manifests"), i, item) {
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (!artifact_has_type(item, ARTIFACT_TYPE_DELTA) || n == DELTAS_MAX)
                        continue;
                n++;
                r = try_delta(pull, item, &error);
                if (r > 0 || r == -ENOMEM)
                        return r;
                if (r < 0) {
                        error_done(reterr);
                        *reterr = ERROR_NULL;
                        error_move(reterr, &error);
                        last = r;
                }
        }
        if (last < 0 || n == 0)
                return last;
        return error_setf(reterr, ENOENT, "the image that it is based on is not in the store");
}

/* ---- choosing its blobs ---- */

static void report_delta(const CatalogImage *image, uint64_t delta, uint64_t layers) {
        char text[256];

        (void) snprintf(text, sizeof(text),
                        "pulling a delta: %llu bytes instead of %llu, based on the image with "
                        "configuration %s",
                        (unsigned long long) delta, (unsigned long long) layers,
                        image->base_config);
        pull_print_message("info", text);
}

static void report_unused_delta(int r, const Error *error) {
        cleanup_free char *why = format_safe_message(error, r), *text = NULL;

        if (why)
                text = text_format("pulling whole layers, the delta cannot be used: %s", why);
        if (text)
                pull_print_message(r == -ENOENT ? "info" : "warning", text);
}

static bool any_is_missing(const bool *missing, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (missing[i])
                        return true;
        return false;
}

int pull_find_delta(RegistryPull *pull, const char *reference, const bool *missing) {
        CatalogImage *image = &pull->image;
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *referrers = NULL;
        uint64_t delta, layers;
        int r;

        if (!any_is_missing(missing, image->settings->n_diff_ids) ||
            !has_other_image(pull, reference))
                return 0;
        r = fetch_referrers(pull, &referrers, &error);
        if (r < 0) {
                log_debug("Cannot find a delta for image '%s': %s", reference,
                          error_message(&error, r));
                return r == -ENOMEM ? r : 0;
        }
        r = choose_delta(pull, referrers, &error);
        if (r > 0) {
                catalog_image_drop_large_delta_blobs(image, missing, &delta, &layers);
                if (delta < layers)
                        report_delta(image, delta, layers);
        } else if (r < 0) {
                report_unused_delta(r, &error);
        }
        return r == -ENOMEM ? r : 0;
}
