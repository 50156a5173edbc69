/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which network configuration pods get: the first file of the administrator's directory, or the
 * default of Mainstay. */

#include "common/error.h"

/* The text of the first *.conflist, *.conf or *.json by name, or the default if there is none. The
 * caller frees the text and the name of the file (NULL: the default). 0 or -errno with a message.
 */
int cni_config_load(const char *config_dir, char **ret_text, char **ret_file, Error *reterr);

/* The bridge network of a lone node, as packaging/cni/10-mainstay.conflist. */
extern const char cni_default_config[];
