/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of the configuration: one file, and a directory of drop-ins that change it, by the
 * rules of the kubelet's --config-dir: files whose names end with ".conf", in the directory and its
 * subdirectories, in lexical order, each applied as a JSON merge patch (RFC 7396). */

#include "agent/model/config.h"
#include "common/error.h"

typedef struct ConfigFiles {
        const char *file;
        const char *directory; /* NULL: none */
        bool needs_file;       /* a missing file is an error; otherwise it counts as empty */
        bool needs_directory;
} ConfigFiles;

/* Reads the configuration. KubeletConfiguration fields that have no effect here are reported as
 * warnings. The caller frees it with config_done(). */
int config_files_load(const ConfigFiles *files, Config *ret, char ***ret_warnings, Error *reterr);

/* Requires, from now on, the files that exist now: while the agent runs, a configuration file that
 * disappears is an error, and does not count as an empty configuration. */
void config_files_need_present(ConfigFiles *files);

typedef struct ConfigDropins {
        char **files;       /* in the order in which they apply */
        char **directories; /* the directory itself, if it exists, and its subdirectories */
        char **skipped;     /* files with other names */
} ConfigDropins;

/* 0, or -errno with a message; a missing directory has no drop-ins. To be freed in any case. */
int config_dropins_list(const char *directory, ConfigDropins *ret, Error *reterr);
void config_dropins_done(ConfigDropins *dropins);

/* Whether a file with that name is a drop-in. */
bool config_dropin_is_name(const char *name);
