/* SPDX-License-Identifier: Apache-2.0 */

/* The node's own table of the Pod Security Standards, for tests. Each line of the input consists of
 * the value of the label 'enforce', the value of 'enforce-version' ("-": the namespace does not
 * have the label), and a pod in the API server's form, separated by blanks. For each line the
 * program prints "allowed", "violates PodSecurity …", "no policy: …", or "no pod: …" if the node
 * cannot read the pod. */

#include "agent/daemonset/rules/pod-security.h"
#include "agent/manifest/manifest.h"
#include "common/cleanup.h"

#include <stdio.h>
#include <stdlib.h>

static void print_verdict(const char *enforce, const char *version, const char *json) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *violations = NULL;
        PodSecurityPolicy policy;
        int r = pod_security_policy_parse(streq(enforce, "-") ? NULL : enforce,
                                          streq(version, "-") ? NULL : version, &policy, &error);

        if (r < 0) {
                printf("no policy: %s\n", error_message(&error, r));
                return;
        }
        r = manifest_parse_api("pod", "Pod", json, strlen(json), "node", &objects, &error);
        if (r < 0) {
                printf("no pod: %s\n", error_message(&error, r));
                return;
        }
        r = pod_security_check(&policy, objects.pods.items[0], &violations);
        printf("%s\n", r < 0 ? "no memory" : r > 0 ? "allowed" : violations);
}

int main(void) {
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (getline(&line, &size, stdin) > 0) {
                char *rest = line, *enforce, *version;

                line[strcspn(line, "\n")] = '\0';
                enforce = strsep(&rest, " ");
                version = rest ? strsep(&rest, " ") : NULL;
                if (!rest)
                        return EXIT_FAILURE;
                print_verdict(enforce, version, rest);
        }
        return EXIT_SUCCESS;
}
