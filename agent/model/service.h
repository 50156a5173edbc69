/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Services of an API server, as far as containers hear of them: by variables (kubelet:
 * pkg/kubelet/envvars). */

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

/* REDIS_SERVICE_HOST=…, and the rest of what links had: appended. 0 or -ENOMEM. */
int service_add_variables(const Service *service, char ***env);

/* How rooms find the variables of a pod: agent.c plugs in who knows the services. */
typedef struct ServiceLookup {
        /* Appends NAME=value of all services that the pod may know. 0; -EAGAIN with a sentence
         * while they are not known; -ENOMEM. */
        int (*add_variables)(const Pod *pod, char ***env, Error *reterr, void *userdata);
        void *userdata;
} ServiceLookup;
