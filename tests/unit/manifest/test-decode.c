/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/decode.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>

/* Returns the error of a file, its warnings, or "". */
static const char *verdict(const char *yaml) {
        static char text[4096];
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("web.yaml", yaml, strlen(yaml), "node1", &objects, &error);
        size_t n = 0;

        text[0] = '\0';
        if (r < 0)
                (void) snprintf(text, sizeof(text), "%s", error_message(&error, r));
        strv_foreach(warning, r < 0 ? NULL : objects.warnings)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s",
                                       n > 0 ? "\n" : "warning: ", *warning);
        manifest_objects_done(&objects);
        return text;
}

TEST(warnings_before_an_error_are_returned_with_it)
{
        static const char yaml[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
                                   "spec: {hostIpc: true, containers: [{name: a}]}\n";
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(manifest_parse("f", yaml, strlen(yaml), "n", &objects, &error), -EINVAL);
        EXPECT_STREQ(error.message, "f:4:36: spec.containers[0].image: is required");
        REQUIRE(objects.warnings && objects.warnings[0]);
        EXPECT_STREQ(objects.warnings[0],
                     "f:4:8: spec.hostIpc: is not a field of PodSpec; did you mean 'hostIPC'?");
        EXPECT_EQ(objects.pods.n, (size_t) 0);
        manifest_objects_done(&objects);
}

/* Fields of a container: line 6, after "  - ". */
static const char *in_container(const char *fields) {
        char yaml[2048];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
                        "  - %s\n  volumes: [{name: v, emptyDir: {}}]\n",
                        fields);
        return verdict(yaml);
}

/* Fields of the spec next to a container: line 6. */
static const char *in_spec(const char *fields) {
        char yaml[2048];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
                        "  containers: [{name: c, image: i}]\n  %s\n",
                        fields);
        return verdict(yaml);
}

static const char *in_metadata(const char *fields) {
        char yaml[2048];

        (void) snprintf(yaml, sizeof(yaml),
                        "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}\n"
                        "metadata:\n  %s\n",
                        fields);
        return verdict(yaml);
}

typedef struct Case {
        const char *yaml;
        const char *verdict;
} Case;

static void expect_all(const char *(*in)(const char *), const Case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                printf("%s\n", cases[i].yaml);
                EXPECT_STREQ(in(cases[i].yaml), cases[i].verdict);
        }
}

TEST(error_has_file_line_column_and_field)
{
        EXPECT_STREQ(verdict("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n"
                             "  containers:\n  - name: Web_1\n    image: i\n"),
                     "web.yaml:7:11: spec.containers[0].name: must be a DNS label, not 'Web_1'");
}

TEST(containers_are_checked)
{
        static const Case cases[] = {
                { "{name: c, image: i}", "" },
                { "{image: i}", "web.yaml:6:5: spec.containers[0].name: is required" },
                { "{name: c}", "web.yaml:6:5: spec.containers[0].image: is required" },
                { "{name: c, image: ''}", "web.yaml:6:22: spec.containers[0].image: is required" },
                { "{name: c, image: ~}", "web.yaml:6:22: spec.containers[0].image: is required" },
                { "", "web.yaml:6:4: spec.containers[0].name: is required" },
                { "x", "web.yaml:6:5: spec.containers[0]: must be a mapping, not the string 'x'" },
                { "{name: yes, image: i}",
                  "web.yaml:6:12: spec.containers[0].name: must be a string, not the boolean yes; "
                  "quote it" },
                { "{name: 1, image: i}",
                  "web.yaml:6:12: spec.containers[0].name: must be a string, not the number 1; "
                  "quote it" },
                { "{name: [c], image: i}",
                  "web.yaml:6:12: spec.containers[0].name: must be a string, not a list" },
                { "{name: c, image: ' i'}",
                  "web.yaml:6:22: spec.containers[0].image: must not have white space around it, "
                  "not ' i'" },
                { "{name: c, image: i, imagePullPolicy: always}",
                  "web.yaml:6:42: spec.containers[0].imagePullPolicy: must be Always, IfNotPresent "
                  "or Never, not 'always'" },
                { "{name: c, image: i, imagePullPolicy: ''}", "" },
                { "{name: c, image: i, command: sh}", "web.yaml:6:34: spec.containers[0].command: "
                                                      "must be a list, not the string 'sh'" },
                { "{name: c, image: i, command: [sh, 1]}",
                  "web.yaml:6:39: spec.containers[0].command[1]: must be a string, not the number "
                  "1; quote it" },
                { "{name: c, image: i, args: [on]}",
                  "web.yaml:6:32: spec.containers[0].args[0]: must be a string, not the boolean "
                  "on; quote it" },
                { "{name: c, image: i}\n  - {name: c, image: i}",
                  "web.yaml:7:12: spec.containers[1].name: must be unique; 'c' is also "
                  "containers[0]" },
                { "{name: c, image: i, tty: false, stdin: false}", "" },
                { "{name: c, image: i, tty: true, stdin: true, stdinOnce: true}", "" },
                { "{name: c, image: i, securityContext: {}, envFrom: [], lifecycle: ~}", "" },
                { "{name: c, image: i, securityContext: {capabilities: {add: []}}}", "" },
                { "{name: c, image: i, securityContext: {capabilities: {add: [FLY]}}}",
                  "web.yaml:6:64: spec.containers[0].securityContext.capabilities.add[0]: must be "
                  "a capability such as NET_ADMIN, or ALL, not 'FLY'" },
                { "{name: c, image: i, securityContext: {privileged: true, "
                  "allowPrivilegeEscalation: false}}",
                  "web.yaml:6:42: spec.containers[0].securityContext: cannot set "
                  "`allowPrivilegeEscalation` to false and `privileged` to true" },
                { "{name: c, image: i, securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}, "
                  "allowPrivilegeEscalation: false}}",
                  "web.yaml:6:42: spec.containers[0].securityContext: cannot set "
                  "`allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN" },
                { "{name: c, image: i, securityContext: {procMount: Unmasked}}",
                  "web.yaml:6:54: spec.containers[0].securityContext.procMount: `hostUsers` must "
                  "be false to use `Unmasked`" },
                { "{name: c, image: i, securityContext: {procMount: Default}}", "" },
                { "{name: c, image: i, securityContext: {procMount: Unmasked, runAsUser: 65535}}\n "
                  " hostUsers: false",
                  "" },
                { "{name: c, image: i, securityContext: {runAsUser: 65536}}\n  hostUsers: false",
                  "web.yaml:6:54: spec.containers[0].securityContext.runAsUser: must be between 0 "
                  "and 65535 when `hostUsers` is false" },
                { "{name: c, image: i, securityContext: {privileged: true}, volumeMounts: [{name: "
                  "v, mountPath: /v, mountPropagation: Bidirectional}]}\n  hostUsers: false",
                  "web.yaml:6:120: spec.containers[0].volumeMounts[0].mountPropagation: may not be "
                  "Bidirectional when `hostUsers` is false" },
                { "{name: c, image: i, securityContext: {seLinuxOptions: {level: s0}}}", "" },
                { "{name: c, image: i, terminationMessagePath: /dev/termination-log, "
                  "terminationMessagePolicy: File}",
                  "" },
                { "{name: c, image: i, Image: j}",
                  "warning: web.yaml:6:25: spec.containers[0].Image: is not a field of Container; "
                  "did you mean 'image'?" },
                { "{name: c, image: i, imagePulPolicy: Never}",
                  "warning: web.yaml:6:25: spec.containers[0].imagePulPolicy: is not a field of "
                  "Container; did you mean 'imagePullPolicy'?" },
                { "{name: c, image: i, foo: 1, bar: {a: b}}",
                  "warning: web.yaml:6:25: spec.containers[0].foo: is not a field of Container\n"
                  "web.yaml:6:33: spec.containers[0].bar: is not a field of Container" },
        };

        expect_all(in_container, cases, N_ELEMENTS(cases));
}

TEST(environments_are_checked)
{
        static const Case cases[] = {
                { "{name: c, image: i, env: [{name: A, value: b}, {name: A, value: c}]}", "" },
                { "{name: c, image: i, env: [{name: 'a.b c'}]}", "" },
                { "{name: c, image: i, env: [{value: b}]}",
                  "web.yaml:6:31: spec.containers[0].env[0].name: is required" },
                { "{name: c, image: i, env: [{name: A, value: 8080}]}",
                  "web.yaml:6:48: spec.containers[0].env[0].value: must be a string, not the "
                  "number 8080; quote it" },
                { "{name: c, image: i, env: [{name: 'A=B'}]}",
                  "web.yaml:6:38: spec.containers[0].env[0].name: must be printable ASCII without "
                  "'=', not 'A=B'" },
                { "{name: c, image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: x}}}]}",
                  "web.yaml:6:75: spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: is not a "
                  "field that a variable can refer to: 'x'" },
                { "{name: c, image: i, env: {A: b}}",
                  "web.yaml:6:30: spec.containers[0].env: must be a list, not a mapping" },
        };

        expect_all(in_container, cases, N_ELEMENTS(cases));
}

TEST(ports_are_checked)
{
        static const Case cases[] = {
                { "{name: c, image: i, ports: [{containerPort: 80, name: http, hostPort: 8080}]}",
                  "" },
                { "{name: c, image: i, ports: [{containerPort: 8e1}]}", "" },
                { "{name: c, image: i, ports: [{}]}",
                  "web.yaml:6:33: spec.containers[0].ports[0].containerPort: is required" },
                { "{name: c, image: i, ports: [{containerPort: 0}]}",
                  "web.yaml:6:49: spec.containers[0].ports[0].containerPort: must be between 1 and "
                  "65535, not 0" },
                { "{name: c, image: i, ports: [{containerPort: 65536}]}",
                  "web.yaml:6:49: spec.containers[0].ports[0].containerPort: must be between 1 and "
                  "65535, not 65536" },
                { "{name: c, image: i, ports: [{containerPort: '80'}]}",
                  "web.yaml:6:49: spec.containers[0].ports[0].containerPort: must be a number, not "
                  "the string '80'; remove the quotes" },
                { "{name: c, image: i, ports: [{containerPort: http}]}",
                  "web.yaml:6:49: spec.containers[0].ports[0].containerPort: must be a number, not "
                  "the string 'http'" },
                { "{name: c, image: i, ports: [{containerPort: 80.5}]}",
                  "web.yaml:6:49: spec.containers[0].ports[0].containerPort: must be a whole "
                  "number of 64 bits, not the number 80.5" },
                { "{name: c, image: i, ports: [{containerPort: 80, protocol: tcp}]}",
                  "web.yaml:6:63: spec.containers[0].ports[0].protocol: must be TCP, UDP or SCTP, "
                  "not 'tcp'" },
                { "{name: c, image: i, ports: [{containerPort: 80, name: HTTP}]}",
                  "web.yaml:6:59: spec.containers[0].ports[0].name: must be lower-case letters, "
                  "digits and single '-' between them, not 'HTTP'" },
                { "{name: c, image: i, ports: [{containerPort: 80, name: a}, {containerPort: 81, "
                  "name: a}]}",
                  "web.yaml:6:89: spec.containers[0].ports[1].name: must be unique; 'a' is also "
                  "ports[0]" },
                { "{name: c, image: i, ports: [{containerPort: 80, hostPort: 1}, {containerPort: "
                  "81, hostPort: 1}]}",
                  "web.yaml:6:97: spec.containers[0].ports[1].hostPort: must be unique; port 1 of "
                  "the host is taken by another port of this pod" },
                { "{name: c, image: i, ports: [{containerPort: 80, hostPort: 1}, {containerPort: "
                  "81, hostPort: 1, protocol: UDP}]}",
                  "" },
                { "{name: c, image: i, ports: [{containerPort: 80, hostPort: 1}]}\n"
                  "  hostNetwork: true",
                  "web.yaml:6:63: spec.containers[0].ports[0].hostPort: must equal containerPort, "
                  "80, in a pod with hostNetwork" },
                { "{name: c, image: i, ports: [{containerPort: 80}]}\n"
                  "  - {name: d, image: i, ports: [{containerPort: 80}]}\n  hostNetwork: true",
                  "web.yaml:7:33: spec.containers[1].ports[0].hostPort: must be unique; port 80 of "
                  "the host is taken by another port of this pod" },
        };

        expect_all(in_container, cases, N_ELEMENTS(cases));
}

TEST(resources_are_checked)
{
        static const Case cases[] = {
                { "{name: c, image: i, resources: {limits: {cpu: 1.5, memory: 1e9}}}", "" },
                { "{name: c, image: i, resources: {limits: {cpu: x}}}",
                  "web.yaml:6:51: spec.containers[0].resources.limits.cpu: must be a quantity such "
                  "as 500m, 2 or 1.5Gi, not 'x'" },
                { "{name: c, image: i, resources: {limits: {cpu: yes}}}",
                  "web.yaml:6:51: spec.containers[0].resources.limits.cpu: must be a quantity such "
                  "as 500m, 2 or 1.5Gi, not the boolean yes" },
                { "{name: c, image: i, resources: {requests: {memory: -1}}}",
                  "web.yaml:6:56: spec.containers[0].resources.requests.memory: must not be "
                  "negative" },
                { "{name: c, image: i, resources: {limits: {cpu: 1}, requests: {cpu: 1001m}}}",
                  "web.yaml:6:71: spec.containers[0].resources.requests.cpu: must be at most the "
                  "limit, 1, not 1001m" },
                { "{name: c, image: i, resources: {limits: {ephemeral-storage: 1Gi}}}", "" },
                { "{name: c, image: i, resources: {limits: {ephemeral-storage: 1Gi}, requests: "
                  "{ephemeral-storage: 2Gi}}}",
                  "web.yaml:6:101: spec.containers[0].resources.requests.ephemeral-storage: must "
                  "be "
                  "at most the limit, 1Gi, not 2Gi" },
                { "{name: c, image: i, resources: {limits: {ephemeral-storage: -1}}}",
                  "web.yaml:6:65: spec.containers[0].resources.limits.ephemeral-storage: must not "
                  "be negative" },
                { "{name: c, image: i, resources: {limits: {hugepages-2Mi: 4Mi, cpu: 1}}}", "" },
                { "{name: c, image: i, resources: {limits: {hugepages-2Mi: 2Mi}}}",
                  "web.yaml:6:36: spec.containers[0].resources: HugePages require cpu or memory" },
                { "{name: c, image: i, resources: {limits: {hugepages-1Gi: 3Mi, cpu: 1}}}",
                  "web.yaml:6:61: spec.containers[0].resources.limits.hugepages-1Gi: 3Mi is not "
                  "positive integer multiple of hugepages-1Gi" },
                { "{name: c, image: i, resources: {requests: {hugepages-2Mi: 2Mi, cpu: 1}}}",
                  "web.yaml:6:36: spec.containers[0].resources.limits.hugepages-2Mi: Limit must be "
                  "set for non overcommitable resources" },
                { "{name: c, image: i, resources: {limits: {hugepages-2Mi: 4Mi, cpu: 1}, requests: "
                  "{hugepages-2Mi: 2Mi}}}",
                  "web.yaml:6:101: spec.containers[0].resources.requests.hugepages-2Mi: must be "
                  "equal to hugepages-2Mi limit of 4Mi" },
                { "{name: c, image: i, resources: {limits: {kubernetes.io/gpu: 1}}}",
                  "web.yaml:6:46: spec.containers[0].resources.limits[kubernetes.io/gpu]: must be "
                  "the name of a resource with a domain, such as example.com/gpu, not "
                  "'kubernetes.io/gpu'" },
                { "{name: c, image: i, resources: {claims: [{name: x}]}}",
                  "web.yaml:6:37: spec.containers[0].resources.claims: needs a cluster: its "
                  "scheduler allocates the claimed devices" },
        };

        expect_all(in_container, cases, N_ELEMENTS(cases));
}

TEST(mounts_are_checked)
{
        static const Case cases[] = {
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}", "" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: v}]}", "" },
                { "{name: c, image: i, volumeMounts: [{name: w, mountPath: /v}]}",
                  "web.yaml:6:47: spec.containers[0].volumeMounts[0].name: must name a volume of "
                  "this pod, not 'w'" },
                { "{name: c, image: i, volumeMounts: [{name: v}]}",
                  "web.yaml:6:40: spec.containers[0].volumeMounts[0].mountPath: is required" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: '/a:b'}]}",
                  "web.yaml:6:61: spec.containers[0].volumeMounts[0].mountPath: must not contain "
                  "':', not '/a:b'" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}, {name: v, "
                  "mountPath: /v}]}",
                  "web.yaml:6:87: spec.containers[0].volumeMounts[1].mountPath: must be unique; "
                  "also used by volumeMounts[0]" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, readOnly: 'true'}]}",
                  "web.yaml:6:75: spec.containers[0].volumeMounts[0].readOnly: must be true or "
                  "false, not the string 'true'; remove the quotes" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, readOnly: yes}]}",
                  "" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, bindMountOptions: "
                  "[x]}]}",
                  "web.yaml:6:65: spec.containers[0].volumeMounts[0].bindMountOptions: is alpha in "
                  "Kubernetes, and disabled by default" },
                { "{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, mountPropagation: "
                  "None}]}",
                  "" },
        };

        expect_all(in_container, cases, N_ELEMENTS(cases));
}

TEST(specs_are_checked)
{
        static const Case cases[] = {
                { "restartPolicy: Always", "" },
                { "restartPolicy: always",
                  "web.yaml:6:18: spec.restartPolicy: must be Always, OnFailure or Never, not "
                  "'always'" },
                { "restartPolicy: no",
                  "web.yaml:6:18: spec.restartPolicy: must be a string, not the boolean no; quote "
                  "it" },
                { "terminationGracePeriodSeconds: 0", "" },
                { "terminationGracePeriodSeconds: 010", "" },
                { "terminationGracePeriodSeconds: -1",
                  "warning: web.yaml:6:34: spec.terminationGracePeriodSeconds: is negative, which "
                  "is treated as 1" },
                { "terminationGracePeriodSeconds: 2147483648",
                  "web.yaml:6:34: spec.terminationGracePeriodSeconds: must be between "
                  "-2147483648 and 2147483647, not 2147483648" },
                { "nodeName: node1", "" },
                { "nodeName: other", "web.yaml:6:13: spec.nodeName: names another node, 'other'; "
                                     "this one is 'node1'" },
                { "hostNetwork: 1",
                  "web.yaml:6:16: spec.hostNetwork: must be true or false, not the number 1" },
                { "dnsPolicy: ClusterFirst", "" },
                { "dnsPolicy: None",
                  "web.yaml:5:3: spec.dnsConfig: must be provided when dnsPolicy is None" },
                { "dnsPolicy: None\n  dnsConfig: {searches: [a]}",
                  "web.yaml:7:14: spec.dnsConfig.nameservers: must provide at least one DNS "
                  "nameserver when dnsPolicy is None" },
                { "dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}",
                  "web.yaml:6:28: spec.dnsConfig.nameservers: must not have more than 3 "
                  "nameservers" },
                { "dnsConfig: {nameservers: [dns]}",
                  "web.yaml:6:29: spec.dnsConfig.nameservers[0]: must be an IP address, not "
                  "'dns'" },
                { "dnsConfig: {searches: [a b]}",
                  "web.yaml:6:26: spec.dnsConfig.searches[0]: must be a DNS subdomain, not 'a b'" },
                { "dnsConfig: {searches: [., a_b.c., _tcp.d]}", "" },
                { "dnsConfig: {options: [{value: x}]}",
                  "web.yaml:6:25: spec.dnsConfig.options[0].name: is required" },
                { "hostname: a.b", "web.yaml:6:13: spec.hostname: must be a DNS label, not 'a.b'" },
                { "hostname: ''\n  subdomain: ''", "" },
                { "subdomain: A", "web.yaml:6:14: spec.subdomain: must be a DNS label, not 'A'" },
                { "hostAliases: [{ip: a, hostnames: [b]}]",
                  "web.yaml:6:22: spec.hostAliases[0].ip: must be an IP address, not 'a'" },
                { "hostAliases: [{ip: 1.2.3.4, hostnames: [B]}]",
                  "web.yaml:6:43: spec.hostAliases[0].hostnames[0]: must be a DNS subdomain, not "
                  "'B'" },
                { "schedulerName: default-scheduler\n  hostUsers: true\n  enableServiceLinks: "
                  "true\n"
                  "  automountServiceAccountToken: true\n  securityContext: {}\n  priority: 0\n"
                  "  nodeSelector: {}\n  tolerations: []",
                  "" },
                { "hostUsers: false", "" },
                { "hostUsers: false\n  hostNetwork: true",
                  "web.yaml:7:16: spec.hostNetwork: may not be true when `hostUsers` is false" },
                { "hostUsers: false\n  hostPID: true",
                  "web.yaml:7:12: spec.hostPID: may not be true when `hostUsers` is false" },
                { "hostUsers: false\n  hostIPC: true",
                  "web.yaml:7:12: spec.hostIPC: may not be true when `hostUsers` is false" },
                { "hostUsers: false\n  securityContext: {fsGroup: 70000}",
                  "web.yaml:7:30: spec.securityContext.fsGroup: must be between 0 and 65535 when "
                  "`hostUsers` is false" },
                { "hostUsers: false\n  securityContext: {supplementalGroups: [1, 70000]}",
                  "web.yaml:7:45: spec.securityContext.supplementalGroups[1]: must be between 0 "
                  "and 65535 when `hostUsers` is false" },
                { "priority: 1000", "" },
                { "resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}", "" },
                { "resources: {limits: {cpu: 1}, requests: {cpu: 1001m}}",
                  "web.yaml:6:49: spec.resources.requests.cpu: must be at most the limit, 1, not "
                  "1001m" },
                { "resources: {requests: {memory: -1}}",
                  "web.yaml:6:34: spec.resources.requests.memory: must not be negative" },
                { "resources: {claims: [{name: a}]}",
                  "web.yaml:6:15: spec.resources.claims: needs a cluster: its scheduler allocates "
                  "the claimed devices" },
                { "priorityClassName: system-node-critical", "" },
                { "priorityClassName: system-cluster-critical\n  priority: 2000000000", "" },
                { "priorityClassName: system-cluster-critical\n  priority: 7",
                  "web.yaml:7:13: spec.priority: must be that of its class, 2000000000, or "
                  "absent" },
                { "priorityClassName: mine", "" },
                { "hostPID: true\n  shareProcessNamespace: true",
                  "web.yaml:7:26: spec.shareProcessNamespace: ShareProcessNamespace and HostPID "
                  "cannot both be enabled" },
                { "hostNetwork: true\n  securityContext: {sysctls: [{name: net.core.somaxconn, "
                  "value: '1'}]}",
                  "web.yaml:7:38: spec.securityContext.sysctls[0].name: may not be specified when "
                  "'hostNetwork' is true" },
                { "hostIPC: true\n  securityContext: {sysctls: [{name: kernel/shmmax, value: "
                  "'1'}]}",
                  "web.yaml:7:38: spec.securityContext.sysctls[0].name: may not be specified when "
                  "'hostIPC' is true" },
                { "securityContext: {sysctls: [{name: a.b, value: '1'}, {name: a/b, value: '1'}]}",
                  "web.yaml:6:63: spec.securityContext.sysctls[1].name: must be unique" },
                { "securityContext: {sysctls: [{name: a..b, value: '1'}]}",
                  "web.yaml:6:38: spec.securityContext.sysctls[0].name: must be the name of a "
                  "sysctl, such as kernel.shmmax, not 'a..b'" },
                { "securityContext: {sysctls: [{name: a, value: 1}]}",
                  "web.yaml:6:48: spec.securityContext.sysctls[0].value: must be a string, not the "
                  "number 1; quote it" },
                { "securityContext: {runAsUser: -1}",
                  "web.yaml:6:32: spec.securityContext.runAsUser: must be between 0 and "
                  "2147483647, "
                  "not -1" },
                { "securityContext: {supplementalGroups: [1, x]}",
                  "web.yaml:6:45: spec.securityContext.supplementalGroups[1]: must be a number, "
                  "not "
                  "the string 'x'" },
                { "securityContext: {seccompProfile: {}}",
                  "web.yaml:6:37: spec.securityContext.seccompProfile.type: is required" },
                { "securityContext: {seccompProfile: {type: Localhost}}",
                  "web.yaml:6:37: spec.securityContext.seccompProfile.localhostProfile: must be "
                  "set "
                  "when seccomp type is Localhost" },
                { "securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: a}}",
                  "web.yaml:6:78: spec.securityContext.seccompProfile.localhostProfile: can only "
                  "be "
                  "set when seccomp type is Localhost" },
                { "securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../a}}",
                  "web.yaml:6:73: spec.securityContext.seccompProfile.localhostProfile: must not "
                  "contain '..', not '../a'" },
                { "securityContext: {appArmorProfile: {type: Localhost}}",
                  "web.yaml:6:38: spec.securityContext.appArmorProfile.localhostProfile: must be "
                  "set when AppArmor type is Localhost" },
                { "initContainers: [{name: a, image: i}]", "" },
                { "ephemeralContainers: [{name: a, image: i}]",
                  "web.yaml:6:3: spec.ephemeralContainers: cannot be in a manifest; they are added "
                  "to a pod that runs, by 'mainstay debug POD'" },
                { "hostnetwork: true", "warning: web.yaml:6:3: spec.hostnetwork: is not a field of "
                                       "PodSpec; did you mean "
                                       "'hostNetwork'?" },
        };

        expect_all(in_spec, cases, N_ELEMENTS(cases));
        EXPECT_STREQ(
                verdict("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}"),
                "web.yaml:4:20: spec.containers: is required");
}

TEST(volumes_are_checked)
{
        static const Case cases[] = {
                { "volumes: [{name: v, emptyDir: {}}, {name: w, hostPath: {path: /x}}]", "" },
                { "volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]", "" },
                { "volumes: [{name: v, hostpath: {}}]",
                  "web.yaml:6:13: spec.volumes[0]: must have a source, such as hostPath or "
                  "emptyDir" },
                { "volumes: [{name: v}]",
                  "warning: web.yaml:6:13: spec.volumes[0]: has no source, so it is an emptyDir; "
                  "write 'emptyDir: {}'" },
                { "volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]",
                  "web.yaml:6:13: spec.volumes[0]: must have one source, not several" },
                { "volumes: [{name: V, emptyDir: {}}]",
                  "web.yaml:6:20: spec.volumes[0].name: must be a DNS label, not 'V'" },
                { "volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]",
                  "web.yaml:6:45: spec.volumes[1].name: must be unique; 'v' is also volumes[0]" },
                { "volumes: [{name: v, hostPath: {}}]",
                  "web.yaml:6:33: spec.volumes[0].hostPath.path: is required" },
                { "volumes: [{name: v, hostPath: {path: x}}]",
                  "web.yaml:6:40: spec.volumes[0].hostPath.path: must be an absolute path, not "
                  "'x'" },
                { "volumes: [{name: v, hostPath: {path: /a/../b}}]",
                  "web.yaml:6:40: spec.volumes[0].hostPath.path: must not contain '..', not "
                  "'/a/../b'" },
                { "volumes: [{name: v, hostPath: {path: /a, type: Dir}}]",
                  "web.yaml:6:50: spec.volumes[0].hostPath.type: must be DirectoryOrCreate, "
                  "Directory, FileOrCreate, File, Socket, CharDevice or BlockDevice, not 'Dir'" },
                { "volumes: [{name: v, hostPath: {path: /a, type: ''}}]", "" },
                { "volumes: [{name: v, emptyDir: {medium: HugePages}}]",
                  "web.yaml:6:42: spec.volumes[0].emptyDir.medium: medium HugePages: hugePages "
                  "storage requested, but there is no resource request for huge pages" },
                { "volumes: [{name: v, emptyDir: {medium: memory}}]",
                  "web.yaml:6:42: spec.volumes[0].emptyDir.medium: must be Memory, HugePages, "
                  "HugePages-1Gi or HugePages-2Mi, not 'memory'" },
                { "volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]", "" },
                { "volumes: [{name: v, emptyDir: {sizeLimit: -1}}]",
                  "web.yaml:6:45: spec.volumes[0].emptyDir.sizeLimit: must not be negative" },
                { "resources: {limits: {ephemeral-storage: 1Gi}}",
                  "web.yaml:6:43: spec.resources.limits.ephemeral-storage: is not supported for "
                  "all containers together; set it for one container" },
                { "volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: -1}}]",
                  "web.yaml:6:61: spec.volumes[0].emptyDir.sizeLimit: must not be negative" },
                { "volumes: [{name: v, nfs: {path: /x}}]",
                  "web.yaml:6:28: spec.volumes[0].nfs.server: is required" },
                { "volumes: [{name: v, nfs: {server: -o, path: /x}}]",
                  "web.yaml:6:37: spec.volumes[0].nfs.server: must be a host name or an address, "
                  "not '-o'" },
                { "volumes: [{name: v, nfs: {server: a, path: x}}]",
                  "web.yaml:6:46: spec.volumes[0].nfs.path: must be an absolute path, not 'x'" },
                { "volumes: [{name: v, nfs: {server: a, path: /x, readOnly: true}}]", "" },
                { "volumes: [{name: v, emptydir: {}}]",
                  "warning: web.yaml:6:23: spec.volumes[0].emptydir: is not a field of Volume; did "
                  "you mean 'emptyDir'?\nweb.yaml:6:13: spec.volumes[0]: has no source, so it is "
                  "an "
                  "emptyDir; write 'emptyDir: {}'" },
        };

        expect_all(in_spec, cases, N_ELEMENTS(cases));
}

TEST(metadata_is_checked)
{
        static const Case cases[] = {
                { "name: web\n  creationTimestamp: null\n  resourceVersion: '1'\n  managedFields: "
                  "[1]",
                  "" },
                { "name: ../web",
                  "web.yaml:5:9: metadata.name: must be a DNS subdomain, not '../web'" },
                { "name: web\n  namespace: Kube",
                  "web.yaml:6:14: metadata.namespace: must be a DNS label, not 'Kube'" },
                { "name: web\n  namespace: a.b",
                  "web.yaml:6:14: metadata.namespace: must be a DNS label, not 'a.b'" },
                { "name: web\n  uid: 0123456789abcdef0123456789abcdef",
                  "web.yaml:6:8: metadata.uid: cannot be chosen; it is computed from the pod" },
                { "name: web\n  labels: {a: yes}", "web.yaml:6:15: metadata.labels[a]: must be a "
                                                   "string, not the boolean yes; quote it" },
                { "name: web\n  labels: {a: '-'}",
                  "web.yaml:6:15: metadata.labels[a]: must be letters, digits, '-', '_' or '.' "
                  "between alphanumerics, not '-'" },
                { "name: web\n  labels: {example.com/a: '-'}",
                  "web.yaml:6:27: metadata.labels[example.com/a]: must be letters, digits, '-', "
                  "'_' or '.' between alphanumerics, not '-'" },
                { "name: web\n  labels: {'a b': c}",
                  "web.yaml:6:11: metadata.labels: must be a qualified name such as "
                  "example.com/my-name, not 'a b'" },
                { "name: web\n  labels: [a]",
                  "web.yaml:6:11: metadata.labels: must be a mapping, not a list" },
                { "name: web\n  labels: {a: ~}", "" },
                { "name: web\n  annotations: {'a b': c}",
                  "web.yaml:6:16: metadata.annotations: must be a qualified name such as "
                  "example.com/my-name, not 'a b'" },
                { "name: web\n  finalizers: [a]",
                  "web.yaml:6:3: metadata.finalizers: needs a cluster: its controllers remove the "
                  "finalizers" },
                { "generateName: web-", "web.yaml:5:3: metadata.name: is required" },
        };

        expect_all(in_metadata, cases, N_ELEMENTS(cases));
}

TEST(number_of_warnings_is_limited)
{
        cleanup_free char *yaml = NULL;
        ManifestObjects objects = { 0 };
        size_t length;
        FILE *stream = open_memstream(&yaml, &length);

        REQUIRE(stream);
        fputs("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
              "spec:\n  containers: [{name: c, image: i}]\n",
              stream);
        for (unsigned i = 0; i < 100; i++)
                fprintf(stream, "  unknown%u: 1\n", i);
        fclose(stream);
        REQUIRE(manifest_parse("f", yaml, length, "n", &objects, NULL) == 0);
        EXPECT_EQ(strv_length(objects.warnings), DECODE_WARNINGS_MAX + 1);
        EXPECT_STREQ(objects.warnings[DECODE_WARNINGS_MAX], "f: and 68 more");
        manifest_objects_done(&objects);
}

TEST(untrusted_strings_are_cut_and_cleaned_in_messages)
{
        char yaml[1024], value[513];
        const char *sentence;

        memset(value, 'X', sizeof(value) - 1);
        value[sizeof(value) - 1] = '\0';
        (void) snprintf(yaml, sizeof(yaml), "name: \"%s\"", value);
        sentence = in_metadata(yaml);
        EXPECT_STREQ(sentence,
                     "web.yaml:5:9: metadata.name: must be at most 253 characters, not 512");
        EXPECT_STREQ(in_metadata("name: \"a\\nb\\e\""),
                     "web.yaml:5:9: metadata.name: must be a DNS subdomain, not 'a?b?'");
        (void) snprintf(yaml, sizeof(yaml), "name: web\n  %s: 1", value);
        sentence = in_metadata(yaml);
        EXPECT(strlen(sentence) < 300);
}
