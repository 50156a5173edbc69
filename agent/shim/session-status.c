/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/session-status.h"

#include "common/cleanup.h"
#include "common/json-text.h"

#include <jansson.h>
#include <stdint.h>
#include <sys/wait.h>

static json_t *session_failure_to_json(const char *message) {
        return json_pack("{s:{}, s:s, s:s, s:s, s:i}", "metadata", "status", "Failure", "message",
                         message, "reason", "InternalError", "code", 500);
}

static json_t *exit_to_json(int code) {
        char number[16], message[64];

        (void) snprintf(number, sizeof(number), "%d", code);
        (void) snprintf(message, sizeof(message), "command terminated with exit code %d", code);
        return json_pack("{s:{}, s:s, s:s, s:s, s:{s:[{s:s, s:s}]}}", "metadata", "status",
                         "Failure", "message", message, "reason", "NonZeroExitCode", "details",
                         "causes", "reason", "ExitCode", "message", number);
}

char *format_session_status(int status, const char *error) {
        int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        json_t *json;
        char *text;

        if (error)
                json = session_failure_to_json(error);
        else if (code != 0)
                json = exit_to_json(code);
        else
                json = json_pack("{s:{}, s:s}", "metadata", "status", "Success");
        text = json ? json_to_text(json, JSON_COMPACT) : NULL;
        json_decref(json);
        return text;
}

bool parse_terminal_size(const char *data, size_t length, struct winsize *ret) {
        json_t *json = json_loadb(data, length, 0, NULL);
        json_int_t width = json_integer_value(json_object_get(json, "Width"));
        json_int_t height = json_integer_value(json_object_get(json, "Height"));

        json_decref(json);
        if (width <= 0 || width > UINT16_MAX || height <= 0 || height > UINT16_MAX)
                return false;
        *ret = (struct winsize){ .ws_col = (unsigned short) width,
                                 .ws_row = (unsigned short) height };
        return true;
}
