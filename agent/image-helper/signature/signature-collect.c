/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/signature-collect.h"

#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/registry/document-fetch.h"
#include "common/base64.h"
#include "common/json-text.h"

enum {
        SIGNATURE_MANIFEST_SIZE_MAX = 1024 * 1024,
        REFERRERS_MAX = 256, /* number of entries of one list that are read */
        REFERRER_SIZE_MAX = 64 * 1024,
        ARCHIVED_REFERRERS_MAX = 4096, /* limit for the blobs of an archive that are read */
        FETCHED_DOCUMENTS_MAX = 512,   /* number of documents for which a registry is queried */
        ARCHIVED_DOCUMENTS_MAX = 2 * ARCHIVED_REFERRERS_MAX,
        TAG_SIZE = 96
};

#define ANNOTATION_SIGNATURE "dev.cosignproject.cosign/signature"
#define ARTIFACT_SIGNATURE   "application/vnd.dev.cosign.artifact.sig.v1+json"
#define EMPTY_CONFIG         "application/vnd.oci.empty.v1+json"

/* The locations of the documents, and the signatures found in them. */
typedef struct SignatureCollection {
        FetcherPool *fetchers; /* NULL: they are in the archive */
        uint32_t endpoint;
        const ImageArchive *archive;
        const char *const *digests;
        SignatureSet *set;
        size_t n_documents; /* number of documents that were read, or that could not be read */
        Error *unreadable;
} SignatureCollection;

/* ---- documents ---- */

static int read_archived_document(const ImageArchive *archive, const char *name, size_t max_bytes,
                                  FetchedDocument *ret, Error *reterr) {
        char member[TAG_SIZE];

        (void) snprintf(member, sizeof(member), "blobs/sha256/%s", digest_hex(name));
        return image_archive_read(archive, member, max_bytes, &ret->text, &ret->length, reterr);
}

/* Documents that are not signatures of the image are also counted, because a list may contain a
 * million other payloads. */
static bool may_read_document(SignatureCollection *collection) {
        size_t max = collection->fetchers ? FETCHED_DOCUMENTS_MAX : ARCHIVED_DOCUMENTS_MAX;

        if (collection->n_documents == max) {
                collection->set->is_cut = true;
                return false;
        }
        collection->n_documents++;
        return true;
}

/* The name is a digest, which is verified, or a tag. Beyond the limit, documents count as
 * missing. */
static int read_signature_document(SignatureCollection *collection, RegistryObjectKind kind,
                                   const char *name, size_t max_bytes, FetchedDocument *ret,
                                   Error *reterr) {
        int r;

        if (!may_read_document(collection))
                return -ENOENT;
        r = collection->fetchers
                    ? document_fetch(collection->fetchers, kind, name, max_bytes,
                                     &collection->endpoint, ret, reterr)
                    : read_archived_document(collection->archive, name, max_bytes, ret, reterr);
        if (r < 0 || kind == REGISTRY_REFERRERS || !digest_is_valid(name))
                return r;
        return fetched_document_check(ret, name, reterr);
}

static int read_signature_json(SignatureCollection *collection, RegistryObjectKind kind,
                               const char *name, size_t max_bytes, json_t **ret, Error *reterr) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        int r = read_signature_document(collection, kind, name, max_bytes, &document, reterr);

        return r < 0 ? r : document_parse(document.text, document.length, ret, reterr);
}

/* Missing documents are not recorded. */
static int record_unreadable(SignatureCollection *collection, const char *what, int r,
                             Error *error) {
        if (r == -ENOMEM)
                return r;
        if (r == -ENOENT || collection->unreadable->message)
                return 0;
        (void) error_prefixf(error, r, "%s", what);
        error_move(collection->unreadable, error);
        return 0;
}

/* ---- manifests of signatures ---- */

static bool is_payload_type(const char *type) {
        return type && streq(type, SIGSTORE_PAYLOAD_TYPE);
}

static bool is_bundle_type(const char *type) {
        return type && strncmp(type, SIGSTORE_BUNDLE_PREFIX, strlen(SIGSTORE_BUNDLE_PREFIX)) == 0;
}

/* The type of an entry in a list of referrers. Some programs write the type of the configuration,
 * or none.
 */
static bool may_have_signatures(const char *artifact_type) {
        return !artifact_type || !artifact_type[0] || is_payload_type(artifact_type) ||
               is_bundle_type(artifact_type) || streq(artifact_type, ARTIFACT_SIGNATURE) ||
               streq(artifact_type, EMPTY_CONFIG);
}

bool manifest_has_signatures(const json_t *manifest) {
        const json_t *layer;
        size_t i;

        json_array_foreach(json_object_get(manifest, "layers"), i, layer) {
                const char *type = json_text(layer, "mediaType");

                if (is_payload_type(type) || is_bundle_type(type))
                        return true;
        }
        return false;
}

static bool is_wanted_digest(const SignatureCollection *collection, const char *digest) {
        for (const char *const *wanted = collection->digests; *wanted; wanted++)
                if (streq_ptr(digest, *wanted))
                        return true;
        return false;
}

/* An archive also contains the signatures of other images: payloads that do not mention this one
 * would only use up the limit. */
static bool mentions_image(const SignatureCollection *collection, const FetchedDocument *payload) {
        for (const char *const *wanted = collection->digests; *wanted; wanted++)
                if (memmem(payload->text, payload->length, *wanted, strlen(*wanted)))
                        return true;
        return false;
}

/* Checks an annotation from the registry, which is stored unchanged: text that cannot be a
 * signature would only make the stored file longer. */
static int check_signature_annotation(const char *signature, Error *reterr) {
        cleanup_free char *data = NULL;
        size_t length;
        int r;

        if (!signature)
                return error_setf(reterr, EBADMSG, "a payload has no signature");
        if (strlen(signature) > SIGSTORE_SIGNATURE_SIZE_MAX)
                return error_setf(reterr, EBADMSG, "it is longer than %d bytes",
                                  SIGSTORE_SIGNATURE_SIZE_MAX);
        r = base64_decode(signature, &data, &length);
        return r == -EINVAL ? error_setf(reterr, EBADMSG, "it is not base64") : r;
}

static int add_layer_signature(SignatureCollection *collection, const json_t *layer,
                               Error *reterr) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        const json_t *annotations = json_object_get(layer, "annotations");
        const char *signature = json_text(annotations, ANNOTATION_SIGNATURE);
        OciDescriptor descriptor = { 0 };
        bool is_payload;
        int r = oci_descriptor_parse(layer, &descriptor, reterr);

        if (r < 0)
                return r;
        is_payload = is_payload_type(descriptor.media_type);
        if (!is_payload && !is_bundle_type(descriptor.media_type))
                return 0;
        r = is_payload ? check_signature_annotation(signature, reterr) : 0;
        if (r < 0)
                return r;
        if (collection->set->n == SIGSTORE_SIGNATURES_MAX) {
                collection->set->is_cut = true;
                return 0;
        }
        r = read_signature_document(collection, REGISTRY_BLOB, descriptor.digest,
                                    SIGSTORE_DOCUMENT_SIZE_MAX, &document, reterr);
        if (r < 0 || (is_payload && !mentions_image(collection, &document)))
                return r;
        return signature_set_add(collection->set, document.text, document.length,
                                 is_payload ? signature : NULL);
}

static int add_manifest_signatures(SignatureCollection *collection, const json_t *manifest) {
        const json_t *subject = json_object_get(manifest, "subject"), *layer;
        size_t i;

        if (subject && !is_wanted_digest(collection, json_text(subject, "digest")))
                return 0;
        json_array_foreach(json_object_get(manifest, "layers"), i, layer) {
                cleanup_error Error error = ERROR_NULL;
                int r = add_layer_signature(collection, layer, &error);

                if (r < 0)
                        r = record_unreadable(collection, "signature", r, &error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_named_manifest(SignatureCollection *collection, const char *name) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *manifest = NULL;
        int r = read_signature_json(collection, REGISTRY_MANIFEST, name,
                                    SIGNATURE_MANIFEST_SIZE_MAX, &manifest, &error);

        return r < 0 ? record_unreadable(collection, "signatures", r, &error)
                     : add_manifest_signatures(collection, manifest);
}

/* Entries of other types are attestations, lists of the image's content, and so on. */
static int add_referrers(SignatureCollection *collection, const json_t *index) {
        const json_t *item;
        size_t i, n = 0;

        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                const char *type = json_text(item, "artifactType");
                OciDescriptor descriptor = { 0 };
                int r;

                if (!may_have_signatures(type))
                        continue;
                if (++n > REFERRERS_MAX) {
                        collection->set->is_cut = true;
                        return 0;
                }
                if (oci_descriptor_parse(item, &descriptor, NULL) < 0)
                        continue;
                r = add_named_manifest(collection, descriptor.digest);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- registries ---- */

/* A registry without the API provides the list of referrers as an index with a tag. */
static int add_fetched_referrers(SignatureCollection *collection, const char *digest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *index = NULL;
        char tag[TAG_SIZE];
        int r = read_signature_json(collection, REGISTRY_REFERRERS, digest,
                                    SIGNATURE_MANIFEST_SIZE_MAX, &index, NULL);

        if (r >= 0 && json_is_array(json_object_get(index, "manifests")))
                return add_referrers(collection, index);
        if (r == -ENOMEM)
                return r;
        json_decref(index);
        index = NULL;
        (void) snprintf(tag, sizeof(tag), "sha256-%s", digest_hex(digest));
        r = read_signature_json(collection, REGISTRY_MANIFEST, tag, SIGNATURE_MANIFEST_SIZE_MAX,
                                &index, &error);
        return r < 0 ? record_unreadable(collection, "signatures", r, &error)
                     : add_referrers(collection, index);
}

int signatures_collect_fetched(FetcherPool *fetchers, uint32_t endpoint, const char *const *digests,
                               SignatureSet *set, Error *ret_unreadable) {
        SignatureCollection collection = { .fetchers = fetchers,
                                           .endpoint = endpoint,
                                           .digests = digests,
                                           .set = set,
                                           .unreadable = ret_unreadable };

        for (; *digests; digests++) {
                char tag[TAG_SIZE];
                int r;

                (void) snprintf(tag, sizeof(tag), "sha256-%s.sig", digest_hex(*digests));
                r = add_named_manifest(&collection, tag);
                if (r < 0)
                        return r;
                r = add_fetched_referrers(&collection, *digests);
                if (r < 0)
                        return r;
                collection.endpoint = endpoint;
        }
        return 0;
}

/* ---- archives ---- */

/* Finds referrers of an image if there is no list of them. */
static int add_listed_manifest(SignatureCollection *collection, const json_t *item) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *manifest = NULL;
        OciDescriptor descriptor = { 0 };
        int r;

        if (oci_descriptor_parse(item, &descriptor, NULL) < 0 ||
            !media_type_is_manifest(descriptor.media_type))
                return 0;
        r = read_signature_json(collection, REGISTRY_MANIFEST, descriptor.digest,
                                SIGNATURE_MANIFEST_SIZE_MAX, &manifest, &error);
        if (r < 0)
                return record_unreadable(collection, "signatures", r, &error);
        return json_object_get(manifest, "subject") ? 0
                                                    : add_manifest_signatures(collection, manifest);
}

static int add_referrer(SignatureCollection *collection, const char *digest) {
        cleanup_json json_t *manifest = NULL;
        int r = read_signature_json(collection, REGISTRY_MANIFEST, digest, REFERRER_SIZE_MAX,
                                    &manifest, NULL);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return json_object_get(manifest, "subject") ? add_manifest_signatures(collection, manifest)
                                                    : 0;
}

static bool may_be_referrer(const ArchiveMember *member, char ret_digest[static DIGEST_SIZE]) {
        static const char directory[] = "blobs/sha256/";

        if (strncmp(member->name, directory, strlen(directory)) != 0 ||
            member->size > REFERRER_SIZE_MAX)
                return false;
        (void) snprintf(ret_digest, DIGEST_SIZE, DIGEST_PREFIX "%.64s",
                        member->name + strlen(directory));
        return digest_is_valid(ret_digest);
}

/* "cosign save" of version 3 adds the referrers of the image to the blobs, but not to
 * index.json. */
static int add_archived_referrers(SignatureCollection *collection) {
        const ArchiveMember *member = NULL;
        char digest[DIGEST_SIZE];
        size_t n = 0;

        while ((member = image_archive_next(collection->archive, member))) {
                int r;

                if (!may_be_referrer(member, digest))
                        continue;
                if (++n > ARCHIVED_REFERRERS_MAX) {
                        collection->set->is_cut = true;
                        return 0;
                }
                r = add_referrer(collection, digest);
                if (r < 0)
                        return r;
        }
        return 0;
}

int signatures_collect_archived(const ImageArchive *archive, const char *const *digests,
                                SignatureSet *set, Error *ret_unreadable) {
        SignatureCollection collection = {
                .archive = archive, .digests = digests, .set = set, .unreadable = ret_unreadable
        };
        cleanup_free char *text = NULL;
        cleanup_json json_t *index = NULL;
        const json_t *item;
        size_t length, i;

        if (!image_archive_find(archive, "index.json") ||
            image_archive_read(archive, "index.json", MANIFEST_SIZE_MAX, &text, &length, NULL) <
                    0 ||
            document_parse(text, length, &index, NULL) < 0)
                return 0;
        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                int r = add_listed_manifest(&collection, item);

                if (r < 0)
                        return r;
        }
        return add_archived_referrers(&collection);
}
