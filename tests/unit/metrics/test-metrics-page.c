/* SPDX-License-Identifier: Apache-2.0 */
/* The manual lists the metrics; the list is generated from the output of a scrape. */

#include "agent/metrics/metrics.h"
#include "agent/metrics/resource-metrics.h"
#include "common/cleanup.h"
#include "tests/pages.h"
#include "tests/test.h"

#define PAGE "man/mainstayd.8.md"

/* "`name` (gauge)\n: Help text.\n" for each metric, from the comments of the text format. */
static char *print_list(char *metrics) {
        static const char help[] = "# HELP ", stable[] = "[STABLE] ";
        char *text, *line, *rest = metrics;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        while ((line = strsep(&rest, "\n"))) {
                char *name, *sentence, *type;

                if (strncmp(line, help, strlen(help)) != 0)
                        continue;
                sentence = line + strlen(help);
                name = strsep(&sentence, " ");
                if (strncmp(sentence, stable, strlen(stable)) == 0)
                        sentence += strlen(stable);
                type = strsep(&rest, "\n"); /* "# TYPE name gauge" */
                REQUIRE(type);
                fprintf(out, "%s`%s` (%s)\n: %s%s\n", ftell(out) > 0 ? "\n" : "", name,
                        strrchr(type, ' ') + 1, sentence,
                        sentence[strlen(sentence) - 1] == '.' ? "" : ".");
        }
        fclose(out);
        return text;
}

TEST(the_manual_lists_the_metrics_of_the_agent)
{
        static const uint64_t evictions[N_EVICTION_SIGNALS] = { 1 };
        static const NodeConditions conditions = { 0 };
        static const ProbeSample probe = { .container = "c",
                                           .namespace = "n",
                                           .pod = "p",
                                           .uid = "u",
                                           .probe_type = "Liveness",
                                           .result = "successful",
                                           .n = 1 };
        cleanup_free char *metrics = agent_metrics_format(&(AgentMetrics){
                .node_name = "node",
                .evictions = evictions,
                .conditions = &conditions,
                .probes = &probe,
                .n_probes = 1,
                .sources = { .items = { { .name = "source", .number = 7 },
                                        { .name = NODE_REPORT_NAME } },
                             .n = 2 },
        });
        cleanup_free char *list = NULL;

        REQUIRE(metrics);
        list = print_list(metrics);
        page_expect_section(PAGE, "### /metrics", list);
}

TEST(the_manual_lists_the_metrics_of_resources)
{
        static const CgroupUsage used = { 0 };
        cleanup_with(resource_metrics_freep) ResourceMetrics *usage = resource_metrics_new();
        cleanup_free char *metrics = NULL, *list = NULL;

        REQUIRE(usage);
        resource_metrics_add(usage, NULL, NULL, NULL, 0, &used);
        resource_metrics_add(usage, "n", "p", NULL, 0, &used);
        resource_metrics_add(usage, "n", "p", "c", 1, &used);
        metrics = resource_metrics_format(usage);
        REQUIRE(metrics);
        list = print_list(metrics);
        page_expect_section(PAGE, "### /metrics/resource", list);
}
