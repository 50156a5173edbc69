/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files that the configuration is read from: one, and a directory of drop-ins that change it,
 * by the rules of the kubelet's --config-dir: files whose names end with ".conf", of the directory
 * and those below it, in lexical order, each a JSON merge patch (RFC 7396). */

#include "agent/model/config.h"
#include "common/error.h"

typedef struct ConfigFiles {
        const char *file;
        const char *directory; /* NULL: none */
        bool needs_file;       /* it is an error if it is missing; else an empty one is meant */
        bool needs_directory;
} ConfigFiles;

/* Reads the configuration. Fields of KubeletConfiguration without effect here are warnings. The
 * caller frees it with config_done(). */
int config_files_load(const ConfigFiles *files, Config *ret, char ***ret_warnings, Error *reterr);

/* Files that exist now are required from now on: while the agent runs, a configuration that
 * disappears is an error, and not the order to run without it. */
void config_files_need_present(ConfigFiles *files);

typedef struct ConfigDropins {
        char **files;       /* in the order in which they apply */
        char **directories; /* the directory itself, if it exists, and those below it */
        char **skipped;     /* files with other names */
} ConfigDropins;

/* 0, or -errno with a message; a missing directory has no drop-ins. To be freed in any case. */
int config_dropins_list(const char *directory, ConfigDropins *ret, Error *reterr);
void config_dropins_done(ConfigDropins *dropins);

/* Whether a file of that name is a drop-in. */
bool config_dropin_is_name(const char *name);
