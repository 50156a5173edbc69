/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Services of an API server as environment variables of containers (kubelet: pkg/kubelet/envvars).
 */

#include "agent/model/pod.h"
#include "common/error.h"

typedef struct ServicePort {
        char *name; /* NULL: none */
        char *protocol;
        int64_t port;
} ServicePort;

typedef struct Service {
        char *name;
        char *namespace;
        char *cluster_ip;
        LIST_OF(ServicePort) ports;
} Service;

void service_done(Service *service);

/* Appends REDIS_SERVICE_HOST=… and the other variables of Docker links. 0 or -ENOMEM. */
int service_add_variables(const Service *service, char ***env);

/* How modules get the service variables of a pod; the wiring connects the module that watches
 * services. */
typedef struct ServiceLookup {
        /* Appends NAME=value for all services visible to the pod. 0; -EAGAIN with a message if they
         * are not known yet; -ENOMEM. */
        int (*add_variables)(const Pod *pod, char ***env, Error *reterr, void *userdata);
        void *userdata;
} ServiceLookup;
