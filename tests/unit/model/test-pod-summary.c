/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/model/pod-summary.h"
#include "common/clock.h"

#define NOW (1767323045 * USEC_PER_SEC) /* 2026-01-02T03:04:05Z */

/* A pod with two containers; the parameters are members of its status, and further members of the
 * pod. */
#define POD(status, more)                                                             \
        "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'a'},{'name':'b'}]}," \
        "'status':{" status "}" more "}"
#define STATUSES(a, b) \
        "'phase':'Running','containerStatuses':[{'name':'a'," a "},{'name':'b'," b "}]"
#define RUNNING         "'ready':true,'state':{'running':{}}"
#define UNREADY         "'ready':false,'state':{'running':{}}"
#define WAITING(reason) "'ready':false,'state':{'waiting':{'reason':'" reason "'}}"
#define PULLING(how)                                                                         \
        "'ready':false,'state':{'waiting':{'reason':'ContainerCreating','message':'Pulling " \
        "image: " how "'}}"
#define ENDED(members) "'ready':false,'state':{'terminated':{" members "}}"

/* clang-format off */
static const struct {
        const char *pod; /* ' for " */
        const char *ready, *status, *restarts;
} cases[] = {
        { POD("'phase':'Pending'", ""), "0/2", "Pending", "0" },
        { POD("'phase':'Failed','reason':'Evicted'", ""), "0/2", "Evicted", "0" },
        { POD(STATUSES(RUNNING, RUNNING), ""), "2/2", "Running", "0" },
        { POD(STATUSES(RUNNING, UNREADY), ""), "1/2", "Running", "0" },
        { POD(STATUSES(RUNNING, WAITING("CrashLoopBackOff")), ""), "1/2", "CrashLoopBackOff", "0" },
        /* The first container overrides the others. */
        { POD(STATUSES(WAITING("ErrImagePull"), WAITING("CrashLoopBackOff")), ""), "0/2", "ErrImagePull", "0" },
        { POD(STATUSES(WAITING(""), RUNNING), ""), "1/2", "Running", "0" },
        { POD(STATUSES(WAITING("ContainerCreating"), WAITING("ContainerCreating")), ""), "0/2", "ContainerCreating", "0" },
        /* The progress of a pull is shown. */
        { POD(STATUSES(PULLING("1.5 of 6.0 MiB"), RUNNING), ""), "1/2", "Pulling:25%", "0" },
        { POD(STATUSES(PULLING("7.0 of 6.0 MiB"), RUNNING), ""), "1/2", "Pulling:100%", "0" },
        { POD(STATUSES(PULLING("0.0 of 0.0 MiB"), RUNNING), ""), "1/2", "ContainerCreating", "0" },
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i'}]},'status':{'phase':'Pending','initContainerStatuses':["
          "{'name':'i','state':{'waiting':{'reason':'PodInitializing','message':'Pulling image: 1.0 of 2.0 MiB'}}}]}}", "0/1", "Init:Pulling:50%", "0" },
        { POD(STATUSES(ENDED("'reason':'Completed'"), ENDED("'reason':'Completed'")), ""), "0/2", "Completed", "0" },
        { POD(STATUSES(ENDED("'reason':'OOMKilled','exitCode':137"), RUNNING), ""), "1/2", "OOMKilled", "0" },
        { POD(STATUSES(ENDED("'exitCode':3"), ENDED("'exitCode':4")), ""), "0/2", "ExitCode:3", "0" },
        { POD(STATUSES(ENDED("'exitCode':137,'signal':9"), RUNNING), ""), "1/2", "Signal:9", "0" },
        /* One container has completed and the other one runs: the pod runs if it is ready. */
        { POD(STATUSES(ENDED("'reason':'Completed'"), RUNNING), ""), "1/2", "NotReady", "0" },
        { POD(STATUSES(ENDED("'reason':'Completed'"), RUNNING) ",'conditions':[{'type':'Ready','status':'True'}]", ""), "1/2", "Running", "0" },
        { POD(STATUSES(ENDED("'reason':'Completed'"), UNREADY), ""), "0/2", "Completed", "0" },
        /* Deletion overrides everything except completion. */
        { "{'metadata':{'deletionTimestamp':'2026-01-02T03:04:05Z'},'status':{'phase':'Running'}}", "0/0", "Terminating", "0" },
        { "{'metadata':{'deletionTimestamp':'2026-01-02T03:04:05Z'},'status':{'phase':'Succeeded'}}", "0/0", "Succeeded", "0" },
        { "{'metadata':{'deletionTimestamp':'2026-01-02T03:04:05Z'},'status':{'phase':'Running','reason':'NodeLost'}}", "0/0", "Unknown", "0" },
        /* Restarts are added up; the time of the last one is shown if it is known. */
        { POD(STATUSES(RUNNING ",'restartCount':2", RUNNING ",'restartCount':1"), ""), "2/2", "Running", "3" },
        { POD(STATUSES(RUNNING ",'restartCount':2,'lastState':{'terminated':{'finishedAt':'2026-01-02T03:04:00Z'}}",
                       RUNNING ",'restartCount':1,'lastState':{'terminated':{'finishedAt':'2026-01-02T03:00:00Z'}}"), ""), "2/2", "Running", "3 (5s ago)" },
        { POD(STATUSES(RUNNING ",'lastState':{'terminated':{'finishedAt':'2026-01-02T03:04:00Z'}}", RUNNING), ""), "2/2", "Running", "0" },
        /* Init containers block later containers. */
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i'},{'name':'j'}]},'status':{'phase':'Pending','initContainerStatuses':["
          "{'name':'i','state':{'terminated':{'exitCode':0}}},{'name':'j','state':{'waiting':{'reason':'PodInitializing'}}}]}}", "0/1", "Init:1/2", "0" },
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i'}]},'status':{'phase':'Pending','initContainerStatuses':["
          "{'name':'i','restartCount':4,'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}", "0/1", "Init:CrashLoopBackOff", "4" },
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i'}]},'status':{'phase':'Pending','initContainerStatuses':["
          "{'name':'i','state':{'terminated':{'exitCode':1,'signal':0}}}]}}", "0/1", "Init:ExitCode:1", "0" },
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i'}]},'status':{'phase':'Pending','initContainerStatuses':["
          "{'name':'i','state':{'terminated':{'exitCode':1,'reason':'Error'}}}]}}", "0/1", "Init:Error", "0" },
        { "{'spec':{'containers':[{}],'initContainers':[{'name':'i','restartPolicy':'Always'}]},'status':{'phase':'Running','initContainerStatuses':["
          "{'name':'i','ready':true,'started':true,'restartCount':1,'state':{'running':{}}}],'containerStatuses':[{'ready':true,'state':{'running':{}}}]}}",
          "2/2", "Running", "1" },
        { "{}", "0/0", "", "0" },
};
/* clang-format on */

static json_t *parse_json(const char *text) {
        char *copy = strdup(text);
        json_error_t error;
        json_t *json;

        for (char *p = copy; *p; p++)
                if (*p == '\'')
                        *p = '"';
        json = json_loads(copy, 0, &error);
        if (!json)
                printf("%s: %s\n", text, error.text);
        REQUIRE(json);
        free(copy);
        return json;
}

TEST(pod_status_column_follows_kubectls_rules)
{
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                json_t *pod = parse_json(cases[i].pod);
                unsigned failures = test_failures;
                PodSummary summary;

                pod_summarize(pod, NOW, &summary);
                EXPECT_STREQ(summary.ready, cases[i].ready);
                EXPECT_STREQ(summary.status, cases[i].status);
                EXPECT_STREQ(summary.restarts, cases[i].restarts);
                if (test_failures != failures)
                        printf("%s\n", cases[i].pod);
                json_decref(pod);
        }
}

TEST(missing_values_are_shown_as_none)
{
        json_t *pod = parse_json(
                "{'spec':{'nodeName':''},'status':{'startTime':'2026-01-02T03:03:05Z'}}");
        PodSummary summary;

        pod_summarize(pod, NOW, &summary);
        EXPECT_STREQ(summary.ip, "<none>");
        EXPECT_STREQ(summary.node, "<none>");
        EXPECT_STREQ(summary.nominated_node, "<none>");
        EXPECT_STREQ(summary.readiness_gates, "<none>");
        EXPECT_STREQ(summary.age, "60s");
        json_decref(pod);
}
