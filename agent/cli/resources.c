/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/resources.h"

#include "agent/cli/words.h"
#include "common/cleanup.h"

typedef struct ResourceWord {
        const char *word;
        Resource resource;
} ResourceWord;

/* The first of each is the one we say. */
static const ResourceWord resource_words[] = {
        { "pods", RESOURCE_PODS },
        { "pod", RESOURCE_PODS },
        { "po", RESOURCE_PODS },
        { "events", RESOURCE_EVENTS },
        { "event", RESOURCE_EVENTS },
        { "ev", RESOURCE_EVENTS },
        { "images", RESOURCE_IMAGES },
        { "image", RESOURCE_IMAGES },
        { "configmaps", RESOURCE_CONFIG_MAPS },
        { "configmap", RESOURCE_CONFIG_MAPS },
        { "cm", RESOURCE_CONFIG_MAPS },
        { "secrets", RESOURCE_SECRETS },
        { "secret", RESOURCE_SECRETS },
        { "priorityclasses", RESOURCE_PRIORITY_CLASSES },
        { "priorityclass", RESOURCE_PRIORITY_CLASSES },
        { "pc", RESOURCE_PRIORITY_CLASSES },
        { "runtimeclasses", RESOURCE_RUNTIME_CLASSES },
        { "runtimeclass", RESOURCE_RUNTIME_CLASSES },
        { "daemonsets", RESOURCE_DAEMONSETS },
        { "daemonset", RESOURCE_DAEMONSETS },
        { "ds", RESOURCE_DAEMONSETS },
        { "daemonsets.apps", RESOURCE_DAEMONSETS },
        { "daemonset.apps", RESOURCE_DAEMONSETS },
        { "nodes", RESOURCE_NODES },
        { "node", RESOURCE_NODES },
        { "no", RESOURCE_NODES },
};

const char *resource_name(Resource resource) {
        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++)
                if (resource_words[i].resource == resource)
                        return resource_words[i].word;
        return "";
}

const char *resource_bare_name(const char *word) {
        const char *slash = strrchr(word, '/');

        return slash ? slash + 1 : word;
}

bool resource_is_named(const json_t *object, char *const *names, size_t n_names) {
        const char *name = json_text(object, "metadata", "name");

        for (size_t i = 0; i < n_names; i++)
                if (streq_ptr(name, resource_bare_name(names[i])))
                        return true;
        return n_names == 0;
}

const json_t *resource_condition(const json_t *object, const char *type) {
        size_t i;
        json_t *condition;

        json_array_foreach(json_at(object, "status", "conditions"), i, condition)
                if (streq_ptr(json_text(condition, "type"), type))
                        return condition;
        return NULL;
}

const char *resource_missing_name(const json_t *objects, char *const *names, size_t n_names) {
        for (size_t n = 0; n < n_names; n++) {
                bool found = false;
                size_t i;
                json_t *object;

                json_array_foreach(objects, i, object)
                        found = found || resource_is_named(object, &names[n], 1);
                if (!found)
                        return resource_bare_name(names[n]);
        }
        return NULL;
}

/* The resource that the first 'length' bytes name, if it is allowed; or NULL. */
static const ResourceWord *find_word(const char *word, size_t length, unsigned allowed) {
        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++) {
                const ResourceWord *row = &resource_words[i];

                if (allowed & RESOURCE_BIT(row->resource) && strlen(row->word) == length &&
                    strncmp(row->word, word, length) == 0)
                        return row;
        }
        return NULL;
}

static int fail_resource(const char *word, size_t length, unsigned allowed) {
        cleanup_free char *name = strndup(word, length);
        const char *candidates[N_ELEMENTS(resource_words)];
        size_t n = 0;

        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++)
                if (allowed & RESOURCE_BIT(resource_words[i].resource))
                        candidates[n++] = resource_words[i].word;
        return fail_unknown("resource", name ? name : word, candidates, n);
}

/* All are "RESOURCE/NAME", of one resource. */
static int check_pairs(const Options *options, Resource resource, unsigned allowed) {
        for (size_t i = 0; i < options->n_words; i++) {
                const char *word = options->words[i];
                size_t length = strcspn(word, "/");
                const ResourceWord *row = find_word(word, length, allowed);

                if (word[length] != '/' || !row || row->resource != resource)
                        return fail_usage("'%s' must be %.*s/NAME, as the others are", word,
                                          (int) strcspn(options->words[0], "/"), options->words[0]);
        }
        return STATUS_OK;
}

int parse_resource(const Options *options, const char *command, unsigned allowed, Resource *ret,
                   char *const **ret_names, size_t *ret_n_names) {
        const char *word = options->n_words > 0 ? options->words[0] : NULL;
        const ResourceWord *row;
        bool is_pair;
        size_t length;

        if (!word)
                return fail_usage("say what to %s: 'mainstay %s pods'", command, command);
        length = strcspn(word, "/");
        row = find_word(word, length, allowed);
        if (!row)
                return fail_resource(word, length, allowed);
        is_pair = word[length] == '/';
        *ret = row->resource;
        *ret_names = options->words + (is_pair ? 0 : 1);
        *ret_n_names = options->n_words - (is_pair ? 0 : 1);
        return is_pair ? check_pairs(options, row->resource, allowed) : STATUS_OK;
}
