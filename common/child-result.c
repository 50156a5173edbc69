/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of a child's exit status. Pure. */

#include "common/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

bool child_succeeded(const ChildResult *result) {
        return result->code == CLD_EXITED && result->status == 0;
}

int child_explain(const ChildResult *result, const char *what, Error *reterr) {
        if (child_succeeded(result))
                return 0;
        if (result->timed_out)
                return error_setf(reterr, ETIMEDOUT, "%s exceeded its time limit and was killed",
                                  what);
        if (result->error[0])
                return error_setf(reterr, EIO, "%s", result->error);
        if (result->code == CLD_EXITED)
                return error_setf(reterr, EIO, "%s ended with status %d", what, result->status);
        return error_setf(reterr, EIO, "%s was killed by signal %d (%s)", what, result->status,
                          strsignal(result->status));
}
