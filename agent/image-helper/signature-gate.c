/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature-gate.h"

#include "agent/image-helper/confine.h"
#include "agent/image-helper/document.h"
#include "agent/image-helper/signature-check.h"
#include "agent/image-helper/signature-collect.h"
#include "agent/image-helper/signature-store.h"

/* The image that is to be let in, and what was found of it. */
typedef struct SignatureGate {
        const PullSettings *settings;
        Store *store;
        const char *digests[3]; /* of the image, of the index; NULL */
        SignatureSet set;
        char *repository;        /* that it was pulled from; NULL: it was not pulled */
        const char *secret_hash; /* of the Secret that it took; NULL: none */
        Error unreadable;        /* why not all signatures could be read */
} SignatureGate;

static void signature_gate_done(SignatureGate *gate) {
        signature_set_done(&gate->set);
        free(gate->repository);
        error_done(&gate->unreadable);
}

static SignatureGate make_signature_gate(const PullSettings *settings, Store *store,
                                         const char *digest, const char *index_digest) {
        bool has_index = index_digest[0] && !streq(index_digest, digest);

        return (SignatureGate){ .settings = settings,
                                .store = store,
                                .digests = { digest, has_index ? index_digest : NULL, NULL } };
}

static int check_gate_signatures(const SignatureGate *gate, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = signatures_check(gate->settings->signature_policy, gate->digests, &gate->set,
                                 &error);

        if (r == -EKEYREJECTED && gate->unreadable.message)
                return error_setf(reterr, EKEYREJECTED, "%s (%s)", error.message,
                                  gate->unreadable.message);
        error_move(reterr, &error);
        return r;
}

/* The signatures are stored before what they prove. */
static int record_passed_image(const SignatureGate *gate, Error *reterr) {
        const char *fingerprint = document_string(gate->settings->signature_policy, "fingerprint");
        int r = 0;

        if (gate->set.n > 0)
                r = signature_store_write(gate->store, gate->digests[0], gate->digests[1],
                                          &gate->set, reterr);
        return r < 0 ? r
                     : verified_write(gate->store, gate->digests[0],
                                      &(VerifiedUpdate){ .origin = gate->settings->origin,
                                                         .fingerprint = fingerprint,
                                                         .repository = gate->repository,
                                                         .secret_hash = gate->secret_hash },
                                      reterr);
}

static int pass_signature_gate(const SignatureGate *gate, Error *reterr) {
        int r = check_gate_signatures(gate, reterr);

        return r < 0 ? r : record_passed_image(gate, reterr);
}

/* Which pods may use the image without asking the registry. */
static int note_pull_access(SignatureGate *gate, const PullReference *reference,
                            const PulledFrom *from) {
        const json_t *hashes = gate->settings->auth_hashes;

        if (asprintf(&gate->repository, "%s/%s", reference->registry, reference->repository) < 0) {
                gate->repository = NULL;
                return -ENOMEM;
        }
        if (from->secret >= 0)
                gate->secret_hash =
                        strna(json_string_value(json_array_get(hashes, (size_t) from->secret)));
        return 0;
}

int signature_gate_pass_pulled(const PullSettings *settings, const PullReference *reference,
                               const CatalogImage *image, const PulledFrom *from, Store *store,
                               Error *reterr) {
        cleanup_with(signature_gate_done) SignatureGate gate =
                make_signature_gate(settings, store, image->digest, image->index_digest);
        int r = note_pull_access(&gate, reference, from);

        if (r < 0)
                return r;
        if (settings->signature_policy)
                r = signatures_collect_fetched(from->fetchers, from->endpoint, gate.digests,
                                               &gate.set, &gate.unreadable);
        return r < 0 ? r : pass_signature_gate(&gate, reterr);
}

/* The rules for an archive of "docker save" and for an OCI layout differ. */
static int check_archive_format(const PullSettings *settings, const CatalogImage *image,
                                Error *reterr) {
        const char *transport = document_string(settings->origin, "transport");

        if (!transport || streq(transport, catalog_image_transport(image)))
                return 0;
        return error_setf(reterr, EBADMSG, "it is in the format of %s, not %s",
                          catalog_image_transport(image), transport);
}

int signature_gate_pass_archived(const PullSettings *settings, const CatalogImage *image,
                                 const ImageArchive *archive, Store *store, Error *reterr) {
        cleanup_with(signature_gate_done) SignatureGate gate =
                make_signature_gate(settings, store, image->digest, image->index_digest);
        int r = check_archive_format(settings, image, reterr);

        if (r < 0)
                return r;
        /* Without a policy they are kept for one that comes later. */
        r = signatures_collect_archived(archive, gate.digests, &gate.set, &gate.unreadable);
        return r < 0 ? r : pass_signature_gate(&gate, reterr);
}

/* ---- of the store ---- */

static int check_stored_signatures(SignatureGate *gate, char index_digest[static DIGEST_SIZE],
                                   Error *reterr) {
        int r = signature_store_read(gate->store, gate->digests[0], index_digest, &gate->set);

        if (r == -ENOMEM)
                return r;
        if (index_digest[0])
                gate->digests[1] = index_digest;
        return check_gate_signatures(gate, reterr);
}

static int start_signature_fetcher(const char *reference, const PullSettings *settings,
                                   Endpoints *endpoints, FetcherPool *ret, Store *store,
                                   Error *reterr) {
        cleanup_with(pull_reference_done) PullReference parsed = { 0 };
        int r = pull_reference_parse(reference, &parsed, reterr);

        if (r < 0)
                return r;
        r = endpoints_find(&parsed, settings, endpoints, reterr);
        if (r < 0)
                return r;
        return fetcher_pool_start(
                endpoints, 1, (int[]){ store_fd(store), store_tmp_fd(store), -EBADF }, ret, reterr);
}

/* A registry that has nothing to say does not hide why the stored signatures do not suffice. */
static int check_fetched_signatures(SignatureGate *gate, FetcherPool *fetchers, Error *stored,
                                    Error *reterr) {
        bool had_some = gate->set.n > 0;
        int r;

        signature_set_done(&gate->set);
        r = signatures_collect_fetched(fetchers, 0, gate->digests, &gate->set, &gate->unreadable);
        if (r < 0)
                return r;
        if (gate->set.n > 0 || !had_some)
                return pass_signature_gate(gate, reterr);
        return error_setf(reterr, EKEYREJECTED, "%s%s%s%s", strna(stored->message),
                          gate->unreadable.message ? " (" : "", strna(gate->unreadable.message),
                          gate->unreadable.message ? ")" : "");
}

static int check_signatures_again(SignatureGate *gate, FetcherPool *fetchers, Error *reterr) {
        char index_digest[DIGEST_SIZE] = "";
        cleanup_error Error error = ERROR_NULL;
        int r = check_stored_signatures(gate, index_digest, &error);

        if (r >= 0)
                return record_passed_image(gate, reterr);
        if (r == -EKEYREJECTED && !gate->settings->is_offline)
                return check_fetched_signatures(gate, fetchers, &error, reterr);
        error_move(reterr, &error);
        return r;
}

int signature_gate_check_stored(const char *reference, const char *digest,
                                const PullSettings *settings, Store *store, Error *reterr) {
        cleanup_with(signature_gate_done) SignatureGate gate =
                make_signature_gate(settings, store, digest, "");
        cleanup_with(fetcher_pool_done) FetcherPool fetchers = { .fd = -EBADF };
        cleanup_with(endpoints_done) Endpoints endpoints = { 0 };
        int r;

        if (!settings->is_offline) {
                r = start_signature_fetcher(reference, settings, &endpoints, &fetchers, store,
                                            reterr);
                if (r < 0)
                        return r;
        }
        r = confine_parser(false, store_fd(store), reterr);
        if (r < 0)
                return r;
        r = check_signatures_again(&gate, &fetchers, reterr);
        if (r < 0)
                return r;
        (void) printf("{\"digest\":\"%s\"}\n", digest);
        return r;
}
