/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looks up the objects to which pods refer: ConfigMaps, Secrets and classes of the pod's own
 * source, and those of other sources that the configuration shares by name; tokens and services of
 * the API server only for its own pods. */

#include "agent/bundle/bundle.h"
#include "agent/manifest/manifest.h"

/* Filled in when its parts are built, before anything is looked up. */
typedef struct Resolvers {
        const SharedObjects *shared;
        const ManifestDirectory *manifests;
        ObjectLookup apiserver_objects; /* its functions are NULL if there is no API server */
        ServiceLookup apiserver_services;
        TokenLookup apiserver_tokens;
        ClaimAccess apiserver_claims;
        /* As in ObjectLookup; NULL: encrypted Secrets cannot be decrypted. */
        int (*open_secret)(const DataObject *object, const DataObject **ret, Error *reterr,
                           void *userdata);
        void *secrets; /* its userdata */
} Resolvers;

/* 'resolvers' is borrowed. */
void set_bundle_resolvers(Resolvers *resolvers, BundleConfig *config);
