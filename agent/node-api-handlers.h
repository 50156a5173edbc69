/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers for mainstay-api, for the table in http-handlers.c. See http/http-server.h. */

#include "agent/http/http-server.h"

int agent_get_node_api_settings(void *userdata, char **ret_json, Error *reterr);
int agent_make_kubeconfig(void *userdata, char **ret_json, Error *reterr);
int agent_connect_signer(void *userdata, Error *reterr);
int agent_check_access(void *userdata, const HttpAccessQuestion *question, HttpAccess *access,
                       void **ret_check);
void agent_cancel_access(void *check);
int agent_check_pod(void *userdata, const char *namespace, const char *pod, const char *uid,
                    Error *reterr);
int agent_connect_to_port(void *userdata, const char *namespace, const char *pod, const char *uid,
                          unsigned port, bool is_ipv6, Error *reterr);
int agent_open_system_log(void *userdata, const char *path, const SystemLogQuery *query,
                          const char **ret_type, Error *reterr);
