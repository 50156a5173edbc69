/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up ConfigMaps, Secrets, classes, tokens and service variables for pods. */

#include "agent/desired/resolvers.h"

#include <errno.h>

static const DataObject *resolve_data_object(ObjectKind kind, const char *namespace,
                                             const char *name, void *userdata) {
        const Resolvers *resolvers = userdata;
        const ObjectLookup *apiserver = &resolvers->apiserver_objects;
        const DataObject *object =
                manifest_directory_find_object(resolvers->manifests, kind, namespace, name);

        if (object || !apiserver->find)
                return object;
        return apiserver->find(kind, namespace, name, apiserver->userdata);
}

static bool is_data_object_pending(ObjectKind kind, const char *namespace, const char *name,
                                   void *userdata) {
        const ObjectLookup *apiserver = &((const Resolvers *) userdata)->apiserver_objects;

        return apiserver->is_awaited &&
               apiserver->is_awaited(kind, namespace, name, apiserver->userdata);
}

static int resolve_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                         Error *reterr, void *userdata) {
        const TokenLookup *apiserver = &((const Resolvers *) userdata)->apiserver_tokens;

        if (!apiserver->find)
                return error_setf(reterr, EAGAIN, "failed to fetch token: there is no API server");
        return apiserver->find(pod, projection, ret_token, reterr, apiserver->userdata);
}

static int resolve_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata) {
        const ServiceLookup *apiserver = &((const Resolvers *) userdata)->apiserver_services;

        return apiserver->add_variables
                       ? apiserver->add_variables(pod, env, reterr, apiserver->userdata)
                       : 0;
}

void set_bundle_resolvers(Resolvers *resolvers, BundleConfig *config) {
        config->objects = (ObjectLookup){ .find = resolve_data_object,
                                          .is_awaited = is_data_object_pending,
                                          .userdata = resolvers };
        config->services = (ServiceLookup){ .add_variables = resolve_service_variables,
                                            .userdata = resolvers };
        config->tokens = (TokenLookup){ .find = resolve_token, .userdata = resolvers };
}
