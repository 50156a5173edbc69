/* SPDX-License-Identifier: Apache-2.0 */
/* Where pods find what they refer to: in files of this node first, then at an API server. */

#include "agent/desired/resolvers.h"

#include "agent/agent-private.h"

#include <errno.h>

static const DataObject *resolve_data_object(ObjectKind kind, const char *namespace,
                                             const char *name, void *userdata) {
        Agent *agent = userdata;

        const DataObject *object =
                manifest_directory_find_object(agent->manifests, kind, namespace, name);

        /* What lies on the node itself goes first. */
        return object || !agent->apiserver
                       ? object
                       : apiserver_find_object(agent->apiserver, kind, namespace, name);
}

static bool is_data_object_pending(ObjectKind kind, const char *namespace, const char *name,
                                   void *userdata) {
        Agent *agent = userdata;

        return agent->apiserver &&
               apiserver_is_object_pending(agent->apiserver, kind, namespace, name);
}

/* The API server is met after the configs are filled in, and may be none. */
static int resolve_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                         Error *reterr, void *userdata) {
        Agent *agent = userdata;

        if (!agent->apiserver)
                return error_setf(reterr, EAGAIN, "failed to fetch token: there is no API server");
        return apiserver_find_token(pod, projection, ret_token, reterr, agent->apiserver);
}

static int resolve_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata) {
        Agent *agent = userdata;

        return agent->apiserver
                       ? apiserver_add_service_variables(pod, env, reterr, agent->apiserver)
                       : 0;
}

void set_bundle_resolvers(Agent *agent, BundleConfig *config) {
        config->objects = (ObjectLookup){ .find = resolve_data_object,
                                          .is_awaited = is_data_object_pending,
                                          .userdata = agent };
        config->services =
                (ServiceLookup){ .add_variables = resolve_service_variables, .userdata = agent };
        config->tokens = (TokenLookup){ .find = resolve_token, .userdata = agent };
}
