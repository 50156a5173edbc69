/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The standard input for `mainstay-image source` and `mainstay-image report`. */

#include "agent/model/config.h"

/* A memory file, because the settings may contain passwords. 'file_max' is the limit of a manifest
 * in bytes; 'was_refused': the manifests of the last response could not be used. Returns a
 * descriptor or -errno. */
int fetch_settings_of_index(const Config *config, size_t file_max, bool was_refused);
int fetch_settings_of_url(const Config *config, size_t file_max, bool was_refused);

/* The content of a report. */
typedef struct ReportContent {
        const char *node_name;
        const char *body;          /* lines */
        uint64_t n_dropped;        /* dropped lines so far */
        const char *log_directory; /* directory of pod logs; NULL: no logs are added */
        const char *logs;          /* JSON: the containers, see report-log.h of mainstay-image */
} ReportContent;

/* The same for a report. */
int fetch_settings_of_report(const Config *config, const ReportContent *content);
