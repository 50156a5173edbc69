/* SPDX-License-Identifier: Apache-2.0 */

/* images ls, pull, rm, prune: requests to the agent, which performs them asynchronously. */

#include "agent/cli/command-images.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/text.h"
#include "common/url-escape.h"

#include <time.h>

enum {
        BAR_WIDTH = 30,
        ASK_NSEC = 200 * 1000 * 1000
};

static int ignore_image_response(const char *data, size_t length, void *userdata) {
        return 0;
}

static int request_image_action(const Options *options, const char *method, const char *path,
                                const char *image, Error *reterr) {
        cleanup_free char *escaped = url_escape(image), *whole = NULL;

        whole = escaped ? text_format("%s?image=%s", path, escaped) : NULL;
        if (!whole)
                return -ENOMEM;
        return client_request(options->socket, method, whole, ignore_image_response, NULL, reterr);
}

/* ---- pull ---- */

static void draw_progress_bar(const json_t *pull) {
        json_int_t done = json_integer_value(json_object_get(pull, "doneBytes"));
        json_int_t total = json_integer_value(json_object_get(pull, "totalBytes"));
        int filled = total > 0 ? (int) (done * BAR_WIDTH / total) : 0;
        char have[32], all[32];

        if (total <= 0)
                return;
        fprintf(stderr, "\r\033[K[%.*s%*s] %s of %s", filled, "##############################",
                BAR_WIDTH - filled, "", format_bytes(have, (uint64_t) done),
                format_bytes(all, (uint64_t) total));
}

/* The pull of the image with this normalised name: manual pulls come first. */
static const json_t *find_image_pull(const json_t *all, const char *image) {
        const json_t *pull;
        size_t i;

        json_array_foreach(json_object_get(all, "pulls"), i, pull)
                if (streq_ptr(json_text(pull, "reference"), image))
                        return pull;
        return NULL;
}

/* 1 when it has ended. */
static int poll_image_pull(const Options *options, const char *image, bool has_bar, Error *reterr) {
        cleanup_json json_t *all = NULL;
        const json_t *pull;
        int r = client_get_json(options->socket, "/images", &all, reterr);

        if (r < 0)
                return r;
        pull = find_image_pull(all, image);
        if (!pull)
                return error_setf(reterr, EIO,
                                  "the agent no longer knows the pull; it may have restarted");
        if (has_bar)
                draw_progress_bar(pull);
        if (!json_is_true(json_object_get(pull, "isEnded")))
                return 0;
        if (has_bar)
                fputs("\r\033[K", stderr);
        if (json_text(pull, "error"))
                return error_setf(reterr, EIO, "%s", json_text(pull, "error"));
        printf("%s\n", strna(json_text(pull, "digest")));
        return 1;
}

static int pull_image_and_wait(const Options *options, const char *name, Error *reterr) {
        bool has_bar = isatty(STDERR_FILENO);
        cleanup_free char *image = NULL;
        int r = image_reference_normalise(name, &image, reterr);

        if (r >= 0)
                r = request_image_action(options, "POST", "/images/pull", image, reterr);
        while (r == 0) {
                r = poll_image_pull(options, image, has_bar, reterr);
                if (r == 0)
                        (void) nanosleep(&(struct timespec){ .tv_nsec = ASK_NSEC }, NULL);
        }
        return r;
}

static int images_pull(const Options *options, char *const *names, size_t n) {
        int status = STATUS_OK;

        for (size_t i = 0; i < n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = pull_image_and_wait(options, names[i], &error);

                if (r < 0)
                        status = fail_with_error(r, &error);
        }
        return status;
}

/* ---- rm, prune, ls ---- */

static int images_ls(const Options *options, char *const *names, size_t n) {
        return print_images(options, options->output);
}

static int images_rm(const Options *options, char *const *names, size_t n) {
        int status = STATUS_OK;

        for (size_t i = 0; i < n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = request_image_action(options, "DELETE", "/images/image", names[i], &error);

                if (r < 0)
                        status = fail_with_error(r, &error);
                else
                        printf("image \"%s\" removed\n", names[i]);
        }
        return status;
}

static int images_prune(const Options *options, char *const *names, size_t n) {
        cleanup_error Error error = ERROR_NULL;
        int r = request_image_action(options, "POST", "/images/prune", "", &error);

        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

/* clang-format off */
static const struct {
        const char *word;
        bool takes_names, needs_names;
        int (*run)(const Options *options, char *const *names, size_t n);
} verbs[] = {
        { "ls",     false, false, images_ls     },
        { "pull",   true,  true,  images_pull   },
        { "import", true,  true,  images_import },
        { "export", true,  true,  images_export },
        { "diff",   true,  true,  images_diff   },
        { "rm",     true,  true,  images_rm     },
        { "prune",  false, false, images_prune  },
        { "verify", false, false, images_verify },
        { "repair", false, false, images_repair },
};
/* clang-format on */

int run_images(const Options *options) {
        const char *word = options->n_words > 0 ? options->words[0] : "ls";
        size_t n = options->n_words > 0 ? options->n_words - 1 : 0;
        const char *words[N_ELEMENTS(verbs)];

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++) {
                words[i] = verbs[i].word;
                if (!streq(word, verbs[i].word))
                        continue;
                if (n > 0 && !verbs[i].takes_names)
                        return fail_usage("images %s takes no names", word);
                if (n == 0 && verbs[i].needs_names)
                        return fail_usage("images %s needs a name", word);
                return verbs[i].run(options, options->words + 1, n);
        }
        return fail_unknown("images command", word, words, N_ELEMENTS(words));
}
