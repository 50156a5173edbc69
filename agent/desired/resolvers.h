/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where pods find what they refer to: ConfigMaps, Secrets and classes in files of this node first,
 * then at the API server; tokens and services at the API server only. */

#include "agent/bundle/bundle.h"
#include "agent/manifest/manifest.h"

/* Filled in when its parts are built, before anything is looked up. */
typedef struct Resolvers {
        const ManifestDirectory *manifests;
        ObjectLookup apiserver_objects; /* its functions are NULL where there is no API server */
        ServiceLookup apiserver_services;
        TokenLookup apiserver_tokens;
} Resolvers;

/* 'resolvers' is borrowed. */
void set_bundle_resolvers(Resolvers *resolvers, BundleConfig *config);
