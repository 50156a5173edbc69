/* SPDX-License-Identifier: Apache-2.0 */
#include "common/architecture.h"

#include "common/macros.h"

#include <sys/utsname.h>

static const struct {
        const char *machine;
        const char *name;
        unsigned variant;
} machines[] = {
#if defined(__i386__) || defined(__arm__) /* also on a 64-bit kernel */
        { "x86_64", "386", 0 },
        { "aarch64", "arm", 7 },
#else
        { "x86_64", "amd64", 1 },
        { "aarch64", "arm64", 8 },
#endif
        { "armv7l", "arm", 7 },
        { "armv6l", "arm", 6 },
        { "armv5tel", "arm", 5 },
        { "i686", "386", 0 },
        { "i586", "386", 0 },
        { "mips64", "mips64le", 0 },
        { "loongarch64", "loong64", 0 },
};

/* The index of this machine, or N_ELEMENTS(machines); *ret_machine is the kernel's name for it. */
static size_t this_machine(const char **ret_machine) {
        static struct utsname uts;
        size_t i = 0;

        *ret_machine = uname(&uts) < 0 ? "unknown" : uts.machine;
        while (i < N_ELEMENTS(machines) && !streq(machines[i].machine, *ret_machine))
                i++;
        return i;
}

const char *machine_architecture(void) {
        const char *machine;
        size_t i = this_machine(&machine);

        return i < N_ELEMENTS(machines) ? machines[i].name : machine;
}

unsigned machine_variant(void) {
        const char *machine;
        size_t i = this_machine(&machine);

        return i < N_ELEMENTS(machines) ? machines[i].variant : 0;
}
