/* SPDX-License-Identifier: Apache-2.0 */
/* Edit plans: the effect of each class of fields. */

#include "agent/model/edit-plan.h"

#include "agent/manifest/manifest.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "tests/test.h"

static const char manifest[] =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {a: b}, annotations: {c: d}}\n"
        "spec:\n"
        "  terminationGracePeriodSeconds: 5\n"
        "  volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]\n"
        "  initContainers: [{name: i, image: 'x:1'}, {name: s, image: 'x:1', restartPolicy: "
        "Always}]\n"
        "  containers:\n"
        "  - name: web\n    image: 'x:1'\n    command: [run]\n    ports: [{containerPort: 80}]\n"
        "    resources: {requests: {memory: 1Mi}, limits: {memory: 8Mi}}\n"
        "    volumeMounts: [{name: v, mountPath: /v}]\n"
        "  - {name: db, image: 'x:1'}\n";

static ManifestObjects parse_manifest(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0 && objects.pods.n == 1);
        return objects;
}

/* The manifest with one part of its text replaced. */
static ManifestObjects parse_edited_manifest(const char *from, const char *to) {
        const char *at = strstr(manifest, from);
        char *yaml;
        ManifestObjects objects;

        REQUIRE(at != NULL);
        REQUIRE(asprintf(&yaml, "%.*s%s%s", (int) (at - manifest), manifest, to,
                         at + strlen(from)) > 0);
        objects = parse_manifest(yaml);
        free(yaml);
        return objects;
}

/* "live web: resources.limits.memory (8Mi -> 9Mi); …" */
static char *print_edit_plan(const EditPlan *plan) {
        static const char *const names[N_EDIT_EFFECTS] = { "none", "live", "restart", "replace" };
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; i < plan->changes.n; i++) {
                const EditChange *change = &plan->changes.items[i];

                fprintf(out, "%s%s%s%s: %s", i > 0 ? "; " : "", names[change->effect],
                        change->container ? " " : "", strna(change->container), change->path);
                if (change->from)
                        fprintf(out, " (%s -> %s)", change->from, change->to);
        }
        fclose(out);
        return text;
}

TEST(changed_fields_have_the_right_effect)
{
        static const struct {
                const char *from;
                const char *to;
                const char *plan;
        } cases[] = {
                { "a: b", "a: b", "" },
                { "    command: [run]\n", "    command: [run]\n    # a comment\n", "" },
                { "a: b", "a: c", "live: metadata.labels" },
                { "c: d", "c: e", "live: metadata.annotations" },
                { "Seconds: 5", "Seconds: 7", "live: spec.terminationGracePeriodSeconds (5 -> 7)" },
                { "spec:\n", "spec:\n  activeDeadlineSeconds: 9\n",
                  "live: spec.activeDeadlineSeconds ( -> 9)" },
                { "spec:\n", "spec:\n  priorityClassName: high\n",
                  "live: spec.priorityClassName ( -> high)" },
                { "memory: 8Mi", "memory: 9Mi", "live web: resources.limits.memory (8Mi -> 9Mi)" },
                { "memory: 8Mi", "memory: 8Mi, ephemeral-storage: 1Gi",
                  "restart web: resources.limits.ephemeral-storage ( -> 1Gi); "
                  "restart web: resources.requests.ephemeral-storage ( -> 1Gi)" },
                { "command: [run]", "command: [run]\n    imagePullPolicy: Never",
                  "live web: imagePullPolicy (IfNotPresent -> Never)" },
                { "containerPort: 80", "containerPort: 81", "live web: ports" },
                { "containerPort: 80", "containerPort: 80, hostPort: 80", "replace web: ports" },
                { "image: 'x:1'\n    command", "image: 'x:2'\n    command",
                  "restart web: image (x:1 -> x:2)" },
                { "command: [run]", "command: [go]", "restart web: command" },
                { "command: [run]", "command: [run]\n    env: [{name: A, value: secret}]",
                  "restart web: env" },
                { "mountPath: /v", "mountPath: /w", "restart web: volumeMounts" },
                { "command: [run]", "command: [run]\n    securityContext: {privileged: true}",
                  "restart web: securityContext" },
                { "spec:\n", "spec:\n  hostNetwork: true\n",
                  "live web: ports; replace: spec.hostNetwork (false -> true)" },
                { "spec:\n", "spec:\n  hostname: h\n", "replace: spec.hostname ( -> h)" },
                { "spec:\n", "spec:\n  runtimeClassName: r\n",
                  "replace: spec.runtimeClassName ( -> r)" },
                { "spec:\n", "spec:\n  securityContext: {fsGroup: 1}\n",
                  "replace: spec.securityContext" },
                { "emptyDir: {}}]", "hostPath: {path: /x}}]", "replace: spec.volumes[w]" },
                { ", {name: w, emptyDir: {}}", "", "replace: spec.volumes[w]" },
                { "[{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]",
                  "[{name: w, emptyDir: {}}, {name: v, emptyDir: {}}]", "" },
                { "  - {name: db, image: 'x:1'}\n", "", "replace: spec.containers[db]" },
                { "name: db", "name: da",
                  "replace: spec.containers[db]; replace: spec.containers[da]" },
                { "requests: {memory: 1Mi}, limits: {memory: 8Mi}", "",
                  "live web: resources.limits.memory (8Mi -> ); "
                  "live web: resources.requests.memory (1Mi -> ); "
                  "replace: status.qosClass (Burstable -> BestEffort)" },
                { "{name: i, image: 'x:1'}", "{name: i, image: 'x:2'}",
                  "replace i: image (x:1 -> x:2)" },
                { "{name: s, image: 'x:1', ", "{name: s, image: 'x:2', ",
                  "restart s: image (x:1 -> x:2)" },
                { "{name: i, image: 'x:1'}", "{name: i, image: 'x:1', imagePullPolicy: Never}",
                  "live i: imagePullPolicy (IfNotPresent -> Never)" },
        };
        ManifestObjects before = parse_manifest(manifest);

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects after = parse_edited_manifest(cases[i].from, cases[i].to);
                cleanup_with(edit_plan_done) EditPlan plan = { 0 };
                cleanup_free char *text = NULL;

                EXPECT_EQ(edit_plan_make(before.pods.items[0], after.pods.items[0], &plan), 0);
                text = print_edit_plan(&plan);
                EXPECT_STREQ(text, cases[i].plan);
                manifest_objects_done(&after);
        }
        manifest_objects_done(&before);
}

TEST(pod_is_replaced_when_it_moves_to_another_source)
{
        ManifestObjects before = parse_manifest(manifest), after = parse_manifest(manifest);

        for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++) {
                bool is_other = source != OBJECT_SOURCE_FILE && source != OBJECT_SOURCE_NONE;
                cleanup_with(edit_plan_done) EditPlan plan = { 0 };

                after.pods.items[0]->metadata.source = source;
                EXPECT_EQ(edit_plan_make(before.pods.items[0], after.pods.items[0], &plan), 0);
                EXPECT_EQ(plan.effect, is_other ? EDIT_RECREATE_POD : EDIT_NONE);
        }
        manifest_objects_done(&before);
        manifest_objects_done(&after);
}

TEST(resize_policy_restarts_a_container)
{
        static const char with[] = "command: [run]\n    resizePolicy: [{resourceName: memory, "
                                   "restartPolicy: RestartContainer}]";
        static const struct {
                const char *from;
                const char *to;
                const char *plan;
        } cases[] = {
                { "memory: 8Mi", "memory: 9Mi",
                  "restart web: resources.limits.memory (8Mi -> 9Mi)" },
                { "requests: {memory: 1Mi}", "requests: {memory: 1Mi, cpu: 1}",
                  "live web: resources.requests.cpu ( -> 1)" },
                { "RestartContainer", "NotRequired", "live web: resizePolicy" },
        };
        ManifestObjects before = parse_edited_manifest("command: [run]", with);
        cleanup_free char *yaml = NULL;
        const char *at = strstr(manifest, "command: [run]");

        REQUIRE(asprintf(&yaml, "%.*s%s%s", (int) (at - manifest), manifest, with,
                         at + strlen("command: [run]")) > 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const char *place = strstr(yaml, cases[i].from);
                cleanup_with(edit_plan_done) EditPlan plan = { 0 };
                cleanup_free char *text = NULL, *other = NULL;
                ManifestObjects after;

                REQUIRE(place && asprintf(&other, "%.*s%s%s", (int) (place - yaml), yaml,
                                          cases[i].to, place + strlen(cases[i].from)) > 0);
                after = parse_manifest(other);
                EXPECT_EQ(edit_plan_make(before.pods.items[0], after.pods.items[0], &plan), 0);
                text = print_edit_plan(&plan);
                EXPECT_STREQ(text, cases[i].plan);
                manifest_objects_done(&after);
        }
        manifest_objects_done(&before);
}

TEST(successor_keeps_identity_and_container_order)
{
        ManifestObjects before = parse_manifest(manifest);
        ManifestObjects after =
                parse_manifest("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
                               "  containers: [{name: db, image: i}, {name: web, image: i}]\n");
        Pod *running = before.pods.items[0], *wanted = after.pods.items[0];

        EXPECT(!streq(running->metadata.uid, wanted->metadata.uid));
        EXPECT_EQ(edit_inherit_pod_identity(running, wanted), 0);
        EXPECT_STREQ(wanted->metadata.uid, running->metadata.uid);
        EXPECT(!streq(string_map_get(&wanted->metadata.annotations, "kubernetes.io/config.hash"),
                      string_map_get(&running->metadata.annotations, "kubernetes.io/config.hash")));
        EXPECT_STREQ(string_map_get(&wanted->metadata.annotations, "kubernetes.io/config.seen"),
                     string_map_get(&running->metadata.annotations, "kubernetes.io/config.seen"));
        EXPECT_STREQ(wanted->spec.containers.items[0].name, "web");
        EXPECT_STREQ(wanted->spec.containers.items[1].name, "db");
        manifest_objects_done(&after);
        manifest_objects_done(&before);
}

TEST(successor_without_start_time_inherits_it)
{
        ManifestObjects before = parse_manifest(manifest);
        const Pod *running = before.pods.items[0];
        cleanup_with(pod_freep) Pod *desired = calloc(1, sizeof(*desired)); /* a DaemonSet's */

        EXPECT_EQ(edit_inherit_pod_identity(running, desired), 0);
        EXPECT_EQ(desired->metadata.annotations.n, 1);
        EXPECT_STREQ(string_map_get(&desired->metadata.annotations, "kubernetes.io/config.seen"),
                     string_map_get(&running->metadata.annotations, "kubernetes.io/config.seen"));
        manifest_objects_done(&before);
}

TEST(successor_keeps_volume_order)
{
        static const char text[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
                                   "  containers: [{name: c, image: i}]\n"
                                   "  volumes: [{name: %s, image: {reference: %s}}, {name: %s, "
                                   "image: {reference: %s}}]\n";
        cleanup_free char *left = NULL, *right = NULL;
        ManifestObjects before, after;
        Pod *wanted;

        REQUIRE(asprintf(&left, text, "a", "one", "b", "two") > 0);
        REQUIRE(asprintf(&right, text, "b", "two", "a", "one") > 0);
        before = parse_manifest(left);
        after = parse_manifest(right);
        wanted = after.pods.items[0];
        EXPECT_EQ(edit_inherit_pod_identity(before.pods.items[0], wanted), 0);
        EXPECT_STREQ(wanted->spec.volumes.items[0].name, "a");
        EXPECT_STREQ(wanted->spec.volumes.items[0].image->reference, "one");
        EXPECT_STREQ(wanted->spec.volumes.items[1].name, "b");
        manifest_objects_done(&after);
        manifest_objects_done(&before);
}

TEST(edit_plan_is_printed_by_effect_and_container)
{
        ManifestObjects before = parse_manifest(manifest);
        ManifestObjects after = parse_edited_manifest(
                "image: 'x:1'\n    command: [run]",
                "image: 'x:2'\n    command: [go]\n    imagePullPolicy: Never");
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        cleanup_free char *restarts = NULL, *live = NULL, *pod = NULL;

        REQUIRE(edit_plan_make(before.pods.items[0], after.pods.items[0], &plan) == 0);
        restarts = edit_plan_format(&plan, EDIT_RESTART_CONTAINER, "web");
        live = edit_plan_format(&plan, EDIT_IN_PLACE, "web");
        pod = edit_plan_format(&plan, EDIT_IN_PLACE, NULL);
        EXPECT_STREQ(restarts, "image (x:1 -> x:2), command");
        EXPECT_STREQ(live, "imagePullPolicy (IfNotPresent -> Never)");
        EXPECT_STREQ(pod, "");
        EXPECT_EQ(plan.effect, EDIT_RESTART_CONTAINER);
        EXPECT_EQ(edit_plan_container_effect(&plan, "web"), EDIT_RESTART_CONTAINER);
        EXPECT_EQ(edit_plan_container_effect(&plan, "db"), EDIT_NONE);
        manifest_objects_done(&after);
        manifest_objects_done(&before);
}

static Pod *with_ephemeral(const Pod *pod, const char *const *names) {
        Pod *copy = NULL;
        size_t n = 0;

        REQUIRE(pod_copy(pod, &copy) == 0 && copy);
        while (names[n])
                n++;
        copy->spec.ephemeral_containers.items = calloc(n + 1, sizeof(Container));
        REQUIRE(copy->spec.ephemeral_containers.items);
        for (copy->spec.ephemeral_containers.n = 0; copy->spec.ephemeral_containers.n < n;
             copy->spec.ephemeral_containers.n++)
                copy->spec.ephemeral_containers.items[copy->spec.ephemeral_containers.n] =
                        (Container){ .name = strdup(names[copy->spec.ephemeral_containers.n]),
                                     .image = strdup("x:1") };
        return copy;
}

TEST(ephemeral_containers_are_added_in_place_and_never_removed)
{
        static const char *const none[] = { NULL }, *const old[] = { "a", "b", NULL },
                                 *const new[] = { "c", "a", NULL };
        static const struct {
                const char *const *running, *const *desired;
                const char *plan, *names;
        } cases[] = {
                { none, new, "live: spec.ephemeralContainers[c]; live: spec.ephemeralContainers[a]",
                  "c a " },
                { old, none, "", "a b " },
                { old, old, "", "a b " },
                { old, new, "live: spec.ephemeralContainers[c]", "a b c " },
        };
        ManifestObjects objects = parse_manifest(manifest);

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Pod *running = with_ephemeral(objects.pods.items[0], cases[i].running);
                Pod *desired = with_ephemeral(objects.pods.items[0], cases[i].desired);
                cleanup_with(edit_plan_done) EditPlan plan = { 0 };
                cleanup_free char *text = NULL;
                char names[32] = "";
                size_t length = 0;

                EXPECT_EQ(edit_plan_make(running, desired, &plan), 0);
                text = print_edit_plan(&plan);
                EXPECT_STREQ(text, cases[i].plan);
                EXPECT_EQ(edit_inherit_pod_identity(running, desired), 0);
                for (size_t c = 0; c < desired->spec.ephemeral_containers.n; c++)
                        length +=
                                (size_t) snprintf(names + length, sizeof(names) - length, "%s ",
                                                  desired->spec.ephemeral_containers.items[c].name);
                EXPECT_STREQ(names, cases[i].names);
                pod_free(running);
                pod_free(desired);
        }
        manifest_objects_done(&objects);
}
