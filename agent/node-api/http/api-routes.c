/* SPDX-License-Identifier: Apache-2.0 */

/* The kubelet's paths. A path that the agent also serves is passed on; any other path below one of
 * these is unknown to the agent and gives 404. */

#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/file.h"

/* The path goes to the agent, escaped again, without the query. */
static ApiStepResult pass_on_to_agent(ApiRequest *request, const char *path) {
        if (request->has_reply)
                return request->reply_fd >= 0 ? api_reply_agent_stream(request)
                                              : api_reply_agent_error(request);
        return api_request_ask_agent(request, &(AgentRequestSpec){ .kind = AGENT_STREAM,
                                                                   .method = request->method,
                                                                   .path = path });
}

static ApiStepResult handle_pass_on(ApiRequest *request, const char *rest) {
        cleanup_free char *path = NULL;
        size_t size;
        FILE *out = open_memstream(&path, &size);

        if (!out)
                return API_STEP_ABORT;
        for (const char *c = request->path; *c; c++) {
                const char character[] = { *c, '\0' };

                if (*c == '/')
                        fputc('/', out);
                else
                        url_write_escaped(out, character);
        }
        if (fclose(out) != 0)
                return API_STEP_ABORT;
        return pass_on_to_agent(request, path);
}

/* The agent has a single check; the names of the kubelet's and the API server's checks are aliases
 * for it. */
static const char *const health_checks[] = { "ping", "log", "syncloop" };

static bool is_health_check(const char *rest) {
        if (streq(rest, "") || streq(rest, "/"))
                return true;
        for (size_t i = 0; i < N_ELEMENTS(health_checks); i++)
                if (rest[0] == '/' && streq(rest + 1, health_checks[i]))
                        return true;
        return false;
}

/* In the API server's format. */
static ApiStepResult reply_health_checks(ApiRequest *request, const char *name) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return API_STEP_ABORT;
        for (size_t i = 0; i < N_ELEMENTS(health_checks); i++)
                fprintf(out, "[+]%s ok\n", health_checks[i]);
        fprintf(out, "%s check passed\n", name);
        return memstream_finish(out, &text) ? api_reply_text(request, MHD_HTTP_OK, text)
                                            : API_STEP_ABORT;
}

/* 'name' is the name of the check in the client's path, 'path' the agent's path. */
static ApiStepResult reply_health(ApiRequest *request, const char *name, const char *path,
                                  const char *rest) {
        bool is_kubelets = streq(name, "healthz");

        if (!is_health_check(rest) || (!is_kubelets && !request->server->settings.is_alone))
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404 page not found");
        if (!request->has_reply)
                return api_request_ask_agent(
                        request, &(AgentRequestSpec){ .kind = AGENT_COLLECT, .path = path });
        if (request->reply_error < 0 || request->reply_status != MHD_HTTP_OK)
                return api_reply_agent_error(request);
        return api_has_parameter(request->http, "verbose")
                       ? reply_health_checks(request, name)
                       : api_reply_text(request, MHD_HTTP_OK, "ok");
}

static ApiStepResult handle_healthz(ApiRequest *request, const char *rest) {
        return reply_health(request, "healthz", "/healthz", rest);
}

static ApiStepResult handle_livez(ApiRequest *request, const char *rest) {
        return reply_health(request, "livez", "/healthz", rest);
}

static ApiStepResult handle_readyz(ApiRequest *request, const char *rest) {
        return reply_health(request, "readyz", "/readyz", rest);
}

static ApiStepResult handle_pods(ApiRequest *request, const char *rest) {
        return pass_on_to_agent(request, "/pods");
}

static ApiStepResult handle_running_pods(ApiRequest *request, const char *rest) {
        return pass_on_to_agent(request, "/runningpods");
}

static ApiStepResult handle_stats(ApiRequest *request, const char *rest) {
        const char *only = api_parameter(request->http, "only_cpu_and_memory");

        if (!streq(rest, "summary"))
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
        return pass_on_to_agent(request, only && streq(only, "true")
                                                 ? "/stats/summary?only_cpu_and_memory=true"
                                                 : "/stats/summary");
}

static ApiStepResult handle_checkpoint(ApiRequest *request, const char *rest) {
        return api_reply_text(request, MHD_HTTP_NOT_FOUND,
                              "containers cannot be checkpointed: Mainstay does not support it");
}

typedef enum ApiMethods {
        API_GET = 1,
        API_POST = 2,
} ApiMethods;

/* clang-format off */
static const struct {
        const char *path;
        bool has_rest;     /* more path segments follow; otherwise only a slash may */
        bool is_debugging; /* off without enableDebuggingHandlers */
        unsigned methods;
        ApiStepResult (*handler)(ApiRequest *request, const char *rest);
} api_routes[] = {
        { "/healthz",        true,  false, API_GET,            handle_healthz            },
        { "/livez",          true,  false, API_GET,            handle_livez              },
        { "/readyz",         true,  false, API_GET,            handle_readyz             },
        { "/pods",           false, false, API_GET,            handle_pods               },
        { "/runningpods",    false, true,  API_GET,            handle_running_pods       },
        { "/stats/",         true,  false, API_GET | API_POST, handle_stats              },
        { "/metrics",        false, false, API_GET,            handle_pass_on            },
        { "/metrics/",       true,  false, API_GET,            handle_pass_on            },
        { "/configz",        false, false, API_GET,            handle_pass_on            },
        { "/logs",           false, true,  API_GET,            api_handle_system_logs    },
        { "/logs/",          true,  true,  API_GET,            api_handle_system_logs    },
        { "/containerLogs/", true,  true,  API_GET,            api_handle_container_logs },
        { "/exec/",          true,  true,  API_GET | API_POST, api_handle_exec           },
        { "/attach/",        true,  true,  API_GET | API_POST, api_handle_attach         },
        { "/run/",           true,  true,  API_POST,           api_handle_run            },
        { "/portForward/",   true,  true,  API_GET | API_POST, api_handle_port_forward   },
        { "/checkpoint/",    true,  false, API_POST,           handle_checkpoint         },
};
/* clang-format on */

/* The rest of the path, or NULL. */
static const char *match_api_route(size_t i, const char *path) {
        size_t length = strlen(api_routes[i].path);

        if (strncmp(path, api_routes[i].path, length) != 0)
                return NULL;
        path += length;
        return api_routes[i].has_rest || streq(path, "") || streq(path, "/") ? path : NULL;
}

static bool has_api_method(size_t i, const char *method) {
        return (streq(method, "GET") && api_routes[i].methods & API_GET) ||
               (streq(method, "POST") && api_routes[i].methods & API_POST);
}

ApiStepResult api_route(ApiRequest *request) {
        if (request->is_kubernetes)
                return api_route_kubernetes(request);
        for (size_t i = 0; i < N_ELEMENTS(api_routes); i++) {
                const char *rest = match_api_route(i, request->path);

                if (!rest)
                        continue;
                if (api_routes[i].is_debugging && !request->server->settings.has_debugging)
                        return api_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                              "Debug endpoints are disabled.");
                if (!has_api_method(i, request->method))
                        return api_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                              "405: Method Not Allowed");
                return api_routes[i].handler(request, rest);
        }
        return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
}
