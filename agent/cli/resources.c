/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/resources.h"

#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"

typedef struct ApiResourceWord {
        const char *word;
        ApiResource resource;
} ApiResourceWord;

/* The first name of each is used in messages. */
static const ApiResourceWord resource_words[] = {
        { "pods", API_RESOURCE_PODS },
        { "pod", API_RESOURCE_PODS },
        { "po", API_RESOURCE_PODS },
        { "events", API_RESOURCE_EVENTS },
        { "event", API_RESOURCE_EVENTS },
        { "ev", API_RESOURCE_EVENTS },
        { "images", API_RESOURCE_IMAGES },
        { "image", API_RESOURCE_IMAGES },
        { "configmaps", API_RESOURCE_CONFIG_MAPS },
        { "configmap", API_RESOURCE_CONFIG_MAPS },
        { "cm", API_RESOURCE_CONFIG_MAPS },
        { "secrets", API_RESOURCE_SECRETS },
        { "secret", API_RESOURCE_SECRETS },
        { "priorityclasses", API_RESOURCE_PRIORITY_CLASSES },
        { "priorityclass", API_RESOURCE_PRIORITY_CLASSES },
        { "pc", API_RESOURCE_PRIORITY_CLASSES },
        { "runtimeclasses", API_RESOURCE_RUNTIME_CLASSES },
        { "runtimeclass", API_RESOURCE_RUNTIME_CLASSES },
        { "daemonsets", API_RESOURCE_DAEMONSETS },
        { "daemonset", API_RESOURCE_DAEMONSETS },
        { "ds", API_RESOURCE_DAEMONSETS },
        { "daemonsets.apps", API_RESOURCE_DAEMONSETS },
        { "daemonset.apps", API_RESOURCE_DAEMONSETS },
        { "nodes", API_RESOURCE_NODES },
        { "node", API_RESOURCE_NODES },
        { "no", API_RESOURCE_NODES },
};

const char *api_resource_name(ApiResource resource) {
        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++)
                if (resource_words[i].resource == resource)
                        return resource_words[i].word;
        return "";
}

const char *strip_resource_prefix(const char *word) {
        const char *slash = strrchr(word, '/');

        return slash ? slash + 1 : word;
}

bool object_is_named(const json_t *object, char *const *names, size_t n_names) {
        const char *name = json_text(object, "metadata", "name");

        for (size_t i = 0; i < n_names; i++)
                if (streq_ptr(name, strip_resource_prefix(names[i])))
                        return true;
        return n_names == 0;
}

const char *find_missing_object_name(const json_t *objects, char *const *names, size_t n_names) {
        for (size_t n = 0; n < n_names; n++) {
                bool found = false;
                size_t i;
                json_t *object;

                json_array_foreach(objects, i, object)
                        found = found || object_is_named(object, &names[n], 1);
                if (!found)
                        return strip_resource_prefix(names[n]);
        }
        return NULL;
}

/* The resource named by the first 'length' bytes, if it is allowed; or NULL. */
static const ApiResourceWord *find_api_resource_word(const char *word, size_t length,
                                                     unsigned allowed) {
        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++) {
                const ApiResourceWord *row = &resource_words[i];

                if (allowed & API_RESOURCE_BIT(row->resource) && strlen(row->word) == length &&
                    strncmp(row->word, word, length) == 0)
                        return row;
        }
        return NULL;
}

bool is_daemonset_word(const char *word) {
        const char *slash = strchr(word, '/');

        return slash && find_api_resource_word(word, (size_t) (slash - word),
                                               API_RESOURCE_BIT(API_RESOURCE_DAEMONSETS));
}

bool is_owned_by_daemonset(const json_t *object, const char *name) {
        const json_t *owner = json_array_get(json_at(object, "metadata", "ownerReferences"), 0);

        return streq_ptr(json_text(owner, "kind"), "DaemonSet") &&
               streq_ptr(json_text(owner, "name"), name);
}

static int fail_resource(const char *word, size_t length, unsigned allowed) {
        cleanup_free char *name = strndup(word, length);
        const char *candidates[N_ELEMENTS(resource_words)];
        size_t n = 0;

        for (size_t i = 0; i < N_ELEMENTS(resource_words); i++)
                if (allowed & API_RESOURCE_BIT(resource_words[i].resource))
                        candidates[n++] = resource_words[i].word;
        return fail_unknown("resource", name ? name : word, candidates, n);
}

/* All arguments are "RESOURCE/NAME", of one resource. */
static int check_resource_slash_names(const Options *options, ApiResource resource,
                                      unsigned allowed) {
        for (size_t i = 0; i < options->n_words; i++) {
                const char *word = options->words[i];
                size_t length = strcspn(word, "/");
                const ApiResourceWord *row = find_api_resource_word(word, length, allowed);

                if (word[length] != '/' || !row || row->resource != resource)
                        return fail_usage("'%s' must be %.*s/NAME, as the others are", word,
                                          (int) strcspn(options->words[0], "/"), options->words[0]);
        }
        return STATUS_OK;
}

int parse_api_resource(const Options *options, const char *command, unsigned allowed,
                       ApiResource *ret, char *const **ret_names, size_t *ret_n_names) {
        const char *word = options->n_words > 0 ? options->words[0] : NULL;
        const ApiResourceWord *row;
        bool is_pair;
        size_t length;

        if (!word)
                return fail_usage("a resource is required: 'mainstay %s pods'", command);
        length = strcspn(word, "/");
        row = find_api_resource_word(word, length, allowed);
        if (!row)
                return fail_resource(word, length, allowed);
        is_pair = word[length] == '/';
        *ret = row->resource;
        *ret_names = options->words + (is_pair ? 0 : 1);
        *ret_n_names = options->n_words - (is_pair ? 0 : 1);
        return is_pair ? check_resource_slash_names(options, row->resource, allowed) : STATUS_OK;
}
