/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pull side of the OCI distribution specification: fetches one object after the other, from the
 * first endpoint that has it, and handles challenges, redirects, back-off and interrupted
 * connections. */

#include "agent/image-helper/registry/endpoint.h"

#include <stdint.h>

/* The artifact type that image-delta.h describes. */
#define ARTIFACT_TYPE_DELTA "application/vnd.io.github.containers.oci-delta.v1"

typedef struct RegistryClient RegistryClient;

/* The endpoints are borrowed. */
int registry_client_new(const Endpoints *endpoints, RegistryClient **ret);
RegistryClient *registry_client_free(RegistryClient *registry);
DEFINE_CLEANUP(RegistryClient *, registry_client_free)

typedef enum RegistryObjectKind {
        REGISTRY_MANIFEST,
        REGISTRY_BLOB,
        REGISTRY_REFERRERS, /* the index of the referrers of a manifest */
        REGISTRY_DELTAS,    /* only the deltas of the image; they are optional, so not retried */
} RegistryObjectKind;

typedef struct RegistryObject {
        RegistryObjectKind kind;
        const char *name; /* a digest; for a manifest also a tag */
        size_t first;     /* the endpoint to try first */
        uint64_t from;    /* bytes that are already present */
        uint64_t size_max;

        /* Called with the bytes in order, each once. 0 or -errno. */
        int (*on_data)(const void *data, size_t length, uint64_t position, void *userdata);
        void *userdata;
} RegistryObject;

/* 0 with the media type of the response, the endpoint that sent it, and the number of the Secret
 * whose credentials were needed (-1: none, or those of the node); -ENOENT if no endpoint has it,
 * -EACCES, -EHOSTUNREACH, or another -errno, all with a message that contains the remedy. */
int registry_client_get(RegistryClient *registry, const RegistryObject *object,
                        char media_type[static 128], size_t *ret_endpoint, int *ret_secret,
                        Error *reterr);
