/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/signature-gate.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/registry/document-fetch.h"
#include "agent/image-helper/signature/signature-check.h"
#include "agent/image-helper/signature/signature-collect.h"
#include "agent/image-helper/signature/signature-store.h"
#include "common/json-text.h"

/* The image under verification, and its documents. */
typedef struct SignatureGate {
        const PullSettings *settings;
        Store *store;
        const char *digests[3]; /* digests of the image and the index, terminated by NULL */
        char index_digest[DIGEST_SIZE];
        SignatureSet set;
        Error unreadable; /* why some signatures could not be read */
} SignatureGate;

static void signature_gate_done(SignatureGate *gate) {
        signature_set_done(&gate->set);
        error_done(&gate->unreadable);
}

static void set_gate_index(SignatureGate *gate, const char *index_digest) {
        if (streq(index_digest, gate->digests[0]))
                return;
        (void) snprintf(gate->index_digest, sizeof(gate->index_digest), "%s", index_digest);
        gate->digests[1] = gate->index_digest;
}

/* An image that was not reached through an index this time may have been reached through one
 * earlier. Signatures of that index remain valid for the image, because the index was verified by
 * its digest and led to the image. */
static int signature_gate_init(SignatureGate *gate, const char *digest, const char *index_digest) {
        char known[DIGEST_SIZE] = "";
        int r = 0;

        gate->digests[0] = digest;
        if (!index_digest[0])
                r = signature_store_read_index(gate->store, digest, known);
        if (r < 0 && r != -ENOENT)
                return r;
        if (index_digest[0] || known[0])
                set_gate_index(gate, index_digest[0] ? index_digest : known);
        return 0;
}

/* Mentions the documents that could not be read, which may be the cause. */
static int refuse_gate_image(const SignatureGate *gate, Error *why, Error *reterr) {
        if (gate->unreadable.message)
                return error_setf(reterr, EKEYREJECTED, "%s (%s)", strna(why->message),
                                  gate->unreadable.message);
        error_move(reterr, why);
        return -EKEYREJECTED;
}

static int check_gate_signatures(const SignatureGate *gate, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = signatures_check(gate->settings->signature_policy, gate->digests, &gate->set,
                                 &error);

        if (r == -EKEYREJECTED)
                return refuse_gate_image(gate, &error, reterr);
        error_move(reterr, &error);
        return r;
}

/* The signatures are stored before the result that depends on them. */
static int record_passed_image(const SignatureGate *gate, Error *reterr) {
        const char *fingerprint = json_text(gate->settings->signature_policy, "fingerprint");
        int r = 0;

        if (gate->set.n > 0)
                r = signature_store_write(gate->store, gate->digests[0], gate->digests[1],
                                          &gate->set, reterr);
        return r < 0 ? r
                     : verified_write(gate->store, gate->digests[0],
                                      &(VerifiedUpdate){ .origin = gate->settings->origin,
                                                         .index_digest = gate->digests[1],
                                                         .fingerprint = fingerprint },
                                      reterr);
}

static int pass_signature_gate(const SignatureGate *gate, Error *reterr) {
        int r = check_gate_signatures(gate, reterr);

        return r < 0 ? r : record_passed_image(gate, reterr);
}

int signature_gate_pass_pulled(const PullSettings *settings, const CatalogImage *image,
                               const PulledFrom *from, Store *store, Error *reterr) {
        cleanup_with(signature_gate_done)
                SignatureGate gate = { .settings = settings, .store = store };
        int r = signature_gate_init(&gate, image->digest, image->index_digest);

        if (r < 0)
                return r;
        if (settings->signature_policy)
                r = signatures_collect_fetched(from->fetchers, from->endpoint, gate.digests,
                                               &gate.set, &gate.unreadable);
        return r < 0 ? r : pass_signature_gate(&gate, reterr);
}

int signature_gate_pass_vouched(const PullSettings *settings, const CatalogImage *image,
                                Store *store, Error *reterr) {
        cleanup_with(signature_gate_done)
                SignatureGate gate = { .settings = settings, .store = store };
        int r = signature_gate_init(&gate, image->digest, "");

        if (r >= 0 && settings->signature_policy)
                r = signature_store_read(store, image->digest, &gate.set);
        return r < 0 && r != -ENOENT ? r : pass_signature_gate(&gate, reterr);
}

/* The rules for an archive of "docker save" and for an OCI layout differ. */
static int check_archive_format(const PullSettings *settings, const CatalogImage *image,
                                Error *reterr) {
        const char *transport = json_text(settings->origin, "transport");

        if (!transport || streq(transport, catalog_image_transport(image)))
                return 0;
        return error_setf(reterr, EBADMSG, "it is in the format of %s, not %s",
                          catalog_image_transport(image), transport);
}

int signature_gate_pass_archived(const PullSettings *settings, const CatalogImage *image,
                                 const ImageArchive *archive, Store *store, Error *reterr) {
        cleanup_with(signature_gate_done)
                SignatureGate gate = { .settings = settings, .store = store };
        int r = check_archive_format(settings, image, reterr);

        if (r < 0)
                return r;
        r = signature_gate_init(&gate, image->digest, image->index_digest);
        if (r < 0)
                return r;
        /* If there is no policy, signatures are kept for a later one. */
        r = signatures_collect_archived(archive, gate.digests, &gate.set, &gate.unreadable);
        return r < 0 ? r : pass_signature_gate(&gate, reterr);
}

/* ---- of the store ---- */

/* An image in the store, and the registry that is queried if its signatures are not sufficient. */
typedef struct StoredCheck {
        SignatureGate gate;
        ImageReference reference;
        Endpoints endpoints;
        FetcherPool fetchers;
} StoredCheck;

static void stored_check_done(StoredCheck *check) {
        fetcher_pool_done(&check->fetchers);
        endpoints_done(&check->endpoints);
        image_reference_done(&check->reference);
        signature_gate_done(&check->gate);
}

static int start_signature_fetcher(StoredCheck *check, const char *reference, Error *reterr) {
        const SignatureGate *gate = &check->gate;
        int r = pull_reference_parse(reference, &check->reference, reterr);

        if (r < 0)
                return r;
        r = endpoints_find(&check->reference, gate->settings, &check->endpoints, reterr);
        if (r < 0)
                return r;
        return fetcher_pool_start(
                &check->endpoints, 1,
                (int[]){ store_fd(gate->store), store_tmp_fd(gate->store), -EBADF },
                &check->fetchers, reterr);
}

static int check_stored_signatures(SignatureGate *gate, Error *reterr) {
        int r = signature_store_read(gate->store, gate->digests[0], &gate->set);

        return r == -ENOMEM ? r : check_gate_signatures(gate, reterr);
}

static int check_fetched_signatures(StoredCheck *check, Error *reterr) {
        SignatureGate *gate = &check->gate;
        int r;

        signature_set_done(&gate->set);
        r = signatures_collect_fetched(&check->fetchers, 0, gate->digests, &gate->set,
                                       &gate->unreadable);
        return r < 0 ? r : check_gate_signatures(gate, reterr);
}

/* Whether the index lists it as an image, and not as a document that describes one. */
static bool index_lists_image(const FetchedDocument *document, const char *digest) {
        cleanup_json json_t *index = NULL;
        const char *type;
        const json_t *item;
        size_t i;

        if (image_manifest_parse(document->text, document->length, NULL, &index, NULL) < 0)
                return false;
        type = json_text(index, "mediaType");
        if (type && !media_type_is_index(type))
                return false;
        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                OciDescriptor descriptor = { 0 };

                if (oci_descriptor_parse(item, &descriptor, NULL) >= 0 &&
                    streq(descriptor.digest, digest) && !oci_descriptor_is_attestation(item))
                        return true;
        }
        return false;
}

/* 0 with the digest, which matches the bytes; or -errno. */
static int fetch_referenced_document(StoredCheck *check, FetchedDocument *ret,
                                     char ret_digest[static DIGEST_SIZE]) {
        const ImageReference *reference = &check->reference;
        uint32_t endpoint = 0;
        int r = document_fetch(&check->fetchers, REGISTRY_MANIFEST,
                               reference->digest ? reference->digest : reference->tag,
                               MANIFEST_SIZE_MAX, &endpoint, ret, NULL);

        if (r < 0)
                return r;
        digest_of(ret->text, ret->length, ret_digest);
        return reference->digest ? fetched_document_check(ret, reference->digest, NULL) : 0;
}

static bool reference_names_known_digest(const StoredCheck *check) {
        const char *named = check->reference.digest;

        return named &&
               (streq(named, check->gate.digests[0]) || streq(named, check->gate.index_digest));
}

/* The index that the reference names, if it lists the image: earlier versions have recorded the
 * index only together with signatures, and the tag may refer to a newer one. 1: the signatures of
 * this index are used instead of those of the recorded one; 0; -ENOMEM. */
static int find_referenced_index(StoredCheck *check) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        SignatureGate *gate = &check->gate;
        char digest[DIGEST_SIZE];
        int r;

        if (reference_names_known_digest(check))
                return 0;
        r = fetch_referenced_document(check, &document, digest);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (streq(digest, gate->index_digest) || !index_lists_image(&document, gate->digests[0]))
                return 0;
        set_gate_index(gate, digest);
        return 1;
}

static int check_signatures_at_registry(StoredCheck *check, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = check_fetched_signatures(check, &error), found;

        if (r != -EKEYREJECTED) {
                error_move(reterr, &error);
                return r;
        }
        found = find_referenced_index(check);
        if (found > 0)
                return check_fetched_signatures(check, reterr);
        error_move(reterr, &error);
        return found < 0 ? found : r;
}

/* If the registry has no signatures either, the message still explains why the stored ones are not
 * sufficient. */
static int check_signatures_again(StoredCheck *check, Error *reterr) {
        SignatureGate *gate = &check->gate;
        cleanup_error Error stored = ERROR_NULL, fetched = ERROR_NULL;
        int r = check_stored_signatures(gate, &stored);
        bool had_some = gate->set.n > 0;

        if (r != -EKEYREJECTED || gate->settings->is_offline) {
                error_move(reterr, &stored);
                return r;
        }
        r = check_signatures_at_registry(check, &fetched);
        if (r == -EKEYREJECTED && gate->set.n == 0 && had_some)
                return refuse_gate_image(gate, &stored, reterr);
        error_move(reterr, &fetched);
        return r;
}

int signature_gate_check_stored(const char *reference, const char *digest,
                                const PullSettings *settings, Store *store, Error *reterr) {
        cleanup_with(stored_check_done)
                StoredCheck check = { .gate = { .settings = settings, .store = store },
                                      .fetchers = { .fd = -EBADF } };
        int r = settings->is_offline ? 0 : start_signature_fetcher(&check, reference, reterr);

        if (r < 0)
                return r;
        r = confine_parser(false, store_fd(store), reterr);
        if (r < 0)
                return r;
        r = signature_gate_init(&check.gate, digest, "");
        if (r < 0)
                return r;
        r = check_signatures_again(&check, reterr);
        if (r < 0)
                return r;
        r = record_passed_image(&check.gate, reterr);
        if (r < 0)
                return r;
        (void) printf("{\"digest\":\"%s\"}\n", digest);
        return r;
}
