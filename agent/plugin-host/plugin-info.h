/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The messages of pluginregistration v1. */

#include "agent/plugins/plugin-protocol.h"

/* A GetInfo response: type, name, endpoint, and the versions as 'ids'. 0 or -errno. */
int decode_plugin_info(const char *data, size_t length, PluginMessage *ret);

/* 'error' is NULL for a plugin that has registered. 0 or -errno. */
int encode_registration_status(const char *error, Buffer *ret);
