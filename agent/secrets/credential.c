/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/secrets/credential.h"

#include "agent/model/object.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/memfd.h"
#include "common/systemd-credential.h"
#include "common/text.h"

#define CREDENTIAL_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define CREDENTIAL_BYTES_MAX    (2 * OBJECT_BYTES_MAX)

static int start_systemd_creds(sd_event *event, char *verb, const char *name, const char *data,
                               size_t length, child_done_t done, void *userdata, Child **ret,
                               Error *reterr) {
        cleanup_free char *option = text_format("--name=%s", name);
        cleanup_close int input = memfd_open("credential", data, length);
        char program[] = CREDENTIAL_PROGRAM, standard[] = "-";
        int r;

        if (input < 0 || !option)
                return input < 0 ? input : -ENOMEM;
        r = child_spawn(
                event,
                &(ChildSpec){ .argv = (char *[]){ program, verb, option, standard, standard, NULL },
                              .output_max = CREDENTIAL_BYTES_MAX,
                              .timeout_usec = CREDENTIAL_TIMEOUT_USEC,
                              .input_fd = input },
                done, userdata, ret, NULL);
        return r == -ENOENT ? error_setf(reterr, EKEYREJECTED,
                                         CREDENTIAL_PROGRAM " of systemd is not installed")
               : r < 0      ? error_prefixf(reterr, r, CREDENTIAL_PROGRAM)
                            : 0;
}

int credential_seal_start(sd_event *event, const char *name, const char *data, child_done_t done,
                          void *userdata, Child **ret, Error *reterr) {
        char verb[] = "encrypt";

        return start_systemd_creds(event, verb, name, data, strlen(data), done, userdata, ret,
                                   reterr);
}

int credential_open_start(sd_event *event, const char *name, const char *data, size_t length,
                          child_done_t done, void *userdata, Child **ret, Error *reterr) {
        char verb[] = "decrypt";

        return start_systemd_creds(event, verb, name, data, length, done, userdata, ret, reterr);
}

int credential_check_opened(const ChildResult *result, Error *reterr) {
        int r = child_explain(result, CREDENTIAL_PROGRAM, reterr);

        if (r >= 0 && result->output_length >= CREDENTIAL_BYTES_MAX)
                r = error_setf(reterr, EFBIG, "is longer than %zu bytes", CREDENTIAL_BYTES_MAX);
        if (r < 0)
                (void) error_prefixf(reterr, r, CREDENTIAL_PROGRAM);
        return r < 0 ? -EKEYREJECTED : 0;
}

int credential_check_sealed(const ChildResult *result, Error *reterr) {
        int r = credential_check_opened(result, reterr);

        return r < 0 ? r : systemd_credential_check(result->output, reterr);
}
