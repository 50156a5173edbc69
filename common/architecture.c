/* SPDX-License-Identifier: Apache-2.0 */
#include "common/architecture.h"

#include "common/macros.h"

#include <sys/utsname.h>

const char *machine_architecture(void) {
        static const struct {
                const char *machine;
                const char *name;
        } names[] = {
                { "x86_64", "amd64" },        { "aarch64", "arm64" }, { "armv7l", "arm" },
                { "armv6l", "arm" },          { "i686", "386" },      { "mips64", "mips64le" },
                { "loongarch64", "loong64" },
        };
        static struct utsname uts;

        if (uname(&uts) < 0)
                return "unknown";
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (streq(names[i].machine, uts.machine))
                        return names[i].name;
        return uts.machine;
}
