/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/entry.h"

#include "common/cleanup.h"
#include "common/strv.h"

/* One pod that wants its name. */
typedef struct Claim {
        Entry *entry;
        size_t pod;
        size_t order; /* of the files */
} Claim;

static Entry *entry_free(Entry *entry) {
        for (size_t i = 0; i < entry->pods.n; i++)
                pod_free(entry->pods.items[i]);
        free(entry->pods.items);
        free(entry->holds);
        free(entry->manifest.pods.items);
        strv_free(entry->manifest.warnings);
        free(entry->manifest.file);
        free(entry->manifest.error);
        free(entry->trouble);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(Entry *, entry_free)

/* The first index whose file is not before the name. */
static size_t find_place(const EntryTable *table, const char *file) {
        size_t low = 0, high = table->n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (strcmp(table->entries[middle]->manifest.file, file) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

Entry *entry_table_find(const EntryTable *table, const char *file) {
        size_t i = find_place(table, file);

        return i < table->n && streq(table->entries[i]->manifest.file, file) ? table->entries[i]
                                                                             : NULL;
}

/* Room for one more in both arrays. */
static int table_grow(EntryTable *table) {
        const Manifest **manifests;
        Entry **entries;

        entries = reallocarray(table->entries, table->n + 1, sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        table->entries = entries;
        manifests = reallocarray(table->manifests, table->n + 1, sizeof(*manifests));
        if (!manifests)
                return -ENOMEM;
        table->manifests = manifests;
        return 0;
}

Entry *entry_table_get(EntryTable *table, const char *file) {
        cleanup_with(entry_freep) Entry *entry = NULL;
        size_t i = find_place(table, file);

        if (i < table->n && streq(table->entries[i]->manifest.file, file))
                return table->entries[i];
        entry = calloc(1, sizeof(*entry));
        if (!entry)
                return NULL;
        entry->manifest.file = strdup(file);
        if (!entry->manifest.file)
                return NULL;
        if (table_grow(table) < 0)
                return NULL;
        memmove(&table->entries[i + 1], &table->entries[i], (table->n - i) * sizeof(Entry *));
        memmove(&table->manifests[i + 1], &table->manifests[i],
                (table->n - i) * sizeof(Manifest *));
        table->n++;
        table->manifests[i] = &entry->manifest;
        table->entries[i] = TAKE_PTR(entry);
        return table->entries[i];
}

void entry_table_remove(EntryTable *table, size_t i) {
        entry_free(table->entries[i]);
        table->n--;
        memmove(&table->entries[i], &table->entries[i + 1], (table->n - i) * sizeof(Entry *));
        memmove(&table->manifests[i], &table->manifests[i + 1],
                (table->n - i) * sizeof(Manifest *));
}

void entry_table_done(EntryTable *table) {
        for (size_t i = 0; i < table->n; i++)
                entry_free(table->entries[i]);
        free(table->entries);
        free(table->manifests);
        *table = (EntryTable){ 0 };
}

static bool names_match(const Pod *a, const Pod *b) {
        return streq(a->metadata.name, b->metadata.name) &&
               streq(a->metadata.namespace, b->metadata.namespace);
}

static bool holds_name(const Entry *entry, const Pod *pod) {
        for (size_t i = 0; i < entry->pods.n; i++)
                if (entry->holds[i] && names_match(entry->pods.items[i], pod))
                        return true;
        return false;
}

int entry_set_objects(Entry *entry, ManifestObjects *objects) {
        cleanup_free bool *holds = calloc(objects->pods.n + 1, sizeof(*holds));

        if (!holds)
                return -ENOMEM;
        for (size_t i = 0; i < objects->pods.n; i++)
                holds[i] = holds_name(entry, objects->pods.items[i]);

        for (size_t i = 0; i < entry->pods.n; i++)
                pod_free(entry->pods.items[i]);
        free(entry->pods.items);
        free(entry->holds);
        strv_free(entry->manifest.warnings);
        entry->pods.items = TAKE_PTR(objects->pods.items);
        entry->pods.n = objects->pods.n;
        entry->holds = TAKE_PTR(holds);
        entry->manifest.warnings = TAKE_PTR(objects->warnings);
        *objects = (ManifestObjects){ 0 };
        /* Its pods are gone; the next entry_table_resolve() fills it again. */
        entry->manifest.pods.n = 0;
        return 0;
}

int entry_seed_take(Entry *entry, Pod *pod) {
        cleanup_with(pod_freep) Pod *owned = pod;
        Pod **pods;
        bool *holds;

        pods = reallocarray(entry->pods.items, entry->pods.n + 1, sizeof(*pods));
        if (!pods)
                return -ENOMEM;
        entry->pods.items = pods;
        holds = reallocarray(entry->holds, entry->pods.n + 1, sizeof(*holds));
        if (!holds)
                return -ENOMEM;
        entry->holds = holds;
        holds[entry->pods.n] = true;
        pods[entry->pods.n++] = TAKE_PTR(owned);
        return 0;
}

bool entry_set_trouble_take(Entry *entry, char *trouble) {
        bool is_news = !streq_ptr(entry->trouble, trouble);

        free(entry->trouble);
        entry->trouble = trouble;
        return is_news;
}

static const Pod *claim_pod(const Claim *claim) {
        return claim->entry->pods.items[claim->pod];
}

/* Less is better. */
static int claim_rank(const Claim *claim) {
        if (claim->entry->missing_since > 0)
                return 2;
        return claim->entry->holds[claim->pod] ? 0 : 1;
}

static int compare_claims(const void *a, const void *b) {
        const Claim *left = a, *right = b;
        int r = strcmp(claim_pod(left)->metadata.namespace, claim_pod(right)->metadata.namespace);

        if (r == 0)
                r = strcmp(claim_pod(left)->metadata.name, claim_pod(right)->metadata.name);
        if (r == 0)
                r = claim_rank(left) - claim_rank(right);
        return r != 0 ? r : left->order < right->order ? -1 : left->order > right->order;
}

static int collect_claims(const EntryTable *table, Claim **ret, size_t *ret_n) {
        size_t n = 0;
        Claim *claims;

        for (size_t i = 0; i < table->n; i++)
                n += table->entries[i]->pods.n;
        claims = calloc(n + 1, sizeof(*claims));
        if (!claims)
                return -ENOMEM;
        n = 0;
        for (size_t i = 0; i < table->n; i++)
                for (size_t j = 0; j < table->entries[i]->pods.n; j++)
                        claims[n++] = (Claim){ .entry = table->entries[i], .pod = j, .order = i };
        *ret = claims;
        *ret_n = n;
        return 0;
}

/* A file that lost a name says so, unless something worse is said of it or it is about to go. */
static int lose(const Claim *claim, const Claim *winner, char **error) {
        const ObjectMeta *metadata = &claim_pod(claim)->metadata;

        if (*error || claim->entry->missing_since > 0)
                return 0;
        if (asprintf(error, "%s: pod %s/%s is already defined by %s", claim->entry->manifest.file,
                     metadata->namespace, metadata->name, winner->entry->manifest.file) < 0) {
                *error = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int judge(Claim *claims, size_t n, char **errors) {
        const Claim *winner = NULL;

        qsort(claims, n, sizeof(*claims), compare_claims);
        for (size_t i = 0; i < n; i++) {
                bool is_winner = !winner || !names_match(claim_pod(winner), claim_pod(&claims[i]));

                /* Not before the next of the same name was compared with it. */
                if (is_winner)
                        winner = &claims[i];
                else if (lose(&claims[i], winner, &errors[claims[i].order]) < 0)
                        return -ENOMEM;
        }
        /* Sorted by what 'holds' was; it changes only now. */
        winner = NULL;
        for (size_t i = 0; i < n; i++) {
                bool is_winner = !winner || !names_match(claim_pod(winner), claim_pod(&claims[i]));

                if (is_winner)
                        winner = &claims[i];
                claims[i].entry->holds[claims[i].pod] = is_winner;
        }
        return 0;
}

/* Fills in what the world sees of an entry. 1 where it differs from before. */
static int show(Entry *entry, char **error, uint64_t now_realtime_usec) {
        Manifest *manifest = &entry->manifest;
        Pod **pods = calloc(entry->pods.n + 1, sizeof(*pods));
        bool has_changed;
        size_t n = 0;

        if (!pods)
                return -ENOMEM;
        for (size_t i = 0; i < entry->pods.n; i++)
                if (entry->holds[i])
                        pods[n++] = entry->pods.items[i];
        has_changed = n != manifest->pods.n || !streq_ptr(manifest->error, *error) ||
                      (n > 0 && memcmp(pods, manifest->pods.items, n * sizeof(*pods)) != 0);
        if (*error && !streq_ptr(manifest->error, *error))
                manifest->error_since = now_realtime_usec;
        if (!*error)
                manifest->error_since = 0;
        free(manifest->pods.items);
        manifest->pods.items = pods;
        manifest->pods.n = n;
        free(manifest->error);
        manifest->error = TAKE_PTR(*error);
        return has_changed;
}

static int resolve(EntryTable *table, char **errors, uint64_t now_realtime_usec) {
        cleanup_free Claim *claims = NULL;
        int has_changed = 0, r;
        size_t n;

        for (size_t i = 0; i < table->n; i++)
                if (table->entries[i]->trouble) {
                        errors[i] = strdup(table->entries[i]->trouble);
                        if (!errors[i])
                                return -ENOMEM;
                }
        r = collect_claims(table, &claims, &n);
        if (r >= 0)
                r = judge(claims, n, errors);
        for (size_t i = 0; i < table->n && r >= 0; i++) {
                r = show(table->entries[i], &errors[i], now_realtime_usec);
                has_changed = has_changed || r > 0;
        }
        return r < 0 ? r : has_changed;
}

int entry_table_resolve(EntryTable *table, uint64_t now_realtime_usec) {
        char **errors = calloc(table->n + 1, sizeof(*errors));
        int r;

        if (!errors)
                return -ENOMEM;
        r = resolve(table, errors, now_realtime_usec);
        for (size_t i = 0; i < table->n; i++)
                free(errors[i]);
        free(errors);
        return r;
}
