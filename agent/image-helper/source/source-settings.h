/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's settings for a manifest source: a JSON object on standard input, because headers may
 * contain passwords. */

#include "agent/image-helper/pull/document.h"

typedef struct SourceSettings {
        json_t *document;
        const char *url;            /* URL of the manifest or the index */
        const char *fleet;          /* fleet of the index; NULL: the URL is that of a manifest */
        const char *body;           /* for a report: the body to send; NULL: not a report */
        const char *node;           /* likewise: name of the node */
        const char *log_directory;  /* likewise: directory of the logs in "logs"; NULL: no logs are
                                     * added */
        const json_t *logs;         /* containers: "namespace", "name", "uid", "container" */
        unsigned log_lines;         /* log lines for each of them */
        uint64_t n_dropped;         /* lines that the report had to drop */
        char **keys;                /* one of them must have signed the first index */
        char **headers;             /* "Name: value" */
        const char *directory;      /* directory of the verified index, for its images */
        const char *authority_file; /* PEM; NULL: the system's */
        const char *proxy_http, *proxy_https, *proxy_none_for;
        uint64_t rate_max;      /* bytes per second; 0: no limit */
        uint64_t file_max;      /* maximum size of a manifest in bytes */
        unsigned stall_seconds; /* 0: the default */
        bool was_refused; /* the agent could not use the last new content, which is in "next" */
} SourceSettings;

/* Takes ownership of the document. NULL is treated like a document that is not an object. 0, or
 * -errno with a message. */
int source_settings_parse(json_t *document, SourceSettings *ret, Error *reterr);

/* 0, or -errno with a message. */
int source_settings_read(int fd, SourceSettings *ret, Error *reterr);
void source_settings_done(SourceSettings *settings);
