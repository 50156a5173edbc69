/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers of the routes (see routes.c), and the data that the server provides to them. 'rest'
 * is the part of the path after the route's path. */

#include "agent/http/http-reply.h"
#include "agent/http/log-process.h"
#include "agent/http/response-stream.h"

typedef struct HttpServer HttpServer;
typedef struct HttpServerHandlers HttpServerHandlers;

/* The agent's side: the functions passed to http_server_new(), and their userdata. */
const HttpServerHandlers *http_handlers_of(const HttpServer *server);
void *http_userdata_of(const HttpServer *server);

sd_event *http_event_of(const HttpServer *server);
ResponseStreams *http_streams_of(HttpServer *server);
LogProcesses *http_log_processes_of(HttpServer *server);

/* Whether the client is the user of mainstay-api. */
bool http_is_api_peer(const HttpServer *server, struct MHD_Connection *http);

/* The first of the requests that wait for an access decision. */
HttpAccess **http_accesses_of(HttpServer *server);

/* serve-access.c: continues all of them, so that they are refused. */
void http_abort_accesses(HttpServer *server);

/* Whether the node has not joined an API server, so that mainstay-api serves kubectl. */
bool http_is_alone(const HttpServer *server);

/* True if the client is root, the agent's user or that of mainstay-api; otherwise the reply is
 * 403. */
bool http_require_api_peer(const HttpServer *server, struct MHD_Connection *http,
                           enum MHD_Result *ret);

/* The same for requests that change pods: the user of mainstay-api may only make them on a node
 * without an API server, on behalf of kubectl. */
bool http_require_writer(const HttpServer *server, struct MHD_Connection *http,
                         enum MHD_Result *ret);

/* descriptor-reply.c: whether the request upgrades to a descriptor; and the upgrade. 'type' is the
 * type of its content, or NULL. */
bool http_wants_descriptor(struct MHD_Connection *http);
enum MHD_Result http_reply_descriptor(HttpServer *server, struct MHD_Connection *http,
                                      int fd_consume, const char *type);

/* Schedules a run of libmicrohttpd in the next turn of the loop. */
void http_server_schedule_run(HttpServer *server);

/* Routes a request, as libmicrohttpd's MHD_AccessHandlerCallback; 'userdata' is the server. */
enum MHD_Result http_route_request(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request);

enum MHD_Result http_handle_get_pods(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest);
enum MHD_Result http_handle_get_events(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_get_config_maps(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest);
enum MHD_Result http_handle_get_secrets(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest);
enum MHD_Result http_handle_get_priority_classes(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest);
enum MHD_Result http_handle_get_runtime_classes(HttpServer *server, struct MHD_Connection *http,
                                                const char *rest);
enum MHD_Result http_handle_get_manifests(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_get_images(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_pull_image(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_remove_image(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_prune_images(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_delete_pod(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest);
enum MHD_Result http_handle_get_daemonsets(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest);
enum MHD_Result http_handle_get_revisions(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_get_node(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest);
enum MHD_Result http_handle_daemonset_action(HttpServer *server, struct MHD_Connection *http,
                                             const char *rest);
enum MHD_Result http_handle_exec(HttpServer *server, struct MHD_Connection *http, const char *rest);
enum MHD_Result http_handle_attach(HttpServer *server, struct MHD_Connection *http,
                                   const char *rest);
enum MHD_Result http_handle_add_ephemeral_container(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest);
enum MHD_Result http_handle_port_forward(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_system_logs(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest);
enum MHD_Result http_handle_node_api_settings(HttpServer *server, struct MHD_Connection *http,
                                              const char *rest);
enum MHD_Result http_handle_connect_signer(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest);
enum MHD_Result http_handle_client_access(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_container_logs(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest);
enum MHD_Result http_handle_make_kubeconfig(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest);
enum MHD_Result http_handle_get_identity(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest);
enum MHD_Result http_handle_get_encrypted_secrets(HttpServer *server, struct MHD_Connection *http,
                                                  const char *rest);
enum MHD_Result http_handle_change_identity(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest);
enum MHD_Result http_handle_get_whole_configuration(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest);
enum MHD_Result http_handle_get_dump(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest);
enum MHD_Result http_handle_get_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
enum MHD_Result http_handle_set_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest);
