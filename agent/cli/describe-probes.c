/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/describe-probes.h"

#include "agent/cli/words.h"
#include "common/json-text.h"

#include <ctype.h>

/* A number or a name. */
static void write_port(FILE *out, const json_t *port) {
        if (json_is_string(port))
                fputs(json_string_value(port), out);
        else
                fprintf(out, "%lld", (long long) json_integer_value(port));
}

static void write_http(FILE *out, const json_t *http) {
        const char *scheme = json_text(http, "scheme");

        fputs("http-get ", out);
        for (const char *p = scheme ? scheme : "HTTP"; *p; p++)
                fputc(tolower((unsigned char) *p), out);
        fprintf(out, "://%s:", strna(json_text(http, "host")));
        write_port(out, json_object_get(http, "port"));
        fputs(strna(json_text(http, "path")), out);
}

static void write_exec(FILE *out, const json_t *exec) {
        size_t i;
        json_t *word;

        fputs("exec [", out);
        json_array_foreach(json_object_get(exec, "command"), i, word)
                fprintf(out, "%s%s", i > 0 ? " " : "", strna(json_string_value(word)));
        fputc(']', out);
}

static void write_handler(FILE *out, const json_t *probe) {
        const json_t *exec = json_object_get(probe, "exec");
        const json_t *http = json_object_get(probe, "httpGet");
        const json_t *tcp = json_object_get(probe, "tcpSocket");
        const json_t *grpc = json_object_get(probe, "grpc");

        if (exec)
                write_exec(out, exec);
        else if (http)
                write_http(out, http);
        else if (tcp) {
                fprintf(out, "tcp-socket %s:", strna(json_text(tcp, "host")));
                write_port(out, json_object_get(tcp, "port"));
        } else if (grpc) {
                fputs("grpc <pod>:", out);
                write_port(out, json_object_get(grpc, "port"));
                fprintf(out, " %s", strna(json_text(grpc, "service")));
        } else
                fputs("unknown", out);
}

static long long probe_number(const json_t *probe, const char *key) {
        return (long long) json_integer_value(json_object_get(probe, key));
}

void describe_probes(FILE *out, const json_t *container) {
        static const struct {
                const char *key;
                const char *label;
        } kinds[] = {
                { "livenessProbe", "Liveness" },
                { "readinessProbe", "Readiness" },
                { "startupProbe", "Startup" },
        };

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++) {
                const json_t *probe = json_object_get(container, kinds[i].key);

                if (!probe)
                        continue;
                fprintf(out, "    %s:\t", kinds[i].label);
                write_handler(out, probe);
                fprintf(out,
                        " delay=%llds timeout=%llds period=%llds #success=%lld #failure=%lld\n",
                        probe_number(probe, "initialDelaySeconds"),
                        probe_number(probe, "timeoutSeconds"), probe_number(probe, "periodSeconds"),
                        probe_number(probe, "successThreshold"),
                        probe_number(probe, "failureThreshold"));
        }
}
