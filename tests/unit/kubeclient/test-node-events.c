/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/node-events.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <stdio.h>

static char events[4096];

static void note_node_event(const PodEvent *event, void *userdata) {
        size_t n = strlen(events);

        EXPECT(!event->pod && !event->daemonset);
        (void) snprintf(events + n, sizeof(events) - n, "%s %s: %s\n",
                        event->kind == POD_EVENT_WARNING ? "W" : "N", event->reason,
                        event->message);
}

static const char *compare(const char *before, const char *after) {
        cleanup_json json_t *old = before ? json_loads(before, 0, NULL) : NULL;
        cleanup_json json_t *new = json_loads(after, 0, NULL);

        events[0] = '\0';
        node_events_compare(old, new, note_node_event, NULL);
        return events;
}

#define NODE(memory, ready, boot, labels, own)                                            \
        "{\"metadata\":{\"name\":\"node1\",\"labels\":{" labels                           \
        "},\"annotations\":{\"mainstay.dev/own-labels\":\"" own                           \
        "\"}},\"status\":{\"nodeInfo\":{\"bootID\":\"" boot                               \
        "\"},\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"" memory           \
        "\"},{\"type\":\"DiskPressure\",\"status\":\"False\"},{\"type\":\"PIDPressure\"," \
        "\"status\":\"False\"},{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"

#define USUAL NODE("False", "True", "b1", "\"disk\":\"ssd\"", "disk=ssd")

TEST(node_that_registers_has_the_events_of_the_kubelet)
{
        EXPECT_STREQ(
                compare(NULL, USUAL),
                "N NodeHasSufficientMemory: Node node1 status is now: NodeHasSufficientMemory\n"
                "N NodeHasNoDiskPressure: Node node1 status is now: NodeHasNoDiskPressure\n"
                "N NodeHasSufficientPID: Node node1 status is now: NodeHasSufficientPID\n"
                "N NodeReady: Node node1 status is now: NodeReady\n");
}

TEST(node_without_a_change_has_no_event)
{ EXPECT_STREQ(compare(USUAL, USUAL), ""); }

TEST(conditions_that_change_are_events)
{
        EXPECT_STREQ(compare(USUAL, NODE("True", "False", "b1", "\"disk\":\"ssd\"", "disk=ssd")),
                     "N NodeHasInsufficientMemory: Node node1 status is now: "
                     "NodeHasInsufficientMemory\n"
                     "N NodeNotReady: Node node1 status is now: NodeNotReady\n");
        EXPECT_STREQ(
                compare(NODE("Unknown", "Unknown", "b1", "\"disk\":\"ssd\"", "disk=ssd"), USUAL),
                "N NodeHasSufficientMemory: Node node1 status is now: NodeHasSufficientMemory\n"
                "N NodeReady: Node node1 status is now: NodeReady\n");
}

TEST(reboot_of_the_node_is_an_event)
{
        EXPECT_STREQ(compare(NODE("False", "True", "b0", "\"disk\":\"ssd\"", "disk=ssd"), USUAL),
                     "W Rebooted: Node node1 has been rebooted, boot id: b1\n");
        EXPECT_STREQ(compare(NODE("False", "True", "", "\"disk\":\"ssd\"", "disk=ssd"), USUAL), "");
}

TEST(restored_label_is_an_event)
{
        const char *changed =
                compare(NODE("False", "True", "b1", "\"disk\":\"hdd\"", "disk=ssd"), USUAL);

        EXPECT(strstr(changed, "W LabelRestored: Label disk=hdd was set back to disk=ssd: "));
        EXPECT(strstr(changed, "mainstay.nodeLabels"));
        EXPECT(strstr(compare(NODE("False", "True", "b1", "", "disk=ssd"), USUAL),
                      "W LabelRestored: Label disk=ssd was removed and is set again: "));
}

TEST(label_that_changes_in_the_configuration_is_not_an_event)
{
        EXPECT_STREQ(compare(NODE("False", "True", "b1", "\"disk\":\"hdd\"", "disk=hdd"), USUAL),
                     "");
        EXPECT_STREQ(compare(NODE("False", "True", "b1", "", ""), USUAL), "");
}

TEST(invalid_node_has_no_event)
{
        EXPECT_STREQ(compare(NULL, "{"), "");
        EXPECT_STREQ(compare("[]", "{}"), "");
        EXPECT_STREQ(compare("", "{\"metadata\":7}"), "");
}

TEST(cordoned_node_is_an_event_once)
{
        static const struct {
                const char *node, *events;
        } cases[] = {
                { "{\"metadata\":{\"name\":\"node1\"},\"spec\":{}}", "" },
                { "{\"metadata\":{\"name\":\"node1\"},\"spec\":{\"unschedulable\":true}}",
                  "N NodeNotSchedulable: Node node1 status is now: NodeNotSchedulable\n" },
                { "{\"metadata\":{\"name\":\"node1\"},\"spec\":{\"unschedulable\":true}}", "" },
                { "not a node", "" },
                { "{\"metadata\":{\"name\":\"node1\"}}",
                  "N NodeSchedulable: Node node1 status is now: NodeSchedulable\n" },
        };
        bool is_unschedulable = false;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                json_t *node = json_loads(cases[i].node, 0, NULL);

                events[0] = '\0';
                node_events_check_schedulable(&is_unschedulable, node, note_node_event, NULL);
                json_decref(node);
                EXPECT_STREQ(events, cases[i].events);
        }
}
