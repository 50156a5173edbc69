/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay describe pod`: containers, conditions, volumes, events. */

#include "agent/cli/describe.h"

#include "agent/cli/describe-probes.h"
#include "agent/cli/describe-references.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "agent/cli/yaml.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/model/pod-summary.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

enum {
        ANNOTATION_MAX = 140 /* longer values get separate lines */
};

static void describe_time(FILE *out, const char *label, const json_t *time) {
        char buffer[LONG_TIME_SIZE];

        fprintf(out, "%s\t%s\n", label, format_long_time(buffer, json_string_value(time)));
}

/* "<label>\t<text>", if there is a text. */
/* Text from a container: line by line, with control characters made visible. */
static void write_optional(FILE *out, const char *label, const json_t *text) {
        cleanup_free char *copy =
                json_string_length(text) > 0 ? strdup(json_string_value(text)) : NULL;
        char *rest = copy, *line;

        while ((line = strsep(&rest, "\n"))) {
                if (!*line && !rest && line > copy)
                        break; /* a newline at the end */
                fprintf(out, "%s\t", line == copy ? label : "");
                write_quoted(line, out);
                fputc('\n', out);
        }
}

static void describe_pod_labels(FILE *out, const char *heading, json_t *labels) {
        cleanup_free const char **keys = yaml_sorted_keys(labels);

        fprintf(out, "%s\t", heading);
        if (!keys || !keys[0]) {
                fputs("<none>\n", out);
                return;
        }
        for (size_t i = 0; keys[i]; i++)
                fprintf(out, "%s%s=%s\n", i > 0 ? "\t" : "", keys[i],
                        strna(json_text(labels, keys[i])));
}

/* The lines of a long value, below their key. */
static void write_lines(FILE *out, const char *text) {
        while (*text) {
                size_t length = strcspn(text, "\n");

                fprintf(out, "\t  %.*s%s\n", (int) MIN(length, (size_t) ANNOTATION_MAX - 5), text,
                        length > ANNOTATION_MAX - 2 ? "..." : "");
                text += length + (text[length] == '\n');
        }
}

static void write_annotations(FILE *out, json_t *annotations) {
        cleanup_free const char **keys = yaml_sorted_keys(annotations);

        fputs("Annotations:\t", out);
        if (!keys || !keys[0]) {
                fputs("<none>\n", out);
                return;
        }
        for (size_t i = 0; keys[i]; i++) {
                const char *value = strna(json_text(annotations, keys[i]));

                fprintf(out, "%s%s:", i > 0 ? "\t" : "", keys[i]);
                if (strlen(keys[i]) + strlen(value) + 2 <= ANNOTATION_MAX && !strchr(value, '\n')) {
                        fprintf(out, " %s\n", value);
                        continue;
                }
                fputc('\n', out);
                write_lines(out, value);
        }
}

/* The reason of a condition, which the list of conditions does not show. */
static void describe_pod_condition(FILE *out, const json_t *pod, const char *type,
                                   const char *label) {
        const json_t *condition = find_status_condition(pod, type);

        if (condition)
                write_optional(out, label, json_object_get(condition, "message"));
}

/* kubectl's status in a description: the phase, unless the pod is being deleted. */
static void describe_pod_status(FILE *out, const json_t *pod) {
        const char *phase = strna(json_text(pod, "status", "phase"));
        const char *deleted = json_text(pod, "metadata", "deletionTimestamp");
        const json_t *grace = json_at(pod, "metadata", "deletionGracePeriodSeconds");
        char age[DURATION_SIZE];

        if (deleted && !streq(phase, "Succeeded") && !streq(phase, "Failed")) {
                fprintf(out, "Status:\tTerminating (lasts %s)\n",
                        format_age(age, deleted, now_realtime_usec()));
                if (grace)
                        fprintf(out, "Termination Grace Period:\t%llds\n",
                                (long long) json_integer_value(grace));
        } else
                fprintf(out, "Status:\t%s\n", phase);
        write_optional(out, "Reason:", json_at(pod, "status", "reason"));
        write_optional(out, "Message:", json_at(pod, "status", "message"));
        describe_pod_condition(out, pod, "PodResizeInProgress", "Resize In Progress:");
        describe_pod_condition(out, pod, "mainstay.io/EditPending", "Edit Pending:");
}

static void write_ips(FILE *out, const json_t *pod) {
        const json_t *ips = json_at(pod, "status", "podIPs");
        size_t i;
        json_t *ip;

        fprintf(out, "IP:\t%s\n", strna(json_text(pod, "status", "podIP")));
        if (json_array_size(ips) == 0) {
                fputs("IPs:\t<none>\n", out);
                return;
        }
        fputs("IPs:\n", out);
        json_array_foreach(ips, i, ip)
                fprintf(out, "  IP:\t%s\n", strna(json_text(ip, "ip")));
}

static void write_controller(FILE *out, const json_t *owners) {
        size_t i;
        json_t *owner;

        json_array_foreach(owners, i, owner)
                if (json_is_true(json_object_get(owner, "controller")))
                        fprintf(out, "Controlled By:\t%s/%s\n", strna(json_text(owner, "kind")),
                                strna(json_text(owner, "name")));
}

static void describe_pod_head(FILE *out, const json_t *pod) {
        const char *node = json_text(pod, "spec", "nodeName");
        const char *account = json_text(pod, "spec", "serviceAccountName");
        const json_t *priority = json_at(pod, "spec", "priority");
        const char *class_name = json_string_value(json_at(pod, "spec", "priorityClassName"));
        const char *runtime_class = json_text(pod, "spec", "runtimeClassName");
        const json_t *start = json_at(pod, "status", "startTime");

        fprintf(out, "Name:\t%s\n", strna(json_text(pod, "metadata", "name")));
        fprintf(out, "Namespace:\t%s\n", strna(json_text(pod, "metadata", "namespace")));
        if (priority)
                fprintf(out, "Priority:\t%lld\n", (long long) json_integer_value(priority));
        if (class_name)
                fprintf(out, "Priority Class Name:\t%s\n", class_name);
        if (runtime_class)
                fprintf(out, "Runtime Class Name:\t%s\n", runtime_class);
        if (account)
                fprintf(out, "Service Account:\t%s\n", account);
        if (node)
                fprintf(out, "Node:\t%s/%s\n", node, strna(json_text(pod, "status", "hostIP")));
        else
                fputs("Node:\t<none>\n", out);
        if (start)
                describe_time(out, "Start Time:", start);
        describe_pod_labels(out, "Labels:", json_at(pod, "metadata", "labels"));
        write_annotations(out, json_at(pod, "metadata", "annotations"));
        describe_pod_status(out, pod);
        write_ips(out, pod);
        write_controller(out, json_at(pod, "metadata", "ownerReferences"));
}

/* The list of a container's ports: "80/TCP, 443/TCP". */
static void write_ports(FILE *out, const json_t *container, const char *label, const char *member) {
        const json_t *ports = json_object_get(container, "ports");
        size_t n = json_array_size(ports), i;
        json_t *port;

        fprintf(out, "    %s%s:\t%s", label, n > 1 ? "s" : "", n == 0 ? "<none>" : "");
        json_array_foreach(ports, i, port) {
                const char *protocol = json_text(port, "protocol");

                fprintf(out, "%s%lld/%s", i > 0 ? ", " : "",
                        (long long) json_integer_value(json_object_get(port, member)),
                        protocol ? protocol : "TCP");
        }
        fputc('\n', out);
}

/* "Command:" with one argument per line; an argument with newlines takes several lines. */
static void describe_command_words(FILE *out, const char *label, const json_t *words) {
        size_t i;
        json_t *word;

        if (json_array_size(words) == 0)
                return;
        fprintf(out, "    %s:\n", label);
        json_array_foreach(words, i, word) {
                const char *text = strna(json_string_value(word));

                for (;;) {
                        size_t length = strcspn(text, "\n");

                        fprintf(out, "      %.*s\n", (int) length, text);
                        if (text[length] == '\0')
                                break;
                        text += length + 1;
                }
        }
}

static void describe_terminated_state(FILE *out, const json_t *terminated) {
        const json_t *signal = json_object_get(terminated, "signal");

        write_optional(out, "      Reason:", json_object_get(terminated, "reason"));
        write_optional(out, "      Message:", json_object_get(terminated, "message"));
        fprintf(out, "      Exit Code:\t%lld\n",
                (long long) json_integer_value(json_object_get(terminated, "exitCode")));
        if (json_integer_value(signal) > 0)
                fprintf(out, "      Signal:\t%lld\n", (long long) json_integer_value(signal));
        describe_time(out, "      Started:", json_object_get(terminated, "startedAt"));
        describe_time(out, "      Finished:", json_object_get(terminated, "finishedAt"));
}

static void describe_container_state(FILE *out, const char *label, const json_t *state) {
        const json_t *running = json_object_get(state, "running");
        const json_t *waiting = json_object_get(state, "waiting");
        const json_t *terminated = json_object_get(state, "terminated");

        if (running) {
                fprintf(out, "    %s:\tRunning\n", label);
                describe_time(out, "      Started:", json_object_get(running, "startedAt"));
        } else if (terminated) {
                fprintf(out, "    %s:\tTerminated\n", label);
                describe_terminated_state(out, terminated);
        } else {
                fprintf(out, "    %s:\tWaiting\n", label);
                write_optional(out, "      Reason:", json_object_get(waiting, "reason"));
                /* kubectl shows the message only in an event */
                write_optional(out, "      Message:", json_object_get(waiting, "message"));
        }
}

static void describe_container_status(FILE *out, const json_t *status) {
        describe_container_state(out, "State", json_object_get(status, "state"));
        if (json_at(status, "lastState", "terminated"))
                describe_container_state(out, "Last State", json_object_get(status, "lastState"));
        fprintf(out, "    Ready:\t%s\n",
                json_is_true(json_object_get(status, "ready")) ? "True" : "False");
        fprintf(out, "    Restart Count:\t%lld\n",
                (long long) json_integer_value(json_object_get(status, "restartCount")));
}

static void describe_container_resources(FILE *out, const char *label, json_t *resources) {
        cleanup_free const char **keys = yaml_sorted_keys(resources);

        if (!keys || !keys[0])
                return;
        fprintf(out, "    %s:\n", label);
        for (size_t i = 0; keys[i]; i++)
                fprintf(out, "      %s:\t%s\n", keys[i], strna(json_text(resources, keys[i])));
}

static void write_variable(FILE *out, const char *name, const char *value) {
        size_t length = strcspn(value, "\n");

        fprintf(out, "      %s:\t%.*s\n", name, (int) length, value);
        while (value[length]) {
                value += length + 1;
                length = strcspn(value, "\n");
                fprintf(out, "      \t%.*s\n", (int) length, value);
        }
}

static void write_environment(FILE *out, const json_t *env) {
        size_t i;
        json_t *variable;

        fprintf(out, "    Environment:%s\n", json_array_size(env) == 0 ? "\t<none>" : "");
        json_array_foreach(env, i, variable) {
                const char *name = strna(json_text(variable, "name"));
                const json_t *source = json_object_get(variable, "valueFrom");

                if (source)
                        describe_value_from(out, name, source);
                else
                        write_variable(out, name, strna(json_text(variable, "value")));
        }
}

static int compare_mounts(const void *a, const void *b) {
        return strcmp(strna(json_text(*(json_t *const *) a, "mountPath")),
                      strna(json_text(*(json_t *const *) b, "mountPath")));
}

static void write_mounts(FILE *out, const json_t *mounts) {
        size_t n = json_array_size(mounts);
        cleanup_free json_t **sorted = calloc(n + 1, sizeof(json_t *));

        fprintf(out, "    Mounts:%s\n", n == 0 ? "\t<none>" : "");
        if (!sorted)
                return;
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(mounts, i);
        if (n > 1)
                qsort(sorted, n, sizeof(*sorted), compare_mounts);
        for (size_t i = 0; i < n; i++) {
                const char *sub_path = json_text(sorted[i], "subPath");

                fprintf(out, "      %s from %s (%s", strna(json_text(sorted[i], "mountPath")),
                        strna(json_text(sorted[i], "name")),
                        json_is_true(json_object_get(sorted[i], "readOnly")) ? "ro" : "rw");
                if (sub_path)
                        fprintf(out, ",path=\"%s\"", sub_path);
                fputs(")\n", out);
        }
}

static const json_t *find_container_status_json(const json_t *statuses, const char *name) {
        size_t i;
        json_t *status;

        json_array_foreach(statuses, i, status)
                if (streq_ptr(json_text(status, "name"), name))
                        return status;
        return NULL;
}

static void describe_container(FILE *out, const json_t *statuses, const json_t *container) {
        const char *name = strna(json_text(container, "name"));
        const json_t *status = find_container_status_json(statuses, name);

        fprintf(out, "  %s:\n", name);
        if (status)
                fprintf(out, "    Container ID:\t%s\n", strna(json_text(status, "containerID")));
        fprintf(out, "    Image:\t%s\n", strna(json_text(container, "image")));
        if (status)
                fprintf(out, "    Image ID:\t%s\n", strna(json_text(status, "imageID")));
        write_ports(out, container, "Port", "containerPort");
        write_ports(out, container, "Host Port", "hostPort");
        describe_command_words(out, "Command", json_object_get(container, "command"));
        describe_command_words(out, "Args", json_object_get(container, "args"));
        if (status)
                describe_container_status(out, status);
        describe_container_resources(out, "Limits", json_at(container, "resources", "limits"));
        describe_container_resources(out, "Requests", json_at(container, "resources", "requests"));
        describe_probes(out, container);
        describe_env_from(out, json_object_get(container, "envFrom"));
        write_environment(out, json_object_get(container, "env"));
        write_mounts(out, json_object_get(container, "volumeMounts"));
}

static void describe_pod_containers(FILE *out, const char *heading, const json_t *containers,
                                    const json_t *statuses) {
        size_t i;
        json_t *container;

        if (json_array_size(containers) > 0)
                fprintf(out, "%s:\n", heading);
        json_array_foreach(containers, i, container)
                describe_container(out, statuses, container);
}

static void write_gates(FILE *out, const json_t *gates, const json_t *conditions) {
        size_t i, j;
        json_t *gate, *condition;

        if (json_array_size(gates) == 0)
                return;
        fputs("Readiness Gates:\n  Type\tStatus\n", out);
        json_array_foreach(gates, i, gate) {
                const char *type = strna(json_text(gate, "conditionType")), *state = "<none>";

                json_array_foreach(conditions, j, condition)
                        if (streq_ptr(json_text(condition, "type"), type))
                                state = strna(json_text(condition, "status"));
                fprintf(out, "  %s \t%s \n", type, state);
        }
}

static void describe_pod_conditions(FILE *out, const json_t *conditions) {
        size_t i;
        json_t *condition;

        if (json_array_size(conditions) == 0)
                return;
        fputs("Conditions:\n  Type\tStatus\n", out);
        json_array_foreach(conditions, i, condition)
                fprintf(out, "  %s \t%s \n", strna(json_text(condition, "type")),
                        strna(json_text(condition, "status")));
}

static void describe_volume(FILE *out, const json_t *volume) {
        const json_t *host_path = json_object_get(volume, "hostPath");
        const json_t *empty_dir = json_object_get(volume, "emptyDir");
        const char *type = json_text(host_path, "type");
        const char *limit = json_text(empty_dir, "sizeLimit");

        fprintf(out, "  %s:\n", strna(json_text(volume, "name")));
        if (host_path)
                fprintf(out,
                        "    Type:\tHostPath (bare host directory volume)\n"
                        "    Path:\t%s\n"
                        "    HostPathType:\t%s\n",
                        strna(json_text(host_path, "path")), strna(type));
        else if (empty_dir)
                fprintf(out,
                        "    Type:\tEmptyDir (a temporary directory that shares a pod's "
                        "lifetime)\n"
                        "    Medium:\t%s\n"
                        "    SizeLimit:\t%s\n",
                        strna(json_text(empty_dir, "medium")), limit ? limit : "<unset>");
        else if (!describe_data_volume(out, volume))
                fputs("    <unknown>\n", out);
}

static void describe_volumes(FILE *out, const json_t *volumes) {
        size_t i;
        json_t *volume;

        if (json_array_size(volumes) == 0) {
                fputs("Volumes:\t<none>\n", out);
                return;
        }
        fputs("Volumes:\n", out);
        json_array_foreach(volumes, i, volume)
                describe_volume(out, volume);
}

static int compare_tolerations(const void *a, const void *b) {
        return strcmp(strna(json_text(*(json_t *const *) a, "key")),
                      strna(json_text(*(json_t *const *) b, "key")));
}

/* "key=value:Effect op=Exists for 300s" */
static void write_toleration(FILE *out, const json_t *toleration) {
        const char *key = strna(json_text(toleration, "key"));
        const char *value = strna(json_text(toleration, "value"));
        const char *effect = strna(json_text(toleration, "effect"));
        const json_t *seconds = json_object_get(toleration, "tolerationSeconds");

        fprintf(out, "%s%s%s%s%s", key, value[0] ? "=" : "", value, effect[0] ? ":" : "", effect);
        if (streq_ptr(json_text(toleration, "operator"), "Exists") && !value[0])
                fprintf(out, "%sop=Exists", key[0] || effect[0] ? " " : "");
        if (seconds)
                fprintf(out, " for %llds", (long long) json_integer_value(seconds));
        fputc('\n', out);
}

static void write_tolerations(FILE *out, const json_t *tolerations) {
        size_t n = json_array_size(tolerations);
        cleanup_free json_t **sorted = calloc(n + 1, sizeof(json_t *));

        fprintf(out, "Tolerations:\t%s", n == 0 ? "<none>\n" : "");
        if (!sorted)
                return;
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(tolerations, i);
        if (n > 1)
                qsort(sorted, n, sizeof(*sorted), compare_tolerations);
        for (size_t i = 0; i < n; i++) {
                fputs(i > 0 ? "\t" : "", out);
                write_toleration(out, sorted[i]);
        }
}

/* Not in kubectl: the manifest file of the pod, and the reason why its current content is not used.
 */
static void write_manifest(FILE *out, const json_t *manifest) {
        const char *error = json_text(manifest, "error");
        char since[LONG_TIME_SIZE];

        if (!manifest)
                return;
        fprintf(out, "Manifest:\t%s", strna(json_text(manifest, "file")));
        if (error)
                fprintf(out, " (broken since %s: %s)",
                        format_long_time(since, json_text(manifest, "errorSince")), error);
        fputc('\n', out);
}

/* Not in kubectl: the source of the pod. */
static void write_source(FILE *out, const json_t *pod) {
        const char *source = own_json_value(pod, OWN_KEY_SOURCE);

        if (source)
                fprintf(out, "Source:\t%s\n", source);
}

void describe_pod(const json_t *pod, const json_t *manifest, FILE *out) {
        const char *qos = json_text(pod, "status", "qosClass");

        describe_pod_head(out, pod);
        describe_pod_containers(out, "Init Containers", json_at(pod, "spec", "initContainers"),
                                json_at(pod, "status", "initContainerStatuses"));
        describe_pod_containers(out, "Containers", json_at(pod, "spec", "containers"),
                                json_at(pod, "status", "containerStatuses"));
        describe_pod_containers(out, "Ephemeral Containers",
                                json_at(pod, "spec", "ephemeralContainers"),
                                json_at(pod, "status", "ephemeralContainerStatuses"));
        write_gates(out, json_at(pod, "spec", "readinessGates"),
                    json_at(pod, "status", "conditions"));
        describe_pod_conditions(out, json_at(pod, "status", "conditions"));
        describe_volumes(out, json_at(pod, "spec", "volumes"));
        if (qos)
                fprintf(out, "QoS Class:\t%s\n", qos);
        describe_pod_labels(out, "Node-Selectors:", json_at(pod, "spec", "nodeSelector"));
        write_tolerations(out, json_at(pod, "spec", "tolerations"));
        write_source(out, pod);
        write_manifest(out, manifest);
}
