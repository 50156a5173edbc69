/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up ConfigMaps, Secrets, classes, tokens and service variables for pods. */

#include "agent/desired/resolvers.h"

#include <errno.h>

/* The key of the object that a pod sees under this key. A shared object takes precedence over one
 * from the pod's own source, so that the existence of the latter does not matter. */
static ObjectKey find_visible_key(const Resolvers *resolvers, const ObjectKey *key) {
        ObjectKey visible = *key;

        for (size_t i = 0; key->name && resolvers->shared && i < resolvers->shared->n; i++) {
                const SharedObject *shared = &resolvers->shared->items[i];

                if (shared->to == key->source && shared->kind == key->kind &&
                    streq(shared->name, key->name) &&
                    streq(strna(shared->namespace), key->namespace))
                        visible.source = shared->from;
        }
        return visible;
}

static const DataObject *resolve_data_object(const ObjectKey *key, void *userdata) {
        const Resolvers *resolvers = userdata;
        const ObjectLookup *apiserver = &resolvers->apiserver_objects;
        const ObjectKey visible = find_visible_key(resolvers, key);

        if (visible.source != OBJECT_SOURCE_APISERVER)
                return manifest_directory_find_object(resolvers->manifests, &visible);
        return apiserver->find ? apiserver->find(&visible, apiserver->userdata) : NULL;
}

static bool is_data_object_pending(const ObjectKey *key, void *userdata) {
        const Resolvers *resolvers = userdata;
        const ObjectLookup *apiserver = &resolvers->apiserver_objects;
        const ObjectKey visible = find_visible_key(resolvers, key);

        return visible.source == OBJECT_SOURCE_APISERVER && apiserver->is_awaited &&
               apiserver->is_awaited(&visible, apiserver->userdata);
}

static int open_data_object(const DataObject *object, const DataObject **ret, Error *reterr,
                            void *userdata) {
        const Resolvers *resolvers = userdata;

        if (!resolvers->open_secret)
                return error_setf(reterr, EKEYREJECTED, "is encrypted");
        return resolvers->open_secret(object, ret, reterr, resolvers->secrets);
}

static int resolve_token(const Pod *pod, const TokenProjection *projection, IssuedToken *ret,
                         Error *reterr, void *userdata) {
        const TokenLookup *apiserver = &((const Resolvers *) userdata)->apiserver_tokens;

        if (pod->metadata.source != OBJECT_SOURCE_APISERVER)
                return error_setf(reterr, EACCES,
                                  "failed to fetch token: only pods of an API server get one");
        if (!apiserver->find)
                return error_setf(reterr, EAGAIN, "failed to fetch token: there is no API server");
        return apiserver->find(pod, projection, ret, reterr, apiserver->userdata);
}

static int resolve_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata) {
        const ServiceLookup *apiserver = &((const Resolvers *) userdata)->apiserver_services;

        return apiserver->add_variables
                       ? apiserver->add_variables(pod, env, reterr, apiserver->userdata)
                       : 0;
}

/* The API server may have a claim with the same name as one from a file. */
static void refresh_claim(const DataObject *claim, void *userdata) {
        const ClaimAccess *apiserver = &((const Resolvers *) userdata)->apiserver_claims;

        if (claim->metadata.source == OBJECT_SOURCE_APISERVER && apiserver->refresh)
                apiserver->refresh(claim, apiserver->userdata);
}

static void update_claim(const DataObject *claim, const ClaimUpdate *update, void *userdata) {
        const ClaimAccess *apiserver = &((const Resolvers *) userdata)->apiserver_claims;

        if (claim->metadata.source == OBJECT_SOURCE_APISERVER && apiserver->update)
                apiserver->update(claim, update, apiserver->userdata);
}

void set_bundle_resolvers(Resolvers *resolvers, BundleConfig *config) {
        config->objects = (ObjectLookup){ .find = resolve_data_object,
                                          .is_awaited = is_data_object_pending,
                                          .open = open_data_object,
                                          .userdata = resolvers };
        config->services = (ServiceLookup){ .add_variables = resolve_service_variables,
                                            .userdata = resolvers };
        config->tokens = (TokenLookup){ .find = resolve_token, .userdata = resolvers };
        config->claims = (ClaimAccess){ .refresh = refresh_claim,
                                        .update = update_claim,
                                        .userdata = resolvers };
}
