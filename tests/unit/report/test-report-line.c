/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-line.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TEST(only_fields_of_a_pod_that_cannot_be_secret_are_reported)
{
        static const char pod[] =
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"labels\":{\"a\":\"b\"},"
                "\"annotations\":{\"mainstay.dev/source\":\"file web.yaml\",\"token\":\"hidden\"}},"
                "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"args\":[\"hidden\"],"
                "\"env\":[{\"name\":\"P\",\"value\":\"hidden\"}]}],\"volumes\":[{\"name\":"
                "\"hidden\"}]},\"status\":{\"phase\":\"Running\"}}";
        cleanup_free char *line = report_line_of_pod(pod, "edge-1");

        EXPECT(!strstr(line, "hidden"));
        EXPECT(strstr(line, "\"nodeName\":\"edge-1\""));
        EXPECT(strstr(line, "\"phase\":\"Running\""));
        EXPECT(strstr(line, "\"image\":\"i\""));
        EXPECT(strstr(line, "\"labels\":{\"a\":\"b\"}"));
        EXPECT(strstr(line, "file web.yaml"));
}

TEST(node_report_omits_heartbeats_and_the_condition_of_the_report)
{
        static const char node[] = "{\"kind\":\"Node\",\"status\":{\"conditions\":[{\"type\":"
                                   "\"Ready\",\"lastHeartbeatTime\":\"now\"},{\"type\":"
                                   "\"mainstay.io/ReportFailed\"}]}}";
        cleanup_free char *line = report_line_of_node(node);

        EXPECT_STREQ(line,
                     "{\"kind\":\"Node\",\"status\":{\"conditions\":[{\"type\":\"Ready\"}]}}");
}

TEST(an_event_is_identified_by_its_time_and_number)
{
        static const char event[] = "{\"metadata\":{\"name\":\"web.00a1\"},\"firstTimestamp\":"
                                    "\"2026-01-01T00:00:00Z\",\"involvedObject\":{\"uid\":\"u\"}}";
        cleanup_free char *key = NULL, *uid = NULL;

        EXPECT_EQ(report_event_names(event, &key, &uid), 0);
        EXPECT_STREQ(key, "2026-01-01T00:00:00Z.00a1");
        EXPECT_STREQ(uid, "u");
        EXPECT_EQ(report_event_names("{}", &key, &uid), -EBADMSG);
        EXPECT_EQ(report_event_names("[", &key, &uid), -EBADMSG);
}
