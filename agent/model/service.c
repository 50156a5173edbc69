/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/service.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <ctype.h>
#include <inttypes.h>

void service_done(Service *service) {
        for (size_t i = 0; i < service->ports.n; i++) {
                free(service->ports.items[i].name);
                free(service->ports.items[i].protocol);
        }
        free(service->ports.items);
        free(service->name);
        free(service->namespace);
        free(service->cluster_ip);
        *service = (Service){ 0 };
}

/* Converts a name to the form used in variables: "my-db" becomes MY_DB. */
static char *print_upper(const char *name) {
        char *upper = strdup(name);

        for (char *c = upper; c && *c; c++)
                if (*c == '-')
                        *c = '_';
                else
                        *c = (char) toupper((unsigned char) *c);
        return upper;
}

static char *print_lower(const char *name) {
        char *lower = strdup(name);

        for (char *c = lower; c && *c; c++)
                *c = (char) tolower((unsigned char) *c);
        return lower;
}

/* "tcp://10.0.0.1:80" */
static char *print_url(const Service *service, const ServicePort *port) {
        cleanup_free char *lower = print_lower(port->protocol);
        bool is_ipv6 = strchr(service->cluster_ip, ':');

        return lower ? text_format("%s://%s%s%s:%" PRId64, lower, is_ipv6 ? "[" : "",
                                   service->cluster_ip, is_ipv6 ? "]" : "", port->port)
                     : NULL;
}

static int add_service_port_variables(const Service *service, const ServicePort *port,
                                      const char *prefix, char ***env) {
        cleanup_free char *upper = print_upper(port->protocol);
        cleanup_free char *lower = print_lower(port->protocol), *url = print_url(service, port);
        int r;

        if (!upper || !lower || !url)
                return -ENOMEM;
        r = strv_appendf(env, "%s_PORT_%" PRId64 "_%s=%s", prefix, port->port, upper, url);
        if (r < 0)
                return r;
        r = strv_appendf(env, "%s_PORT_%" PRId64 "_%s_PROTO=%s", prefix, port->port, upper, lower);
        if (r < 0)
                return r;
        r = strv_appendf(env, "%s_PORT_%" PRId64 "_%s_PORT=%" PRId64, prefix, port->port, upper,
                         port->port);
        if (r < 0)
                return r;
        return strv_appendf(env, "%s_PORT_%" PRId64 "_%s_ADDR=%s", prefix, port->port, upper,
                            service->cluster_ip);
}

static int add_service_host_variables(const Service *service, const ServicePort *port,
                                      const char *prefix, char ***env) {
        cleanup_free char *url = print_url(service, port);
        int r = url ? strv_appendf(env, "%s_SERVICE_PORT=%" PRId64, prefix, port->port) : -ENOMEM;

        return r < 0 ? r : strv_appendf(env, "%s_PORT=%s", prefix, url);
}

int service_add_variables(const Service *service, char ***env) {
        cleanup_free char *prefix = print_upper(service->name);
        int r = prefix ? strv_appendf(env, "%s_SERVICE_HOST=%s", prefix, service->cluster_ip)
                       : -ENOMEM;

        if (r < 0)
                return r;
        if (service->ports.n > 0)
                r = add_service_host_variables(service, &service->ports.items[0], prefix, env);
        if (r < 0)
                return r;
        for (size_t i = 0; i < service->ports.n; i++) {
                const ServicePort *port = &service->ports.items[i];
                cleanup_free char *name = port->name ? print_upper(port->name) : NULL;

                if (port->name)
                        r = name ? strv_appendf(env, "%s_SERVICE_PORT_%s=%" PRId64, prefix, name,
                                                port->port)
                                 : -ENOMEM;
                if (r < 0)
                        return r;
                r = add_service_port_variables(service, port, prefix, env);
                if (r < 0)
                        return r;
        }
        return 0;
}
