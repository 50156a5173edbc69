/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest-table.h"

#include "agent/model/own-values.h"
#include "agent/model/pod-order.h"
#include "agent/model/pod-source.h"
#include "agent/model/schema.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

/* An object that claims a name. */
typedef struct NameClaim {
        ManifestEntry *entry;
        const char *kind;    /* for messages; names are unique within a kind */
        ObjectSource source; /* source whose names these are; NONE: the whole node shares the names
                              * of this kind */
        const ObjectMeta *metadata;
        bool *holds;
        size_t order;       /* of the files */
        size_t name_length; /* of the name without the node suffix of a pod */
} NameClaim;

static bool object_names_match(const ObjectMeta *a, const ObjectMeta *b) {
        return streq(a->name, b->name) && streq(a->namespace, b->namespace);
}

static bool values_equal(const DataObject *a, const DataObject *b) {
        if (a->values.n != b->values.n)
                return false;
        for (size_t i = 0; i < a->values.n; i++) {
                const ObjectValue *x = &a->values.items[i], *y = &b->values.items[i];

                if (!streq(x->key, y->key) || x->length != y->length ||
                    x->is_binary != y->is_binary || memcmp(x->bytes, y->bytes, x->length) != 0)
                        return false;
        }
        return true;
}

/* The entry's object of the same kind and name, or NULL. */
static const DataObject *find_entry_object(const ManifestEntry *entry, const DataObject *object) {
        for (size_t i = 0; i < entry->data.n; i++)
                if (entry->data.items[i]->kind == object->kind &&
                    object_names_match(&entry->data.items[i]->metadata, &object->metadata))
                        return entry->data.items[i];
        return NULL;
}

int manifest_entry_check_immutable(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr) {
        for (size_t i = 0; i < objects->data.n; i++) {
                const DataObject *object = objects->data.items[i];
                const DataObject *known = find_entry_object(entry, object);

                if (known && known->immutable &&
                    !(object->immutable && values_equal(known, object)))
                        return error_setf(reterr, EINVAL,
                                          "%s: %s %s/%s: is immutable; it can be removed, not "
                                          "changed",
                                          entry->manifest.file, object_kind_words[object->kind],
                                          object->metadata.namespace, object->metadata.name);
        }
        return 0;
}

int manifest_entry_check_selectors(const ManifestEntry *entry, const ManifestObjects *objects,
                                   Error *reterr) {
        for (size_t i = 0; i < objects->daemonsets.n; i++) {
                const DaemonSet *set = objects->daemonsets.items[i];

                for (size_t j = 0; j < entry->daemonsets.n; j++) {
                        const DaemonSet *known = entry->daemonsets.items[j];

                        if (object_names_match(&known->metadata, &set->metadata) &&
                            !schema_equal(&label_selector_schema, known->spec.selector,
                                          set->spec.selector))
                                return error_setf(reterr, EINVAL,
                                                  "%s: daemonset %s/%s: spec.selector: field is "
                                                  "immutable; give the set another name, or remove "
                                                  "its file first",
                                                  entry->manifest.file, set->metadata.namespace,
                                                  set->metadata.name);
                }
        }
        return 0;
}

static void free_entry_daemonsets(ManifestEntry *entry) {
        for (size_t i = 0; i < entry->daemonsets.n; i++)
                daemonset_free(entry->daemonsets.items[i]);
        free(entry->daemonsets.items);
        free(entry->daemonset_holds);
}

static void free_entry_objects(ManifestEntry *entry) {
        for (size_t i = 0; i < entry->pods.n; i++)
                pod_free(entry->pods.items[i]);
        free(entry->pods.items);
        free(entry->holds);
        for (size_t i = 0; i < entry->data.n; i++)
                data_object_free(entry->data.items[i]);
        free(entry->data.items);
        free(entry->data_holds);
        strv_free(entry->manifest.warnings);
}

static ManifestEntry *manifest_entry_free(ManifestEntry *entry) {
        free_entry_objects(entry);
        free_entry_daemonsets(entry);
        free(entry->manifest.daemonsets.items);
        free(entry->manifest.data.items);
        free(entry->manifest.pods.items);
        free(entry->manifest.file);
        free(entry->manifest.error);
        free(entry->last_error);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(ManifestEntry *, manifest_entry_free)

static int compare_file_of_entry(const char *file, ManifestEntry *const *entry) {
        return strcmp(file, (*entry)->manifest.file);
}

ManifestEntry *manifest_table_find(const ManifestTable *table, const char *file) {
        ManifestEntry **entry = ARRAY_FIND(file, table->entries, table->n, compare_file_of_entry);

        return entry ? *entry : NULL;
}

ManifestEntry *manifest_table_get(ManifestTable *table, const char *file) {
        cleanup_with(manifest_entry_freep) ManifestEntry *entry = NULL;
        size_t i = ARRAY_FIND_PLACE(file, table->entries, table->n, compare_file_of_entry);
        size_t n = table->n;
        const Manifest **manifest;
        ManifestEntry **place;

        if (i < table->n && streq(table->entries[i]->manifest.file, file))
                return table->entries[i];
        entry = calloc(1, sizeof(*entry));
        if (!entry)
                return NULL;
        entry->manifest.file = strdup(file);
        if (!entry->manifest.file || !ARRAY_RESERVE(table->entries, table->n, 1))
                return NULL;
        manifest = ARRAY_INSERT(table->manifests, n, i);
        place = manifest ? ARRAY_INSERT(table->entries, table->n, i) : NULL;
        if (!place)
                return NULL;
        *manifest = &entry->manifest;
        *place = TAKE_PTR(entry);
        return *place;
}

void manifest_table_remove(ManifestTable *table, size_t i) {
        size_t n = table->n;

        table->data_generation += table->entries[i]->data.n > 0;
        manifest_entry_free(table->entries[i]);
        ARRAY_REMOVE(table->entries, table->n, i);
        ARRAY_REMOVE(table->manifests, n, i);
}

void manifest_table_done(ManifestTable *table) {
        for (size_t i = 0; i < table->n; i++)
                manifest_entry_free(table->entries[i]);
        free(table->entries);
        free(table->manifests);
        *table = (ManifestTable){ 0 };
}

static bool holds_name(const ManifestEntry *entry, const Pod *pod) {
        for (size_t i = 0; i < entry->pods.n; i++)
                if (entry->holds[i] &&
                    object_names_match(&entry->pods.items[i]->metadata, &pod->metadata))
                        return true;
        return false;
}

static bool holds_data_name(const ManifestEntry *entry, const DataObject *object) {
        for (size_t i = 0; i < entry->data.n; i++)
                if (entry->data_holds[i] && entry->data.items[i]->kind == object->kind &&
                    object_names_match(&entry->data.items[i]->metadata, &object->metadata))
                        return true;
        return false;
}

static size_t count_default_classes(const ManifestEntry *entry) {
        size_t n = 0;

        for (size_t i = 0; i < entry->data.n; i++)
                n += entry->data.items[i]->priority.global_default;
        return n;
}

static bool holds_daemonset_name(const ManifestEntry *entry, const DaemonSet *set) {
        for (size_t i = 0; i < entry->daemonsets.n; i++)
                if (entry->daemonset_holds[i] &&
                    object_names_match(&entry->daemonsets.items[i]->metadata, &set->metadata))
                        return true;
        return false;
}

static void set_entry_daemonsets(ManifestEntry *entry, ManifestObjects *objects, bool *holds) {
        for (size_t i = 0; i < objects->daemonsets.n; i++)
                holds[i] = holds_daemonset_name(entry, objects->daemonsets.items[i]);
        free_entry_daemonsets(entry);
        entry->daemonsets.items = objects->daemonsets.items;
        entry->daemonsets.n = objects->daemonsets.n;
        entry->daemonset_holds = holds;
        entry->manifest.daemonsets.n = 0;
}

int manifest_entry_set_objects(ManifestTable *table, ManifestEntry *entry,
                               ManifestObjects *objects) {
        cleanup_free bool *holds = calloc(objects->pods.n + 1, sizeof(*holds));
        cleanup_free bool *data_holds = calloc(objects->data.n + 1, sizeof(*data_holds));
        cleanup_free bool *daemonset_holds =
                calloc(objects->daemonsets.n + 1, sizeof(*daemonset_holds));

        if (!holds || !data_holds || !daemonset_holds)
                return -ENOMEM;
        for (size_t i = 0; i < objects->pods.n; i++)
                holds[i] = holds_name(entry, objects->pods.items[i]);
        for (size_t i = 0; i < objects->data.n; i++)
                data_holds[i] = holds_data_name(entry, objects->data.items[i]);

        table->data_generation += entry->data.n + objects->data.n > 0;
        set_entry_daemonsets(entry, objects, TAKE_PTR(daemonset_holds));
        free_entry_objects(entry);
        entry->pods.items = TAKE_PTR(objects->pods.items);
        entry->pods.n = objects->pods.n;
        entry->holds = TAKE_PTR(holds);
        entry->data.items = TAKE_PTR(objects->data.items);
        entry->data.n = objects->data.n;
        entry->data_holds = TAKE_PTR(data_holds);
        entry->manifest.warnings = TAKE_PTR(objects->warnings);
        *objects = (ManifestObjects){ 0 };
        /* Drops its objects from the lists; the next manifest_table_resolve_names() fills them
         * again. */
        entry->manifest.pods.n = 0;
        entry->manifest.data.n = 0;
        entry->manifest.default_class = NULL;
        entry->holds_default = entry->holds_default && count_default_classes(entry) > 0;
        return 0;
}

int manifest_entry_restore_pod_take(ManifestEntry *entry, Pod *pod) {
        cleanup_with(pod_freep) Pod *owned = pod;

        if (!ARRAY_RESERVE(entry->pods.items, entry->pods.n, 1) ||
            !ARRAY_RESERVE(entry->holds, entry->pods.n, 1))
                return -ENOMEM;
        entry->holds[entry->pods.n] = true;
        entry->pods.items[entry->pods.n++] = TAKE_PTR(owned);
        return 0;
}

int manifest_entry_restore_set_take(ManifestEntry *entry, DaemonSet *set) {
        cleanup_with(daemonset_freep) DaemonSet *owned = set;

        if (!ARRAY_RESERVE(entry->daemonsets.items, entry->daemonsets.n, 1) ||
            !ARRAY_RESERVE(entry->daemonset_holds, entry->daemonsets.n, 1))
                return -ENOMEM;
        entry->daemonset_holds[entry->daemonsets.n] = true;
        entry->daemonsets.items[entry->daemonsets.n++] = TAKE_PTR(owned);
        return 0;
}

bool manifest_entry_set_error_take(ManifestEntry *entry, char *error_text) {
        bool is_changed = !streq_ptr(entry->last_error, error_text);

        free(entry->last_error);
        entry->last_error = error_text;
        return is_changed;
}

/* Pods and pods of DaemonSets share one name space. */
static const char *claim_family(const NameClaim *claim) {
        return streq(claim->kind, "daemonset") ? "pod" : claim->kind;
}

/* The claim with the lower value wins: a file in the directory before a fetched one, so that the
 * machine's administrator has the final say. */
static int claim_rank(const NameClaim *claim) {
        if (claim->entry->missing_since > 0)
                return 4;
        return (manifest_is_fetched(&claim->entry->manifest) ? 2 : 0) + (*claim->holds ? 0 : 1);
}

static int compare_claimed_names(const NameClaim *a, const NameClaim *b) {
        int r = strncmp(a->metadata->name, b->metadata->name, MIN(a->name_length, b->name_length));

        return r != 0 ? r : (a->name_length > b->name_length) - (a->name_length < b->name_length);
}

static int compare_claims(const void *a, const void *b) {
        const NameClaim *left = a, *right = b;
        int r = strcmp(claim_family(left), claim_family(right));

        if (r == 0)
                r = (int) left->source - (int) right->source;
        if (r == 0)
                r = strcmp(left->metadata->namespace, right->metadata->namespace);
        if (r == 0)
                r = compare_claimed_names(left, right);
        if (r == 0)
                r = claim_rank(left) - claim_rank(right);
        return r != 0 ? r : left->order < right->order ? -1 : left->order > right->order;
}

static bool claims_match(const NameClaim *a, const NameClaim *b) {
        return streq(claim_family(a), claim_family(b)) && a->source == b->source &&
               streq(a->metadata->namespace, b->metadata->namespace) &&
               compare_claimed_names(a, b) == 0;
}

/* globalDefault is claimed like a name, which only one PriorityClass can own. */
static char no_name[] = "";
static const ObjectMeta default_class_name = { .name = no_name, .namespace = no_name };

static ObjectSource manifest_source(const Manifest *manifest) {
        const PodSource source = pod_source_of_file(manifest->file);

        return pod_source_origin(&source);
}

static size_t put_claims(ManifestEntry *entry, size_t order, NameClaim *claims) {
        size_t n = 0;

        for (size_t i = 0; i < entry->pods.n; i++)
                claims[n++] = (NameClaim){ entry,
                                           "pod",
                                           OBJECT_SOURCE_NONE,
                                           &entry->pods.items[i]->metadata,
                                           &entry->holds[i],
                                           order,
                                           pod_plain_name_length(entry->pods.items[i]) };
        for (size_t i = 0; i < entry->data.n; i++)
                claims[n++] = (NameClaim){ entry,
                                           object_kind_words[entry->data.items[i]->kind],
                                           entry->data.items[i]->metadata.source,
                                           &entry->data.items[i]->metadata,
                                           &entry->data_holds[i],
                                           order,
                                           strlen(entry->data.items[i]->metadata.name) };
        for (size_t i = 0; i < entry->daemonsets.n; i++)
                claims[n++] = (NameClaim){ entry,
                                           "daemonset",
                                           OBJECT_SOURCE_NONE,
                                           &entry->daemonsets.items[i]->metadata,
                                           &entry->daemonset_holds[i],
                                           order,
                                           strlen(entry->daemonsets.items[i]->metadata.name) };
        if (count_default_classes(entry) > 0)
                claims[n++] = (NameClaim){ entry,
                                           "a priorityclass with globalDefault",
                                           manifest_source(&entry->manifest),
                                           &default_class_name,
                                           &entry->holds_default,
                                           order,
                                           0 };
        return n;
}

static int collect_claims(const ManifestTable *table, NameClaim **ret, size_t *ret_n) {
        size_t n = 0;
        NameClaim *claims;

        for (size_t i = 0; i < table->n; i++)
                n += table->entries[i]->pods.n + table->entries[i]->data.n +
                     table->entries[i]->daemonsets.n + 1;
        claims = calloc(n + 1, sizeof(*claims));
        if (!claims)
                return -ENOMEM;
        n = 0;
        for (size_t i = 0; i < table->n; i++)
                n += put_claims(table->entries[i], i, claims + n);
        *ret = claims;
        *ret_n = n;
        return 0;
}

/* A file that has lost a name reports this, unless it has a worse error or is about to be removed.
 */
static int report_name_conflict(const NameClaim *claim, const NameClaim *winner, char **error) {
        const char *namespace = claim->metadata->namespace, *name = claim->metadata->name;

        if (*error || claim->entry->missing_since > 0)
                return 0;
        *error = text_format("%s: %s%s%s%s%s is already defined by %s", claim->entry->manifest.file,
                             claim->kind, name[0] ? " " : "", namespace, namespace[0] ? "/" : "",
                             name, winner->entry->manifest.file);
        if (!*error)
                return -ENOMEM;
        return 0;
}

static int resolve_name_claims(NameClaim *claims, size_t n, char **errors) {
        const NameClaim *winner = NULL;

        qsort(claims, n, sizeof(*claims), compare_claims);
        for (size_t i = 0; i < n; i++) {
                bool is_winner = !winner || !claims_match(winner, &claims[i]);

                /* Set only after the next claim to the same name has been compared. */
                if (is_winner)
                        winner = &claims[i];
                else if (report_name_conflict(&claims[i], winner, &errors[claims[i].order]) < 0)
                        return -ENOMEM;
        }
        /* Sorted by the old value of 'holds', which changes only now. */
        winner = NULL;
        for (size_t i = 0; i < n; i++) {
                bool is_winner = !winner || !claims_match(winner, &claims[i]);

                if (is_winner)
                        winner = &claims[i];
                *claims[i].holds = is_winner;
        }
        return 0;
}

/* A new array of pointers to the objects that own their names. */
static void *select_name_holders(const void *items, const bool *holds, size_t n_items,
                                 size_t *ret_n) {
        void *chosen = calloc(n_items + 1, sizeof(void *));
        size_t n = 0;

        for (size_t i = 0; chosen && i < n_items; i++)
                if (holds[i])
                        memcpy((char *) chosen + n++ * sizeof(void *),
                               (const char *) items + i * sizeof(void *), sizeof(void *));
        *ret_n = n;
        return chosen;
}

static bool pointers_differ(const void *a, size_t n_a, const void *b, size_t n_b) {
        return n_a != n_b || (n_a > 0 && memcmp(a, b, n_a * sizeof(void *)) != 0);
}

static const DataObject *find_default_class(const ManifestEntry *entry) {
        for (size_t i = 0; i < entry->data.n && entry->holds_default; i++)
                if (entry->data_holds[i] && entry->data.items[i]->priority.global_default)
                        return entry->data.items[i];
        return NULL;
}

/* Sets the public fields of an entry. 1 if they have changed. */
static int publish_entry_objects(ManifestTable *table, ManifestEntry *entry, char **error,
                                 uint64_t now_realtime_usec) {
        Manifest *manifest = &entry->manifest;
        size_t n_pods, n_data;
        cleanup_free void *pods =
                select_name_holders(entry->pods.items, entry->holds, entry->pods.n, &n_pods);
        cleanup_free void *data =
                select_name_holders(entry->data.items, entry->data_holds, entry->data.n, &n_data);
        bool has_new_error = !streq_ptr(manifest->error, *error), has_new_data, has_changed;

        if (!pods || !data)
                return -ENOMEM;
        has_new_data = pointers_differ(data, n_data, manifest->data.items, manifest->data.n) ||
                       manifest->default_class != find_default_class(entry);
        manifest->default_class = find_default_class(entry);
        has_changed = has_new_error || has_new_data ||
                      pointers_differ(pods, n_pods, manifest->pods.items, manifest->pods.n);
        table->data_generation += has_new_data;
        if (*error && has_new_error)
                manifest->error_since = now_realtime_usec;
        if (!*error)
                manifest->error_since = 0;
        free(manifest->pods.items);
        manifest->pods.items = TAKE_PTR(pods);
        manifest->pods.n = n_pods;
        free(manifest->data.items);
        manifest->data.items = TAKE_PTR(data);
        manifest->data.n = n_data;
        free(manifest->error);
        manifest->error = TAKE_PTR(*error);
        return has_changed;
}

/* The same for DaemonSets. */
static int publish_entry_daemonsets(ManifestEntry *entry) {
        Manifest *manifest = &entry->manifest;
        size_t n;
        void *sets = select_name_holders(entry->daemonsets.items, entry->daemonset_holds,
                                         entry->daemonsets.n, &n);
        bool has_changed;

        if (!sets)
                return -ENOMEM;
        has_changed = pointers_differ(sets, n, manifest->daemonsets.items, manifest->daemonsets.n);
        free(manifest->daemonsets.items);
        manifest->daemonsets.items = sets;
        manifest->daemonsets.n = n;
        return has_changed;
}

/* ---- the order of pods ---- */

/* The pods that own their names, and the index of the file of each. */
typedef struct HeldPods {
        const Pod **pods;
        size_t *files;
        size_t *next; /* in a cycle; see pod_order_find_cycles() */
        size_t n;
        bool has_order; /* at least one of them names others */
} HeldPods;

static void held_pods_done(HeldPods *held) {
        free(held->pods);
        free(held->files);
        free(held->next);
}

static void add_held_pods(const ManifestEntry *entry, size_t file, HeldPods *held) {
        for (size_t i = 0; i < entry->pods.n; i++) {
                const Pod *pod = entry->pods.items[i];

                if (!entry->holds[i])
                        continue;
                held->has_order = held->has_order || own_pod_value(pod, OWN_KEY_AFTER);
                held->pods[held->n] = pod;
                held->files[held->n++] = file;
        }
}

static int collect_held_pods(const ManifestTable *table, HeldPods *ret) {
        size_t n = 1;

        for (size_t i = 0; i < table->n; i++)
                n += table->entries[i]->pods.n;
        *ret = (HeldPods){ .pods = calloc(n, sizeof(*ret->pods)),
                           .files = calloc(n, sizeof(*ret->files)),
                           .next = calloc(n, sizeof(*ret->next)) };
        if (!ret->pods || !ret->files || !ret->next)
                return -ENOMEM;
        for (size_t i = 0; i < table->n; i++)
                add_held_pods(table->entries[i], i, ret);
        return 0;
}

/* If pods wait for one another, each of their files gets an error, unless it has a worse one. */
static int report_order_cycles(const ManifestTable *table, char **errors) {
        cleanup_with(held_pods_done) HeldPods held = { 0 };
        int r = collect_held_pods(table, &held);

        if (r < 0 || !held.has_order)
                return r;
        r = pod_order_find_cycles(held.pods, held.n, held.next);
        for (size_t i = 0; r >= 0 && i < held.n; i++) {
                char **error = &errors[held.files[i]];

                if (held.next[i] == held.n || *error)
                        continue;
                *error = pod_order_explain_cycle(table->entries[held.files[i]]->manifest.file,
                                                 held.pods, held.n, held.next, i);
                r = *error ? 0 : -ENOMEM;
        }
        return r;
}

static int resolve_table_names(ManifestTable *table, char **errors, uint64_t now_realtime_usec) {
        cleanup_free NameClaim *claims = NULL;
        int has_changed = 0, r;
        size_t n;

        for (size_t i = 0; i < table->n; i++)
                if (table->entries[i]->last_error) {
                        errors[i] = strdup(table->entries[i]->last_error);
                        if (!errors[i])
                                return -ENOMEM;
                }
        r = collect_claims(table, &claims, &n);
        if (r < 0)
                return r;
        r = resolve_name_claims(claims, n, errors);
        if (r < 0)
                return r;
        r = report_order_cycles(table, errors);
        if (r < 0)
                return r;
        for (size_t i = 0; i < table->n; i++) {
                r = publish_entry_daemonsets(table->entries[i]);
                if (r < 0)
                        return r;
                has_changed = has_changed || r > 0;
                r = publish_entry_objects(table, table->entries[i], &errors[i], now_realtime_usec);
                if (r < 0)
                        return r;
                has_changed = has_changed || r > 0;
        }
        return has_changed;
}

int manifest_table_resolve_names(ManifestTable *table, uint64_t now_realtime_usec) {
        char **errors = calloc(table->n + 1, sizeof(*errors));
        int r;

        if (!errors)
                return -ENOMEM;
        r = resolve_table_names(table, errors, now_realtime_usec);
        for (size_t i = 0; i < table->n; i++)
                free(errors[i]);
        free(errors);
        return r;
}
