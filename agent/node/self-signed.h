/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The serving certificate of mainstay-api if none is configured and none was issued: kubelet.crt
 * and kubelet.key in the directory of certificates, as in the kubelet. An existing pair is used;
 * otherwise a self-signed one is created, and renewed before it expires. It proves no identity, but
 * the connection is encrypted, and an API server without --kubelet-certificate-authority accepts
 * it. */

#include "common/error.h"

#include <jansson.h>
#include <systemd/sd-event.h>

typedef struct SelfSigned SelfSigned;

typedef struct SelfSignedSpec { /* borrowed */
        sd_event *event;
        const char *state_dir;
        const char *certificate_dir; /* NULL: "<state>/pki" */
        const char *node_name;
        const char *hostname;                /* NULL: none */
        const char *address, *other_address; /* numeric; NULL: none */
} SelfSignedSpec;

/* 0 or -ENOMEM. */
int self_signed_new(const SelfSignedSpec *spec, SelfSigned **ret);
SelfSigned *self_signed_free(SelfSigned *self);

/* Adds the certificate and its key to the settings of mainstay-api. 0, or -errno with a message. */
int self_signed_add_settings(SelfSigned *self, json_t *settings, Error *reterr);
