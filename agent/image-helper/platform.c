/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/platform.h"

#include "common/architecture.h"

#include <errno.h>
#include <stdlib.h>

unsigned platform_match_score(const char *os, const char *architecture, const char *variant) {
        long highest = machine_variant(), wanted;

        if (!os || !streq(os, "linux") || !architecture ||
            !streq(architecture, machine_architecture()))
                return 0;
        if (!variant || variant[0] != 'v' || highest == 0)
                return 1;
        wanted = strtol(variant + 1, NULL, 10);
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
