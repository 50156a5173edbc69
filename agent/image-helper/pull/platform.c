/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/platform.h"

#include "common/architecture.h"

#include <errno.h>
#include <stdlib.h>

/* As containerd has it: names that some tools use instead of Go's. */
static const char *canonical_architecture(const char *name) {
        static const struct {
                const char *alias, *name;
        } rows[] = {
                { "x86_64", "amd64" }, { "x86-64", "amd64" }, { "aarch64", "arm64" },
                { "i386", "386" },     { "armhf", "arm" },    { "armel", "arm" },
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                if (strcasecmp(name, rows[i].alias) == 0)
                        return rows[i].name;
        return name;
}

unsigned platform_match_score(const char *os, const char *architecture, const char *variant) {
        long highest = machine_variant(), wanted;

        if (!os || strcasecmp(os, "linux") != 0 || !architecture ||
            strcasecmp(canonical_architecture(architecture), machine_architecture()) != 0)
                return 0;
        if (!variant || highest == 0)
                return 1;
        wanted = strtol(variant + (variant[0] == 'v'), NULL, 10);
        /* A higher one may still run (x86-64-v3 on a new machine), but is the last choice. */
        return wanted > highest ? 1 : 2 + (unsigned) MAX(wanted, 0);
}

int platform_set_mismatch_error(const char *os, const char *architecture, const char *variant,
                                Error *reterr) {
        return error_setf(reterr, ENOEXEC,
                          "the image is for %.32s/%.32s%s%.32s, this machine is "
                          "linux/%s",
                          os ? os : "unknown", architecture ? architecture : "unknown",
                          variant && variant[0] ? "/" : "", strna(variant), machine_architecture());
}
