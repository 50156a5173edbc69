/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/cli/columns.h"
#include "agent/cli/describe.h"
#include "agent/cli/pod-selection.h"
#include "common/cleanup.h"

TEST(selectors_match_labels)
{
        static const struct {
                const char *selector;
                bool matches; /* {"app":"web","tier":"front"} */
        } cases[] = {
                { "", true },
                { "app=web", true },
                { "app==web", true },
                { "app=db", false },
                { "app!=db", true },
                { "app!=web", false },
                { "other!=x", true },
                { "app", true },
                { "other", false },
                { "!other", true },
                { "!app", false },
                { "app=web,tier=front", true },
                { "app=web, tier=back", false },
                { " app = web ", true },
                { "app=", false },
        };
        json_t *labels = json_pack("{s:s, s:s}", "app", "web", "tier", "front");

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(selector_done) Selector selector = { 0 };

                EXPECT_EQ(selector_parse(cases[i].selector, &selector, NULL), 0);
                if (selector_matches(&selector, labels) != cases[i].matches)
                        test_fail(__FILE__, __LINE__, cases[i].selector, "decides wrongly");
        }
        json_decref(labels);
}

TEST(invalid_selectors_are_refused)
{
        static const char *const cases[] = { "=web", "a=b=c", "app in (web)", "!",
                                             ",",    "a b",   "!a=b" };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                Selector selector = { 0 };

                if (selector_parse(cases[i], &selector, &error) != -EINVAL || !error.message)
                        test_fail(__FILE__, __LINE__, cases[i], "is taken");
                selector_done(&selector);
        }
}

TEST(pod_is_found_with_or_without_node_suffix)
{
        json_t *pod = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "web-a-n1", "spec",
                                "nodeName", "N1");

        EXPECT(pod_is_called(pod, "web-a-n1"));
        EXPECT(pod_is_called(pod, "web-a"));
        EXPECT(pod_is_called(pod, "pod/web-a"));
        EXPECT(!pod_is_called(pod, "web"));
        EXPECT(!pod_is_called(pod, "web-a-"));
        EXPECT(!pod_is_called(pod, ""));
        json_decref(pod);
}

static const char rich_pod[] =
        "{\"metadata\":{\"name\":\"web-n1\",\"namespace\":\"default\","
        "\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"name\":\"web\",\"controller\":true}],"
        "\"labels\":{\"b\":\"2\","
        "\"a\":\"1\"},"
        "\"annotations\":{\"note\":\"two\\nlines\",\"x\":\"y\"}},"
        "\"spec\":{\"nodeName\":\"n1\",\"runtimeClassName\":\"kata\","
        "\"readinessGates\":[{\"conditionType\":\"Ready\"},{\"conditionType\":\"x/Warm\"}],"
        "\"nodeSelector\":{\"disk\":\"ssd\"},\"tolerations\":[{\"key\":\"b\",\"operator\":"
        "\"Equal\",\"value\":\"1\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},"
        "{\"operator\":\"Exists\"}],"
        "\"containers\":[{\"name\":\"app\",\"image\":\"busybox\","
        "\"command\":[\"sh\",\"-c\",\"a\\nb\"],\"args\":[\"z\"],"
        "\"ports\":[{\"containerPort\":80,\"hostPort\":80,\"protocol\":\"TCP\"}],"
        "\"resources\":{\"limits\":{\"memory\":\"64Mi\",\"cpu\":\"500m\"}},"
        "\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"EMPTY\"}],"
        "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/srv\"},"
        "{\"name\":\"tmp\",\"mountPath\":\"/a\",\"readOnly\":true}]}],"
        "\"volumes\":[{\"name\":\"data\",\"hostPath\":{\"path\":\"/srv\",\"type\":\"Directory\"}},"
        "{\"name\":\"tmp\",\"emptyDir\":{}}]},"
        "\"status\":{\"phase\":\"Running\",\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.0.0.1\","
        "\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"startTime\":\"2026-01-02T03:04:05Z\",\"qosClass\":"
        "\"Burstable\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],"
        "\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"mainstay://"
        "c\",\"imageID\":\"sha256:i\","
        "\"ready\":false,\"restartCount\":3,"
        "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off 40s\"}},"
        "\"lastState\":{\"terminated\":{\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\","
        "\"startedAt\":\"2026-01-02T03:04:05Z\",\"finishedAt\":\"2026-01-02T03:04:06Z\"}}}]}}";

static const char rich_description[] =
        "Name:                web-n1\n"
        "Namespace:           default\n"
        "Runtime Class Name:  kata\n"
        "Node:                n1/10.0.0.1\n"
        "Start Time:          Fri, 02 Jan 2026 03:04:05 +0000\n"
        "Labels:              a=1\n"
        "                     b=2\n"
        "Annotations:         note:\n"
        "                       two\n"
        "                       lines\n"
        "                     x: y\n"
        "Status:              Running\n"
        "IP:                  10.0.0.1\n"
        "IPs:\n"
        "  IP:           10.0.0.1\n"
        "Controlled By:  DaemonSet/web\n"
        "Containers:\n"
        "  app:\n"
        "    Container ID:  mainstay://c\n"
        "    Image:         busybox\n"
        "    Image ID:      sha256:i\n"
        "    Port:          80/TCP\n"
        "    Host Port:     80/TCP\n"
        "    Command:\n"
        "      sh\n"
        "      -c\n"
        "      a\n"
        "      b\n"
        "    Args:\n"
        "      z\n"
        "    State:          Waiting\n"
        "      Reason:       CrashLoopBackOff\n"
        "      Message:      back-off 40s\n"
        "    Last State:     Terminated\n"
        "      Reason:       OOMKilled\n"
        "      Exit Code:    137\n"
        "      Signal:       9\n"
        "      Started:      Fri, 02 Jan 2026 03:04:05 +0000\n"
        "      Finished:     Fri, 02 Jan 2026 03:04:06 +0000\n"
        "    Ready:          False\n"
        "    Restart Count:  3\n"
        "    Limits:\n"
        "      cpu:     500m\n"
        "      memory:  64Mi\n"
        "    Environment:\n"
        "      A:      1\n"
        "      EMPTY:  \n"
        "    Mounts:\n"
        "      /a from tmp (ro)\n"
        "      /srv from data (rw)\n"
        "Readiness Gates:\n"
        "  Type     Status\n"
        "  Ready    False \n"
        "  x/Warm   <none> \n"
        "Conditions:\n"
        "  Type    Status\n"
        "  Ready   False \n"
        "Volumes:\n"
        "  data:\n"
        "    Type:          HostPath (bare host directory volume)\n"
        "    Path:          /srv\n"
        "    HostPathType:  Directory\n"
        "  tmp:\n"
        "    Type:        EmptyDir (a temporary directory that shares a pod's lifetime)\n"
        "    Medium:      \n"
        "    SizeLimit:   <unset>\n"
        "QoS Class:       Burstable\n"
        "Node-Selectors:  disk=ssd\n"
        "Tolerations:     op=Exists\n"
        "                 b=1:NoExecute for 300s\n"
        "Manifest:        web.yaml (broken since Fri, 02 Jan 2026 03:04:05 +0000: web.yaml:1:1: "
        "no)\n";

TEST(a_description_has_kubectls_layout)
{
        json_t *pod = json_loads(rich_pod, 0, NULL);
        json_t *manifest = json_pack("{s:s, s:s, s:s}", "file", "web.yaml", "error",
                                     "web.yaml:1:1: no", "errorSince", "2026-01-02T03:04:05Z");
        cleanup_free char *tabbed = NULL, *text = NULL;
        Columns columns = COLUMNS_DESCRIPTION;
        size_t length;
        FILE *out;

        setenv("TZ", "UTC", 1);
        REQUIRE(pod && manifest);
        out = open_memstream(&tabbed, &length);
        describe_pod(pod, manifest, out);
        fclose(out);
        out = open_memstream(&text, &length);
        EXPECT_EQ(columns_write(&columns, tabbed, out), 0);
        fclose(out);
        EXPECT_STREQ(text, rich_description);
        json_decref(pod);
        json_decref(manifest);
}
