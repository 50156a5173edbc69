/* SPDX-License-Identifier: Apache-2.0 */
/* Where pods find what they refer to: in files of this node first, then at an API server. */

#include "agent/lookups.h"

#include "agent/agent-private.h"

#include <errno.h>

static const DataObject *find_object(ObjectKind kind, const char *namespace, const char *name,
                                     void *userdata) {
        Agent *agent = userdata;

        const DataObject *object = manifest_source_find(agent->manifests, kind, namespace, name);

        /* What lies on the node itself goes first. */
        return object || !agent->cluster
                       ? object
                       : cluster_find_object(agent->cluster, kind, namespace, name);
}

static bool is_object_awaited(ObjectKind kind, const char *namespace, const char *name,
                              void *userdata) {
        Agent *agent = userdata;

        return agent->cluster && cluster_awaits_object(agent->cluster, kind, namespace, name);
}

/* The API server is met after the configs are filled in, and may be none. */
static int find_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                      Error *reterr, void *userdata) {
        Agent *agent = userdata;

        if (!agent->cluster)
                return error_setf(reterr, EAGAIN, "failed to fetch token: there is no API server");
        return cluster_find_token(pod, projection, ret_token, reterr, agent->cluster);
}

static int add_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata) {
        Agent *agent = userdata;

        return agent->cluster ? cluster_add_variables(pod, env, reterr, agent->cluster) : 0;
}

void lookups_fill(Agent *agent, BundleConfig *config) {
        config->objects = (ObjectLookup){ .find = find_object,
                                          .is_awaited = is_object_awaited,
                                          .userdata = agent };
        config->services =
                (ServiceLookup){ .add_variables = add_service_variables, .userdata = agent };
        config->tokens = (TokenLookup){ .find = find_token, .userdata = agent };
}
