/* SPDX-License-Identifier: Apache-2.0 */

/* Every entry of every layer makes a claim about a name: it exists, or it is hidden. The claim of
 * the highest layer wins, unless an even higher layer makes a claim about a parent directory. */

#include "agent/image-helper/delta/delta-files.h"

#include "agent/image-helper/archive/tar-name.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

enum {
        SIZE_FACTOR_MAX = 10,    /* limit for similar files, … */
        SMALL_BYTES = 64 * 1024, /* … except for small ones */
        MOVED_MAX = 64           /* candidates that are compared */
};

typedef enum ClaimKind {
        CLAIM_OPAQUE, /* hides the content of lower layers below it */
        CLAIM_HIDDEN, /* the name does not exist: a whiteout */
        CLAIM_DIRECTORY,
        CLAIM_FILE,
        CLAIM_OTHER,
} ClaimKind;

typedef struct Claim {
        char *name; /* owned, because the name that a whiteout hides differs from the name of the
                     * entry */
        const ScannedEntry *entry;
        const uint8_t *data; /* bytes of the layer */
        size_t layer, order; /* within a layer the last one wins; a whiteout comes before all
                              * others */
        ClaimKind kind;
} Claim;

typedef struct Claims {
        Claim *items;
        size_t n;
} Claims;

static int compare_name_claims(const void *a, const void *b) {
        const Claim *one = a, *other = b;
        int c = strcmp(one->name, other->name);

        if (c != 0)
                return c;
        if (one->layer != other->layer)
                return one->layer > other->layer ? -1 : 1;
        return one->order > other->order ? -1 : one->order < other->order;
}

static ClaimKind claim_of_entry(const ScannedEntry *entry) {
        switch (entry->kind) {
        case TAR_SCAN_FILE:
                return CLAIM_FILE;
        case TAR_SCAN_DIRECTORY:
                return CLAIM_DIRECTORY;
        default:
                return CLAIM_OTHER;
        }
}

/* 0, also for names that are ignored; or -ENOMEM. */
static int add_claim(Claims *claims, const DeltaLayer *layer, size_t number, size_t i) {
        const ScannedEntry *entry = &layer->scan.entries[i];
        Claim claim = { .entry = entry,
                        .data = layer->data,
                        .layer = number,
                        .order = i + 1,
                        .kind = claim_of_entry(entry) };
        cleanup_free char *parent = NULL;
        const char *base, *hidden = NULL;
        TarNameKind kind;
        int r;

        if (entry->name[0] == '\0')
                return 0;
        r = tar_name_split(entry->name, &parent, &base);
        if (r < 0)
                return r;
        if (tar_name_classify(base, &kind, &hidden, NULL) < 0 || kind == TAR_NAME_IGNORED)
                return 0;
        if (kind != TAR_NAME_ORDINARY) {
                claim.order = 0;
                claim.kind = hidden ? CLAIM_HIDDEN : CLAIM_OPAQUE;
        }
        if (kind == TAR_NAME_WHITEOUT)
                claim.name = text_format("%s%s%s", parent, parent[0] ? "/" : "", hidden);
        else
                claim.name = strdup(kind == TAR_NAME_OPAQUE ? parent : entry->name);
        if (!claim.name)
                return -ENOMEM;
        claims->items[claims->n++] = claim;
        return 0;
}

/* If a layer contains a directory several times, the last entry wins, so a name has only a few
 * claims. */
static void remove_repeated_claims(Claims *claims) {
        size_t n = 0;

        for (size_t i = 0; i < claims->n; i++) {
                const Claim *last = n > 0 ? &claims->items[n - 1] : NULL;
                Claim *claim = &claims->items[i];

                if (last && claim->kind == last->kind && claim->layer == last->layer &&
                    streq(claim->name, last->name))
                        free(claim->name);
                else
                        claims->items[n++] = *claim;
        }
        claims->n = n;
}

static int collect_name_claims(const DeltaLayer *layers, size_t n, Claims *ret) {
        size_t total = 0;

        for (size_t i = 0; i < n; i++)
                total += layers[i].scan.n;
        ret->items = calloc(MAX(total, (size_t) 1), sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < layers[i].scan.n; k++)
                        if (add_claim(ret, &layers[i], i, k) < 0)
                                return -ENOMEM;
        qsort(ret->items, ret->n, sizeof(*ret->items), compare_name_claims);
        remove_repeated_claims(ret);
        return 0;
}

static void claims_done(Claims *claims) {
        for (size_t i = 0; i < claims->n; i++)
                free(claims->items[i].name);
        free(claims->items);
}

static int compare_claimed_name(const char *name, const Claim *claim) {
        return strcmp(name, claim->name);
}

/* The claims about one name, the highest first; NULL if there is none. */
static const Claim *find_claims(const Claims *claims, const char *name) {
        return ARRAY_FIND(name, claims->items, claims->n, compare_claimed_name);
}

/* Whether a claim about the directory hides its content in this layer: a claim of a higher layer,
 * which precedes those of lower layers in the list. */
static bool directory_hides(const Claims *claims, const char *directory, size_t layer) {
        const Claim *claim = find_claims(claims, directory);

        for (; claim && claim < claims->items + claims->n && claim->layer > layer &&
               streq(claim->name, directory);
             claim++)
                if (claim->kind != CLAIM_DIRECTORY)
                        return true;
        return false;
}

static bool is_file_hidden(const Claims *claims, const Claim *file) {
        cleanup_free char *parent = strdup(file->name);
        char *slash;

        if (!parent || directory_hides(claims, "", file->layer))
                return true;
        while ((slash = strrchr(parent, '/'))) {
                *slash = '\0';
                if (directory_hides(claims, parent, file->layer))
                        return true;
        }
        return false;
}

static int compare_hashes(const void *a, const void *b) {
        const DeltaFile *one = a, *other = b;
        int c = strcmp(one->hash, other->hash);

        return c != 0 ? c : strcmp(one->name, other->name);
}

static int compare_names(const void *a, const void *b) {
        const DeltaFile *const *one = a, *const *other = b;

        return strcmp((*one)->name, (*other)->name);
}

static int compare_bases(const void *a, const void *b) {
        const DeltaFile *const *one = a, *const *other = b;
        int c = strcmp((*one)->base, (*other)->base);

        return c != 0 ? c : strcmp((*one)->name, (*other)->name);
}

static void add_file(DeltaFiles *files, const Claim *claim) {
        const char *slash = strrchr(claim->entry->name, '/');
        DeltaFile *file = &files->by_hash[files->n++];

        *file = (DeltaFile){ .name = claim->entry->name,
                             .base = slash ? slash + 1 : claim->entry->name,
                             .data = claim->data + claim->entry->offset,
                             .size = claim->entry->size };
        sha256_hex(file->data, (size_t) file->size, file->hash);
}

static int sort_files(DeltaFiles *files) {
        size_t room = MAX(files->n, (size_t) 1);

        qsort(files->by_hash, files->n, sizeof(*files->by_hash), compare_hashes);
        files->by_name = calloc(room, sizeof(*files->by_name));
        files->by_base = calloc(room, sizeof(*files->by_base));
        if (!files->by_name || !files->by_base)
                return -ENOMEM;
        for (size_t i = 0; i < files->n; i++)
                files->by_name[i] = files->by_base[i] = &files->by_hash[i];
        qsort(files->by_name, files->n, sizeof(DeltaFile *), compare_names);
        qsort(files->by_base, files->n, sizeof(DeltaFile *), compare_bases);
        return 0;
}

int delta_files_collect(const DeltaLayer *layers, size_t n, DeltaFiles *ret) {
        cleanup_with(claims_done) Claims claims = { 0 };
        int r = collect_name_claims(layers, n, &claims);

        if (r < 0)
                return r;
        ret->by_hash = calloc(MAX(claims.n, (size_t) 1), sizeof(*ret->by_hash));
        if (!ret->by_hash)
                return -ENOMEM;
        for (size_t i = 0; i < claims.n; i++) {
                const Claim *claim = &claims.items[i];

                if (i > 0 && streq(claim->name, claims.items[i - 1].name))
                        continue;
                if (claim->kind == CLAIM_FILE && claim->entry->size > 0 &&
                    !is_file_hidden(&claims, claim))
                        add_file(ret, claim);
        }
        return sort_files(ret);
}

void delta_files_done(DeltaFiles *files) {
        free(files->by_hash);
        free(files->by_name);
        free(files->by_base);
        *files = (DeltaFiles){ 0 };
}

static int compare_hash_of_file(const char *hash, const DeltaFile *file) {
        return strcmp(hash, file->hash);
}

const DeltaFile *delta_files_find_equal(const DeltaFiles *files, const char *hash, uint64_t size) {
        const DeltaFile *file = ARRAY_FIND(hash, files->by_hash, files->n, compare_hash_of_file);

        return file && file->size == size ? file : NULL;
}

static int compare_name_of_file(const char *name, DeltaFile *const *file) {
        return strcmp(name, (*file)->name);
}

static const DeltaFile *find_by_name(const DeltaFiles *files, const char *name) {
        DeltaFile **found = ARRAY_FIND(name, files->by_name, files->n, compare_name_of_file);

        return found ? *found : NULL;
}

static bool size_is_similar(uint64_t a, uint64_t b) {
        return (a < SMALL_BYTES && b < SMALL_BYTES) ||
               (a / SIZE_FACTOR_MAX <= b && b / SIZE_FACTOR_MAX <= a);
}

static uint64_t distance(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

static int compare_base_of_file(const char *base, DeltaFile *const *file) {
        return strcmp(base, (*file)->base);
}

static const DeltaFile *find_moved(const DeltaFiles *files, const char *base, uint64_t size) {
        const DeltaFile *best = NULL;
        size_t first = ARRAY_FIND_PLACE(base, files->by_base, files->n, compare_base_of_file);

        for (size_t i = first; i < files->n && i < first + MOVED_MAX; i++) {
                const DeltaFile *file = files->by_base[i];

                if (!streq(file->base, base))
                        break;
                if (size_is_similar(file->size, size) &&
                    (!best || distance(file->size, size) < distance(best->size, size)))
                        best = file;
        }
        return best;
}

const DeltaFile *delta_files_find_similar(const DeltaFiles *files, const char *name,
                                          uint64_t size) {
        const DeltaFile *file = find_by_name(files, name);
        const char *slash = strrchr(name, '/');

        if (file && size_is_similar(file->size, size))
                return file;
        return find_moved(files, slash ? slash + 1 : name, size);
}
