/* SPDX-License-Identifier: Apache-2.0 */
#include "common/systemd-credential.h"

#include "common/base64.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
        KEY_ID_SIZE = 16
};

/* CRED_AES256_GCM_BY_TPM2_ABSENT in systemd: the key is public. */
static const uint8_t public_key_id[KEY_ID_SIZE] = {
        0x05, 0x84, 0x69, 0xda, 0xf6, 0xf5, 0x43, 0x24,
        0x80, 0x05, 0x49, 0xda, 0x0f, 0x8e, 0xa2, 0xfb
};

int systemd_credential_check(const char *text, Error *reterr) {
        cleanup_free char *data = NULL;
        size_t length = 0;
        int r = base64_decode(text, &data, &length);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || length < KEY_ID_SIZE)
                return error_setf(reterr, EKEYREJECTED,
                                  CREDENTIAL_PROGRAM " returned no credential");
        if (memcmp(data, public_key_id, KEY_ID_SIZE) == 0)
                return error_setf(reterr, EKEYREJECTED,
                                  "this machine has neither a TPM2 nor a key in "
                                  "/var/lib/systemd/credential.secret");
        return 0;
}
