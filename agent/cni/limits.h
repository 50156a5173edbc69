/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits on the input from files and plugins. */

enum {
        CNI_CONFIG_MAX = 48 * 1024,  /* bytes of a configuration; a plugin gets it in one packet */
        CNI_RECORD_MAX = 256 * 1024, /* bytes of a CniNetwork as text */
        CNI_RESULT_MAX = 32 * 1024,  /* bytes of a plugin's output */
        CNI_PLUGINS_MAX = 16,
};
