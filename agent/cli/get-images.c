/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get images`. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/command-images.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

/* get images and images ls: a line for each image name. */

enum {
        ID_LENGTH = 12,
        SIZE_TEXT_SIZE = 32
};

#define DIGEST_PREFIX "sha256:"

/* One line for each of its names. */
typedef struct ImageRow {
        const json_t *image;
        const char *name;
} ImageRow;

char *format_bytes(char buffer[static 32], uint64_t bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        double value = (double) bytes;
        size_t i = 0;

        for (; value >= 1024 && i + 1 < N_ELEMENTS(units); i++)
                value /= 1024;
        (void) snprintf(buffer, SIZE_TEXT_SIZE, i == 0 ? "%.0f%s" : "%.1f%s", value, units[i]);
        return buffer;
}

static const char *image_state(const json_t *image) {
        if (json_is_true(json_object_get(image, "inUse")))
                return "in use";
        return json_object_get(image, "usedAt") ? "unpacked" : "in archive";
}

static void write_image_name(const json_t *image, const char *name, FILE *out) {
        const char *digest = strna(json_text(image, "digest"));
        json_int_t size = json_integer_value(json_object_get(image, "sizeBytes"));
        char age[DURATION_SIZE], text[SIZE_TEXT_SIZE];
        const char *used = json_text(image, "usedAt");

        if (strncmp(digest, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0)
                digest += strlen(DIGEST_PREFIX);
        fprintf(out, "%s\t%.*s\t%s\t%s\t%s\t%s\n", name, ID_LENGTH, digest,
                size > 0 ? format_bytes(text, (uint64_t) size) : "<unknown>", image_state(image),
                used ? format_age(age, used, now_realtime_usec()) : "<never>",
                json_text(image, "archive") ? json_text(image, "archive") : "<none>");
}

static void write_image_row(const json_t *image, FILE *out, void *userdata) {
        const json_t *names = json_object_get(image, "names"), *name;
        size_t i;

        if (json_array_size(names) == 0)
                write_image_name(image, "<none>", out);
        json_array_foreach(names, i, name)
                write_image_name(image, strna(json_string_value(name)), out);
}

int print_images(const Options *options, const char *format_text) {
        cleanup_json json_t *all = NULL;
        cleanup_error Error error = ERROR_NULL;
        Columns columns = COLUMNS_TABLE;
        json_t *images;
        Format format;
        int r;

        if (parse_format(format_text, &format) != 0)
                return STATUS_USAGE;
        r = client_get_json(options->socket, "/images", &all, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        images = json_object_get(all, "images");
        if (!format_is_table(format) && format != FORMAT_NAME)
                r = print_list(format, false, images);
        else if (json_array_size(images) == 0)
                report_nothing_found(NULL);
        else
                r = print_rows(&columns,
                               options->no_headers
                                       ? NULL
                                       : "IMAGE\tIMAGE ID\tSIZE\tSTATE\tLAST USED\tARCHIVE\n",
                               images, write_image_row, NULL);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

int get_images(const GetRequest *request) {
        return print_images(request->options, request->options->output);
}
