/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/input.h"

#include "agent/manifest/cdi-spec.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <unistd.h>

/* The agent's limit for a manifest. */
#define FILE_MAX (10 * MIB)

const char *input_name(const char *file) {
        return streq(file, "-") ? "stdin" : file;
}

static int read_input(const char *file, char **ret_data, size_t *ret_length, Error *reterr) {
        int r;

        if (streq(file, "-"))
                r = read_stream(STDIN_FILENO, FILE_MAX, ret_data, ret_length);
        else
                r = read_file_at(AT_FDCWD, file, FILE_MAX, ret_data, ret_length);
        if (r == -EFBIG)
                return error_setf(reterr, EFBIG, "is larger than 10 MiB");
        if (r == -EINVAL)
                return error_setf(reterr, EINVAL, "is not a regular file");
        return r;
}

int read_manifest(const char *file, const char *node_name, ManifestObjects *ret, Error *reterr) {
        cleanup_free char *data = NULL;
        size_t length;
        int r = read_input(file, &data, &length, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", input_name(file));
        return manifest_parse(input_name(file), data, length, node_name, ret, reterr);
}

int validate_manifest(const char *file, const char *node_name, ManifestObjects *ret,
                      CdiSpec **ret_cdi, char ***ret_errors) {
        cleanup_free char *data = NULL;
        cleanup_error Error error = ERROR_NULL;
        size_t length;
        int r = read_input(file, &data, &length, &error);

        if (r >= 0 && !cdi_spec_is_one(data, length))
                return manifest_validate(input_name(file), data, length, node_name, ret,
                                         ret_errors);
        if (r < 0)
                (void) error_prefixf(&error, r, "%s", input_name(file));
        else
                r = cdi_spec_parse(input_name(file), data, length, ret_cdi, &error);
        if (r >= 0)
                return 0;
        return strv_append(ret_errors, error_message(&error, r)) < 0 ? -ENOMEM : r;
}
