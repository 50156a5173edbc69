/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/prometheus-label.h"

#include "common/macros.h"
#include "common/utf8.h"

#include <string.h>

void write_prometheus_label(FILE *out, const char *name, const char *value) {
        size_t left = strlen(strna(value));

        fprintf(out, "%s=\"", name);
        for (const char *p = strna(value); left > 0;) {
                size_t length = utf8_character_length(p, left);

                if (length == 0)
                        fputc('?', out);
                else if (*p == '\n')
                        fputs("\\n", out);
                else if (*p == '"' || *p == '\\')
                        fprintf(out, "\\%c", *p);
                else
                        (void) fwrite(p, 1, length, out);
                length = MAX(length, (size_t) 1);
                p += length;
                left -= length;
        }
        fputc('"', out);
}

void write_container_labels(FILE *out, const ContainerLabels *labels) {
        const struct {
                const char *name, *value;
        } pairs[] = {
                { "container", labels->container }, { "id", labels->id },
                { "image", labels->image },         { "name", labels->name },
                { "namespace", labels->namespace }, { "pod", labels->pod },
                { "pod_uid", labels->pod_uid },
        };
        bool is_first = true;

        for (size_t i = 0; i < N_ELEMENTS(pairs); i++) {
                if (!pairs[i].value)
                        continue;
                if (!is_first)
                        fputc(',', out);
                write_prometheus_label(out, pairs[i].name, pairs[i].value);
                is_first = false;
        }
}
