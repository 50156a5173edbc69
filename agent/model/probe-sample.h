/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A counter of the results of one probe since the agent started. Strings are borrowed. */

#include <stdint.h>

typedef struct ProbeSample {
        const char *probe_type; /* "Liveness" */
        const char *result;     /* "successful", "failed", "unknown" */
        const char *container;
        const char *pod;
        const char *namespace;
        const char *uid;
        uint64_t n;
} ProbeSample;

typedef void (*probe_sample_t)(const ProbeSample *sample, void *userdata);
