/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mainstay's own labels and annotations, "mainstay.dev/…". Anybody who may create a pod at an API
 * server can write any of them, so each one is used only on objects of the sources in its table
 * row. No other file contains such a key (tests/lint/calls.py): values are read by the functions
 * below from JSON, and by own-values.h from objects. mainstay-pods(7) also contains the table. */

#include <jansson.h>
#include <stdbool.h>

typedef enum OwnKey {
        /* Written by users. */
        OWN_KEY_AFTER,
        OWN_KEY_BOOTSTRAP,
        OWN_KEY_CRITICAL,
        OWN_KEY_JOURNAL_LOGS,
        OWN_KEY_PROGRESS_DEADLINE,
        OWN_KEY_ENCRYPTED_KEYS, /* in a Secret of a manifest */
        OWN_KEY_ENCRYPTED_FOR,  /* likewise; for display: the names of the recipients */
        /* Written by the agent, in pods: */
        OWN_KEY_COVERS, /* "<name>/<uid>" of the API server's pod that this pod has adopted */
        OWN_KEY_ROLLED_BACK,
        OWN_KEY_SOURCE, /* for display, also in other objects */
        /* Written by the agent, in the Node object: */
        OWN_KEY_NODE_LABELS,
        OWN_KEY_NODE_TAINTS,
        OWN_KEY_API_SERVER,
        OWN_KEY_API_SERVER_ERROR,
        OWN_KEY_DAEMONSETS_BY,
        OWN_KEY_LANDLOCK,
        OWN_KEY_SECRETS_AT_REST,
        OWN_KEY_SETTINGS_WITHOUT_EFFECT,
        N_OWN_KEYS,
} OwnKey;

typedef struct OwnKeyInfo {
        const char *name;
        bool of_any_pod;   /* used on all pods, not only on those from manifests */
        bool may_be_label; /* as an alternative to an annotation */
        bool is_agents;    /* only the agent may write it: a value that a source has written is
                            * removed */
} OwnKeyInfo;

extern const OwnKeyInfo own_keys[N_OWN_KEYS];

/* "mainstay.dev/…" */
const char *own_key_name(OwnKey key);

/* Whether only the agent writes this key. */
bool own_key_is_agents(const char *key);

/* The value in a pod that the agent has printed, borrowed; NULL: there is none, or it is not used
 * on this pod. */
const char *own_pod_json_value(const json_t *pod, OwnKey key);
bool own_pod_json_is_true(const json_t *pod, OwnKey key);

/* The annotations of such a pod that are used, in a new object; NULL: out of memory. */
json_t *own_pod_json_annotations(const json_t *pod);

/* The value in an object of any other kind, or a value that the agent itself writes. */
const char *own_json_value(const json_t *object, OwnKey key);

/* Takes ownership of the value. 0, or -1 if memory is exhausted. */
int own_json_set_new(json_t *annotations, OwnKey key, json_t *value);
