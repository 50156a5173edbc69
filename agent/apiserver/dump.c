/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/apiserver.h"
#include "common/dump.h"

void apiserver_dump(const ApiServerSync *api, FILE *out) {
        dump_section(out, "API server");
        dump_line(out, 1, "last error: %s", strna(apiserver_last_error(api)));
}
