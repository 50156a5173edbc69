/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/eviction-message.h"

#include "agent/model/quantity.h"
#include "common/file.h"
#include "common/text.h"

#include <stdio.h>

static void print_signal_amount(FILE *out, EvictionSignal signal, int64_t amount) {
        char text[QUANTITY_SIZE];

        (void) fputs(eviction_signals[signal].is_counted ? quantity_print_count(text, amount)
                                                         : quantity_print_bytes(text, amount),
                     out);
}

char *format_eviction_message(const ResourceShortage *shortage, const ContainerUsage *containers,
                              size_t n) {
        const char *resource = eviction_signals[shortage->signal].resource;
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void) fprintf(out, "The node was low on resource: %s. Threshold quantity: ", resource);
        print_signal_amount(out, shortage->signal, shortage->quantity);
        (void) fputs(", available: ", out);
        print_signal_amount(out, shortage->signal, shortage->available);
        (void) fputc('.', out);
        for (size_t i = 0; i < n; i++) {
                if (containers[i].used <= containers[i].requested)
                        continue;
                (void) fprintf(out, " Container %s was using ", containers[i].name);
                print_signal_amount(out, shortage->signal, containers[i].used);
                (void) fprintf(out, ", request is %s, has larger consumption of %s.",
                               containers[i].request ? containers[i].request : "0", resource);
        }
        return memstream_finish(out, &text);
}

char *format_reclaim_message(const ResourceShortage *shortage) {
        return text_format("Attempting to reclaim %s", eviction_signals[shortage->signal].resource);
}
