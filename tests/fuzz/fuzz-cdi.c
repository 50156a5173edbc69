/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as a CDI file results in a specification whose devices have qualified names, or in one
 * error. */

#include "tests/fuzz/fuzz.h"

#include "agent/manifest/cdi-spec.h"
#include "common/cleanup.h"
#include "common/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_with(cdi_spec_freep) CdiSpec *spec = NULL;
        cleanup_error Error error = ERROR_NULL;

        (void) cdi_spec_is_one((const char *) data, size);
        if (cdi_spec_parse("fuzz.yaml", (const char *) data, size, &spec, &error) < 0) {
                assert(error.message && !spec);
                return 0;
        }
        assert(spec->version && spec->devices.n > 0);
        for (size_t i = 0; i < spec->devices.n; i++) {
                cleanup_free char *name =
                        text_format("%s=%s", spec->kind, spec->devices.items[i].name);

                assert(name && check_cdi_qualified_name(name, NULL) >= 0);
                assert(spec->devices.items[i].line > 0);
        }
        return 0;
}
