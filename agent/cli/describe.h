/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod in the layout of kubectl describe: with tabs, for columns_write(). Pure. */

#include <jansson.h>
#include <stdio.h>

/* 'manifest' is the entry of /manifests for the pod's file, or NULL. */
void describe_pod(const json_t *pod, const json_t *manifest, FILE *out);

/* The events about the pod in a v1.EventList, the latest one last. */
void describe_events(const json_t *object, const json_t *events, FILE *out);
