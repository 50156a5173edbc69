/* SPDX-License-Identifier: Apache-2.0 */
/* Compares resourceVersions. */

#include "agent/kubeclient/resource-version.h"

#include "common/macros.h"

static const char *strip_leading_zeros(const char *version) {
        static const char digits[] = "0123456789";

        if (!version || !version[0] || version[strspn(version, digits)])
                return NULL;
        return version + strspn(version, "0");
}

int resource_version_compare(const char *a, const char *b) {
        const char *x = strip_leading_zeros(a), *y = strip_leading_zeros(b);
        size_t n = x ? strlen(x) : 0, m = y ? strlen(y) : 0;

        if (!x || !y)
                return 0;
        if (n != m)
                return n < m ? -1 : 1;
        return strcmp(x, y);
}
