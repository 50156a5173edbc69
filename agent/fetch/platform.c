/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fetch/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* The variant is the highest that the machine runs; 0 where variants do not matter. */
static const struct {
        const char *machine;
        const char *architecture;
        long variant;
} machines[] = {
        { "x86_64", "amd64", 1 }, { "aarch64", "arm64", 8 },       { "armv7l", "arm", 7 },
        { "armv6l", "arm", 6 },   { "armv5tel", "arm", 5 },        { "i686", "386", 0 },
        { "i586", "386", 0 },     { "riscv64", "riscv64", 0 },     { "ppc64le", "ppc64le", 0 },
        { "s390x", "s390x", 0 },  { "loongarch64", "loong64", 0 }, { "mips64", "mips64le", 0 },
};

static struct utsname name;

static size_t this_machine(void) {
        size_t i;

        if (!name.machine[0] && uname(&name) < 0)
                name.machine[0] = '\0';
        for (i = 0; i < N_ELEMENTS(machines); i++)
                if (streq(name.machine, machines[i].machine))
                        break;
        return i;
}

const char *platform_architecture(void) {
        size_t i = this_machine();

        return i < N_ELEMENTS(machines) ? machines[i].architecture : name.machine;
}

unsigned platform_fit(const char *os, const char *architecture, const char *variant) {
        size_t i = this_machine();
        long highest = i < N_ELEMENTS(machines) ? machines[i].variant : 0, wanted;

        if (!os || !streq(os, "linux") || !architecture ||
            !streq(architecture, platform_architecture()))
                return 0;
        if (!variant || variant[0] != 'v' || highest == 0)
                return 1;
        wanted = strtol(variant + 1, NULL, 10);
        /* A higher one may still run (x86-64-v3 on a new machine), but is the last choice. */
        return wanted > highest ? 1 : 2 + (unsigned) MAX(wanted, 0);
}

int platform_refuse(const char *os, const char *architecture, const char *variant, Error *reterr) {
        return error_setf(reterr, ENOEXEC,
                          "the image is for %.32s/%.32s%s%.32s, this machine is "
                          "linux/%s",
                          os ? os : "unknown", architecture ? architecture : "unknown",
                          variant && variant[0] ? "/" : "", strna(variant),
                          platform_architecture());
}
