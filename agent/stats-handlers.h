/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers of what the kubelet reports of itself and its pods, for the table of
 * http-handlers.c. See http/http-server.h. */

#include "agent/model/probe-sample.h"
#include "agent/model/values.h"

#include <stdbool.h>

typedef struct Agent Agent;
typedef LIST_OF(ProbeSample) ProbeSampleList;

/* The results of all probes, in an array that the caller frees; strings are borrowed. */
ProbeSampleList agent_collect_probe_samples(Agent *agent);

char *agent_get_cadvisor_metrics(void *userdata);
char *agent_get_probe_metrics(void *userdata);
char *agent_get_stats_summary(void *userdata, bool only_cpu_and_memory);
char *agent_list_running_pods(void *userdata);
char *agent_print_configuration(void *userdata);
