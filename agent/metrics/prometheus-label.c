/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/prometheus-label.h"

#include "common/macros.h"

void write_prometheus_label(FILE *out, const char *name, const char *value) {
        fprintf(out, "%s=\"", name);
        for (const char *p = strna(value); *p; p++) {
                if (*p == '\n')
                        fputs("\\n", out);
                else if (*p == '"' || *p == '\\')
                        fprintf(out, "\\%c", *p);
                else
                        fputc(*p, out);
        }
        fputc('"', out);
}
