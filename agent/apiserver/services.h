/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The services of the API server, for the environment variables of containers: name, cluster IP and
 * ports. All are cached in one file, so that pods start while the API server is unreachable. */

#include "agent/apiserver/cache.h"
#include "agent/apiserver/connection-status.h"
#include "agent/apiserver/object-updates.h"

#include <stdio.h>

typedef struct ApiServerServices ApiServerServices;

/* Borrowed. */
typedef struct ApiServerServicesSpec {
        sd_event *event;
        ApiServerCache *cache;
        ConnectionStatus *connection;
        ObjectUpdates *updates;
} ApiServerServicesSpec;

/* Loads the cached services. */
int apiserver_services_new(const ApiServerServicesSpec *spec, ApiServerServices **ret);
ApiServerServices *apiserver_services_free(ApiServerServices *services);
int apiserver_services_watch(ApiServerServices *services, KubeClient *client); /* 0 or -errno */

/* The variables of the services in the pod's namespace, unless enableServiceLinks is false, and of
 * default/kubernetes. -EAGAIN while the services are not known. */
int apiserver_services_add_variables(const ApiServerServices *services, const Pod *pod, char ***env,
                                     Error *reterr);

/* Prints the count and the reflector for `mainstay debug dump`. */
void apiserver_services_dump(const ApiServerServices *services, FILE *out);

/* The cache belongs to another cluster. To be called before the Services are watched. */
void apiserver_services_forget_cached(ApiServerServices *services);
