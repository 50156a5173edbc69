/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/platform.h"

#include "common/architecture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        PLATFORM_SIZE = 64
};

static char chosen_name[PLATFORM_SIZE], chosen_architecture[PLATFORM_SIZE];
static long chosen_variant;

int platform_choose(const char *name, Error *reterr) {
        char rest[PLATFORM_SIZE], end;
        long variant = 0;
        int n = sscanf(name, "linux/%63[a-z0-9_-]%63s", chosen_architecture, rest);

        if (n < 1 || strlen(name) >= PLATFORM_SIZE ||
            (n == 2 && sscanf(rest, "/v%ld%c", &variant, &end) != 1)) {
                chosen_architecture[0] = '\0';
                return error_setf(reterr, EINVAL,
                                  "'%s' is not a platform such as linux/amd64 or linux/arm64/v8",
                                  name);
        }
        chosen_variant = variant;
        (void) snprintf(chosen_name, sizeof(chosen_name), "%s", name);
        return 0;
}

const char *platform_architecture(void) {
        return chosen_architecture[0] ? chosen_architecture : machine_architecture();
}

const char *platform_name(void) {
        if (!chosen_name[0])
                (void) snprintf(chosen_name, sizeof(chosen_name), "linux/%.*s",
                                PLATFORM_SIZE - (int) sizeof("linux/"), platform_architecture());
        return chosen_name;
}

static long platform_variant(void) {
        return chosen_architecture[0] ? chosen_variant : (long) machine_variant();
}

/* As in containerd, names that some tools use are accepted instead of Go's. */
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
        long highest = platform_variant(), wanted;

        if (!os || strcasecmp(os, "linux") != 0 || !architecture ||
            strcasecmp(canonical_architecture(architecture), platform_architecture()) != 0)
                return 0;
        if (!variant || highest == 0)
                return 1;
        wanted = strtol(variant + (variant[0] == 'v'), NULL, 10);
        /* A higher variant may still run (x86-64-v3 on a new machine), but is the last choice. */
        return wanted > highest ? 1 : 2 + (unsigned) MAX(wanted, 0);
}

int platform_set_mismatch_error(const char *os, const char *architecture, const char *variant,
                                Error *reterr) {
        return error_setf(reterr, ENOEXEC, "the image is for %.32s/%.32s%s%.32s, %s linux/%s",
                          os ? os : "unknown", architecture ? architecture : "unknown",
                          variant && variant[0] ? "/" : "", strna(variant),
                          chosen_architecture[0] ? "not for" : "this machine is",
                          platform_architecture());
}
