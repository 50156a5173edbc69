/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings of the agent for a source of manifests: a JSON object on standard input, because
 * headers may contain passwords. */

#include "agent/image-helper/pull/document.h"

typedef struct SourceSettings {
        json_t *document;
        const char *url;            /* of the manifest, or of the index */
        const char *fleet;          /* of the index; NULL: it is a manifest */
        const char *body;           /* to be sent, of a report; NULL: none */
        const char *node;           /* likewise: its name */
        const char *log_directory;  /* likewise, of "logs"; NULL: none are added */
        const json_t *logs;         /* containers: "namespace", "name", "uid", "container" */
        unsigned log_lines;         /* of each of them */
        uint64_t n_dropped;         /* lines that a report could not keep */
        char **keys;                /* one of them must have signed the first index */
        char **headers;             /* "Name: value" */
        const char *directory;      /* of the index that was verified, for its images */
        const char *authority_file; /* PEM; NULL: the system's */
        const char *proxy_http, *proxy_https, *proxy_none_for;
        uint64_t rate_max;      /* bytes a second; 0: no limit */
        uint64_t file_max;      /* bytes of a manifest */
        unsigned stall_seconds; /* 0: the usual */
        bool was_refused; /* the agent could not use the last new content, which is in "next" */
} SourceSettings;

/* Takes the document over. NULL is not an object. 0, or -errno with a message. */
int source_settings_parse(json_t *document, SourceSettings *ret, Error *reterr);

/* 0, or -errno with a message. */
int source_settings_read(int fd, SourceSettings *ret, Error *reterr);
void source_settings_done(SourceSettings *settings);
