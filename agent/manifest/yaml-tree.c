/* SPDX-License-Identifier: Apache-2.0 */

/* The tree is built from libyaml's events without recursion: finished nodes stay on a stack until
 * their parent ends and takes them.
 *
 * No message quotes a value, an alias or a tag: a password without quotes may start with '*' or
 * '!'.
 *
 * A file cannot make the tree large: every node counts against a budget when it is created, and an
 * alias counts as many nodes as it refers to, although it shares them, so that walking the tree is
 * bounded as well. */

#include "agent/manifest/yaml-tree.h"

#include "agent/manifest/manifest-text.h"
#include "agent/manifest/scalar.h"
#include "agent/model/names.h"
#include "common/array.h"
#include "common/cleanup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <yaml.h>

#define CHUNK_SIZE (16 * KIB)

typedef struct Chunk Chunk;
struct Chunk {
        Chunk *next;
        size_t used;
        size_t size;
        _Alignas(max_align_t) char data[];
};

struct Arena {
        Chunk *chunks;
};

/* A collection that has not ended yet. */
typedef struct YamlFrame {
        YamlNode *node;
        size_t first; /* index of its first child on the stack */
} YamlFrame;

typedef struct YamlAnchor {
        const char *name;
        const YamlNode *node;
} YamlAnchor;

typedef struct YamlTreeBuilder {
        const char *file;
        uint32_t source;
        const char *data; /* the parser's input */
        YamlTree tree;
        yaml_parser_t parser;
        const YamlNode **stack;
        size_t n_stack;
        YamlFrame frames[TREE_DEPTH_MAX];
        size_t depth;
        YamlAnchor anchors[TREE_ANCHORS_MAX];
        size_t n_anchors;
        size_t n_nodes;
        size_t n_alias_bytes;
        Error *reterr;
} YamlTreeBuilder;

/* A pair of a mapping that is not complete yet. */
typedef struct YamlPair {
        const YamlNode *key;
        const YamlNode *value;
        size_t rank; /* 0: written here; 1, 2…: merged; the lowest wins */
        size_t order;
} YamlPair;

static void *arena_alloc(Arena *arena, size_t size) {
        Chunk *chunk = arena->chunks;
        void *p;

        size = (size + 7) & ~(size_t) 7;
        if (!chunk || chunk->size - chunk->used < size) {
                size_t room = MAX(size, (size_t) CHUNK_SIZE);

                chunk = malloc(sizeof(*chunk) + room);
                if (!chunk)
                        return NULL;
                *chunk = (Chunk){ .next = arena->chunks, .size = room };
                arena->chunks = chunk;
        }
        p = chunk->data + chunk->used;
        chunk->used += size;
        return p;
}

static const char *arena_text(Arena *arena, const char *text, size_t length) {
        char *copy = arena_alloc(arena, length + 1);

        if (copy) {
                memcpy(copy, text, length);
                copy[length] = '\0';
        }
        return copy;
}

void yaml_tree_done(YamlTree *tree) {
        Chunk *chunk = tree->arena ? tree->arena->chunks : NULL;

        while (chunk) {
                Chunk *next = chunk->next;
                free(chunk);
                chunk = next;
        }
        free(tree->arena);
        free(tree->documents);
        *tree = (YamlTree){ 0 };
}

static int refuse_yaml_at(YamlTreeBuilder *b, size_t line, size_t column, const char *format, ...)
        printf_like(4, 5);
static int refuse_yaml_at(YamlTreeBuilder *b, size_t line, size_t column, const char *format, ...) {
        cleanup_free char *sentence = NULL;
        va_list ap;

        va_start(ap, format);
        sentence = format_message(format, ap);
        va_end(ap);
        if (!sentence)
                return -ENOMEM;
        return error_setf(b->reterr, EINVAL, "%s:%zu:%zu: %s", b->file, line, column, sentence);
}

/* Creates and counts a node for an event. */
static int yaml_node_new(YamlTreeBuilder *b, YamlNodeKind kind, const yaml_event_t *event,
                         YamlNode **ret) {
        size_t line = event->start_mark.line + 1, column = event->start_mark.column + 1;
        YamlNode *node;

        if (++b->n_nodes > TREE_NODES_MAX)
                return refuse_yaml_at(b, line, column, "holds more than %d values", TREE_NODES_MAX);
        node = arena_alloc(b->tree.arena, sizeof(*node));
        if (!node)
                return -ENOMEM;
        *node = (YamlNode){
                .kind = kind,
                .line = (uint32_t) line,
                .column = (uint32_t) column,
                .weight = 1,
                .height = 1,
                .source = b->source,
        };
        *ret = node;
        return 0;
}

static int anchor_add(YamlTreeBuilder *b, const yaml_char_t *name, const YamlNode *node) {
        const char *text = (const char *) name;

        if (!name)
                return 0;
        if (b->n_anchors == TREE_ANCHORS_MAX)
                return refuse_yaml_at(b, node->line, node->column, "holds more than %d anchors",
                                      TREE_ANCHORS_MAX);
        text = arena_text(b->tree.arena, text, strlen(text));
        if (!text)
                return -ENOMEM;
        b->anchors[b->n_anchors++] = (YamlAnchor){ .name = text, .node = node };
        return 0;
}

static int push_yaml_node(YamlTreeBuilder *b, const YamlNode *node) {
        if (!ARRAY_RESERVE(b->stack, b->n_stack, 1))
                return -ENOMEM;
        b->stack[b->n_stack++] = node;
        return 0;
}

static int document_add(YamlTreeBuilder *b, const YamlNode *root) {
        if (!ARRAY_RESERVE(b->tree.documents, b->tree.n_documents, 1))
                return -ENOMEM;
        b->tree.documents[b->tree.n_documents++] = root;
        return 0;
}

/* Finishes a node: it becomes a child of the innermost collection, or a document. */
static int finish_yaml_node(YamlTreeBuilder *b, const YamlNode *node) {
        return b->depth > 0 ? push_yaml_node(b, node) : document_add(b, node);
}

static int refuse_tag(YamlTreeBuilder *b, const YamlNode *node) {
        return refuse_yaml_at(
                b, node->line, node->column,
                "has a tag that does not match its value; leave it out, or quote a text "
                "that starts with '!'");
}

static int handle_yaml_scalar(YamlTreeBuilder *b, const yaml_event_t *event) {
        const char *value = (const char *) event->data.scalar.value;
        const char *tag = (const char *) event->data.scalar.tag;
        size_t length = event->data.scalar.length;
        YamlNode *node;
        int r;

        r = yaml_node_new(b, YAML_NODE_STRING, event, &node);
        if (r < 0)
                return r;
        if (length > TREE_TEXT_MAX)
                return refuse_yaml_at(b, node->line, node->column,
                                      "holds a text of more than %d MiB",
                                      TREE_TEXT_MAX / (int) MIB);
        if (memchr(value, '\0', length))
                return refuse_yaml_at(b, node->line, node->column, "holds a NUL character");
        node->text = arena_text(b->tree.arena, value, length);
        if (!node->text)
                return -ENOMEM;
        node->bytes = (uint32_t) length;
        if (tag) {
                if (scalar_resolve_tagged(node->text, tag, &node->kind) < 0)
                        return refuse_tag(b, node);
        } else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
                node->kind = scalar_resolve(node->text);
        r = anchor_add(b, event->data.scalar.anchor, node);
        return r < 0 ? r : finish_yaml_node(b, node);
}

static int handle_yaml_alias(YamlTreeBuilder *b, const yaml_event_t *event) {
        size_t line = event->start_mark.line + 1, column = event->start_mark.column + 1;
        const char *name = (const char *) event->data.alias.anchor;
        const YamlNode *node = NULL;

        for (size_t i = b->n_anchors; i > 0 && !node; i--)
                if (streq(b->anchors[i - 1].name, name))
                        node = b->anchors[i - 1].node;
        if (!node)
                return refuse_yaml_at(b, line, column,
                                      "the alias has no anchor before it; quote a text that "
                                      "starts with '*'");
        /* A collection's weight is set when it ends. */
        if (node->weight == 0)
                return refuse_yaml_at(b, line, column,
                                      "the alias refers to a value that contains it");
        b->n_nodes += node->weight;
        if (b->n_nodes > TREE_NODES_MAX)
                return refuse_yaml_at(b, line, column,
                                      "holds more than %d values, aliases expanded",
                                      TREE_NODES_MAX);
        b->n_alias_bytes += node->bytes;
        if (b->n_alias_bytes > TREE_ALIAS_TEXT_MAX)
                return refuse_yaml_at(b, line, column, "holds more than %d MiB of text by aliases",
                                      TREE_ALIAS_TEXT_MAX / (int) MIB);
        if (b->depth + node->height > TREE_DEPTH_MAX)
                return refuse_yaml_at(b, line, column, "is nested deeper than %d levels",
                                      TREE_DEPTH_MAX);
        return finish_yaml_node(b, node);
}

static int handle_yaml_collection_start(YamlTreeBuilder *b, const yaml_event_t *event,
                                        YamlNodeKind kind, const yaml_char_t *tag,
                                        const yaml_char_t *anchor) {
        const char *own = kind == YAML_NODE_MAPPING ? YAML_MAP_TAG : YAML_SEQ_TAG;
        YamlNode *node;
        int r;

        r = yaml_node_new(b, kind, event, &node);
        if (r < 0)
                return r;
        if (tag && !streq((const char *) tag, own) && !streq((const char *) tag, "!"))
                return refuse_tag(b, node);
        if (b->depth == TREE_DEPTH_MAX)
                return refuse_yaml_at(b, node->line, node->column,
                                      "is nested deeper than %d levels", TREE_DEPTH_MAX);
        node->weight = 0;
        b->frames[b->depth++] = (YamlFrame){ .node = node, .first = b->n_stack };
        return anchor_add(b, anchor, node);
}

/* Sets the children of a node, and with them its weight, bytes and height. */
static int set_yaml_node_children(YamlTreeBuilder *b, YamlNode *node,
                                  const YamlNode *const *children, size_t n_children) {
        node->weight = 1;
        if (n_children == 0)
                return 0;
        node->items = arena_alloc(b->tree.arena, n_children * sizeof(*node->items));
        if (!node->items)
                return -ENOMEM;
        for (size_t i = 0; i < n_children; i++) {
                node->items[i] = children[i];
                node->weight += children[i]->weight;
                node->bytes += children[i]->bytes;
                node->height = MAX(node->height, children[i]->height + 1);
        }
        return 0;
}

/* Keys are strings in JSON; a key that YAML takes for a boolean or a number is converted to one. */
static int key_to_string(YamlTreeBuilder *b, const YamlNode **key) {
        char number[NUMBER_SIZE], text[DESCRIPTION_SIZE];
        const char *name = NULL;
        YamlNode *copy;

        if ((*key)->kind == YAML_NODE_STRING)
                return 0;
        if ((*key)->kind == YAML_NODE_BOOL)
                name = yaml_node_bool(*key) ? "true" : "false";
        else if (yaml_node_number_as_key(*key, number))
                name = number;
        else
                return refuse_yaml_at(b, (*key)->line, (*key)->column,
                                      "a key must be a string, not %s",
                                      yaml_node_describe(*key, text));
        copy = arena_alloc(b->tree.arena, sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        *copy = **key;
        copy->kind = YAML_NODE_STRING;
        copy->text = arena_text(b->tree.arena, name, strlen(name));
        *key = copy;
        return copy->text ? 0 : -ENOMEM;
}

static int compare_yaml_pairs(const void *a, const void *b) {
        const YamlPair *left = a, *right = b;
        int r = strcmp(left->key->text, right->key->text);

        if (r == 0)
                r = left->rank < right->rank ? -1 : left->rank > right->rank;
        return r != 0 ? r : left->order < right->order ? -1 : left->order > right->order;
}

static int compare_yaml_pair_order(const void *a, const void *b) {
        const YamlPair *left = a, *right = b;

        return left->order < right->order ? -1 : left->order > right->order;
}

static bool is_merge_key(const YamlNode *key) {
        return key->kind == YAML_NODE_STRING && streq(key->text, "<<");
}

/* The mappings of a merge key's value: itself, or the items of a list. */
static size_t merge_sources(const YamlNode *const *value, const YamlNode *const **ret) {
        if ((*value)->kind == YAML_NODE_SEQUENCE) {
                *ret = (*value)->items;
                return (*value)->n;
        }
        *ret = value;
        return 1;
}

/* Appends the pairs of all mappings that 'value' refers to; only counts them if 'entries' is
 * NULL. */
static int merge_yaml_mapping(YamlTreeBuilder *b, const YamlNode *const *value, YamlPair *entries,
                              size_t *n_entries, size_t *rank) {
        const YamlNode *const *sources;
        size_t n_sources = merge_sources(value, &sources);

        for (size_t i = 0; i < n_sources; i++) {
                if (sources[i]->kind != YAML_NODE_MAPPING)
                        return refuse_yaml_at(b, (*value)->line, (*value)->column,
                                              "'<<' must name a mapping or a list of mappings");
                ++*rank;
                for (size_t j = 0; j < sources[i]->n; j++) {
                        if (entries)
                                entries[*n_entries] = (YamlPair){
                                        .key = yaml_node_key(sources[i], j),
                                        .value = yaml_node_value(sources[i], j),
                                        .rank = *rank,
                                        .order = *n_entries,
                                };
                        ++*n_entries;
                }
        }
        return 0;
}

/* Collects own and merged pairs; only counts them if 'entries' is NULL. */
static int collect_yaml_pairs(YamlTreeBuilder *b, const YamlNode **children, size_t n_children,
                              YamlPair *entries, size_t *ret_n) {
        size_t n = 0, rank = 0;
        int r = 0;

        for (size_t i = 0; i < n_children && r >= 0; i += 2) {
                if (is_merge_key(children[i])) {
                        r = merge_yaml_mapping(b, &children[i + 1], entries, &n, &rank);
                        continue;
                }
                r = key_to_string(b, &children[i]);
                if (r >= 0 && entries)
                        entries[n] = (YamlPair){
                                .key = children[i],
                                .value = children[i + 1],
                                .order = n,
                        };
                n++;
        }
        *ret_n = n;
        return r;
}

/* A key without a value, as in {a, a}, may be unquoted text. */
static int refuse_duplicate_key(YamlTreeBuilder *b, const YamlPair *pair, const YamlNode *first) {
        bool has_value = pair->value->kind != YAML_NODE_NULL || pair->value->text[0];
        char text[EXCERPT_SIZE];

        return refuse_yaml_at(b, pair->key->line, pair->key->column,
                              "duplicate key%s%s%s; the first is at line %" PRIu32
                              ", column %" PRIu32,
                              has_value ? " '" : "", has_value ? excerpt(text, first->text) : "",
                              has_value ? "'" : "", first->line, first->column);
}

/* Sorts by key, refuses duplicates, and gives own pairs precedence over merged ones. */
static int remove_duplicate_keys(YamlTreeBuilder *b, YamlPair *entries, size_t *n_entries) {
        size_t n = 0;

        qsort(entries, *n_entries, sizeof(*entries), compare_yaml_pairs);
        for (size_t i = 0; i < *n_entries; i++) {
                const YamlPair *last = n > 0 ? &entries[n - 1] : NULL;

                if (!last || !streq(last->key->text, entries[i].key->text)) {
                        entries[n++] = entries[i];
                        continue;
                }
                if (entries[i].rank == 0)
                        return refuse_duplicate_key(b, &entries[i], last->key);
        }
        qsort(entries, n, sizeof(*entries), compare_yaml_pair_order);
        *n_entries = n;
        return 0;
}

static int finish_yaml_mapping(YamlTreeBuilder *b, YamlNode *node, const YamlNode **children,
                               size_t n_children) {
        cleanup_free const YamlNode **pairs = NULL;
        cleanup_free YamlPair *entries = NULL;
        size_t n;
        int r;

        r = collect_yaml_pairs(b, children, n_children, NULL, &n);
        if (r < 0)
                return r;
        entries = calloc(n + 1, sizeof(*entries));
        pairs = calloc(n + 1, 2 * sizeof(const YamlNode *));
        if (!entries || !pairs)
                return -ENOMEM;
        r = collect_yaml_pairs(b, children, n_children, entries, &n);
        if (r < 0)
                return r;
        r = remove_duplicate_keys(b, entries, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                pairs[2 * i] = entries[i].key;
                pairs[2 * i + 1] = entries[i].value;
        }
        node->n = (uint32_t) n;
        return set_yaml_node_children(b, node, pairs, 2 * n);
}

static int handle_yaml_collection_end(YamlTreeBuilder *b) {
        YamlFrame *frame = &b->frames[b->depth - 1];
        size_t n_children = b->n_stack - frame->first;
        const YamlNode **children = n_children > 0 ? b->stack + frame->first : NULL;
        int r;

        if (frame->node->kind == YAML_NODE_MAPPING)
                r = finish_yaml_mapping(b, frame->node, children, n_children);
        else {
                frame->node->n = (uint32_t) n_children;
                r = set_yaml_node_children(b, frame->node, children, n_children);
        }
        if (r < 0)
                return r;
        b->n_stack = frame->first;
        b->depth--;
        return finish_yaml_node(b, frame->node);
}

static int handle_yaml_event(YamlTreeBuilder *b, const yaml_event_t *event) {
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                return handle_yaml_scalar(b, event);
        case YAML_ALIAS_EVENT:
                return handle_yaml_alias(b, event);
        case YAML_SEQUENCE_START_EVENT:
                return handle_yaml_collection_start(b, event, YAML_NODE_SEQUENCE,
                                                    event->data.sequence_start.tag,
                                                    event->data.sequence_start.anchor);
        case YAML_MAPPING_START_EVENT:
                return handle_yaml_collection_start(b, event, YAML_NODE_MAPPING,
                                                    event->data.mapping_start.tag,
                                                    event->data.mapping_start.anchor);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                return handle_yaml_collection_end(b);
        case YAML_DOCUMENT_START_EVENT:
                b->n_anchors = 0;
                return 0;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_STREAM_END_EVENT:
        case YAML_DOCUMENT_END_EVENT:
                break;
        }
        return 0;
}

/* Errors from the parser itself. */
static int refuse_syntax(YamlTreeBuilder *b) {
        const yaml_parser_t *parser = &b->parser;
        size_t line = parser->problem_mark.line + 1, column = parser->problem_mark.column + 1;

        if (parser->error == YAML_MEMORY_ERROR)
                return -ENOMEM;
        if (parser->error == YAML_READER_ERROR)
                find_text_position(b->data, parser->problem_offset, &line, &column);
        if (parser->context)
                return refuse_yaml_at(b, line, column, "%s, %s that starts at line %zu",
                                      parser->problem, parser->context,
                                      parser->context_mark.line + 1);
        return refuse_yaml_at(b, line, column, "%s", parser->problem);
}

static int build_yaml_tree(YamlTreeBuilder *b) {
        for (;;) {
                yaml_event_t event;
                bool is_last;
                int r;

                if (!yaml_parser_parse(&b->parser, &event))
                        return refuse_syntax(b);
                is_last = event.type == YAML_STREAM_END_EVENT;
                r = handle_yaml_event(b, &event);
                yaml_event_delete(&event);
                if (r < 0 || is_last)
                        return r;
        }
}

static int parse_yaml(const char *file, uint32_t source, const char *data, size_t length,
                      YamlTree *ret, Error *reterr) {
        /* The parser is on the heap, because frames and anchors take some kilobytes. */
        cleanup_free YamlTreeBuilder *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->file = file;
        b->source = source;
        b->data = data;
        b->reterr = reterr;
        b->tree.arena = calloc(1, sizeof(*b->tree.arena));
        if (!b->tree.arena)
                return -ENOMEM;
        if (yaml_parser_initialize(&b->parser)) {
                yaml_parser_set_input_string(&b->parser, (const unsigned char *) data, length);
                r = build_yaml_tree(b);
                yaml_parser_delete(&b->parser);
        } else
                r = -ENOMEM;
        free(b->stack);
        if (r < 0)
                yaml_tree_done(&b->tree);
        else
                *ret = b->tree;
        return r;
}

int yaml_tree_parse_source(const char *file, uint32_t source, const char *data, size_t length,
                           YamlTree *ret, Error *reterr) {
        cleanup_free char *copy = NULL;
        size_t n_copy;
        int r;

        r = check_manifest_text(file, data, length, reterr);
        if (r < 0)
                return r;
        r = convert_json_text_to_yaml(data, length, &copy, &n_copy);
        if (r < 0)
                return r;
        if (copy)
                return parse_yaml(file, source, copy, n_copy, ret, reterr);
        return parse_yaml(file, source, data, length, ret, reterr);
}

int yaml_tree_parse(const char *file, const char *data, size_t length, YamlTree *ret,
                    Error *reterr) {
        return yaml_tree_parse_source(file, 0, data, length, ret, reterr);
}

/* ---- merge patches ---- */

static void append_merged_pair(YamlNode *to, const YamlNode **items, const YamlNode *key,
                               const YamlNode *value) {
        items[2 * (size_t) to->n] = key;
        items[2 * (size_t) to->n + 1] = value;
        to->n++;
        to->weight += key->weight + value->weight;
        to->bytes += key->bytes + value->bytes;
        to->height = MAX(to->height, value->height + 1);
}

/* The pairs of 'base' that are kept, changed or not. */
static int keep_merged_pairs(YamlTree *tree, const YamlNode *base, const YamlNode *patch,
                             YamlNode *to, const YamlNode **items) {
        for (size_t i = 0; base && i < base->n; i++) {
                const YamlNode *key = yaml_node_key(base, i), *value = yaml_node_value(base, i);
                const YamlNode *change = yaml_node_get(patch, key->text);
                int r;

                if (change && change->kind == YAML_NODE_NULL)
                        continue;
                r = change ? yaml_tree_merge_patch(tree, value, change, &value) : 0;
                if (r < 0)
                        return r;
                append_merged_pair(to, items, key, value);
        }
        return 0;
}

static int add_merged_pairs(YamlTree *tree, const YamlNode *base, const YamlNode *patch,
                            YamlNode *to, const YamlNode **items) {
        for (size_t i = 0; i < patch->n; i++) {
                const YamlNode *key = yaml_node_key(patch, i), *value = yaml_node_value(patch, i);
                int r;

                if (value->kind == YAML_NODE_NULL || (base && yaml_node_get(base, key->text)))
                        continue;
                r = yaml_tree_merge_patch(tree, NULL, value, &value);
                if (r < 0)
                        return r;
                append_merged_pair(to, items, key, value);
        }
        return 0;
}

int yaml_tree_merge_patch(YamlTree *tree, const YamlNode *base, const YamlNode *patch,
                          const YamlNode **ret) {
        const YamlNode **items;
        YamlNode *node;
        int r;

        if (patch->kind != YAML_NODE_MAPPING) {
                *ret = patch;
                return 0;
        }
        if (base && base->kind != YAML_NODE_MAPPING)
                base = NULL;
        node = arena_alloc(tree->arena, sizeof(*node));
        items = arena_alloc(tree->arena, 2 * sizeof(*items) * ((base ? base->n : 0) + patch->n));
        if (!node || !items)
                return -ENOMEM;
        *node = *patch;
        node->n = 0;
        node->items = items;
        node->weight = node->height = 1;
        node->bytes = 0;
        r = keep_merged_pairs(tree, base, patch, node, items);
        if (r >= 0)
                r = add_merged_pairs(tree, base, patch, node, items);
        *ret = node;
        return r;
}
